"""The same data folder started again and again, after orderly stops and after none: the same ids, chains and records.

The original's third start exited, its fourth came up empty; its counts began at 0 again (shared/original.md).
"""

from __future__ import annotations

import asyncio
import random
import shutil
from pathlib import Path

import pytest
from support.chains import Chain, chain_of, check_chain, no_rollover
from support.crash_disk import CrashDisk
from support.embedded import Wire, batch_of, create_topic, fetch, produce, running_node, settings
from support.reading import Found, only_partition, read_all
from support.waiting import until

from walrusmq.broker.node import Node
from walrusmq.protocol.error_codes import ErrorCode
from walrusmq.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from walrusmq.protocol.records.batch import Producer

STARTS = 20
PARTITIONS = 3
BATCHES_EACH_LIFE = 15
SIDE_FILES = ("*.index", "*.times", "*.producers", "*.checkpoint")


class _Expected:
    """What a partition held when it was last looked at."""

    def __init__(self) -> None:
        self.found: Found = []
        self.chain: Chain = []


class _Lives:
    """A topic that gains records in each life of its node, and must have all of the lives before."""

    def __init__(self) -> None:
        self.expected = [_Expected() for _ in range(PARTITIONS)]
        self.ids: set[tuple[str, bytes]] = set()
        self.sequence = 0

    async def live(self, node: Node) -> None:
        """Check all, then produce some more, and wait until rollovers that are due are done."""
        async with await Wire.to(node) as wire:
            if "t" not in node.image.topics_by_name:
                await create_topic(wire, "t", PARTITIONS, walrus_segment_entries="5")
            self.ids.add((node.cluster_id, node.image.topics_by_name["t"].id))
            assert len(self.ids) == 1, "the cluster and the topic keep their ids"
            for index, expected in enumerate(self.expected):
                found = await read_all(wire, "t", partition=index)
                assert found == expected.found
                assert chain_of(node, "t", index) == expected.chain
                check_chain(node, "t", found, index)
            for _ in range(BATCHES_EACH_LIFE):
                await self._produce(wire)
            await no_rollover(node)
            for index, expected in enumerate(self.expected):
                expected.chain = chain_of(node, "t", index)

    async def _produce(self, wire: Wire) -> None:
        for index, expected in enumerate(self.expected):
            value = b"%d-%d" % (index, self.sequence)
            batch = batch_of(value, producer=Producer(1, 0, self.sequence))
            part = only_partition(await wire.ask(produce("t", batch, partition=index), 9))
            assert (part.error_code, part.base_offset) == (0, len(expected.found))
            expected.found.append((part.base_offset, value))
        self.sequence += 1


def test_twenty_starts_after_orderly_stops(tmp_path: Path) -> None:
    async def scenario() -> None:
        lives = _Lives()
        for _ in range(STARTS):
            async with running_node(tmp_path) as node:
                await lives.live(node)
        assert len(lives.expected[0].chain) > STARTS

    asyncio.run(scenario())


def test_twenty_starts_after_kills(tmp_path: Path) -> None:
    """Each start is on a copy of the folder that a living node had."""

    async def scenario() -> None:
        lives = _Lives()
        for number in range(STARTS):
            folder = tmp_path / f"{number}"
            async with running_node(folder) as node:
                await lives.live(node)
                shutil.copytree(folder, tmp_path / f"{number + 1}")
            shutil.rmtree(folder)
        assert len(lives.expected[0].chain) > STARTS

    asyncio.run(scenario())


def test_twenty_starts_of_any_kind_without_some_of_the_files_beside_the_logs(tmp_path: Path) -> None:
    """C33: kill -9, and index files that were cut."""

    async def scenario() -> None:
        chance = random.Random(33)
        lives = _Lives()
        disk = CrashDisk(tmp_path, 33)
        for _ in range(STARTS):
            node = Node(settings(tmp_path), files=disk)
            await node.start()
            await lives.live(node)
            end = chance.choice(["stop", "kill", "power"])
            if end != "stop":
                disk.power_off()
            await node.stop()
            if end == "kill":
                disk.restart_process()
            elif end == "power":
                disk.power_on()
            damage(disk, tmp_path, chance)

    asyncio.run(scenario())


def damage(disk: CrashDisk, folder: Path, chance: random.Random) -> None:
    """Cut, scramble or remove some of what can be made again."""
    for pattern in SIDE_FILES:
        for path in sorted((folder / "topics").rglob(pattern)):
            size = path.stat().st_size
            fd = disk.open(str(path))
            match chance.choice(["leave", "leave", "cut", "scramble", "remove"]):
                case "cut":
                    disk.ftruncate(fd, chance.randint(0, size))
                case "scramble" if size:
                    disk.pwrite(fd, chance.randbytes(1), chance.randrange(size))
                case "remove":
                    disk.unlink(str(path))
            disk.fdatasync(fd)
            disk.close(fd)
            disk.sync_folder(str(path.parent))


async def end_of_epoch(wire: Wire, epoch: int) -> tuple[int, int]:
    """Epoch and end offset as OffsetForLeaderEpoch tells them."""
    asked = OffsetForLeaderTopic(
        topic="t", partitions=[OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=epoch)]
    )
    part = only_partition(await wire.ask(OffsetForLeaderEpochRequest(replica_id=-1, topics=[asked]), 4))
    assert part.error_code == 0
    return part.leader_epoch, part.end_offset


async def fetch_at_epoch(wire: Wire, epoch: int) -> int:
    """The error code of a fetch by a consumer that believes in this leader epoch."""
    request = fetch("t", 0)
    request.topics[0].partitions[0].current_leader_epoch = epoch
    error: int = only_partition(await wire.ask(request, 12)).error_code
    return error


@pytest.mark.parametrize("fsync", ["never", "interval"])
def test_an_unclean_start_without_syncs_seals_what_it_recovered_and_raises_the_epoch(
    tmp_path: Path, fsync: str
) -> None:
    """Acknowledged entries may be gone: consumers can tell by the new epoch."""

    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        node = Node(settings(tmp_path, fsync=fsync), files=disk)
        await node.start()
        async with await Wire.to(node) as wire:
            await create_topic(wire, "t")
            for number in range(3):
                await wire.ask(produce("t", batch_of(b"%d" % number)), 9)
            assert await fetch_at_epoch(wire, 0) == 0
        disk.power_off()
        await node.stop()
        disk.restart_process()
        for start in range(3):  # the second and third are clean, and change nothing
            async with running_node(tmp_path, files=disk, fsync=fsync) as node, await Wire.to(node) as wire:
                await no_rollover(node)
                assert chain_of(node, "t")[0][:3] == (1, 0, 3)
                assert len(chain_of(node, "t")) == 1
                assert node.metrics.rollovers == ({} if start else {"recovery": 1})
                assert await fetch_at_epoch(wire, 0) == ErrorCode.FENCED_LEADER_EPOCH
                assert await fetch_at_epoch(wire, 1) == 0
                assert await end_of_epoch(wire, 0) == (0, 3)
                assert [value for _, value in await read_all(wire, "t")][:3] == [b"0", b"1", b"2"]
                part = only_partition(await wire.ask(produce("t", batch_of(b"more")), 9))
                assert (part.error_code, part.base_offset) == (0, 3 + start)
                assert await end_of_epoch(wire, 1) == (1, 4 + start)

    asyncio.run(scenario())


def test_an_unclean_start_with_syncs_keeps_segment_and_epoch(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        node = Node(settings(tmp_path), files=disk)
        await node.start()
        async with await Wire.to(node) as wire:
            await create_topic(wire, "t")
            await wire.ask(produce("t", batch_of(b"0")), 9)
        disk.power_off()
        await node.stop()
        disk.power_on()
        async with running_node(tmp_path, files=disk) as node, await Wire.to(node) as wire:
            assert chain_of(node, "t") == []
            assert await fetch_at_epoch(wire, 0) == 0
            assert await read_all(wire, "t") == [(0, b"0")]

    asyncio.run(scenario())


def test_producers_wait_for_the_seal_of_an_unclean_start(tmp_path: Path) -> None:
    """The first requests may come before it is recorded: they go into the next segment."""

    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        node = Node(settings(tmp_path, fsync="never"), files=disk)
        await node.start()
        async with await Wire.to(node) as wire:
            await create_topic(wire, "t")
            await wire.ask(produce("t", batch_of(b"0")), 9)
        disk.power_off()
        await node.stop()
        disk.restart_process()
        node = Node(settings(tmp_path, fsync="never"), files=disk)
        await node.start()
        try:
            with disk.held("pwrite"):
                async with await Wire.to(node) as wire:
                    wire.send(produce("t", batch_of(b"1")), 9)
                    await until(lambda: node.held_appends.held_bytes)
            async with await Wire.to(node) as wire:
                await until(lambda: node.led.by_name["t"][0].log_end_offset == 2)
                assert await read_all(wire, "t") == [(0, b"0"), (1, b"1")]
                assert check_chain(node, "t", await read_all(wire, "t")) == 1
        finally:
            await node.stop()

    asyncio.run(scenario())

"""Random histories of a node on a disk that loses what wasn't synced: what was acknowledged stays, once, in order.

A failure prints its seed; `_History(folder, seed)` replays it, but for the moments at which threads run.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import random
from collections import deque
from pathlib import Path

import pytest
from support.crash_disk import CrashDisk
from support.embedded import PATIENCE_S, Wire, batch_of, create_topic, produce, settings
from support.reading import only_partition, read_all

from walrusmq.broker import rollovers
from walrusmq.broker.node import Node
from walrusmq.protocol.error_codes import ErrorCode
from walrusmq.protocol.errors import KafkaError
from walrusmq.protocol.records.batch import Producer

SEEDS = [*range(200), 1613, 2011, 2113]
LIVES = 2
WINDOW = 5
"""Requests that an idempotent producer has unanswered at a time, as the clients do it."""
RETRY_S = 0.01
TROUBLES = ("full", "broken metadata", "broken write", "broken sync")
CUT_OFF = (OSError, asyncio.IncompleteReadError, TimeoutError)
"""What a client sees of a node that goes away."""


class _Partition:
    """What one partition must hold."""

    def __init__(self) -> None:
        self.safe: dict[int, bytes | None] = {}
        """By offset: what was acknowledged, or seen by a consumer, at any time."""
        self.sent: set[bytes] = set()

    def check(self, found: list[tuple[int, bytes | None]]) -> None:
        by_offset = dict(found)
        assert list(by_offset) == list(range(len(found))), "offsets are dense from 0 on"
        missing = {offset: value for offset, value in self.safe.items() if by_offset.get(offset, b"none") != value}
        assert not missing, f"acknowledged or seen, and not there: {missing}"
        values = list(by_offset.values())
        assert len(set(values)) == len(values), "a record came twice"
        assert set(values) <= self.sent
        self.safe = by_offset


class _Client:
    """One producer of one partition; it numbers its records and, if idempotent, insists on each of them."""

    def __init__(self, name: bytes, partition: int, acks: int, producer_id: int | None) -> None:
        self.name = name
        self.partition = partition
        self.acks = acks
        self.producer_id = producer_id
        self.sequence = 0
        self.is_known = producer_id is None
        """Whether the partition has had a batch of it: one that it doesn't know may begin with any of several."""
        self.unsettled: deque[tuple[int, list[bytes]]] = deque()
        """Sequence and values of the batches without an acknowledgement, oldest first."""

    def next_batch(self, chance: random.Random, model: _Partition) -> None:
        count = chance.choice([1, 1, 2, 7])
        values = [
            b"%s-%d " % (self.name, self.sequence + place) + bytes(chance.choice([0, 400])) for place in range(count)
        ]
        model.sent.update(values)
        self.unsettled.append((self.sequence, values))
        self.sequence += count

    async def settle(self, wire: Wire, model: _Partition) -> None:
        """Send what is unsettled, and again what an idempotent producer got an error for."""
        while self.unsettled:
            window = list(self.unsettled)[: WINDOW if self.is_known else 1]
            for sequence, values in window:
                batch = batch_of(*values, **self._identity(sequence))
                wire.send(produce("t", batch, partition=self.partition, acks=self.acks), 9)
            results = [only_partition(await wire.receive(produce("t", None), 9)) for _ in window]
            for (_, values), result in zip(window, results, strict=True):
                if result.error_code == 0:
                    model.safe.update(enumerate(values, result.base_offset))
                    self.is_known = True
                elif self.producer_id is not None:
                    assert result.error_code in RETRIABLE, result
                    break
                self.unsettled.popleft()

    def _identity(self, sequence: int) -> dict[str, Producer]:
        return {} if self.producer_id is None else {"producer": Producer(self.producer_id, 0, sequence)}


RETRIABLE = {
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
}


class _History:
    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.disk = CrashDisk(folder, seed)
        self.settings = settings(folder, monitor_check_ms=chance.choice([5, 10_000]))
        self.segment_entries = chance.choice([1, 3, 10, 1000])
        self.partitions = [_Partition() for _ in range(chance.randint(1, 3))]
        self.clients = [
            _Client(
                b"%d" % number, number % len(self.partitions), chance.choice([1, -1]), number if number % 2 else None
            )
            for number in range(chance.randint(2, 5))
        ]
        self.node: Node

    async def run(self) -> None:
        async with asyncio.timeout(4 * PATIENCE_S):
            await self._prepare()
            for _ in range(LIVES):
                await self._live(self.chance.choice(["stop", "kill", "power", "power in a call"]))
            await self._check_all()

    async def _prepare(self) -> None:
        async with self._up(), await Wire.to(self.node) as wire:
            await create_topic(wire, "t", len(self.partitions), walrus_segment_entries=str(self.segment_entries))

    @contextlib.asynccontextmanager
    async def _up(self):  # type: ignore[no-untyped-def]
        self.node = Node(self.settings, files=self.disk)
        await self.node.start()
        try:
            yield
        finally:
            await self.node.stop()

    async def _live(self, end: str) -> None:
        if end == "power in a call":
            self.disk.power_off(after_calls=self.chance.randint(1, 200))
        with contextlib.suppress(OSError, KafkaError):
            async with self._up():
                if end != "power in a call":
                    await self._check(self.node)
                await self._traffic(TROUBLES)
                if end in ("kill", "power"):
                    self.disk.power_off()
        if end == "kill":
            self.disk.restart_process()
        elif end != "stop":
            self.disk.power_on()

    async def _traffic(self, troubles: tuple[str, ...]) -> None:
        """All clients at once, some of them cut off in the middle by what ends the life."""
        for client in self.clients:
            if client.producer_id is None:
                client.unsettled.clear()
            for _ in range(self.chance.randint(0, 15)):
                client.next_batch(self.chance, self.partitions[client.partition])
        working = [asyncio.create_task(self._work(client)) for client in self.clients]
        trouble = asyncio.create_task(self._trouble(troubles))
        await self._wait(working)
        for task in (*working, trouble):
            task.cancel()
        for outcome in await asyncio.gather(*working, trouble, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
        self.disk.heal()

    async def _wait(self, working: list[asyncio.Task[None]]) -> None:
        """Until all is done, for a moment only, or until the power goes."""
        patience_s = self.chance.choice([PATIENCE_S, PATIENCE_S, self.chance.random() * 0.02])
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                while not self.disk.is_off and not all(task.done() for task in working):
                    await asyncio.wait(working, timeout=0.002)

    async def _work(self, client: _Client) -> None:
        with contextlib.suppress(*CUT_OFF):
            async with await Wire.to(self.node) as wire:
                await client.settle(wire, self.partitions[client.partition])

    async def _trouble(self, troubles: tuple[str, ...]) -> None:
        """What a disk may do beside dying."""
        for _ in range(self.chance.randint(0, 3)):
            await asyncio.sleep(self.chance.random() * 0.003)
            match self.chance.choice(troubles):
                case "full":
                    self.disk.room = self.chance.randint(0, 500)
                    await asyncio.sleep(0.002)
                    self.disk.room = None
                case "broken sync":
                    self.disk.fail("fdatasync", errno.EIO, path=".log")
                case "broken metadata":
                    self.disk.fail(self.chance.choice(["fdatasync", "pwrite"]), errno.EIO, path="/metadata/")
                case "broken write":
                    self.disk.fail("pwrite", errno.EIO, path="/topics/")

    async def _check_all(self) -> None:
        """All is there; and what idempotent producers were not told of, they can still get told."""
        async with self._up():
            await self._check(self.node)
            for client in self.clients:
                if client.producer_id is not None:
                    async with await Wire.to(self.node) as wire:
                        await client.settle(wire, self.partitions[client.partition])
            await self._check(self.node)
        for client in self.clients:
            if client.producer_id is not None:
                values = list(self.partitions[client.partition].safe.values())
                ours = [value for value in values if value is not None and value.startswith(client.name + b"-")]
                numbers = [int(value.split()[0].split(b"-")[1]) for value in ours]
                assert numbers == list(range(client.sequence)), "each record of an idempotent producer once, in order"

    async def _check(self, node: Node) -> None:
        node.image.check()
        async with await Wire.to(node) as wire:
            for index, model in enumerate(self.partitions):
                found = await read_all(wire, "t", partition=index, max_bytes=self.chance.choice([1, 1 << 20]))
                model.check(found)
                image = node.image.topics_by_name["t"].partitions[index]
                for sealed in image.sealed:
                    readable = sum(sealed.first_offset <= offset < sealed.end_offset for offset, _ in found)
                    assert readable == sealed.end_offset - sealed.first_offset, "a sealed count is what can be read"
                assert node.led.by_name["t"][index].log_end_offset == len(found)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_that_crashes_loses_and_doubles_nothing(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollovers, "RETRY_S", RETRY_S)
    asyncio.run(_History(tmp_path, seed).run())

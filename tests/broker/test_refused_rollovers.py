"""Rollovers that the metadata log's disk refuses: nothing is written meanwhile, one seal comes of it in the end."""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from pathlib import Path

import pytest
from support.chains import chain_of, check_chain, no_rollover
from support.crash_disk import CrashDisk
from support.embedded import Wire, batch_of, create_topic, produce, running_node, settings
from support.reading import only_partition, read_all
from support.waiting import until

from walrusmq.broker import rollovers
from walrusmq.broker.node import Node
from walrusmq.protocol.error_codes import ErrorCode
from walrusmq.protocol.records.batch import Producer

METADATA = "/metadata/"
FAILURES = 5
MUCH = 5_000


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollovers, "RETRY_S", 0.01)


async def put(wire: Wire, value: bytes, *, acks: int = -1) -> tuple[int, int]:
    """Produce one record to ``t``: error code and base offset."""
    part = only_partition(await wire.ask(produce("t", batch_of(value), acks=acks), 9))
    return part.error_code, part.base_offset


@pytest.mark.parametrize("call", ["pwrite", "fdatasync"])
def test_a_rollover_that_is_refused_for_a_while_ends_in_one_seal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, call: str
) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        async with running_node(tmp_path, files=disk) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t", walrus_segment_entries="1")
            assert await put(wire, b"0") == (0, 0)
            disk.fail(call, errno.EIO, path=METADATA, times=FAILURES)
            assert await put(wire, b"1") == (0, 1)
            answers = [await put(wire, b"2")]
            while answers[-1][0]:
                assert answers[-1] == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
                answers.append(await put(wire, b"2"))
            assert answers[-1] == (0, 2)
            found = await read_all(wire, "t")
            assert found == [(0, b"0"), (1, b"1"), (2, b"2")]
            assert check_chain(node, "t", found) == 1
            assert node.metrics.rollovers == {"entries": 1}
        told = [record for record in caplog.records if record.name == "walrusmq.rollovers"]
        assert len(told) == 1, "said once"

    asyncio.run(scenario())


def test_producers_that_wait_for_a_refused_rollover_are_told_that_nothing_was_written(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        async with running_node(tmp_path, files=disk) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            assert await put(wire, b"0") == (0, 0)
            partition = node.led.by_name["t"][0]
            disk.fail("pwrite", errno.ENOSPC, path=METADATA, times=MUCH)
            partition.stop()  # as a rollover does first: what comes now is held for its end
            for number in range(3):
                wire.send(produce("t", batch_of(b"%d" % number, producer=Producer(1, 0, number))), 9)
            await until(lambda: node.held_appends.held_bytes)
            node.rollovers.begin(partition, "manual")
            for _ in range(3):
                part = only_partition(await wire.receive(produce("t", None), 9))
                assert (part.error_code, part.base_offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
                assert "can't open its next segment" in part.error_message
            assert node.held_appends.held_bytes == 0
            assert any("metadata log can't be written" in reason for reason in node.unready_reasons())
            assert await read_all(wire, "t") == [(0, b"0")]
            disk.heal()
            await until(lambda: partition.is_open)
            assert await put(wire, b"1") == (0, 1)
            assert not node.unready_reasons()
            assert check_chain(node, "t", await read_all(wire, "t")) == 1

    asyncio.run(scenario())


def test_acks_0_during_a_refused_rollover_closes_the_connection(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        async with running_node(tmp_path, files=disk) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            assert await put(wire, b"0") == (0, 0)
            disk.fail("pwrite", errno.ENOSPC, path=METADATA, times=MUCH)
            node.rollovers.begin(node.led.by_name["t"][0], "manual")
            wire.send(produce("t", batch_of(b"1"), acks=0), 9)
            assert await wire.is_closed_by_peer()

    asyncio.run(scenario())


def test_a_node_stops_at_once_while_its_rollover_is_refused_and_goes_on_at_the_next_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        node = Node(settings(tmp_path), files=disk)
        await node.start()
        async with await Wire.to(node) as wire:
            await create_topic(wire, "t", walrus_segment_entries="1")
            disk.fail("pwrite", errno.ENOSPC, path=METADATA, times=MUCH)
            for number in range(2):
                assert await put(wire, b"%d" % number) == (0, number)
            await until(lambda: not node.led.by_name["t"][0].is_open)
            wire.send(produce("t", batch_of(b"lost")), 9)
            began = time.monotonic()
            await node.stop()
            assert time.monotonic() - began < 2
            part = only_partition(await wire.receive(produce("t", None), 9))
            assert part.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        disk.heal()
        async with running_node(tmp_path, files=disk) as node, await Wire.to(node) as wire:
            assert await read_all(wire, "t") == [(0, b"0"), (1, b"1")]
            assert chain_of(node, "t") == []
            assert await put(wire, b"2") == (0, 2)
            assert await put(wire, b"3") == (0, 3)
            assert check_chain(node, "t", await read_all(wire, "t")) == 1

    asyncio.run(scenario())


def test_a_defect_in_a_rollover_is_told_to_producers_and_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            await create_topic(wire, "other")
            assert await put(wire, b"0") == (0, 0)
            monkeypatch.setattr(rollovers.Rollovers, "_command", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                await node.rollovers.begin(node.led.by_name["t"][0], "manual")
            assert await put(wire, b"1") == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
            assert await read_all(wire, "t") == [(0, b"0")]
            assert only_partition(await wire.ask(produce("other", batch_of(b"x")), 9)).error_code == 0
        (told,) = [record for record in caplog.records if record.exc_info]
        assert "the rollover of t-0:1 failed" in told.getMessage()

    asyncio.run(scenario())


def test_files_beside_a_sealed_segment_that_cant_be_written_hold_up_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        async with running_node(tmp_path, files=disk) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t", walrus_segment_entries="1")
            disk.fail("pwrite", errno.EIO, path=".producers", times=MUCH)
            batches = [batch_of(b"%d" % number, producer=Producer(1, 0, number)) for number in range(6)]
            for number, batch in enumerate(batches):
                part = only_partition(await wire.ask(produce("t", batch), 9))
                assert (part.error_code, part.base_offset) == (0, number)
            await no_rollover(node)
            assert check_chain(node, "t", await read_all(wire, "t")) == 3
            disk.heal()
        async with running_node(tmp_path, files=disk) as node, await Wire.to(node) as wire:
            for number in (4, 5):
                part = only_partition(await wire.ask(produce("t", batches[number]), 9))
                assert (part.error_code, part.base_offset) == (0, number)
        assert not [record for record in caplog.records if record.levelno >= logging.ERROR]

    asyncio.run(scenario())

"""The monitor loop: rollovers that are due, retention, and a metadata log that is to be tried again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.chains import sealed_of
from support.clocks import MovedClock
from support.crash_disk import CrashDisk
from support.embedded import Wire, batch_of, create_topic, fetch, produce, running_node
from support.reading import only_partition, read_all
from support.waiting import until

from walrusmq.broker import monitor
from walrusmq.broker.commands import MoveLogStart, NamedValue, ResourceType, SetConfigs
from walrusmq.broker.node import Node
from walrusmq.protocol.error_codes import ErrorCode

DAY_MS = 86_400_000
RECORDS_MS = 1_700_000_000_000
"""The timestamp of all records here."""
QUICK = {"monitor_check_ms": 2, "log_retention_check_interval_ms": 2}


@asynccontextmanager
async def a_node(
    folder: Path, *, clock: Any = None, files: Any = None, **given: Any
) -> AsyncIterator[tuple[Node, Wire]]:
    """A node that looks all the time, by a clock that stands at the records' own time."""
    settings = {**QUICK, **given}
    clock = clock or MovedClock(RECORDS_MS)
    async with running_node(folder, clock=clock, files=files, **settings) as node, await Wire.to(node) as wire:
        yield node, wire


async def put(wire: Wire, count: int = 1, *, partition: int = 0, size: int = 1) -> None:
    for _ in range(count):
        part = only_partition(await wire.ask(produce("t", batch_of(bytes(size)), partition=partition), 9))
        assert part.error_code == 0


def log_start(node: Node, partition: int = 0) -> int:
    return node.image.topics_by_name["t"].partitions[partition].log_start_offset


async def rounds() -> None:
    """Let the loop come round a few times."""
    for _ in range(20):
        await asyncio.sleep(QUICK["monitor_check_ms"] / 1000)


async def segments(node: Node, wire: Wire, count: int, *, size: int = 1) -> None:
    """Produce so many records, each into a segment of its own."""
    for number in range(count):
        await put(wire, size=size)
        await until(lambda: node.image.topics_by_name["t"].partitions[0].open.id == number + 2)  # noqa: B023


def test_every_partition_that_is_due_is_sealed_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "PARTITIONS_PER_TURN", 3)

    async def scenario() -> None:
        async with a_node(tmp_path) as (node, wire):
            await create_topic(wire, "t", 10, walrus_segment_entries="2")
            for partition in range(10):
                await put(wire, 2, partition=partition)
            await until(lambda: all(len(sealed_of(node, "t", index)) == 1 for index in range(10)))

    asyncio.run(scenario())


def test_segments_go_when_they_are_old_and_the_open_one_is_sealed_in_time_for_that(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = MovedClock(RECORDS_MS)
        async with a_node(tmp_path, clock=clock) as (node, wire):
            await create_topic(wire, "t", walrus_segment_entries="1", retention_ms=str(DAY_MS))
            await segments(node, wire, 2)
            large = NamedValue(name="walrus.segment.entries", value="1000")
            await node.propose(SetConfigs(resource_type=ResourceType.TOPIC, name="t", configs=[large]))
            await put(wire)
            clock.ms += DAY_MS
            await rounds()
            assert log_start(node) == 0
            clock.ms += 1
            await until(lambda: log_start(node) == 3)
            assert sealed_of(node, "t") == []
            assert await read_all(wire, "t", offset=3) == []
            data = only_partition(await wire.ask(fetch("t", 2), 12))
            assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    asyncio.run(scenario())


def test_the_oldest_segments_go_when_there_is_too_much(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path) as (node, wire):
            await create_topic(wire, "t", walrus_segment_entries="1", retention_bytes="3500")
            await segments(node, wire, 8, size=1000)
            await until(lambda: log_start(node) == 8 - 4)
            await rounds()
            assert log_start(node) == 8 - 4, "less would be less than is to be kept"
            assert len(sealed_of(node, "t")) == 4

    asyncio.run(scenario())


def test_files_of_what_retention_removed_go_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = MovedClock(RECORDS_MS)
        async with a_node(tmp_path, clock=clock) as (node, wire):
            topic_id = await create_topic(wire, "t", walrus_segment_entries="1", retention_ms=str(DAY_MS))
            await segments(node, wire, 5)
            folder = tmp_path / "topics" / f"{topic_id.hex()}-0"
            assert len(list(folder.glob("*.log"))) == 5
            clock.ms += 2 * DAY_MS
            await until(lambda: not list(folder.glob("*.log")))
            assert await read_all(wire, "t", offset=5) == []
            await put(wire)
            assert [offset for offset, _ in await read_all(wire, "t", offset=5)] == [5]

    asyncio.run(scenario())


def test_a_segment_whose_records_were_all_deleted_while_it_was_open_goes_once_it_is_sealed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path) as (node, wire):
            topic_id = await create_topic(wire, "t", retention_ms="-1")
            await put(wire, 3)
            await node.propose(MoveLogStart(topic_id=topic_id, partition=0, log_start_offset=3))
            folder = tmp_path / "topics" / f"{topic_id.hex()}-0"
            await node.rollovers.begin(node.partitions_by_id[topic_id][0], "manual")
            await put(wire)
            await until(lambda: [path.name for path in folder.glob("*.log")] == ["0000000002.log"])
            assert (log_start(node), sealed_of(node, "t")) == (3, [])
            assert [offset for offset, _ in await read_all(wire, "t", offset=3)] == [3]
            node.image.check()

    asyncio.run(scenario())


def test_a_topic_without_limits_loses_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = MovedClock(RECORDS_MS)
        async with a_node(tmp_path, clock=clock) as (node, wire):
            await create_topic(wire, "t", walrus_segment_entries="1", retention_ms="-1")
            await segments(node, wire, 3)
            clock.ms += 10_000 * DAY_MS
            await rounds()
            assert log_start(node) == 0

    asyncio.run(scenario())


def test_a_changed_setting_counts_from_the_next_look_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path) as (node, wire):
            await create_topic(wire, "t")
            await put(wire, 3)
            await rounds()
            assert sealed_of(node, "t") == []
            small = NamedValue(name="walrus.segment.entries", value="3")
            await node.propose(SetConfigs(resource_type=ResourceType.TOPIC, name="t", configs=[small]))
            await until(lambda: sealed_of(node, "t"))

    asyncio.run(scenario())


def test_retention_that_the_metadata_log_refuses_is_tried_again_at_the_next_look(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        clock, disk = MovedClock(RECORDS_MS), CrashDisk(tmp_path)
        async with a_node(tmp_path, clock=clock, files=disk) as (node, wire):
            await create_topic(wire, "t", walrus_segment_entries="1", retention_ms=str(DAY_MS))
            await segments(node, wire, 2)
            disk.fail("pwrite", path="/metadata/", times=3)
            clock.ms += 2 * DAY_MS
            await until(lambda: log_start(node) == 2)
        assert not [record for record in caplog.records if record.exc_info]
        assert any("retention couldn't" in record.getMessage() for record in caplog.records)

    asyncio.run(scenario())


def test_a_defect_in_one_round_doesnt_end_the_loop(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path) as (node, wire):
            await create_topic(wire, "t", walrus_segment_entries="2")
            monkeypatch.setattr(node.rollovers, "begin", fails_once(node.rollovers.begin))
            await put(wire, 2)
            await until(lambda: sealed_of(node, "t"))
        (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
        assert "monitor" in record.getMessage()

    asyncio.run(scenario())


def fails_once(begin: Any) -> Any:
    has_failed = False

    def failing(*arguments: Any) -> Any:
        nonlocal has_failed
        if not has_failed:
            has_failed = True
            raise RuntimeError("a defect")
        return begin(*arguments)

    return failing

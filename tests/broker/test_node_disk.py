"""A disk that is full or broken, seen over the wire: a clear error, readable throughout, and well again by itself."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.crash_disk import CrashDisk
from support.embedded import Wire, batch_of, create_topic, fetch, produce, running_node
from support.reading import only_partition, read_all
from support.waiting import until

from walrusmq.broker.node import Node
from walrusmq.protocol.error_codes import ErrorCode
from walrusmq.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from walrusmq.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from walrusmq.protocol.records.batch import Producer

FULL = 10_000
MAX_BATCHES = 200
VALUE = bytes(300)


@asynccontextmanager
async def node_on(disk: CrashDisk, folder: Path, **given: Any) -> AsyncIterator[tuple[Node, Wire]]:
    async with running_node(folder, files=disk, **given) as node, await Wire.to(node) as wire:
        yield node, wire


async def put(wire: Wire, value: bytes = VALUE, *, partition: int = 0, **of_batch: Any) -> tuple[int, int]:
    """Produce one record to ``t``: error code and base offset."""
    batch = batch_of(value, **of_batch)
    part = only_partition(await wire.ask(produce("t", batch, partition=partition), 9))
    return part.error_code, part.base_offset


async def fill(wire: Wire) -> int:
    """Produce to ``t`` until the disk is full: how many records were acknowledged."""
    for count in range(MAX_BATCHES):
        error, offset = await put(wire)
        if error:
            assert (error, offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
            return count
        assert offset == count
    raise AssertionError("the disk never filled up")


async def readiness(node: Node) -> tuple[bool, str]:
    """What ``/readyz`` says."""
    reader, writer = await asyncio.open_connection(*node.http_address)
    writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    head, body = (await reader.read()).split(b"\r\n\r\n")
    writer.close()
    return b" 200 " in head, body.decode()


def test_a_full_disk_refuses_writes_stays_readable_and_resumes_by_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        async with node_on(disk, tmp_path) as (node, wire):
            await create_topic(wire, "t", 2)
            assert await put(wire, b"of another", partition=1) == (0, 0)
            disk.room = FULL
            count = await fill(wire)
            assert count > 10
            assert await put(wire) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
            is_ready, reasons = await readiness(node)
            assert not is_ready
            assert "t-0 can't be written" in reasons
            assert "No space left" in reasons
            assert await read_all(wire, "t") == [(offset, VALUE) for offset in range(count)]
            assert await read_all(wire, "t", partition=1) == [(0, b"of another")]
            disk.room = None
            assert await put(wire) == (0, count)
            assert (await readiness(node)) == (True, "ready\n")
        async with node_on(disk, tmp_path) as (_, wire):
            assert await read_all(wire, "t") == [(offset, VALUE) for offset in range(count + 1)]
        errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
        assert len(errors) == 1, "said once"

    asyncio.run(scenario())


def test_a_disk_with_room_again_makes_the_node_ready_before_anybody_writes(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        async with node_on(disk, tmp_path) as (node, wire):
            await create_topic(wire, "t")
            disk.room = FULL
            await fill(wire)
            assert not (await readiness(node))[0]
            disk.room = None
            assert (await readiness(node)) == (True, "ready\n")

    asyncio.run(scenario())


def test_a_metadata_log_that_can_be_written_again_makes_the_node_ready_before_anybody_asks(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        async with node_on(disk, tmp_path, monitor_check_ms=10) as (node, wire):
            disk.room = 0
            topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
            await wire.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
            assert not (await readiness(node))[0]
            disk.room = None
            await until(lambda: not node.unready_reasons())
            assert (await readiness(node)) == (True, "ready\n")

    asyncio.run(scenario())


def test_a_deleted_topic_makes_room_for_others(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        async with node_on(disk, tmp_path) as (_, wire):
            await create_topic(wire, "t")
            await create_topic(wire, "filler")
            for _ in range(20):
                await wire.ask(produce("filler", batch_of(VALUE)), 9)
            disk.room = FULL
            count = await fill(wire)
            disk.room = FULL  # a little is left in any case: the metadata log needs it
            answer = await wire.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="filler")], timeout_ms=10_000), 6)
            assert answer.responses[0].error_code == 0
            assert await put(wire) == (0, count)

    asyncio.run(scenario())


def test_a_topic_cant_be_made_on_a_full_disk_and_can_once_there_is_room(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=10_000)
        async with node_on(disk, tmp_path) as (node, wire):
            await create_topic(wire, "t")
            assert await put(wire) == (0, 0)
            disk.room = 0
            answer = await wire.ask(request, 7)
            assert answer.topics[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
            is_ready, reasons = await readiness(node)
            assert not is_ready
            assert "metadata log can't be written" in reasons
            assert await read_all(wire, "t") == [(0, VALUE)]
            disk.room = None
            assert (await wire.ask(request, 7)).topics[0].error_code == 0
            assert (await readiness(node)) == (True, "ready\n")

    asyncio.run(scenario())


def test_a_write_that_fails_once_is_refused_and_the_next_follows_without_a_gap(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        async with node_on(disk, tmp_path) as (_, wire):
            await create_topic(wire, "t")
            assert await put(wire, b"0") == (0, 0)
            disk.fail("pwrite", errno.EIO, path="/topics/")
            assert await put(wire, b"lost") == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
            assert await put(wire, b"1") == (0, 1)
            assert await read_all(wire, "t") == [(0, b"0"), (1, b"1")]
        async with node_on(disk, tmp_path) as (_, wire):
            assert await read_all(wire, "t") == [(0, b"0"), (1, b"1")]

    asyncio.run(scenario())


def test_a_refused_batch_of_an_idempotent_producer_can_be_sent_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        async with node_on(disk, tmp_path) as (_, wire):
            await create_topic(wire, "t")
            assert await put(wire, b"0", producer=Producer(7, 0, 0)) == (0, 0)
            disk.fail("pwrite", errno.ENOSPC, path="/topics/")
            for expected in ((ErrorCode.KAFKA_STORAGE_ERROR, -1), (0, 1), (0, 1)):
                assert await put(wire, b"1", producer=Producer(7, 0, 1)) == expected
            assert await read_all(wire, "t") == [(0, b"0"), (1, b"1")]

    asyncio.run(scenario())


def test_acks_0_on_a_full_disk_closes_the_connection(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        async with node_on(disk, tmp_path) as (node, wire), await Wire.to(node) as careless:
            await create_topic(wire, "t")
            disk.room = 0
            careless.send(produce("t", batch_of(VALUE), acks=0), 9)
            assert await careless.is_closed_by_peer()
            disk.room = None
            assert await put(wire) == (0, 0)

    asyncio.run(scenario())


def test_a_failed_sync_acknowledges_nothing_and_the_next_segment_goes_on_at_the_synced_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        async with node_on(disk, tmp_path) as (node, wire):
            await create_topic(wire, "t")
            for number in range(3):
                assert await put(wire, b"%d" % number) == (0, number)
            disk.fail("fdatasync", errno.EIO, path="/topics/")
            assert await put(wire, b"lost") == (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1)
            assert [value for _, value in await read_all(wire, "t")] == [b"0", b"1", b"2"]
            assert await put(wire, b"3") == (0, 3)
            image = node.image.topics_by_name["t"].partitions[0]
            assert [(sealed.first_offset, sealed.end_offset) for sealed in image.sealed] == [(0, 3)]
            assert (image.open.id, image.open.first_offset) == (2, 3)
            assert image.open.leader_epoch == 1, "consumers can tell that something may be gone"
            assert await read_all(wire, "t") == [(number, b"%d" % number) for number in range(4)]
            assert (await readiness(node)) == (True, "ready\n")
        async with node_on(disk, tmp_path) as (node, wire):
            node.image.check()
            assert await read_all(wire, "t") == [(number, b"%d" % number) for number in range(4)]

    asyncio.run(scenario())


def test_all_that_waits_for_a_failed_sync_is_told_and_producers_may_send_it_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        async with node_on(disk, tmp_path) as (node, wire):
            await create_topic(wire, "t")
            assert await put(wire, b"0", producer=Producer(7, 0, 0)) == (0, 0)
            batches = [batch_of(b"%d" % number, producer=Producer(7, 0, number)) for number in range(1, 6)]
            disk.fail("fdatasync", errno.EIO, path="/topics/")
            with disk.held("fdatasync"):
                for batch in batches:
                    wire.send(produce("t", batch), 9)
                await until(lambda: node.metrics.entries_appended == 6)
            for _ in batches:
                part = only_partition(await wire.receive(produce("t", None), 9))
                assert part.error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            for number, batch in enumerate(batches, 1):
                part = only_partition(await wire.ask(produce("t", batch), 9))
                assert (part.error_code, part.base_offset) == (0, number)
            assert await read_all(wire, "t") == [(number, b"%d" % number) for number in range(6)]

    asyncio.run(scenario())


def test_a_failed_sync_while_a_full_segment_is_sealed_raises_the_epoch(tmp_path: Path) -> None:
    """Consumers have seen what was lost, since its sync wasn't waited for: a new epoch tells them."""

    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        async with node_on(disk, tmp_path, fsync="interval", fsync_interval_ms=60_000) as (node, wire):
            await create_topic(wire, "t")
            for number in range(3):
                assert await put(wire, b"%d" % number) == (0, number)
            assert len(await read_all(wire, "t")) == 3
            disk.fail("fdatasync", errno.EIO, path=".log")
            await node.rollovers.begin(node.led.by_name["t"][0], "entries")
            image = node.image.topics_by_name["t"].partitions[0]
            assert (image.sealed[0].end_offset, image.open.leader_epoch) == (0, 1)
            assert await put(wire, b"again") == (0, 0)
            assert await read_all(wire, "t") == [(0, b"again")]

    asyncio.run(scenario())


def test_files_that_cant_be_read_are_an_error_for_their_partition_only(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        async with node_on(disk, tmp_path, max_open_files=16) as (_, wire):
            await create_topic(wire, "t", 2)
            assert await put(wire, b"0") == (0, 0)
            assert await put(wire, b"1", partition=1) == (0, 0)
        async with node_on(disk, tmp_path) as (_, wire):
            disk.fail("open", errno.EIO, path="-0/")
            data = only_partition(await wire.ask(fetch("t", 0), 12))
            assert data.error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert await read_all(wire, "t", partition=1) == [(0, b"1")]
            assert await read_all(wire, "t") == [(0, b"0")]

    asyncio.run(scenario())

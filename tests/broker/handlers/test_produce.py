"""Produce over the wire: where batches go, and what is answered for those that go nowhere."""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from support.clocks import MovedClock
from support.embedded import Wire, batch_of, create_topic, fetch, produce, running_node
from support.reading import only_partition, read_all

from walrusmq.broker.commands import MoveLogStart, NamedValue, ResourceType, SetConfigs
from walrusmq.broker.node import Node
from walrusmq.protocol.error_codes import ErrorCode
from walrusmq.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from walrusmq.protocol.records.batch import Record, decode_batches, encode_batch
from walrusmq.protocol.records.compression import Codec
from walrusmq.protocol.records.header import CONTROL, TRANSACTIONAL

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
VERSIONS = range(3, 14)
FIRST_VERSION_WITH_IDS = 13
UNKNOWN_ID = bytes(range(16))

Scenario = Callable[[Node, Wire], Coroutine[Any, Any, None]]


def on_a_node(folder: Path, scenario: Scenario, **given: Any) -> None:
    """Run a scenario on a node whose clock stands at NOW_MS, with a topic ``t`` of three partitions."""

    async def run() -> None:
        async with running_node(folder, clock=MovedClock(NOW_MS), **given) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t", 3)
            await scenario(node, wire)

    asyncio.run(run())


async def ask(wire: Wire, batch: bytes | None, topic: str = "t", version: int = 12, **how: Any) -> Any:
    """The answer for one batch."""
    return only_partition(await wire.ask(produce(topic, batch, **how), version))


def by_id(topic_id: bytes, batch: bytes, partition: int = 0) -> ProduceRequest:
    data = TopicProduceData(topic_id=topic_id, partition_data=[PartitionProduceData(index=partition, records=batch)])
    return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])


@pytest.mark.parametrize("acks", [1, -1])
def test_batches_get_the_offsets_after_each_other(tmp_path: Path, acks: int) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        for expected in (0, 3, 6):
            part = await ask(wire, batch_of(b"a", b"b", b"c"), acks=acks)
            assert (part.error_code, part.base_offset) == (0, expected)
            assert (part.log_append_time_ms, part.log_start_offset) == (-1, 0)
        assert [value for _, value in await read_all(wire, "t")] == [b"a", b"b", b"c"] * 3

    on_a_node(tmp_path, scenario)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_appends(tmp_path: Path, version: int) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        request = produce("t", batch_of(b"x"))
        if version >= FIRST_VERSION_WITH_IDS:
            request = by_id(node.image.topics_by_name["t"].id, batch_of(b"x"))
        answer = await wire.ask(request, version)
        part = only_partition(answer)
        assert (part.error_code, part.base_offset) == (0, 0)
        assert await read_all(wire, "t") == [(0, b"x")]

    on_a_node(tmp_path, scenario)


def test_what_is_stored_is_what_came_but_for_offset_and_epoch(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        sent = [
            encode_batch([Record(0, NOW_MS, b"key", b"x" * 1000, (("h", b"1"), ("n", None)))], codec=codec)
            for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
        ]
        for offset, batch in enumerate(sent):
            assert (await ask(wire, batch)).base_offset == offset
        stored = bytes(only_partition(await wire.ask(fetch("t", 0), 12)).records)
        patched = [struct.pack(">q", offset) + batch[8:12] + bytes(4) + batch[16:] for offset, batch in enumerate(sent)]
        assert stored == b"".join(patched)

    on_a_node(tmp_path, scenario)


def test_a_topic_can_be_written_as_soon_as_it_is_made(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        async with await Wire.to(node) as other:
            for number in range(20):
                await create_topic(wire, f"new-{number}")
                assert (await ask(other, batch_of(b"x"), f"new-{number}")).error_code == 0

    on_a_node(tmp_path, scenario)


def test_each_partition_has_its_own_answer(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        broken = bytearray(batch_of(b"broken"))
        broken[-1] ^= 1
        request = ProduceRequest(
            acks=-1,
            timeout_ms=10_000,
            topic_data=[
                TopicProduceData(
                    name="t",
                    partition_data=[
                        PartitionProduceData(index=1, records=batch_of(b"good")),
                        PartitionProduceData(index=7, records=batch_of(b"nowhere")),
                        PartitionProduceData(index=2, records=bytes(broken)),
                    ],
                ),
                TopicProduceData(
                    name="unknown", partition_data=[PartitionProduceData(index=0, records=batch_of(b"nowhere"))]
                ),
            ],
        )
        answer = await wire.ask(request, 9)
        assert [(topic.name, part.index, part.error_code, part.base_offset)
                for topic in answer.responses for part in topic.partition_responses] == [
            ("t", 1, 0, 0),
            ("t", 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
            ("t", 2, ErrorCode.CORRUPT_MESSAGE, -1),
            ("unknown", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        ]  # fmt: skip
        assert await read_all(wire, "t", partition=1) == [(0, b"good")]

    on_a_node(tmp_path, scenario)


def test_of_two_batches_for_one_partition_the_last_is_taken(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        request = produce("t", batch_of(b"first"))
        request.topic_data += produce("t", batch_of(b"second")).topic_data
        part = only_partition(await wire.ask(request, 9))
        assert (part.error_code, part.base_offset) == (0, 0)
        assert await read_all(wire, "t") == [(0, b"second")]

    on_a_node(tmp_path, scenario)


def test_an_empty_request_gets_an_empty_answer(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        assert (await wire.ask(ProduceRequest(acks=-1, timeout_ms=1), 9)).responses == []

    on_a_node(tmp_path, scenario)


def test_an_unknown_topic_id_is_told_from_an_unknown_partition(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        known = node.image.topics_by_name["t"].id
        for request, error in (
            (by_id(UNKNOWN_ID, batch_of(b"x")), ErrorCode.UNKNOWN_TOPIC_ID),
            (by_id(known, batch_of(b"x"), 9), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ):
            assert only_partition(await wire.ask(request, 13)).error_code == error

    on_a_node(tmp_path, scenario)


@pytest.mark.parametrize("acks", [2, -2, 32767])
def test_acks_that_mean_nothing_are_refused_for_all_partitions(tmp_path: Path, acks: int) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        part = await ask(wire, batch_of(b"x"), acks=acks)
        assert (part.error_code, part.base_offset) == (ErrorCode.INVALID_REQUIRED_ACKS, -1)
        assert await read_all(wire, "t") == []

    on_a_node(tmp_path, scenario)


def changed(place: int, value: int) -> bytes:
    """A batch with one byte of its header changed, which its checksum doesn't cover or no longer matches."""
    batch = bytearray(batch_of(b"x"))
    batch[place] = value
    return bytes(batch)


@pytest.mark.parametrize(
    ("batch", "error"),
    [
        (None, ErrorCode.INVALID_RECORD),
        (batch_of(b"1") + batch_of(b"2"), ErrorCode.INVALID_RECORD),
        (changed(40, 1), ErrorCode.CORRUPT_MESSAGE),
        (changed(16, 5), ErrorCode.CORRUPT_MESSAGE),
        (batch_of(b"x")[:40], ErrorCode.INVALID_RECORD),
        (encode_batch([Record(0, NOW_MS, None, b"x")], flags=CONTROL), ErrorCode.INVALID_RECORD),
        (
            encode_batch([Record(0, NOW_MS, None, b"x")], flags=TRANSACTIONAL),
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ),
        (encode_batch([]), ErrorCode.INVALID_RECORD),
    ],
    ids=["null", "two", "changed", "of magic 5", "cut off", "control", "transactional", "empty"],
)
def test_what_is_no_good_batch_is_refused_and_nothing_is_stored(
    tmp_path: Path, batch: bytes | None, error: ErrorCode
) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        part = await ask(wire, batch)
        assert (ErrorCode(part.error_code), part.base_offset) == (error, -1)
        assert part.error_message
        assert (await ask(wire, batch_of(b"good"))).base_offset == 0
        assert await read_all(wire, "t") == [(0, b"good")]

    on_a_node(tmp_path, scenario)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_a_batch_above_the_topics_limit_is_refused_and_nothing_is_stored(tmp_path: Path, codec: Codec) -> None:
    """C09: max.message.bytes is about the batch as it was sent."""

    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "small", max_message_bytes=str(50 << 10))
        batch = batch_of(random.Random(9).randbytes(10 << 20), codec=codec)
        assert len(batch) > 50 << 10
        part = await ask(wire, batch, "small")
        assert (part.error_code, part.base_offset) == (ErrorCode.MESSAGE_TOO_LARGE, -1)
        assert await read_all(wire, "small") == []
        assert (await ask(wire, batch_of(bytes(50_000)), "small")).error_code == 0
        assert (await ask(wire, batch_of(bytes(10 << 20), codec=Codec.GZIP), "small")).error_code == 0, "it is small"

    on_a_node(tmp_path, scenario)


def test_zstd_is_refused_in_versions_that_didnt_know_it(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        batch = batch_of(b"x", codec=Codec.ZSTD)
        assert (await ask(wire, batch, version=6)).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        assert (await ask(wire, batch, version=7)).error_code == 0

    on_a_node(tmp_path, scenario)


def at(timestamp: int) -> bytes:
    return encode_batch([Record(0, timestamp, None, b"x")])


def test_timestamps_outside_of_the_topics_limits_are_refused(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "strict", message_timestamp_before_max_ms=str(HOUR_MS))
        for timestamp, error in (
            (NOW_MS, 0),
            (NOW_MS + HOUR_MS, 0),
            (NOW_MS + HOUR_MS + 1, ErrorCode.INVALID_TIMESTAMP),
            (NOW_MS - HOUR_MS, 0),
            (NOW_MS - HOUR_MS - 1, ErrorCode.INVALID_TIMESTAMP),
        ):
            assert (await ask(wire, at(timestamp), "strict")).error_code == error

    on_a_node(tmp_path, scenario)


def test_log_append_time_stamps_batches_and_is_answered(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "stamped", message_timestamp_type="LogAppendTime")
        part = await ask(wire, at(1), "stamped")
        assert (part.error_code, part.log_append_time_ms) == (0, NOW_MS)
        data = only_partition(await wire.ask(fetch("stamped", 0), 12))
        (batch,) = decode_batches(data.records)
        assert batch.header.has_log_append_time
        assert [record.timestamp for record in batch.records] == [NOW_MS]

    on_a_node(tmp_path, scenario)


def test_the_log_start_is_answered_along(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        for _ in range(3):
            await ask(wire, batch_of(b"x"))
        topic_id = node.image.topics_by_name["t"].id
        await node.propose(MoveLogStart(topic_id=topic_id, partition=0, log_start_offset=2))
        assert (await ask(wire, batch_of(b"x"))).log_start_offset == 2

    on_a_node(tmp_path, scenario)


def test_a_setting_that_changes_holds_for_the_next_batch(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        assert (await ask(wire, batch_of(bytes(1000)))).error_code == 0
        limit = NamedValue(name="max.message.bytes", value="500")
        await node.propose(SetConfigs(resource_type=ResourceType.TOPIC, name="t", configs=[limit]))
        assert (await ask(wire, batch_of(bytes(1000)))).error_code == ErrorCode.MESSAGE_TOO_LARGE

    on_a_node(tmp_path, scenario)


def test_appends_and_errors_are_counted(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        batch = batch_of(b"1", b"2")
        await ask(wire, batch)
        await ask(wire, batch, "unknown")
        await ask(wire, None)
        metrics = node.metrics
        assert (metrics.entries_appended, metrics.bytes_appended) == (2, len(batch))
        assert metrics.requests[0] == 3
        assert metrics.request_errors == {
            (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION): 1,
            (0, ErrorCode.INVALID_RECORD): 1,
        }

    on_a_node(tmp_path, scenario)

"""Produce to topics that ask for more than a look at a batch's header: a codec of their own, keys, timestamps."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.clocks import MovedClock
from support.embedded import Wire, create_topic, fetch, produce, running_node
from support.reading import only_partition, read_all
from support.waiting import until

from walrusmq.broker.commands import DeleteTopic, NamedValue, ResourceType, SetConfigs
from walrusmq.broker.node import Node
from walrusmq.protocol.error_codes import ErrorCode
from walrusmq.protocol.messages.api_versions import ApiVersionsRequest
from walrusmq.protocol.messages.find_coordinator import FindCoordinatorRequest
from walrusmq.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from walrusmq.protocol.records.batch import Producer, Record, decode_batches, encode_batch
from walrusmq.protocol.records.compression import Codec
from walrusmq.protocol.records.crc import crc32c
from walrusmq.protocol.records.header import CODEC_AT
from walrusmq.segments import prepared_appends

NOW_MS = 1_700_000_000_000
VERSION = 12
VERSIONS_WITH_NAMES = range(3, 13)
FIRST_VERSION_WITH_RECORD_ERRORS = 8
PATIENCE_S = 30

Scenario = Callable[[Node, Wire], Coroutine[Any, Any, None]]


def on_a_node(folder: Path, scenario: Scenario, **given: Any) -> None:
    """Run a scenario on a node whose clock stands at NOW_MS."""

    async def run() -> None:
        async with running_node(folder, clock=MovedClock(NOW_MS), **given) as node, await Wire.to(node) as wire:
            await scenario(node, wire)

    asyncio.run(run())


def keyed(*keys: bytes | None, codec: Codec = Codec.NONE, producer: Producer | None = None, **how: Any) -> bytes:
    """A batch with a record for each key, with headers and timestamps that count up."""
    times: Sequence[int] = how.pop("timestamps", range(NOW_MS, NOW_MS + len(keys)))
    records = [
        Record(offset, timestamp, key, b"v" * 100, (("h", b"1"), ("n", None)))
        for offset, (key, timestamp) in enumerate(zip(keys, times, strict=True))
    ]
    if producer is not None:
        how["producer"] = producer
    return encode_batch(records, codec=codec, **how)


async def put(wire: Wire, topic: str, batch: bytes, version: int = VERSION, **how: Any) -> Any:
    """The answer for one batch."""
    return only_partition(await wire.ask(produce(topic, batch, **how), version))


async def stored(wire: Wire, topic: str) -> list[Any]:
    """The batches that a consumer gets."""
    data = only_partition(await wire.ask(fetch(topic, 0, partition_max_bytes=1 << 24), VERSION))
    return list(decode_batches(data.records or b""))


async def configure(node: Node, topic: str, **configs: str | None) -> None:
    values = [NamedValue(name=name.replace("_", "."), value=value) for name, value in sorted(configs.items())]
    await node.propose(SetConfigs(resource_type=ResourceType.TOPIC, name=topic, configs=values))


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """While it isn't set, no batch comes out of preparation."""
    gate = threading.Event()
    work = prepared_appends.prepared

    def held(*arguments: Any) -> memoryview:
        assert gate.wait(PATIENCE_S)
        return work(*arguments)

    monkeypatch.setattr(prepared_appends, "prepared", held)
    return gate


# --- compression.type


@pytest.mark.parametrize("target", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_a_topics_codec_takes_the_place_of_the_producers(tmp_path: Path, target: str) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "t", compression_type=target)
        sent = [keyed(b"a", None, b"c", codec=codec) for codec in Codec]
        for place, batch in enumerate(sent):
            part = await put(wire, "t", batch)
            assert (part.error_code, part.base_offset, part.log_append_time_ms) == (0, 3 * place, -1)
        expected = Codec.NONE if target == "uncompressed" else Codec[target.upper()]
        found = await stored(wire, "t")
        assert [batch.header.codec for batch in found] == [expected] * len(Codec)
        for batch, original in zip(found, sent, strict=True):
            (whole,) = decode_batches(original)
            assert [record[1:] for record in batch.records] == [record[1:] for record in whole.records]
            assert batch.header.max_timestamp == NOW_MS + 2
        assert [record.offset for batch in found for record in batch.records] == list(range(15))

    on_a_node(tmp_path, scenario)


def test_a_batch_in_the_topics_codec_is_stored_as_it_came(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "t", compression_type="lz4")
        sent = keyed(b"a", codec=Codec.LZ4)
        await put(wire, "t", sent)
        data = only_partition(await wire.ask(fetch("t", 0), VERSION))
        assert bytes(data.records)[16:] == sent[16:]

    on_a_node(tmp_path, scenario)


def test_the_nodes_codec_holds_for_topics_without_one(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "t")
        await create_topic(wire, "own", compression_type="producer")
        await put(wire, "t", keyed(b"a"))
        await put(wire, "own", keyed(b"a"))
        assert [batch.header.codec for batch in await stored(wire, "t")] == [Codec.GZIP]
        assert [batch.header.codec for batch in await stored(wire, "own")] == [Codec.NONE]
        change = NamedValue(name="compression.type", value="lz4")
        await node.propose(SetConfigs(resource_type=ResourceType.BROKER, name="", configs=[change]))
        await put(wire, "t", keyed(b"b"))
        assert [batch.header.codec for batch in await stored(wire, "t")] == [Codec.GZIP, Codec.LZ4]

    on_a_node(tmp_path, scenario, compression_type="gzip")


def test_log_append_time_stamps_recompressed_batches(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "t", compression_type="gzip", message_timestamp_type="LogAppendTime")
        part = await put(wire, "t", keyed(b"a", timestamps=[5]))
        assert (part.error_code, part.log_append_time_ms) == (0, NOW_MS)
        (batch,) = await stored(wire, "t")
        assert [record.timestamp for record in batch.records] == [NOW_MS]

    on_a_node(tmp_path, scenario)


def test_a_repeated_batch_of_an_idempotent_producer_is_known_in_another_codec(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "t", compression_type="gzip")
        first, second = Producer(77, 0, 0), Producer(77, 0, 2)
        offsets = [
            (await put(wire, "t", keyed(b"a", b"b", producer=first, codec=codec))).base_offset for codec in Codec
        ]
        assert offsets == [0] * len(Codec)
        assert (await put(wire, "t", keyed(b"c", producer=second))).base_offset == 2
        gap = await put(wire, "t", keyed(b"c", producer=Producer(77, 0, 9)))
        assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert [(batch.header.producer_id, batch.header.base_sequence) for batch in await stored(wire, "t")] == [
            (77, 0),
            (77, 2),
        ]

    on_a_node(tmp_path, scenario)


def test_batches_in_flight_keep_their_order_whatever_each_needs(tmp_path: Path) -> None:
    """Large ones take longer to compress than the small ones behind them, some are in the right codec already."""

    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "t", compression_type="gzip")
        batches = [
            keyed(b"%d" % number, codec=Codec.GZIP if number % 3 == 0 else Codec.NONE)
            if number % 5
            else encode_batch([Record(0, NOW_MS, b"%d" % number, bytes(range(256)) * 2000)])
            for number in range(60)
        ]
        for batch in batches:
            wire.send(produce("t", batch), VERSION)
        answers = [only_partition(await wire.receive(produce("t", None), VERSION)) for _ in batches]
        assert [(part.error_code, part.base_offset) for part in answers] == [(0, number) for number in range(60)]
        found = await stored(wire, "t")
        assert [record.key for batch in found for record in batch.records] == [b"%d" % number for number in range(60)]
        assert {batch.header.codec for batch in found} == {Codec.GZIP}

    on_a_node(tmp_path, scenario)


def test_an_append_does_not_overtake_one_that_is_recompressed_when_the_codec_changes(
    tmp_path: Path, gate: threading.Event
) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "t", compression_type="gzip")
        (partition,) = node.partitions_by_name["t"].values()
        wire.send(produce("t", keyed(b"a")), VERSION)
        await until(lambda: partition in node.store.prepared)
        await configure(node, "t", compression_type=None)
        async with await Wire.to(node) as other:
            other.send(produce("t", keyed(b"b")), VERSION)
            await until(lambda: node.store.prepared.waiting_bytes > len(keyed(b"a")))
            assert partition.log_end_offset == 0
            gate.set()
            assert only_partition(await wire.receive(produce("t", None), VERSION)).base_offset == 0
            assert only_partition(await other.receive(produce("t", None), VERSION)).base_offset == 1
        await until(lambda: not partition.prepares)
        assert [batch.header.codec for batch in await stored(wire, "t")] == [Codec.GZIP, Codec.NONE]

    on_a_node(tmp_path, scenario)


def test_the_loop_serves_others_while_a_batch_is_recompressed(tmp_path: Path, gate: threading.Event) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "t", compression_type="gzip")
        wire.send(produce("t", keyed(b"a")), VERSION)
        async with await Wire.to(node) as other:
            hello = ApiVersionsRequest(client_software_name="a", client_software_version="1")
            assert (await other.ask(hello, 3)).error_code == 0
        gate.set()
        assert only_partition(await wire.receive(produce("t", None), VERSION)).error_code == 0

    on_a_node(tmp_path, scenario)


def test_a_batch_whose_segment_is_sealed_meanwhile_goes_to_the_next(tmp_path: Path, gate: threading.Event) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "t", compression_type="gzip")
        (partition,) = node.partitions_by_name["t"].values()
        wire.send(produce("t", keyed(b"a")), VERSION)
        await until(lambda: partition in node.store.prepared)
        partition.stop()
        gate.set()
        await until(lambda: node.held_appends.held_batches)
        assert partition not in node.store.prepared
        await node.rollovers.begin(partition, "manual")
        assert only_partition(await wire.receive(produce("t", None), VERSION)).base_offset == 0
        assert partition.log.facts.id == 2
        assert (await put(wire, "t", keyed(b"b"))).base_offset == 1

    on_a_node(tmp_path, scenario)


def test_a_topic_that_is_deleted_meanwhile_is_answered_so(tmp_path: Path, gate: threading.Event) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        topic_id = await create_topic(wire, "t", compression_type="gzip")
        (partition,) = node.partitions_by_name["t"].values()
        wire.send(produce("t", keyed(b"a")), VERSION)
        await until(lambda: partition in node.store.prepared)
        await node.propose(DeleteTopic(topic_id=topic_id))
        gate.set()
        part = only_partition(await wire.receive(produce("t", None), VERSION))
        assert part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    on_a_node(tmp_path, scenario)


def test_a_producer_that_waits_for_no_answer_is_held_back_and_its_batches_are_stored(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "t", compression_type="gzip")
        for number in range(20):
            wire.send(produce("t", keyed(b"%d" % number), acks=0), VERSION)
        assert (await put(wire, "t", keyed(b"last"))).base_offset == 20

    on_a_node(tmp_path, scenario)


def test_a_request_in_time_trouble_is_answered_while_its_batch_is_in_work(
    tmp_path: Path, gate: threading.Event
) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "t", compression_type="gzip")
        started = time.monotonic()
        part = await put(wire, "t", keyed(b"a"), timeout_ms=50)
        assert part.error_code == ErrorCode.REQUEST_TIMED_OUT
        assert time.monotonic() - started < PATIENCE_S
        gate.set()
        assert (await put(wire, "t", keyed(b"b"))).error_code == 0

    on_a_node(tmp_path, scenario)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_what_cannot_be_unpacked_is_refused_for_good(tmp_path: Path, codec: Codec) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "t", compression_type="uncompressed")
        batch = bytearray(encode_batch([Record(0, NOW_MS, None, b"not compressed")]))
        batch[CODEC_AT] |= codec
        batch[17:21] = crc32c(memoryview(batch)[21:]).to_bytes(4, "big")
        part = await put(wire, "t", bytes(batch))
        assert (part.error_code, part.log_start_offset) == (ErrorCode.INVALID_RECORD, 0)
        assert await read_all(wire, "t") == []

    on_a_node(tmp_path, scenario)


def test_the_size_limit_holds_for_what_is_stored_too(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "t", compression_type="uncompressed", max_message_bytes="300")
        batch = keyed(*[b"k"] * 5, codec=Codec.GZIP)
        assert len(batch) <= 300
        part = await put(wire, "t", batch)
        assert (part.error_code, part.log_start_offset) == (ErrorCode.MESSAGE_TOO_LARGE, -1)

    on_a_node(tmp_path, scenario)


# --- cleanup.policy


@pytest.mark.parametrize("version", VERSIONS_WITH_NAMES)
def test_a_record_without_a_key_is_refused_by_a_compacted_topic(tmp_path: Path, version: int) -> None:
    """C10: error 87, and from version 8 on the places of the records."""

    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "t", cleanup_policy="compact")
        part = await put(wire, "t", keyed(None, b"k", None), version)
        assert (part.error_code, part.base_offset) == (ErrorCode.INVALID_RECORD, -1)
        if version >= FIRST_VERSION_WITH_RECORD_ERRORS:
            assert [error.batch_index for error in part.record_errors] == [0, 2]
            assert all(error.batch_index_error_message for error in part.record_errors)
            assert part.error_message
        assert (await put(wire, "t", keyed(b"k", b""), version)).base_offset == 0

    on_a_node(tmp_path, scenario)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_keys_are_asked_for_in_every_codec_and_with_every_policy_that_compacts(
    tmp_path: Path, policy: str, codec: Codec
) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "t", cleanup_policy=policy)
        refused = await put(wire, "t", keyed(b"k", None, codec=codec))
        assert [error.batch_index for error in refused.record_errors] == [1]
        assert (await put(wire, "t", keyed(b"k", codec=codec))).error_code == 0
        (batch,) = await stored(wire, "t")
        assert batch.header.codec == codec

    on_a_node(tmp_path, scenario)


def test_keys_are_asked_for_from_the_moment_at_which_a_topic_becomes_compacted(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "t")
        assert (await put(wire, "t", keyed(None))).error_code == 0
        await configure(node, "t", cleanup_policy="compact")
        assert (await put(wire, "t", keyed(None))).error_code == ErrorCode.INVALID_RECORD
        await configure(node, "t", cleanup_policy=None)
        assert (await put(wire, "t", keyed(None))).error_code == 0

    on_a_node(tmp_path, scenario)


def test_a_refused_batch_leaves_its_sequence_number_to_the_next(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "t", cleanup_policy="compact")
        assert (await put(wire, "t", keyed(b"a", producer=Producer(5, 0, 0)))).base_offset == 0
        refused = await put(wire, "t", keyed(None, producer=Producer(5, 0, 1)))
        assert refused.error_code == ErrorCode.INVALID_RECORD
        assert (await put(wire, "t", keyed(b"b", producer=Producer(5, 0, 1)))).base_offset == 1
        assert (await put(wire, "t", keyed(b"b", producer=Producer(5, 0, 1)))).base_offset == 1
        keyless = await put(wire, "t", keyed(None, producer=Producer(5, 0, 1)))
        assert keyless.error_code == ErrorCode.INVALID_RECORD, "records come before sequence numbers"

    on_a_node(tmp_path, scenario)


def test_without_an_answer_a_refused_batch_closes_the_connection(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "t", cleanup_policy="compact")
        wire.send(produce("t", keyed(None), acks=0), VERSION)
        assert await wire.is_closed_by_peer()

    on_a_node(tmp_path, scenario)


def test_each_partition_of_a_request_has_its_own_answer(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "plain")
        await create_topic(wire, "compacted", partitions=2, cleanup_policy="compact")
        await create_topic(wire, "strict", message_timestamp_before_max_ms="1000")
        old = keyed(b"k", timestamps=[5])
        request = ProduceRequest(
            acks=-1,
            timeout_ms=10_000,
            topic_data=[
                TopicProduceData(name="strict", partition_data=[PartitionProduceData(index=0, records=old)]),
                TopicProduceData(
                    name="compacted",
                    partition_data=[
                        PartitionProduceData(index=0, records=keyed(None)),
                        PartitionProduceData(index=1, records=keyed(b"k")),
                    ],
                ),
                TopicProduceData(name="plain", partition_data=[PartitionProduceData(index=0, records=keyed(None))]),
            ],
        )
        answer = await wire.ask(request, VERSION)
        outcomes = [
            (topic.name, part.index, part.error_code, part.base_offset)
            for topic in answer.responses
            for part in topic.partition_responses
        ]
        assert outcomes == [
            ("strict", 0, ErrorCode.INVALID_TIMESTAMP, -1),
            ("compacted", 0, ErrorCode.INVALID_RECORD, -1),
            ("compacted", 1, 0, 0),
            ("plain", 0, 0, 0),
        ]

    on_a_node(tmp_path, scenario)


# --- timestamps


@pytest.mark.parametrize("version", [7, 8, 12])
def test_records_with_timestamps_out_of_range_are_named(tmp_path: Path, version: int) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "t", message_timestamp_after_max_ms="1000")
        late = keyed(b"a", b"b", b"c", timestamps=[NOW_MS, NOW_MS + 1001, NOW_MS + 1002])
        for _ in range(3):  # as the first request, and as one that is like those before it
            part = await put(wire, "t", late, version)
            assert (part.error_code, part.log_start_offset) == (ErrorCode.INVALID_TIMESTAMP, 0)
            places = [error.batch_index for error in part.record_errors]
            assert places == ([1, 2] if version >= FIRST_VERSION_WITH_RECORD_ERRORS else [])
        assert (await put(wire, "t", keyed(b"a"), version)).base_offset == 0
        wire.send(produce("t", late, acks=0), version)
        assert await wire.is_closed_by_peer()

    on_a_node(tmp_path, scenario)


def test_timestamps_and_keys_are_named_together(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await create_topic(wire, "t", cleanup_policy="compact", message_timestamp_before_max_ms="1000")
        part = await put(wire, "t", keyed(b"a", None, timestamps=[5, NOW_MS]))
        assert part.error_code == ErrorCode.INVALID_TIMESTAMP
        assert [error.batch_index for error in part.record_errors] == [0, 1]

    on_a_node(tmp_path, scenario)


# --- the broker's own topics


def test_clients_do_not_produce_to_the_topics_of_the_broker(tmp_path: Path) -> None:
    async def scenario(node: Node, wire: Wire) -> None:
        await wire.ask(FindCoordinatorRequest(key="g"), 3)
        for batch in (keyed(b"k"), b"nonsense"):
            part = await put(wire, "__consumer_offsets", batch)
            assert part.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
            assert (part.base_offset, part.log_start_offset) == (-1, -1)
        change = NamedValue(name="log.retention.ms", value="1000")
        await node.propose(SetConfigs(resource_type=ResourceType.BROKER, name="", configs=[change]))
        part = await put(wire, "__consumer_offsets", keyed(b"k"))
        assert part.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION, "and that stays so when settings change"

    on_a_node(tmp_path, scenario, offsets_topic_num_partitions=2)

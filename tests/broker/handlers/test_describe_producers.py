"""DescribeProducers: who has written to a partition with sequence numbers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.embedded import Wire, batch_of, create_topic, produce, running_node

from walrusmq.broker.handlers import describe_producers
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from walrusmq.protocol.messages.init_producer_id import InitProducerIdRequest
from walrusmq.protocol.records.batch import Producer

TIMESTAMP = 1_700_000_000_000
"""That of `batch_of`."""


async def describe(wire: Wire, *topics: tuple[str, list[int]]) -> Any:
    wanted = [TopicRequest(name=name, partition_indexes=indexes) for name, indexes in topics]
    return (await wire.ask(DescribeProducersRequest(topics=wanted), 0)).topics


async def write(wire: Wire, *batches: tuple[bytes, ...]) -> int:
    """Have a new producer write batches to t-0; its id."""
    new = await wire.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4)
    sequence = 0
    for values in batches:
        batch = batch_of(*values, producer=Producer(new.producer_id, new.producer_epoch, sequence))
        sent = (await wire.ask(produce("t", batch), 9)).responses[0].partition_responses[0]
        assert sent.error_code == 0
        sequence += len(values)
    producer_id: int = new.producer_id
    return producer_id


def states(partition: Any) -> list[tuple[int, ...]]:
    return [
        (
            each.producer_id,
            each.producer_epoch,
            each.last_sequence,
            each.last_timestamp,
            each.coordinator_epoch,
            each.current_txn_start_offset,
        )
        for each in partition.active_producers
    ]


def test_each_producer_is_told_with_its_last_batch_also_after_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t", 2)
            await wire.ask(produce("t", batch_of(b"without an id")), 9)
            first, second = await write(wire, (b"a", b"b"), (b"c",)), await write(wire, (b"d",))
            expected = [(first, 0, 2, TIMESTAMP, -1, -1), (second, 0, 0, TIMESTAMP, -1, -1)]
            ((written, empty),) = [topic.partitions for topic in await describe(wire, ("t", [0, 1]))]
            assert (written.error_code, written.error_message, states(written)) == (0, None, expected)
            assert (empty.partition_index, empty.error_code, states(empty)) == (1, 0, [])
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            ((written,),) = [topic.partitions for topic in await describe(wire, ("t", [0]))]
            assert states(written) == expected

    asyncio.run(scenario())


def test_partitions_are_answered_in_the_requests_order_each_by_itself(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            topics = await describe(wire, ("t", [0, 9]), ("none", [0]), ("a b", [0]), ("t", [0, 0]))
            assert [
                (topic.name, each.partition_index, each.error_code) for topic in topics for each in topic.partitions
            ] == [
                ("t", 0, 0),
                ("t", 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                ("none", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
                ("a b", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
                ("t", 0, 0),
                ("t", 0, 0),
            ]

    asyncio.run(scenario())


def test_one_answer_has_only_so_many_producers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describe_producers, "MAX_DESCRIBED_PRODUCERS", 3)

    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            for _ in range(2):
                await write(wire, (b"a",))
            ((first, second),) = [topic.partitions for topic in await describe(wire, ("t", [0, 0]))]
            assert (first.error_code, len(first.active_producers)) == (0, 2)
            assert (second.error_code, second.active_producers) == (ErrorCode.INVALID_REQUEST, [])

    asyncio.run(scenario())

"""Fetch sessions over the wire (KIP-227): partitions are named once, and told of when there is something to tell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from support.embedded import Wire, batch_of, create_topic, produce, running_node
from support.reading import found_in
from support.waiting import until

from walrusmq.broker.commands import MoveLogStart
from walrusmq.broker.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH
from walrusmq.broker.node import Node
from walrusmq.protocol.error_codes import ErrorCode
from walrusmq.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from walrusmq.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

BY_NAME = 12
BY_ID = 13
FOREVER_MS = 200_000

Told = dict[int, tuple[int, int, int]]
"""By partition: error code, high watermark, number of records."""


class Consumer:
    """Keeps a session as a client does: its id, its next epoch, the offset of each partition."""

    def __init__(self, wire: Wire, topic_id: bytes, version: int) -> None:
        self.wire = wire
        self.version = version
        self.session_id = 0
        self.epoch = INITIAL_EPOCH
        self._topic_id = topic_id

    def request(self, offsets: dict[int, int], forgotten: tuple[int, ...] = (), **how: Any) -> FetchRequest:
        """The session's next request, with the partitions that it names."""
        wanted = [
            FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
            for index, offset in offsets.items()
        ]
        name: dict[str, Any] = {"topic": "t", "topic_id": self._topic_id}
        return FetchRequest(
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=[FetchTopic(**name, partitions=wanted)] if wanted else [],
            forgotten_topics_data=[ForgottenTopic(**name, partitions=list(forgotten))] if forgotten else [],
            **{"min_bytes": 1, "max_wait_ms": 0} | how,
        )

    async def fetch(self, offsets: dict[int, int] | None = None, *forgotten: int, **how: Any) -> Told:
        answer = await self.wire.ask(self.request(offsets or {}, forgotten, **how), self.version)
        assert answer.error_code == 0
        self.took(answer)
        return told(answer)

    def took(self, answer: Any) -> None:
        self.session_id = answer.session_id
        self.epoch = self.epoch + 1 if answer.session_id else INITIAL_EPOCH


def told(answer: Any) -> Told:
    return {
        part.partition_index: (part.error_code, part.high_watermark, len(found_in(part)))
        for topic in answer.responses
        for part in topic.partitions
    }


Scenario = Callable[[Node, Wire, Consumer], Coroutine[Any, Any, None]]


def in_a_session(folder: Path, scenario: Scenario, version: int = BY_ID, **given: Any) -> None:
    """Run a scenario with a consumer, and a topic ``t`` of three partitions."""

    async def run() -> None:
        async with running_node(folder, **given) as node, await Wire.to(node) as writer, await Wire.to(node) as reader:
            topic_id = await create_topic(writer, "t", 3)
            await scenario(node, writer, Consumer(reader, topic_id, version))

    asyncio.run(run())


async def put(wire: Wire, partition: int) -> None:
    await wire.ask(produce("t", batch_of(b"x"), partition=partition), 9)


@pytest.mark.parametrize("version", [7, BY_NAME, BY_ID, 18])
def test_the_first_answer_tells_all_and_the_next_ones_what_changed(tmp_path: Path, version: int) -> None:
    async def scenario(node: Node, writer: Wire, consumer: Consumer) -> None:
        await put(writer, 1)
        assert await consumer.fetch({0: 0, 1: 0, 2: 0}) == {0: (0, 0, 0), 1: (0, 1, 1), 2: (0, 0, 0)}
        assert consumer.session_id > 0
        assert await consumer.fetch({1: 1}) == {}
        await put(writer, 2)
        assert await consumer.fetch() == {2: (0, 1, 1)}
        assert await consumer.fetch() == {2: (0, 1, 1)}, "until its offset is moved"
        assert await consumer.fetch({2: 1}) == {}

    in_a_session(tmp_path, scenario, version)


def test_partitions_are_added_and_forgotten(tmp_path: Path) -> None:
    async def scenario(node: Node, writer: Wire, consumer: Consumer) -> None:
        assert set(await consumer.fetch({0: 0})) == {0}
        assert await consumer.fetch({1: 0}) == {1: (0, 0, 0)}
        await put(writer, 0)
        await put(writer, 1)
        assert await consumer.fetch(None, 0) == {1: (0, 1, 1)}

    in_a_session(tmp_path, scenario)


def test_a_session_without_partitions_is_over(tmp_path: Path) -> None:
    async def scenario(node: Node, writer: Wire, consumer: Consumer) -> None:
        await consumer.fetch({0: 0})
        former = consumer.session_id, consumer.epoch + 1
        assert await consumer.fetch(None, 0) == {}
        assert consumer.session_id == 0
        assert len(node.fetch_sessions) == 0
        consumer.session_id, consumer.epoch = former
        answer = await consumer.wire.ask(consumer.request({0: 0}), BY_ID)
        assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    in_a_session(tmp_path, scenario)


def test_an_error_is_told_each_time_and_a_moved_log_start_once(tmp_path: Path) -> None:
    async def scenario(node: Node, writer: Wire, consumer: Consumer) -> None:
        await put(writer, 1)
        await put(writer, 1)
        assert (await consumer.fetch({0: 5, 1: 2}))[0][0] == ErrorCode.OFFSET_OUT_OF_RANGE
        for _ in range(2):
            assert set(await consumer.fetch()) == {0}
        topic_id = node.image.topics_by_name["t"].id
        await node.propose(MoveLogStart(topic_id=topic_id, partition=1, log_start_offset=1))
        assert set(await consumer.fetch({0: 0})) == {0, 1}
        assert await consumer.fetch() == {}

    in_a_session(tmp_path, scenario)


def test_a_partition_that_had_records_gives_way_to_the_others(tmp_path: Path) -> None:
    """Else one busy partition could keep the others out of limited answers for ever."""

    async def scenario(node: Node, writer: Wire, consumer: Consumer) -> None:
        await consumer.fetch({0: 0, 1: 0, 2: 0})
        for partition in (0, 1, 2):
            for _ in range(3):
                await put(writer, partition)
        seen = []
        offsets = dict.fromkeys(range(3), 0)
        for _ in range(6):
            answer = await consumer.fetch(offsets, max_bytes=1)
            (with_records,) = [index for index, (_, _, count) in answer.items() if count]
            offsets[with_records] += 1
            seen.append(with_records)
        assert seen == [0, 1, 2, 0, 1, 2]

    in_a_session(tmp_path, scenario)


def test_a_waiting_session_is_woken_by_any_of_its_partitions(tmp_path: Path) -> None:
    async def scenario(node: Node, writer: Wire, consumer: Consumer) -> None:
        await consumer.fetch({0: 0, 1: 0, 2: 0})
        request = consumer.request({}, max_wait_ms=FOREVER_MS)
        consumer.wire.send(request, consumer.version)
        await until(lambda: node.waiting_fetches)
        await put(writer, 2)
        assert told(await consumer.wire.receive(request, consumer.version)) == {2: (0, 1, 1)}

    in_a_session(tmp_path, scenario)


@pytest.mark.parametrize(
    ("session_id", "epoch", "error"),
    [
        (0, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (12345, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (None, 2, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (None, 2**31 - 1, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
    ],
)
def test_another_session_or_epoch_than_expected_is_an_error_of_the_whole_request(
    tmp_path: Path, session_id: int | None, epoch: int, error: ErrorCode
) -> None:
    async def scenario(node: Node, writer: Wire, consumer: Consumer) -> None:
        await consumer.fetch({0: 0})
        own = consumer.session_id
        consumer.session_id, consumer.epoch = own if session_id is None else session_id, epoch
        answer = await consumer.wire.ask(consumer.request({1: 0}, max_wait_ms=FOREVER_MS), consumer.version)
        assert (answer.error_code, answer.session_id, answer.responses) == (error, 0, [])
        consumer.session_id, consumer.epoch = own, 1
        assert await consumer.fetch() == {}, "the session itself goes on"

    in_a_session(tmp_path, scenario)


def test_a_session_of_names_and_one_of_ids_dont_mix(tmp_path: Path) -> None:
    async def scenario(node: Node, writer: Wire, consumer: Consumer) -> None:
        await consumer.fetch({0: 0})
        answer = await consumer.wire.ask(consumer.request({1: 0}), BY_ID)
        assert answer.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR

    in_a_session(tmp_path, scenario, BY_NAME)


def test_a_session_ends_with_its_last_epoch_and_begins_anew_with_the_first(tmp_path: Path) -> None:
    async def scenario(node: Node, writer: Wire, consumer: Consumer) -> None:
        await consumer.fetch({0: 0})
        first = consumer.session_id
        consumer.epoch = INITIAL_EPOCH
        await consumer.fetch({0: 0})
        assert consumer.session_id != first
        assert len(node.fetch_sessions) == 1, "the old one made way"
        consumer.epoch = FINAL_EPOCH
        assert await consumer.fetch({0: 0}) == {0: (0, 0, 0)}, "a full answer of its own"
        assert (consumer.session_id, len(node.fetch_sessions)) == (0, 0)

    in_a_session(tmp_path, scenario)


def test_without_room_for_sessions_every_answer_is_full(tmp_path: Path) -> None:
    async def scenario(node: Node, writer: Wire, consumer: Consumer) -> None:
        for _ in range(2):
            assert set(await consumer.fetch({0: 0, 1: 0})) == {0, 1}
            assert consumer.session_id == 0

    in_a_session(tmp_path, scenario, max_incremental_fetch_session_cache_slots=0)


@pytest.mark.parametrize(
    ("version", "error"), [(BY_NAME, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (BY_ID, ErrorCode.UNKNOWN_TOPIC_ID)]
)
def test_a_deleted_topic_is_an_error_until_it_is_forgotten(tmp_path: Path, version: int, error: ErrorCode) -> None:
    async def scenario(node: Node, writer: Wire, consumer: Consumer) -> None:
        await consumer.fetch({0: 0})
        await writer.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=10_000), 6)
        for _ in range(2):
            assert await consumer.fetch(max_wait_ms=FOREVER_MS) == {0: (error, -1, 0)}
        await create_topic(writer, "t", 3)
        expected = {0: (0, 0, 0)} if version == BY_NAME else {0: (error, -1, 0)}
        assert await consumer.fetch() == expected, "a new topic of that name has another id"

    in_a_session(tmp_path, scenario, version)

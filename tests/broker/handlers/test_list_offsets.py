"""ListOffsets: ends, times, special timestamps, errors."""

from __future__ import annotations

from typing import Any

import pytest
from support.handler_fakes import FakeNode, FakePartition, answer

from walrusmq.broker.commands import CreateTopic, NewPartition, RolloverReason, RolloverSegment
from walrusmq.broker.handlers.list_offsets import list_offsets
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

T0 = 1_700_000_000_000
ALL_VERSIONS = range(1, 12)
ID = b"t" * 16


@pytest.fixture
def node() -> FakeNode:
    """Topic t: partition 0 has offsets 2 to 9, committed below 8, in two epochs; partition 1 is led elsewhere."""
    node = FakeNode()
    node.apply(CreateTopic(topic_id=ID, name="t", partitions=[NewPartition(assigned=[1])] * 2))
    node.apply(
        RolloverSegment(
            topic_id=ID, partition=0, segment_id=1, leader=1, leader_incarnation=node.incarnation, first_offset=0,
            end_offset=5, size_bytes=1, members=[1], reason=RolloverReason.RECOVERY, next_leader=1, next_members=[1],
        )
    )  # fmt: skip
    records = [(T0 + 1000 * offset, offset) for offset in range(2, 10)]
    partition = FakePartition(log_start_offset=2, high_watermark=8, log_end_offset=10, leader_epoch=1, records=records)
    node.partitions_by_name = {"t": {0: partition}}
    return node


def ask(
    node: FakeNode, timestamp: int, version: int = 11, index: int = 0, topic: str = "t", current: int = -1, **more: Any
) -> tuple[int, int, int, int]:
    partition = ListOffsetsPartition(partition_index=index, timestamp=timestamp, current_leader_epoch=current)
    request = ListOffsetsRequest(
        topics=[ListOffsetsTopic(name=topic, partitions=[partition])], **{"replica_id": -1} | more
    )
    [told] = answer(list_offsets, request, node, version).topics
    [part] = told.partitions
    assert (told.name, part.partition_index) == (topic, index)
    return part.error_code, part.timestamp, part.offset, part.leader_epoch


def code(*arguments: Any, **more: Any) -> ErrorCode:
    told = ask(*arguments, **more)
    assert told[1:] == (-1, -1, -1)
    return ErrorCode(told[0])


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_latest_is_the_high_watermark_and_earliest_the_log_start(node: FakeNode, version: int) -> None:
    assert ask(node, -1, version) == (0, -1, 8, 1 if version >= 4 else -1)
    assert ask(node, -2, version) == (0, -1, 2, 0 if version >= 4 else -1)


@pytest.mark.parametrize("isolation", [0, 1])
def test_both_isolation_levels_see_the_same_without_transactions(node: FakeNode, isolation: int) -> None:
    assert ask(node, -1, isolation_level=isolation) == (0, -1, 8, 1)


@pytest.mark.parametrize("replica", [-3, -2, 0, 1, 7])
def test_replicas_are_told_the_logs_end(node: FakeNode, replica: int) -> None:
    assert ask(node, -1, replica_id=replica) == (0, -1, 10, 1)


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (0, (0, T0 + 2000, 2, 0)),
        (T0 + 4000, (0, T0 + 4000, 4, 0)),
        (T0 + 4001, (0, T0 + 5000, 5, 1)),
        (T0 + 7000, (0, T0 + 7000, 7, 1)),
        (T0 + 99_000, (0, -1, -1, -1)),
    ],
)
def test_a_time_finds_the_first_record_of_it_or_later(
    node: FakeNode, timestamp: int, expected: tuple[int, int, int, int]
) -> None:
    assert ask(node, timestamp) == expected


def test_records_above_the_high_watermark_are_not_found(node: FakeNode) -> None:
    assert ask(node, T0 + 8000) == (0, -1, -1, -1)
    assert ask(node, -3) == (0, -1, -1, -1)


def test_the_largest_timestamp_is_found(node: FakeNode) -> None:
    node.partitions_by_name["t"][0].records = [(T0 + 9000, 3), (T0 + 7000, 4), (T0 + 9000, 5)]
    assert ask(node, -3) == (0, T0 + 9000, 3, 0)


def test_an_empty_partition_has_ends_but_no_records(node: FakeNode) -> None:
    node.partitions_by_name["t"][1] = FakePartition()
    assert ask(node, -1, index=1) == ask(node, -2, index=1) == ask(node, -4, index=1) == (0, -1, 0, 0)
    assert ask(node, -3, index=1) == ask(node, T0, index=1) == (0, -1, -1, -1)


@pytest.mark.parametrize(
    ("timestamp", "first_version"),
    [(-1, 1), (-2, 1), (-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 12), (-8, 12), (-100, 12)],
)
def test_special_timestamps_are_known_from_a_version_on(node: FakeNode, timestamp: int, first_version: int) -> None:
    for version in ALL_VERSIONS:
        expected = 0 if version >= first_version else ErrorCode.UNSUPPORTED_VERSION
        assert ask(node, timestamp, version)[0] == expected


def test_nothing_is_tiered(node: FakeNode) -> None:
    assert ask(node, -4) == (0, -1, 2, 0)
    assert ask(node, -5) == ask(node, -6) == (0, -1, -1, -1)


def test_leader_epochs_are_checked(node: FakeNode) -> None:
    assert ask(node, -1, current=1)[0] == 0
    for timestamp in (-1, -2, -3, T0):
        assert code(node, timestamp, current=0) is ErrorCode.FENCED_LEADER_EPOCH
        assert code(node, timestamp, current=2) is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_partitions_that_are_not_there_or_led_elsewhere_have_their_errors(node: FakeNode) -> None:
    assert code(node, -1, topic="none") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code(node, -1, index=2) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code(node, -1, index=-1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code(node, -1, index=1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code(node, -8, topic="none") is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("isolation", [2, 7, -1])
def test_unknown_isolation_levels_are_refused(node: FakeNode, isolation: int) -> None:
    assert code(node, -1, isolation_level=isolation) is ErrorCode.INVALID_REQUEST


def partitions(name: str, *wanted: tuple[int, int]) -> ListOffsetsTopic:
    return ListOffsetsTopic(
        name=name, partitions=[ListOffsetsPartition(partition_index=index, timestamp=time) for index, time in wanted]
    )


def test_a_partition_that_is_asked_for_twice_is_refused_once(node: FakeNode) -> None:
    node.partitions_by_name["t"][1] = FakePartition()
    request = ListOffsetsRequest(
        replica_id=-1, topics=[partitions("t", (0, -1)), partitions("none", (0, -1)), partitions("t", (1, -2), (0, -2))]
    )
    told = answer(list_offsets, request, node, 11)
    assert [(t.name, [(p.partition_index, p.error_code) for p in t.partitions]) for t in told.topics] == [
        ("t", [(0, ErrorCode.INVALID_REQUEST), (1, 0)]),
        ("none", [(0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
    ]
    assert told.topics[0].partitions[0].offset == -1


def test_nothing_is_answered_for_nothing(node: FakeNode) -> None:
    assert answer(list_offsets, ListOffsetsRequest(replica_id=-1), node, 11).topics == []
    empty = ListOffsetsRequest(replica_id=-1, topics=[partitions("t")])
    assert answer(list_offsets, empty, node, 11).topics == []

"""DescribeTopicPartitions: topics in order, page by page."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.handler_fakes import FakeNode, answer

from walrusmq.broker.commands import CreateTopic, NewPartition
from walrusmq.broker.handlers.describe_topic_partitions import MAX_PAGE_PARTITIONS, describe_topic_partitions
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest

Page = tuple[list[tuple[str, int, list[int]]], tuple[str, int] | None]


def with_topics(**partitions: int) -> FakeNode:
    node = FakeNode()
    for name, count in partitions.items():
        topic_id = name.encode().rjust(16, b"_")
        node.apply(CreateTopic(topic_id=topic_id, name=name, partitions=[NewPartition(assigned=[1])] * count))
    return node


def ask(node: FakeNode, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> Any:
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return answer(describe_topic_partitions, request, node, 0)


def page(node: FakeNode, *names: str, **more: Any) -> Page:
    told = ask(node, *names, **more)
    topics = [(t.name, t.error_code, [p.partition_index for p in t.partitions]) for t in told.topics]
    following = told.next_cursor
    return topics, None if following is None else (following.topic_name, following.partition_index)


def test_topics_come_by_name_each_once() -> None:
    node = with_topics(b=3, c=2, a=1)
    assert page(node, "c", "b", "b") == ([("b", 0, [0, 1, 2]), ("c", 0, [0, 1])], None)


def test_all_topics_come_when_none_is_named() -> None:
    assert page(with_topics(b=1, a=2)) == ([("a", 0, [0, 1]), ("b", 0, [0])], None)


def test_a_partition_is_described() -> None:
    [topic] = ask(with_topics(a=1), "a").topics
    assert (topic.topic_id, topic.is_internal, topic.topic_authorized_operations) == (b"a".rjust(16, b"_"), False, 3576)
    [partition] = topic.partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 1, 0)
    assert partition.replica_nodes == partition.isr_nodes == [1]
    assert partition.eligible_leader_replicas == partition.last_known_elr == partition.offline_replicas == []


def test_a_partition_whose_leader_is_gone_has_none() -> None:
    node = with_topics(a=1)
    del node.image.nodes[1]
    [partition] = ask(node, "a").topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert partition.offline_replicas == [1]


def test_unknown_and_illegal_names_have_their_errors() -> None:
    told = ask(with_topics(b=1), "zz", "b", "a b")
    assert [(t.name, t.error_code) for t in told.topics] == [("a b", 17), ("b", 0), ("zz", 3)]
    assert {t.topic_authorized_operations for t in told.topics} == {3576}


def test_an_empty_name_fails_the_request_as_in_kafka() -> None:
    assert page(with_topics(b=1), "zz", "b", "") == ([("zz", -1, []), ("b", -1, []), ("", -1, [])], None)


@pytest.mark.parametrize(
    ("limit", "topics", "cursor"),
    [
        (-1, [("b", 0, [0])], ("b", 1)),
        (0, [("b", 0, [0])], ("b", 1)),
        (1, [("b", 0, [0])], ("b", 1)),
        (2, [("b", 0, [0, 1])], ("b", 2)),
        (3, [("b", 0, [0, 1, 2])], ("c", 0)),
        (4, [("b", 0, [0, 1, 2]), ("c", 0, [0])], ("c", 1)),
        (5, [("b", 0, [0, 1, 2]), ("c", 0, [0, 1])], None),
    ],
)
def test_a_page_ends_at_its_limit(limit: int, topics: list[Any], cursor: tuple[str, int] | None) -> None:
    assert page(with_topics(b=3, c=2), "b", "c", limit=limit) == (topics, cursor)


def test_unknown_topics_fill_no_page_but_come_after_a_full_one() -> None:
    node = with_topics(b=3)
    assert page(node, "zz", "b", "aa", limit=1) == ([("aa", 3, []), ("b", 0, [0])], ("b", 1))
    assert page(node, "zz", "b", limit=3) == ([("b", 0, [0, 1, 2])], ("zz", 0))
    assert page(node, "zz", "aa", limit=1) == ([("aa", 3, []), ("zz", 3, [])], None)


def test_a_page_has_a_largest_size() -> None:
    node = with_topics(a=MAX_PAGE_PARTITIONS + 1)
    assert page(node, "a", limit=1 << 30)[1] == ("a", MAX_PAGE_PARTITIONS)


@pytest.mark.parametrize(
    ("cursor", "topics"),
    [
        (("b", 1), [("b", 0, [1, 2]), ("c", 0, [0, 1])]),
        (("c", 0), [("c", 0, [0, 1])]),
        (("b", 3), [("b", 0, []), ("c", 0, [0, 1])]),
        (("b", 9), [("b", 0, []), ("c", 0, [0, 1])]),
    ],
)
def test_a_page_begins_at_the_cursor(cursor: tuple[str, int], topics: list[Any]) -> None:
    assert page(with_topics(b=3, c=2), "c", "b", cursor=cursor) == (topics, None)


@pytest.mark.parametrize("cursor", [("b", -1), ("bb", 0), ("", 0)])
def test_a_cursor_must_be_one_of_the_named_topics(cursor: tuple[str, int]) -> None:
    told = ask(with_topics(b=3, c=2), "c", "b", cursor=cursor)
    assert [(t.name, t.error_code) for t in told.topics] == [("c", 42), ("b", 42)]
    assert told.topics[0].topic_authorized_operations == -0x8000_0000
    assert told.next_cursor is None


def test_a_cursor_may_name_a_topic_that_is_gone() -> None:
    node = with_topics(b=3, d=1)
    assert page(node, "c", "d", cursor=("c", 1)) == ([("c", 3, []), ("d", 0, [0])], None)
    assert page(node, cursor=("c", 1)) == ([("d", 0, [0])], None)
    assert page(node, cursor=("zz", 0)) == ([], None)
    assert page(node, limit=1, cursor=("", 0)) == ([("b", 0, [0])], ("b", 1))


def test_a_negative_cursor_over_all_topics_finds_nothing() -> None:
    assert page(with_topics(b=2), cursor=("b", -1)) == ([], None)


def test_a_negative_cursor_counts_before_an_empty_name() -> None:
    assert page(with_topics(b=2), "", cursor=("b", -1)) == ([("", ErrorCode.INVALID_REQUEST, [])], None)


@given(counts=st.lists(st.integers(1, 7), min_size=1, max_size=5), limit=st.integers(1, 9), named=st.booleans())
def test_pages_together_are_everything_once(counts: list[int], limit: int, named: bool) -> None:
    topics = {f"t{index}": count for index, count in enumerate(counts)}
    node = with_topics(**topics)
    names = list(topics) if named else []
    seen: list[tuple[str, int]] = []
    cursor: tuple[str, int] | None = None
    for _ in range(sum(counts) + 1):
        found, cursor = page(node, *names, limit=limit, cursor=cursor)
        seen += [(name, index) for name, _, indexes in found for index in indexes]
        if cursor is None:
            break
    assert seen == [(name, index) for name, count in topics.items() for index in range(count)]

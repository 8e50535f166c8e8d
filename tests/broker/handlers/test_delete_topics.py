"""DeleteTopics: by name, by id, and what can't be deleted."""

from __future__ import annotations

from typing import Any

import pytest
from support.handler_fakes import FakeNode, answer

from walrusmq.broker.commands import CreateTopic, NewPartition
from walrusmq.broker.handlers.delete_topics import delete_topics
from walrusmq.protocol.errors import ErrorCode, UnknownTopicId
from walrusmq.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from walrusmq.protocol.primitives import ZERO_UUID

NOBODY = bytes(15) + b"\7"


def topic_id(name: str) -> bytes:
    return name.encode().rjust(16, b"_")


def with_topics(*names: str) -> FakeNode:
    node = FakeNode()
    for name in names:
        node.apply(CreateTopic(topic_id=topic_id(name), name=name, partitions=[NewPartition(assigned=[1])]))
    return node


def delete(node: FakeNode, *states: DeleteTopicState, timeout_ms: int = 5000) -> list[Any]:
    response = answer(delete_topics, DeleteTopicsRequest(topics=list(states), timeout_ms=timeout_ms), node, 6)
    return [(result.name, result.topic_id, result.error_code) for result in response.responses]


def by_name(name: str) -> DeleteTopicState:
    return DeleteTopicState(name=name)


def by_id(id_: bytes) -> DeleteTopicState:
    return DeleteTopicState(topic_id=id_)


@pytest.mark.parametrize("version", range(1, 6))
def test_topics_are_deleted_by_name_up_to_version_5(version: int) -> None:
    node = with_topics("a", "b")
    request = DeleteTopicsRequest(topic_names=["a", "none"], timeout_ms=5000)
    response = answer(delete_topics, request, node, version)
    assert [(result.name, result.error_code) for result in response.responses] == [("a", 0), ("none", 3)]
    assert list(node.image.topics_by_name) == ["b"]
    if version == 5:
        assert response.responses[0].error_message is None
        assert response.responses[1].error_message


def test_topics_are_deleted_by_name_and_by_id_and_told_with_both() -> None:
    node = with_topics("a", "b", "c")
    assert delete(node, by_name("a"), by_id(topic_id("c"))) == [
        ("a", topic_id("a"), 0),
        ("c", topic_id("c"), 0),
    ]
    assert list(node.image.topics_by_name) == ["b"]


def test_unknown_topics_have_the_error_of_how_they_were_asked_for() -> None:
    assert delete(FakeNode(), by_name("none"), by_name("a b"), by_name(""), by_id(NOBODY)) == [
        ("none", ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("a b", ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("", ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (None, NOBODY, ErrorCode.UNKNOWN_TOPIC_ID),
    ]


def test_both_or_neither_of_name_and_id_are_refused_each_time() -> None:
    node = with_topics("a")
    both = DeleteTopicState(name="a", topic_id=topic_id("a"))
    assert delete(node, both, DeleteTopicState(), DeleteTopicState()) == [
        ("a", topic_id("a"), ErrorCode.INVALID_REQUEST),
        (None, ZERO_UUID, ErrorCode.INVALID_REQUEST),
        (None, ZERO_UUID, ErrorCode.INVALID_REQUEST),
    ]
    assert not node.proposed


def test_a_topic_that_is_given_twice_is_refused_once() -> None:
    node = with_topics("a", "b", "c")
    assert delete(node, by_name("a"), by_id(topic_id("b")), by_name("a"), by_id(topic_id("b"))) == [
        ("a", ZERO_UUID, ErrorCode.INVALID_REQUEST),
        (None, topic_id("b"), ErrorCode.INVALID_REQUEST),
    ]
    assert delete(node, by_name("c"), by_id(topic_id("c"))) == [("c", topic_id("c"), ErrorCode.INVALID_REQUEST)]
    assert not node.proposed


def test_one_that_cannot_be_deleted_does_not_keep_the_others_back() -> None:
    node = with_topics("a", "b")
    node.refusals = [UnknownTopicId("somebody was faster")]
    assert delete(node, by_name("a"), by_name("none"), by_name("b")) == [
        ("a", topic_id("a"), ErrorCode.UNKNOWN_TOPIC_ID),
        ("none", ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("b", topic_id("b"), 0),
    ]


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_time_nothing_is_deleted(timeout_ms: int) -> None:
    node = with_topics("a")
    assert delete(node, by_name("a"), timeout_ms=timeout_ms) == [("a", ZERO_UUID, ErrorCode.REQUEST_TIMED_OUT)]
    assert not node.proposed


def test_what_contradicts_itself_is_refused_without_time_too() -> None:
    node = with_topics("a")
    assert delete(node, by_name("a"), by_name("a"), DeleteTopicState(), timeout_ms=0) == [
        (None, ZERO_UUID, ErrorCode.INVALID_REQUEST),
        ("a", ZERO_UUID, ErrorCode.INVALID_REQUEST),
    ]
    assert delete(node, by_name("a"), by_name("a"), by_name("none"), timeout_ms=0) == [
        ("a", ZERO_UUID, ErrorCode.REQUEST_TIMED_OUT),
        ("a", ZERO_UUID, ErrorCode.REQUEST_TIMED_OUT),
        ("none", ZERO_UUID, ErrorCode.REQUEST_TIMED_OUT),
    ]


def test_no_topics_are_no_error() -> None:
    assert delete(FakeNode()) == []

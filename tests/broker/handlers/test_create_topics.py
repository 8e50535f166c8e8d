"""CreateTopics: each topic's outcome, validation only, and what the answer shows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.handler_fakes import FakeConnection, FakeContext, FakeNode, answer

from walrusmq.broker.config_rows import ConfigSource
from walrusmq.broker.handlers.create_topics import create_topics
from walrusmq.broker.topic_configs import TOPIC_CONFIGS
from walrusmq.protocol.errors import ErrorCode, KafkaStorageError, TopicAlreadyExists
from walrusmq.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from walrusmq.protocol.primitives import ZERO_UUID

ALL_VERSIONS = range(2, 8)


def topic(name: str, partitions: int = 1, replicas: int = 1, **configs: str | None) -> CreatableTopic:
    wanted = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, configs=wanted)


def create(node: FakeNode, *topics: CreatableTopic, version: int = 7, **more: Any) -> dict[str, Any]:
    response: CreateTopicsResponse = answer(
        create_topics, CreateTopicsRequest(topics=list(topics), **more), node, version
    )
    assert len({result.name for result in response.topics}) == len(response.topics)
    return {result.name: result for result in response.topics}


def codes(results: dict[str, Any]) -> dict[str, int]:
    return {name: result.error_code for name, result in results.items()}


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_topic_is_there_once_it_is_answered(version: int) -> None:
    node = FakeNode()
    result = create(node, topic("t", 3), version=version)["t"]
    assert (result.error_code, result.error_message) == (0, None)
    image = node.image.topics_by_name["t"]
    assert len(image.partitions) == 3
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
    assert result.topic_id == (image.id if version >= 7 else ZERO_UUID)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_validating_creates_nothing_and_answers_the_same(version: int) -> None:
    node = FakeNode()
    result = create(node, topic("t", 3), version=version, validate_only=True)["t"]
    assert result.error_code == 0
    assert not node.image.topics
    if version >= 5:
        assert (result.num_partitions, result.replication_factor) == (3, 1)
        assert len(result.configs) == len(TOPIC_CONFIGS)
    assert (result.topic_id != ZERO_UUID) == (version >= 7)


def test_configs_are_shown_with_where_they_come_from() -> None:
    node = FakeNode()
    result = create(node, topic("t", retention_ms="5"))["t"]
    sources = {config.name: (config.value, config.config_source) for config in result.configs}
    assert sources["retention.ms"] == ("5", ConfigSource.TOPIC)
    assert sources["cleanup.policy"] == ("delete", ConfigSource.DEFAULT)
    assert list(sources) == sorted(sources)
    assert node.image.topics_by_name["t"].configs == {"retention.ms": "5"}


def test_minus_one_is_answered_with_the_counts_that_it_stands_for() -> None:
    result = create(FakeNode(num_partitions=4), topic("t", -1, -1))["t"]
    assert (result.num_partitions, result.replication_factor) == (4, 1)


def test_assigned_nodes_are_taken() -> None:
    node = FakeNode()
    node.join(2)
    by_hand = topic("t", -1, -1)
    by_hand.assignments = [CreatableReplicaAssignment(partition_index=0, broker_ids=[2, 1])]
    result = create(node, by_hand)["t"]
    assert (result.num_partitions, result.replication_factor) == (1, 2)
    assert node.image.topics_by_name["t"].partitions[0].assigned == (2, 1)


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_refused_topic_has_its_error_and_no_counts(version: int) -> None:
    result = create(FakeNode(), topic("a b"), version=version)["a b"]
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert result.error_message
    assert (result.num_partitions, result.replication_factor, result.topic_id) == (-1, -1, ZERO_UUID)
    assert result.configs == []


def test_one_bad_topic_does_not_keep_the_others_back() -> None:
    node = FakeNode()
    results = create(node, topic("z"), topic("bad", 0), topic("a b"), topic("a", no_such="1"), topic("m"))
    assert codes(results) == {"z": 0, "bad": 37, "a b": 17, "a": 40, "m": 0}
    assert sorted(node.image.topics_by_name) == ["m", "z"]


def test_a_name_that_is_given_twice_is_refused_once() -> None:
    node = FakeNode()
    assert codes(create(node, topic("d"), topic("e"), topic("d", 0), topic("a b"), topic("a b"))) == {
        "d": ErrorCode.INVALID_REQUEST,
        "e": 0,
        "a b": ErrorCode.INVALID_REQUEST,
    }
    assert list(node.image.topics_by_name) == ["e"]


def test_names_of_one_request_may_collide_as_in_kafka() -> None:
    node = FakeNode()
    assert codes(create(node, topic("k.l"), topic("k_l"))) == {"k.l": 0, "k_l": 0}
    assert codes(create(node, topic("k.l"), topic("k_l"))) == {"k.l": 36, "k_l": 36}


def test_too_many_partitions_refuse_the_whole_request_but_doubled_names_do_not_count() -> None:
    many = 6000
    assert codes(create(FakeNode(), topic("a", many), topic("b", many), validate_only=True)) == {"a": 44, "b": 44}
    doubled = create(FakeNode(), topic("a", many), topic("a", many), topic("b"), validate_only=True)
    assert codes(doubled) == {"a": 42, "b": 0}
    reserved = create(FakeNode(), topic("__cluster_metadata", 2 * many), topic("b"), validate_only=True)
    assert codes(reserved) == {"__cluster_metadata": 42, "b": 0}


def test_topics_partitions_and_settings_of_one_request_count_together() -> None:
    assert codes(create(FakeNode(), topic("a", 9_999), validate_only=True)) == {"a": 0}
    assert codes(create(FakeNode(), topic("a", 10_000), topic("a b"), validate_only=True)) == {"a": 44, "a b": 44}
    own = topic("a", 9_998)
    own.configs = [CreatableTopicConfig(name="retention.ms", value="1")]
    assert codes(create(FakeNode(), own, validate_only=True)) == {"a": 0}
    assert codes(create(FakeNode(), own, topic("b"), validate_only=True)) == {"a": 44, "b": 44}
    assert codes(create(FakeNode(), own, topic("a b"), validate_only=True)) == {"a": 0, "a b": 17}


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_what_contradicts_itself_is_refused_without_time_too(timeout_ms: int) -> None:
    doubled = create(FakeNode(), topic("a"), topic("a"), topic("__cluster_metadata"), timeout_ms=timeout_ms)
    assert codes(doubled) == {"a": 42, "__cluster_metadata": 42}
    mixed = create(FakeNode(), topic("b"), topic("__cluster_metadata"), timeout_ms=timeout_ms)
    assert codes(mixed) == {"b": 7, "__cluster_metadata": 7}


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_time_nothing_is_created(timeout_ms: int) -> None:
    node = FakeNode()
    assert codes(create(node, topic("t"), timeout_ms=timeout_ms)) == {"t": ErrorCode.REQUEST_TIMED_OUT}
    assert not node.proposed


def test_a_topic_that_is_not_confirmed_in_time_gets_an_uncertain_error() -> None:
    async def scenario() -> tuple[int, bool]:
        node = FakeNode()
        node.hold, created = asyncio.Event(), asyncio.Event()
        node.image.subscribe(lambda *_: created.set())
        request = CreateTopicsRequest(topics=[topic("t")], timeout_ms=1)
        response = await create_topics(request, FakeContext(node, 7, FakeConnection()))  # type: ignore[arg-type]
        node.hold.set()
        await created.wait()
        return response.topics[0].error_code, bool(response.topics[0].configs)

    assert asyncio.run(scenario()) == (ErrorCode.REQUEST_TIMED_OUT, False)


def test_what_the_metadata_log_refuses_is_answered() -> None:
    node = FakeNode()
    node.refusals = [TopicAlreadyExists("somebody was faster"), KafkaStorageError("disk full")]
    results = create(node, topic("a"), topic("b"), topic("c"))
    assert codes(results) == {"a": 36, "b": 56, "c": 0}
    assert results["a"].error_message == "somebody was faster"


def test_no_topics_are_no_error() -> None:
    assert create(FakeNode()) == {}

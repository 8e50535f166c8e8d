"""Metadata: topics by name and id, nodes and their addresses, creation on demand."""

from __future__ import annotations

from typing import Any

import pytest
from support.handler_fakes import FakeConnection, FakeContext, FakeNode, answer

from walrusmq.broker.commands import CreateTopic, NewPartition, RolloverReason, RolloverSegment
from walrusmq.broker.dispatcher import EncodedResponse
from walrusmq.broker.handlers.metadata import LEAST_PARTITIONS_TO_KEEP, metadata
from walrusmq.broker.image_cache import MAX_ENCODED_ANSWERS
from walrusmq.protocol.errors import ErrorCode, KafkaStorageError, TopicAlreadyExists
from walrusmq.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from walrusmq.protocol.primitives import ZERO_UUID

ALL_VERSIONS = range(14)
NOBODY = bytes(15) + b"\7"
NO_OPERATIONS = -0x8000_0000


def topic_id(name: str) -> bytes:
    return name.encode().rjust(16, b"_")


def with_topics(*names: str, partitions: int = 1, **settings: Any) -> FakeNode:
    node = FakeNode(**settings)
    for name in names:
        node.apply(
            CreateTopic(topic_id=topic_id(name), name=name, partitions=[NewPartition(assigned=[1])] * partitions)
        )
    return node


def by_name(*names: str, **more: Any) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], **more)


def by_id(*ids: bytes, name: str | None = None) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(topic_id=id_, name=name) for id_ in ids])


def ask(request: MetadataRequest, node: FakeNode, version: int = 13, **connection: Any) -> Any:
    return answer(metadata, request, node, version, **connection)


def codes(response: Any) -> dict[str | None, int]:
    return {topic.name: topic.error_code for topic in response.topics}


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_topic_is_described_with_leader_and_replicas(version: int) -> None:
    response = ask(by_name("a"), with_topics("a", "b", partitions=2), version)
    [topic] = response.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (0, "a", False)
    assert topic.topic_id == (topic_id("a") if version >= 10 else ZERO_UUID)
    assert [partition.partition_index for partition in topic.partitions] == [0, 1]
    for partition in topic.partitions:
        assert (partition.error_code, partition.leader_id) == (0, 1)
        assert partition.leader_epoch == (0 if version >= 7 else -1)
        assert partition.replica_nodes == partition.isr_nodes == [1]
        assert partition.offline_replicas == []


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_all_topics_are_asked_for_with_null_and_in_version_0_with_an_empty_list(version: int) -> None:
    node = with_topics("a", "b")
    everything = MetadataRequest(topics=[] if version == 0 else None)
    assert codes(ask(everything, node, version)) == {"a": 0, "b": 0}
    if version:
        assert codes(ask(by_name(), node, version)) == {}


def test_cluster_id_and_controller_are_told() -> None:
    node = FakeNode()
    response = ask(by_name(), node)
    assert (response.cluster_id, response.controller_id, response.error_code) == (node.cluster_id, 1, 0)


def test_our_own_address_is_the_one_that_the_client_came_in_on() -> None:
    [broker] = ask(by_name(), FakeNode(), local_host="192.168.7.7", local_port=19092).brokers
    assert (broker.node_id, broker.host, broker.port, broker.rack) == (1, "192.168.7.7", 19092, None)


def test_other_nodes_have_their_listener_of_the_same_name() -> None:
    node = FakeNode()
    node.join(3, CLIENT=("three", 3000))
    node.join(2, "rack", CLIENT=("two", 2000), OTHER=("other", 1))
    node.join(4, OTHER=("four", 4000))
    brokers = [(each.node_id, each.host, each.port, each.rack) for each in ask(by_name(), node).brokers]
    assert brokers[1:] == [(2, "two", 2000, "rack"), (3, "three", 3000, None)]


def test_a_name_that_is_asked_for_twice_is_answered_once() -> None:
    assert len(ask(by_name("a", "a"), with_topics("a")).topics) == 1


def test_unknown_and_illegal_names_have_their_errors() -> None:
    response = ask(by_name("none", "a b", "", "a", allow_auto_topic_creation=False), with_topics("a"))
    assert codes(response) == {"a": 0, "none": 3, "a b": 17, "": 17}
    for topic in response.topics[1:]:
        assert (topic.topic_id, topic.partitions) == (ZERO_UUID, [])


def test_the_present_leader_epoch_is_told_after_a_rollover() -> None:
    node = with_topics("a")
    before = ask(by_name("a"), node).topics[0].partitions[0].leader_epoch
    node.apply(
        RolloverSegment(
            topic_id=topic_id("a"), partition=0, segment_id=1, leader=1, leader_incarnation=node.incarnation,
            first_offset=0, end_offset=5, size_bytes=100, members=[1], reason=RolloverReason.RECOVERY, next_leader=1,
            next_members=[1],
        )
    )  # fmt: skip
    assert (before, ask(by_name("a"), node).topics[0].partitions[0].leader_epoch) == (0, 1)


def test_a_partition_whose_leader_is_gone_has_none() -> None:
    node = with_topics("a")
    del node.image.nodes[1]
    [partition] = ask(by_name("a"), node).topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert partition.offline_replicas == [1]


# --- ids


@pytest.mark.parametrize("version", [12, 13])
def test_topics_are_found_by_id(version: int) -> None:
    node = with_topics("a", "b")
    response = ask(by_id(topic_id("a"), NOBODY, topic_id("a")), node, version)
    assert codes(response) == {None: ErrorCode.UNKNOWN_TOPIC_ID, "a": 0}
    assert [topic.topic_id for topic in response.topics] == [NOBODY, topic_id("a")]


@pytest.mark.parametrize("version", [12, 13])
def test_names_beside_ids_count_for_nothing(version: int) -> None:
    node = with_topics("a", "b")
    assert codes(ask(by_id(topic_id("a"), name="b"), node, version)) == {"a": 0}
    mixed = MetadataRequest(topics=[*by_name("b", "new").topics, *by_id(topic_id("a"), name="").topics])  # type: ignore
    assert codes(ask(mixed, node, version)) == {"a": 0}
    assert not node.proposed


@pytest.mark.parametrize("version", [10, 11])
def test_ids_are_refused_before_version_12(version: int) -> None:
    for request in (by_id(topic_id("a")), by_id(topic_id("a"), name="a"), by_id(ZERO_UUID)):
        response = ask(request, with_topics("a"), version)
        [topic] = response.topics
        assert topic.error_code == ErrorCode.INVALID_REQUEST
        assert topic.name == (request.topics[0].name or "")  # type: ignore[index]
        assert (response.brokers, response.cluster_id, response.controller_id) == ([], None, -1)


@pytest.mark.parametrize("version", [12, 13])
def test_neither_name_nor_id_is_answered_as_kafka_does(version: int) -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=None), MetadataRequestTopic(name="a")])
    response = ask(request, with_topics("a"), version)
    assert codes(response) == {"": -1, "a": -1}
    assert response.error_code == (-1 if version >= 13 else 0)


# --- authorized operations


def test_operations_are_told_only_when_asked_for() -> None:
    node = with_topics("a")
    silent = ask(by_name("a", "none", allow_auto_topic_creation=False), node, 8)
    assert silent.cluster_authorized_operations == NO_OPERATIONS
    assert {topic.topic_authorized_operations for topic in silent.topics} == {NO_OPERATIONS}
    request = by_name(
        "a", "none", "a b", allow_auto_topic_creation=False, include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )  # fmt: skip
    told = ask(request, node, 8)
    assert told.cluster_authorized_operations == 8096
    assert {topic.topic_authorized_operations for topic in told.topics} == {3576}
    again = ask(by_name("a"), node, 8)
    assert again.topics[0].topic_authorized_operations == NO_OPERATIONS


def test_an_unknown_id_has_no_operations() -> None:
    request = by_id(NOBODY)
    request.include_topic_authorized_operations = True
    assert ask(request, FakeNode()).topics[0].topic_authorized_operations == NO_OPERATIONS


# --- creation on demand


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_a_topic_that_is_asked_for_is_there_in_the_very_answer(version: int) -> None:
    node = FakeNode(num_partitions=3)
    response = ask(by_name("new"), node, version)
    assert codes(response) == {"new": 0}
    assert len(response.topics[0].partitions) == 3
    assert [command.name for command in node.proposed] == ["new"]
    assert len(node.proposed[0].topic_id) == 16


def test_nothing_is_created_when_the_client_does_not_want_it() -> None:
    node = FakeNode()
    assert codes(ask(by_name("new", allow_auto_topic_creation=False), node)) == {"new": 3}
    assert not node.proposed


def test_nothing_is_created_when_the_node_does_not_allow_it() -> None:
    node = FakeNode(auto_create_topics_enable=False)
    assert codes(ask(by_name("new"), node)) == {"new": 3}
    assert not node.proposed


@pytest.mark.parametrize("name", ["", ".", "a b", "x" * 250])
def test_no_topic_of_an_illegal_name_is_created(name: str) -> None:
    node = FakeNode()
    assert codes(ask(by_name(name, "good"), node)) == {"good": 0, name: 17}
    assert [command.name for command in node.proposed] == ["good"]


def test_no_topic_that_collides_with_another_is_created() -> None:
    node = with_topics("a.b")
    assert codes(ask(by_name("a_b"), node)) == {"a_b": 17}
    assert not node.proposed


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state", "__cluster_metadata"])
def test_topics_of_the_brokers_own_are_not_created_for_clients(name: str) -> None:
    node = FakeNode()
    response = ask(by_name(name), node)
    assert codes(response) == {name: 3}
    assert response.topics[0].is_internal == (name != "__cluster_metadata")
    assert not node.proposed


def test_asking_for_all_topics_creates_none() -> None:
    node = FakeNode()
    ask(MetadataRequest(topics=None), node)
    assert not node.proposed


def test_a_default_that_the_cluster_cannot_meet_is_named() -> None:
    node = FakeNode(default_replication_factor=3)
    assert codes(ask(by_name("new"), node)) == {"new": ErrorCode.INVALID_REPLICATION_FACTOR}


def test_a_topic_that_cannot_be_created_now_is_asked_for_again() -> None:
    node = FakeNode()
    node.refusals = [KafkaStorageError("disk full")]
    assert codes(ask(by_name("first", "second"), node)) == {"second": 0, "first": ErrorCode.LEADER_NOT_AVAILABLE}


def test_a_topic_that_another_client_created_meanwhile_is_described() -> None:
    node = with_topics("a")
    stolen = node.image.topics_by_name.pop("a")
    node.refusals = [TopicAlreadyExists("there")]
    request = by_name("a")

    async def propose(command: Any) -> Any:
        node.image.topics_by_name["a"] = stolen
        raise TopicAlreadyExists("there")

    node.propose = propose  # type: ignore[method-assign]
    assert codes(ask(request, node)) == {"a": 0}


def test_one_request_creates_a_bounded_number_of_partitions() -> None:
    node = FakeNode(num_partitions=6000)
    assert codes(ask(by_name("a", "b"), node)) == {"a": ErrorCode.POLICY_VIOLATION, "b": ErrorCode.POLICY_VIOLATION}
    assert not node.proposed


def test_answers_follow_the_image() -> None:
    node = with_topics("a")
    everything = MetadataRequest(topics=None)
    assert codes(ask(everything, node)) == {"a": 0}
    node.apply(CreateTopic(topic_id=NOBODY, name="b", partitions=[NewPartition(assigned=[1])]))
    assert codes(ask(everything, node)) == {"a": 0, "b": 0}


# --- answers for many


def outcome(request: MetadataRequest, node: FakeNode, version: int = 12, **connection: Any) -> Any:
    return metadata(request, FakeContext(node, version, FakeConnection(**connection)))  # type: ignore[arg-type]


MANY = LEAST_PARTITIONS_TO_KEEP


def test_a_large_answer_is_encoded_once_for_all_who_see_the_same() -> None:
    node = with_topics("a", partitions=MANY)
    everything = MetadataRequest(topics=None)
    first = outcome(everything, node)
    assert type(first) is EncodedResponse
    assert outcome(everything, node) is first
    assert outcome(everything, node, version=11) is not first
    assert outcome(everything, node, local_port=9192) is not first
    assert outcome(MetadataRequest(topics=None, include_topic_authorized_operations=True), node) is not first
    of_cluster = MetadataRequest(topics=None, include_cluster_authorized_operations=True)
    assert outcome(of_cluster, node, version=8) is not outcome(everything, node, version=8)
    assert outcome(everything, node) is first


def test_large_topics_are_kept_by_name_and_by_id_too() -> None:
    node = with_topics("a", "b", partitions=MANY)
    for request, names in (
        (by_name("a"), {"a"}),
        (by_name("b"), {"b"}),
        (by_name("a", "b"), {"a", "b"}),
        (by_id(topic_id("a")), {"a"}),
    ):
        first = outcome(request, node)
        assert outcome(request, node) is first
        assert set(codes(ask(request, node, 12))) == names


def test_a_small_answer_is_not_kept_nor_one_about_topics_that_are_not_there() -> None:
    node = with_topics("a", partitions=MANY)
    node.apply(CreateTopic(topic_id=NOBODY, name="small", partitions=[NewPartition(assigned=[1])]))
    assert type(outcome(by_name("small"), node)) is MetadataResponse
    assert type(outcome(by_name("a", "none", allow_auto_topic_creation=False), node)) is MetadataResponse


def test_what_depends_on_the_client_is_right_in_answers_that_are_kept() -> None:
    node = with_topics("a", partitions=MANY)
    for port in (1000, 2000):
        for wants in (True, False):
            request = MetadataRequest(topics=None, include_topic_authorized_operations=wants)
            response = ask(request, node, 10, local_port=port)
            assert [broker.port for broker in response.brokers] == [port]
            assert response.topics[0].topic_authorized_operations == (3576 if wants else NO_OPERATIONS)


def test_errors_in_a_large_answer_are_there_to_be_counted_each_time() -> None:
    node = with_topics("a", partitions=MANY)
    del node.image.nodes[1]
    [topic] = outcome(MetadataRequest(topics=None), node).topics
    assert topic.partitions[0].error_code == ErrorCode.LEADER_NOT_AVAILABLE


def test_of_many_kinds_of_answers_not_all_are_kept() -> None:
    node = with_topics("a", partitions=MANY)
    everything = MetadataRequest(topics=None)
    first = outcome(everything, node)
    for port in range(1, MAX_ENCODED_ANSWERS + 1):
        outcome(everything, node, local_port=port)
    assert outcome(everything, node) is not first

"""The cluster image: what each command does to it, and what it refuses."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest
from support.image_commands import Applied, compact, create, register, roll, topic_id

from walrusmq.broker.commands import (
    AllocateProducerIds,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    MoveLogStart,
    NamedValue,
    NewPartition,
    ResourceType,
    RolloverReason,
    SetConfigs,
    SetFeatureLevel,
    UnregisterNode,
    encode_command,
)
from walrusmq.broker.image import (
    ClusterImage,
    FeatureLevelRefused,
    NodeInUse,
    NodeNotRegistered,
    StaleCompaction,
    StaleIncarnation,
    StaleRollover,
)
from walrusmq.protocol.errors import (
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidRequest,
    KafkaError,
    OffsetOutOfRange,
    TopicAlreadyExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from walrusmq.segments.facts import OpenSegment, SealedSegment


def refused(applied: Applied, command: Any, error: type[KafkaError], match: str | None = None) -> None:
    """Assert that the command is refused so, changes nothing but the applied index, and is told to nobody."""
    image = applied.image
    told: list[int] = []

    def callback(index: int, command: Any, result: Any) -> None:
        told.append(index)

    image.subscribe(callback)
    before = ClusterImage.restore(image.snapshot())
    with pytest.raises(error, match=match) as refusal:
        applied.apply(command)
    assert type(refusal.value) is error
    assert image.applied_index == before.applied_index + 1
    before.applied_index = image.applied_index
    assert image.snapshot() == before.snapshot()
    assert told == []
    image.unsubscribe(callback)


def test_a_registration_gives_its_index_as_the_incarnation() -> None:
    applied = Applied()
    assert applied.apply(register(1, rack="a")) == 1
    node = applied.image.nodes[1]
    assert (node.incarnation, node.rack, node.software_version) == (1, "a", "0.1.0")
    assert node.listeners == {"CLIENT": ("127.0.0.1", 9092)}


def test_registering_again_ends_the_incarnation_before() -> None:
    applied = Applied(register(1), create(1))
    assert applied.apply(register(1)) == 3
    stale = roll(applied.image, leader_incarnation=1)
    refused(applied, stale, StaleIncarnation, "has incarnation 3 now; this comes from its incarnation 1")
    assert applied.apply(roll(applied.image)).open.id == 2


def test_a_new_topic_has_open_segments_led_by_the_first_assigned_node() -> None:
    applied = Applied(register(1), register(2))
    topic = applied.apply(create(7, partitions=2, assigned=(2, 1), retention_ms="5"))
    image = applied.image
    assert image.topics[topic_id(7)] is image.topics_by_name["topic-7"] is topic
    assert topic.configs == {"retention.ms": "5"}
    for partition in topic.partitions:
        assert partition.open == OpenSegment(id=1, leader=2, leader_epoch=0, first_offset=0, members=(2, 1))
        assert (partition.assigned, partition.sealed, partition.log_start_offset) == ((2, 1), [], 0)
        assert partition.member_incarnations == (2, 1)
    assert (image.partition_count, image.led_counts) == (2, {2: 2})


def test_a_new_partition_may_open_on_those_of_its_nodes_that_live() -> None:
    applied = Applied(*(register(node) for node in (1, 2, 3)))
    command = create(1, assigned=(1, 2, 3))
    command.partitions[0].members = [3, 2]
    partition = applied.apply(command).partitions[0]
    assert (partition.assigned, partition.open.leader, partition.open.members) == ((1, 2, 3), 3, (3, 2))
    command = create(2, assigned=(1, 2))
    command.partitions[0].members = [3]
    refused(applied, command, InvalidReplicaAssignment, "aren't all among the assigned")


def test_a_name_or_an_id_that_is_taken_is_refused() -> None:
    applied = Applied(register(1), create(1))
    refused(applied, create(1), TopicAlreadyExists, "topic topic-1 exists")
    same_id = create(1)
    same_id.name = "other"
    refused(applied, same_id, TopicAlreadyExists, "a topic with id")
    same_name = create(2)
    same_name.name = "topic-1"
    refused(applied, same_name, TopicAlreadyExists, "topic topic-1 exists")


@pytest.mark.parametrize(
    ("assigned", "match"), [((), "at least one"), ((1, 1), "each once"), ((1, 9), r"registered: \[9\]")]
)
def test_a_placement_that_isnt_possible_is_refused(assigned: tuple[int, ...], match: str) -> None:
    refused(Applied(register(1)), create(1, assigned=assigned), InvalidReplicaAssignment, match)


def test_a_topic_without_partitions_is_refused() -> None:
    refused(Applied(register(1)), create(1, partitions=0), InvalidPartitions)


def test_a_deleted_topic_is_gone_and_its_name_free() -> None:
    applied = Applied(register(1), create(1, partitions=3))
    applied.apply(roll(applied.image, partition=2))
    assert applied.apply(DeleteTopic(topic_id=topic_id(1))).name == "topic-1"
    image = applied.image
    assert (image.topics, image.topics_by_name) == ({}, {})
    assert (image.partition_count, image.sealed_segment_count, image.led_counts) == (0, 0, {})
    refused(applied, DeleteTopic(topic_id=topic_id(1)), UnknownTopicId)
    again = create(2)
    again.name = "topic-1"
    applied.apply(again)
    image.check()


def test_partitions_are_added_once_however_often_they_are_proposed() -> None:
    applied = Applied(register(1), create(1))
    command = CreatePartitions(topic_id=topic_id(1), first_partition=1, partitions=[NewPartition(assigned=[1])] * 2)
    topic = applied.apply(command)
    assert len(topic.partitions) == 3
    assert applied.image.partition_count == 3
    refused(applied, command, InvalidPartitions, "has 3 partitions by now, not 1")
    refused(applied, CreatePartitions(topic_id=topic_id(9)), UnknownTopicId)


def test_a_rollover_seals_with_exact_facts_and_opens_the_next() -> None:
    applied = Applied(register(1), create(1))
    rolled = applied.apply(roll(applied.image, entries=107))
    partition = applied.image.topics[topic_id(1)].partitions[0]
    assert rolled.sealed == SealedSegment(
        id=1, leader=1, leader_epoch=0, first_offset=0, end_offset=107, size_bytes=1070, max_timestamp=1001,
        max_timestamp_offset=0, members=(1,),
    )  # fmt: skip
    assert rolled.open == OpenSegment(id=2, leader=1, leader_epoch=0, first_offset=107, members=(1,))
    assert (partition.sealed, partition.open) == ([rolled.sealed], rolled.open)
    assert applied.image.sealed_segment_count == 1


def test_a_compaction_changes_the_facts_that_it_may_once() -> None:
    applied = Applied(register(1), create(1))
    for _ in range(3):
        applied.apply(roll(applied.image))
    sealed = applied.image.topics[topic_id(1)].partitions[0].sealed
    before = sealed[1]
    command = compact(2, generation=3, size_bytes=70, max_timestamp=9, max_timestamp_offset=150)
    compacted = applied.apply(command)
    assert compacted == replace(before, generation=3, size_bytes=70, max_timestamp=9, max_timestamp_offset=150)
    assert sealed[1] == compacted
    refused(applied, command, StaleCompaction, "generation 3 or a later one")
    refused(applied, compact(2, generation=2), StaleCompaction)
    refused(applied, compact(4), StaleCompaction, "segment 4 is gone")
    refused(applied, compact(1, size_bytes=-1), InvalidRequest)
    assert applied.image.sealed_segment_count == 3


def test_a_segment_of_which_compaction_leaves_nothing_goes_and_the_rest_stays_a_chain() -> None:
    applied = Applied(register(1), create(1))
    for _ in range(3):
        applied.apply(roll(applied.image))
    partition = applied.image.topics[topic_id(1)].partitions[0]
    assert applied.apply(compact(2, size_bytes=0)) is None
    assert [facts.id for facts in partition.sealed] == [1, 3]
    assert applied.apply(compact(1, size_bytes=0)) is None
    assert applied.apply(compact(3, size_bytes=0)) is None
    assert (partition.sealed, partition.open.first_offset, partition.log_start_offset) == ([], 300, 0)
    assert applied.image.sealed_segment_count == 0
    applied.image.check()
    sealed = applied.apply(roll(applied.image)).sealed
    applied.image.check()
    assert applied.apply(MoveLogStart(topic_id=topic_id(1), partition=0, log_start_offset=400)) == (sealed,)


def test_the_same_rollover_proposed_by_many_writers_takes_effect_once() -> None:
    """In the original each applied to whatever was open: 385 segments instead of 30, with counts of empty ones."""
    applied = Applied(register(1), create(1))
    command = roll(applied.image)
    applied.apply(command)
    for _ in range(10):
        refused(applied, command, StaleRollover, "segment 1 of leader 1 isn't open: it is segment 2 of leader 1 now")
    assert applied.image.sealed_segment_count == 1


def test_a_rollover_by_another_than_the_leader_is_refused() -> None:
    applied = Applied(register(1), register(2), create(1, assigned=(1, 2)))
    refused(applied, roll(applied.image, leader=2, leader_incarnation=2), StaleRollover)


@pytest.mark.parametrize("values", [{"first_offset": 1}, {"end_offset": -1}, {"size_bytes": -1}])
def test_a_seal_that_doesnt_fit_the_chain_is_refused(values: dict[str, int]) -> None:
    applied = Applied(register(1), create(1))
    refused(applied, roll(applied.image, **values), InvalidRequest, "can't be sealed")


def test_a_rollover_needs_known_nodes() -> None:
    applied = Applied(register(1), create(1))
    image = applied.image
    refused(applied, roll(image, members=[2]), InvalidReplicaAssignment, "aren't all members of segment 1")
    refused(applied, roll(image, next_members=[1, 2]), InvalidReplicaAssignment, "aren't registered")
    refused(applied, roll(image, next_members=[]), InvalidReplicaAssignment, "at least one")
    applied.apply(register(2))
    refused(applied, roll(image, next_leader=2), InvalidReplicaAssignment, "the next leader 2 is none of")


def test_a_rollover_of_what_isnt_there_is_refused() -> None:
    applied = Applied(register(1), create(1))
    command = roll(applied.image)
    command.partition = 1
    refused(applied, command, UnknownTopicOrPartition, "no partition 1")
    command.topic_id = topic_id(9)
    refused(applied, command, UnknownTopicId)


@pytest.mark.parametrize(
    ("reason", "next_leader", "epoch"),
    [
        (RolloverReason.ENTRIES, 1, 0),
        (RolloverReason.REPLICA_LOST, 1, 0),
        (RolloverReason.RECOVERY, 1, 2),
        (RolloverReason.LEADER_LOST, 1, 2),
        (RolloverReason.ENTRIES, 2, 2),
        (RolloverReason.LEADER_LOST, 2, 2),
    ],
)
def test_the_epoch_rises_with_a_new_leader_a_failover_or_a_recovery(reason: int, next_leader: int, epoch: int) -> None:
    applied = Applied(register(1), register(2), create(1, assigned=(1, 2)))
    applied.apply(roll(applied.image))
    rolled = applied.apply(roll(applied.image, reason=reason, next_leader=next_leader))
    assert (rolled.open.id, rolled.open.leader_epoch) == (3, epoch)
    assert applied.image.led_counts == {next_leader: 1}
    in_place = applied.apply(roll(applied.image))
    assert (in_place.open.id, in_place.open.leader_epoch) == (4, epoch)
    applied.image.check()


def test_an_open_segment_knows_the_incarnations_that_its_members_had() -> None:
    applied = Applied(register(1), register(2), create(1, assigned=(1, 2)))
    partition = applied.image.topics[topic_id(1)].partitions[0]
    applied.apply(register(2))
    assert partition.member_incarnations == (1, 2)
    applied.apply(roll(applied.image))
    assert partition.member_incarnations == (1, 4)


def test_the_log_start_moves_up_only_and_drops_what_lies_wholly_below() -> None:
    applied = Applied(register(1), create(1))
    for _ in range(5):
        applied.apply(roll(applied.image))
    partition = applied.image.topics[topic_id(1)].partitions[0]

    def move(offset: int) -> list[int]:
        command = MoveLogStart(topic_id=topic_id(1), partition=0, log_start_offset=offset)
        return [segment.id for segment in applied.apply(command)]

    assert move(99) == []
    assert move(100) == [1]
    assert move(350) == [2, 3]
    assert move(350) == []
    assert move(10) == []
    assert partition.log_start_offset == 350
    assert [segment.id for segment in partition.sealed] == [4, 5]
    assert applied.image.sealed_segment_count == 2
    assert move(520) == [4, 5]
    assert partition.open.id == 6
    applied.apply(roll(applied.image))
    assert move(600) == [6]
    applied.image.check()
    refused(applied, MoveLogStart(topic_id=topic_id(1), log_start_offset=-1), OffsetOutOfRange)


def test_configs_are_set_replaced_and_removed_by_name() -> None:
    applied = Applied(register(1), create(1, retention_ms="1", segment_bytes="2"))
    before = applied.image.topics[topic_id(1)].configs
    changes = [NamedValue(name="retention.ms", value=None), NamedValue(name="max.message.bytes", value="3")]
    applied.apply(SetConfigs(resource_type=ResourceType.TOPIC, name="topic-1", configs=changes))
    assert applied.image.topics_by_name["topic-1"].configs == {"segment.bytes": "2", "max.message.bytes": "3"}
    assert before == {"retention.ms": "1", "segment.bytes": "2"}
    absent = SetConfigs(resource_type=ResourceType.TOPIC, name="absent")
    refused(applied, absent, UnknownTopicOrPartition)
    refused(applied, SetConfigs(resource_type=8, name="topic-1"), InvalidRequest)


def test_node_configs_are_kept_by_node_and_for_all() -> None:
    applied = Applied(register(1))
    for name in ("1", ""):
        changes = [NamedValue(name="log.retention.ms", value="1")]
        applied.apply(SetConfigs(resource_type=ResourceType.BROKER, name=name, configs=changes))
    assert applied.image.node_configs == {"1": {"log.retention.ms": "1"}, "": {"log.retention.ms": "1"}}
    changes = [NamedValue(name="log.retention.ms", value=None)]
    applied.apply(SetConfigs(resource_type=ResourceType.BROKER, name="1", configs=changes))
    assert applied.image.node_configs == {"": {"log.retention.ms": "1"}}
    assert ClusterImage.restore(applied.image.snapshot()).node_configs == applied.image.node_configs


def test_producer_ids_are_never_handed_out_twice() -> None:
    applied = Applied(register(1), register(2))
    firsts = [applied.apply(AllocateProducerIds(node_id=1, incarnation=1, count=1000)) for _ in range(3)]
    firsts.append(applied.apply(AllocateProducerIds(node_id=2, incarnation=2, count=5)))
    assert firsts == [0, 1000, 2000, 3000]
    applied.image = ClusterImage.restore(applied.image.snapshot())
    assert applied.apply(AllocateProducerIds(node_id=2, incarnation=2, count=5)) == 3005


def test_producer_ids_are_refused_to_stale_nodes_and_for_impossible_counts() -> None:
    applied = Applied(register(1), register(1))
    refused(applied, AllocateProducerIds(node_id=1, incarnation=1, count=5), StaleIncarnation)
    refused(applied, AllocateProducerIds(node_id=9, incarnation=1, count=5), StaleIncarnation, "isn't registered")
    refused(applied, AllocateProducerIds(node_id=1, incarnation=2, count=0), InvalidRequest)
    applied.image.next_producer_id = 2**63 - 10
    refused(applied, AllocateProducerIds(node_id=1, incarnation=2, count=10), InvalidRequest)


def test_the_feature_level_only_rises_to_what_every_node_knows() -> None:
    applied = Applied(register(1, highest_feature_level=3), register(2, highest_feature_level=2))
    refused(applied, SetFeatureLevel(level=3), FeatureLevelRefused, "the nodes know levels up to 2")
    applied.apply(SetFeatureLevel(level=2))
    assert applied.image.feature_level == 2
    refused(applied, SetFeatureLevel(level=1), FeatureLevelRefused)
    refused(applied, register(3, highest_feature_level=1), FeatureLevelRefused, "start it with a newer version")


def test_a_node_leaves_only_when_it_holds_nothing_and_hasnt_come_back() -> None:
    applied = Applied(register(1), register(2), create(1, assigned=(1,)))
    refused(applied, UnregisterNode(node_id=9, incarnation=1), NodeNotRegistered)
    refused(applied, UnregisterNode(node_id=1, incarnation=1), NodeInUse, "assigned to 1 partitions")
    refused(applied, UnregisterNode(node_id=2, incarnation=1), StaleIncarnation)
    applied.apply(UnregisterNode(node_id=2, incarnation=2))
    assert list(applied.image.nodes) == [1]


def test_subscribers_are_told_index_command_and_result_after_the_change() -> None:
    applied = Applied(register(1))
    told: list[tuple[int, Any, Any]] = []

    def callback(index: int, command: Any, result: Any) -> None:
        assert "topic-1" in applied.image.topics_by_name
        told.append((index, command, result))

    applied.image.subscribe(callback)
    command = create(1)
    topic = applied.apply(command)
    assert told == [(2, command, topic)]
    applied.image.unsubscribe(callback)
    applied.apply(create(2))
    assert len(told) == 1


def test_a_subscriber_that_fails_is_reported_and_the_command_has_taken_effect(caplog: pytest.LogCaptureFixture) -> None:
    applied = Applied(register(1))
    told: list[int] = []

    def failing(index: int, command: Any, result: Any) -> None:
        raise OSError("no space")

    applied.image.subscribe(failing)
    applied.image.subscribe(lambda index, command, result: told.append(index))
    with caplog.at_level(logging.ERROR):
        topic = applied.apply(create(1))
    assert applied.image.topics[topic_id(1)] is topic
    assert told == [2]
    assert "following command 2 (CreateTopic) failed on this node" in caplog.text


def test_an_entry_of_the_metadata_log_is_applied_as_its_command() -> None:
    image = ClusterImage()
    assert image.apply_entry(5, 1, encode_command(register(1))) == 5
    assert image.nodes[1].incarnation == 5


def test_partitions_are_found_by_their_leader() -> None:
    applied = Applied(register(1), register(2), create(1, 2, (1, 2)), create(2, 1, (2, 1)))
    led = [(topic.name, index) for topic, index, _ in applied.image.partitions_led_by(1)]
    assert led == [("topic-1", 0), ("topic-1", 1)]
    assert applied.image.led_counts == {1: 2, 2: 1}


def test_an_image_loaded_in_place_keeps_its_subscribers() -> None:
    applied = Applied(register(1), create(1))
    other = ClusterImage()
    told: list[int] = []
    other.subscribe(lambda index, command, result: told.append(index))
    other.load(applied.image.snapshot())
    other.apply(3, create(2))
    assert told == [3]
    assert sorted(other.topics_by_name) == ["topic-1", "topic-2"]


def test_a_topic_name_may_be_anything_that_its_planner_let_through() -> None:
    applied = Applied(register(1))
    for number, name in enumerate(("a.b", "a_b", "é", "x" * 249), 1):
        command = create(number)
        command.name = name
        applied.apply(command)
    assert sorted(ClusterImage.restore(applied.image.snapshot()).topics_by_name) == sorted(applied.image.topics_by_name)
    assert isinstance(command, CreateTopic)

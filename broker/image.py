"""The cluster image: the state machine of the metadata log.

Applying is a pure function of image and command, so that every node has the same image at the same index. A command
that doesn't fit the image is refused with a KafkaError, and then changes nothing.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from walrusmq.broker.commands import (
    AllocateProducerIds,
    Command,
    CompactSegment,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    MoveLogStart,
    NamedValue,
    NewPartition,
    RegisterNode,
    ResourceType,
    RolloverSegment,
    SetConfigs,
    SetFeatureLevel,
    UnregisterNode,
    decode_command,
)
from walrusmq.broker.image_check import check_image
from walrusmq.broker.image_parts import NodeImage, PartitionImage, RolledOver, TopicImage
from walrusmq.broker.image_snapshot import decode_image, encode_image
from walrusmq.protocol.errors import (
    ErrorCode,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidRequest,
    KafkaError,
    OffsetOutOfRange,
    TopicAlreadyExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from walrusmq.segments.facts import OpenSegment, SealedSegment, place_of

__all__ = ["ClusterImage", "NodeImage", "PartitionImage", "RolledOver", "TopicImage"]

logger = logging.getLogger("walrusmq.metadata")

FIRST_FEATURE_LEVEL = 1
FIRST_SEGMENT_ID = 1
FIRST_EPOCH = FIRST_SEGMENT_ID - 1
MAX_PRODUCER_ID = 2**63 - 1

Subscriber = Callable[[int, Any, Any], None]


class StaleRollover(KafkaError):
    """The segment isn't the open one any more, or not this leader's: somebody else has sealed it."""

    code = ErrorCode.INVALID_UPDATE_VERSION


class StaleCompaction(KafkaError):
    """The segment isn't in the chain any more, or has been compacted since."""

    code = ErrorCode.INVALID_UPDATE_VERSION


class StaleIncarnation(KafkaError):
    """The node has registered anew since, or was never registered."""

    code = ErrorCode.STALE_BROKER_EPOCH


class NodeNotRegistered(KafkaError):
    """The cluster has no such node."""

    code = ErrorCode.BROKER_ID_NOT_REGISTERED


class NodeInUse(KafkaError):
    """The node is a member of open segments: they must be moved away first."""

    code = ErrorCode.POLICY_VIOLATION


class FeatureLevelRefused(KafkaError):
    """The feature level would fall, or is higher than some node of the cluster knows."""

    code = ErrorCode.FEATURE_UPDATE_FAILED


class ClusterImage:
    """Nodes, topics, partitions and configs of the cluster after the command at ``applied_index``.

    Read it on the event loop, and change it by proposing commands only.
    """

    def __init__(self) -> None:
        self.applied_index = 0
        self.feature_level = FIRST_FEATURE_LEVEL
        self.next_producer_id = 0
        self.nodes: dict[int, NodeImage] = {}
        self.topics: dict[bytes, TopicImage] = {}
        self.topics_by_name: dict[str, TopicImage] = {}
        self.node_configs: dict[str, dict[str, str]] = {}
        """Configs by node id in digits; "" are those of all nodes."""
        self.partition_count = 0
        self.sealed_segment_count = 0
        self.led_counts: Counter[int] = Counter()
        """How many partitions each node leads."""
        self._subscribers: list[Subscriber] = []
        self._shared: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._appliers: dict[type, Callable[[int, Any], Any]] = {
            RegisterNode: self._register_node,
            UnregisterNode: self._unregister_node,
            CreateTopic: self._create_topic,
            DeleteTopic: self._delete_topic,
            CreatePartitions: self._create_partitions,
            RolloverSegment: self._roll_over,
            MoveLogStart: self._move_log_start,
            SetConfigs: self._set_configs,
            AllocateProducerIds: self._allocate_producer_ids,
            SetFeatureLevel: self._set_feature_level,
            CompactSegment: self._compact_segment,
        }

    def subscribe(self, callback: Subscriber) -> None:
        """Call back with index, command and result after each command that was applied and not refused."""
        self._subscribers.append(callback)

    def unsubscribe(self, callback: Subscriber) -> None:
        """Call that back no more."""
        self._subscribers.remove(callback)

    def apply_entry(self, index: int, term: int, payload: bytes) -> Any:
        """Apply a command as the metadata log holds it. Raises UnreadableCommand, and what ``apply`` raises."""
        return self.apply(index, decode_command(payload, self.feature_level))

    def apply(self, index: int, command: Command) -> Any:
        """Apply a command; give its result. Raises the KafkaError by which it is refused.

        Results: RegisterNode its incarnation; CreateTopic, CreatePartitions and DeleteTopic the TopicImage;
        RolloverSegment a RolledOver; MoveLogStart the dropped segments; CompactSegment the segment's new facts, or None
        if it has left the chain; AllocateProducerIds the first id; else None.
        """
        assert index > self.applied_index, "commands are applied once, in their order"
        self.applied_index = index
        result = self._appliers[type(command)](index, command)
        for callback in tuple(self._subscribers):
            try:
                callback(index, command, result)
            except Exception:
                # the command has taken effect on all nodes, whatever this one makes of it
                logger.exception("following command %d (%s) failed on this node", index, type(command).__name__)
        return result

    def snapshot(self) -> bytes:
        """The image as bytes, the same on all nodes that have applied the same commands."""
        return encode_image(self)

    @classmethod
    def restore(cls, snapshot: bytes) -> ClusterImage:
        """The image that a snapshot was taken of. Raises UnreadableSnapshot."""
        image = cls()
        image.load(snapshot)
        return image

    def load(self, snapshot: bytes) -> None:
        """Become the image that a snapshot was taken of; the subscribers stay. Raises UnreadableSnapshot."""
        decoded = decode_image(snapshot)
        self._shared = decoded.shared
        self.applied_index = decoded.applied_index
        self.feature_level = decoded.feature_level
        self.next_producer_id = decoded.next_producer_id
        self.nodes = {node.id: node for node in decoded.nodes}
        self.topics = {topic.id: topic for topic in decoded.topics}
        self.topics_by_name = {topic.name: topic for topic in decoded.topics}
        self.node_configs = decoded.node_configs
        partitions = [partition for topic in decoded.topics for partition in topic.partitions]
        self.partition_count = len(partitions)
        self.sealed_segment_count = sum(len(partition.sealed) for partition in partitions)
        self.led_counts = Counter(partition.open.leader for partition in partitions)

    def check(self) -> None:
        """Raise AssertionError, saying what and where, if the image contradicts itself."""
        check_image(self)

    def partition(self, topic_id: bytes, index: int) -> PartitionImage:
        """Raises UnknownTopicId, UnknownTopicOrPartition."""
        partitions = self._topic(topic_id).partitions
        if not 0 <= index < len(partitions):
            raise UnknownTopicOrPartition(f"the topic has {len(partitions)} partitions, and no partition {index}")
        return partitions[index]

    def partitions(self) -> Iterator[tuple[TopicImage, int, PartitionImage]]:
        """Every partition with its topic and its index."""
        for topic in self.topics.values():
            for index, partition in enumerate(topic.partitions):
                yield topic, index, partition

    def partitions_led_by(self, node_id: int) -> Iterator[tuple[TopicImage, int, PartitionImage]]:
        """The partitions whose open segment the node leads."""
        return (each for each in self.partitions() if each[2].open.leader == node_id)

    def _topic(self, topic_id: bytes) -> TopicImage:
        topic = self.topics.get(topic_id)
        if topic is None:
            raise UnknownTopicId(f"there is no topic with id {topic_id.hex()}")
        return topic

    def _share(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """One tuple for all who hold the same numbers: 20,000 partitions have few different sets of nodes."""
        wanted = tuple(numbers)
        return self._shared.setdefault(wanted, wanted)

    def _node_set(self, node_ids: Sequence[int], what: str) -> tuple[int, ...]:
        """Raises InvalidReplicaAssignment unless these are nodes of the cluster, at least one, each once."""
        if not node_ids or len(set(node_ids)) != len(node_ids):
            raise InvalidReplicaAssignment(f"{what} must be at least one node, each once: {list(node_ids)}")
        unknown = [node_id for node_id in node_ids if node_id not in self.nodes]
        if unknown:
            raise InvalidReplicaAssignment(f"{what} contain nodes that aren't registered: {unknown}")
        return self._share(node_ids)

    def _incarnations(self, node_ids: tuple[int, ...]) -> tuple[int, ...]:
        return self._share(self.nodes[node_id].incarnation for node_id in node_ids)

    def _check_incarnation(self, node_id: int, incarnation: int) -> None:
        node = self.nodes.get(node_id)
        if node is None or node.incarnation != incarnation:
            now = "isn't registered" if node is None else f"has incarnation {node.incarnation} now"
            raise StaleIncarnation(f"node {node_id} {now}; this comes from its incarnation {incarnation}")

    def _register_node(self, index: int, command: RegisterNode) -> int:
        if command.node_id < 0:
            raise InvalidRequest(f"{command.node_id} is no node id")
        if command.highest_feature_level < self.feature_level:
            raise FeatureLevelRefused(
                f"node {command.node_id} knows feature levels up to {command.highest_feature_level}, and the cluster is"
                f" at {self.feature_level}: start it with a newer version"
            )
        self.nodes[command.node_id] = NodeImage(
            id=command.node_id,
            incarnation=index,
            rack=command.rack,
            listeners={listener.name: (listener.host, listener.port) for listener in command.listeners},
            software_version=command.software_version,
            highest_feature_level=command.highest_feature_level,
        )
        return index

    def _unregister_node(self, index: int, command: UnregisterNode) -> None:
        if command.node_id not in self.nodes:
            raise NodeNotRegistered(f"node {command.node_id} isn't registered")
        self._check_incarnation(command.node_id, command.incarnation)
        count = sum(
            command.node_id in partition.open.members or command.node_id in partition.assigned
            for _, _, partition in self.partitions()
        )
        if count:
            raise NodeInUse(f"node {command.node_id} is assigned to {count} partitions: move them away first")
        del self.nodes[command.node_id]

    def _create_topic(self, index: int, command: CreateTopic) -> TopicImage:
        if command.name in self.topics_by_name:
            raise TopicAlreadyExists(f"topic {command.name} exists already")
        if command.topic_id in self.topics:
            raise TopicAlreadyExists(f"a topic with id {command.topic_id.hex()} exists already")
        topic = TopicImage(
            id=command.topic_id,
            name=command.name,
            configs=_changed({}, command.configs),
            partitions=self._new_partitions(command.partitions),
        )
        self.topics[topic.id] = topic
        self.topics_by_name[topic.name] = topic
        self._count_partitions(topic.partitions)
        return topic

    def _create_partitions(self, index: int, command: CreatePartitions) -> TopicImage:
        topic = self._topic(command.topic_id)
        if command.first_partition != len(topic.partitions):
            raise InvalidPartitions(
                f"topic {topic.name} has {len(topic.partitions)} partitions by now, not {command.first_partition}"
            )
        added = self._new_partitions(command.partitions)
        topic.partitions += added
        self._count_partitions(added)
        return topic

    def _new_partitions(self, wanted: list[NewPartition]) -> list[PartitionImage]:
        if not wanted:
            raise InvalidPartitions("at least one partition is needed")
        return [self._new_partition(each) for each in wanted]

    def _new_partition(self, wanted: NewPartition) -> PartitionImage:
        assigned = self._node_set(wanted.assigned, "the assigned nodes")
        members = self._node_set(wanted.members, "the members") if wanted.members else assigned
        if not set(members) <= set(assigned):
            raise InvalidReplicaAssignment(f"the members {members} aren't all among the assigned nodes {assigned}")
        return PartitionImage(
            assigned=assigned,
            log_start_offset=0,
            sealed=[],
            open=OpenSegment(FIRST_SEGMENT_ID, members[0], FIRST_EPOCH, 0, members),
            member_incarnations=self._incarnations(members),
        )

    def _count_partitions(self, added: list[PartitionImage]) -> None:
        self.partition_count += len(added)
        self.led_counts.update(partition.open.leader for partition in added)

    def _delete_topic(self, index: int, command: DeleteTopic) -> TopicImage:
        topic = self._topic(command.topic_id)
        del self.topics[topic.id]
        del self.topics_by_name[topic.name]
        self.partition_count -= len(topic.partitions)
        for partition in topic.partitions:
            self.sealed_segment_count -= len(partition.sealed)
            self._count_lost(partition.open.leader)
        return topic

    def _count_lost(self, leader: int) -> None:
        self.led_counts[leader] -= 1
        if not self.led_counts[leader]:
            del self.led_counts[leader]

    def _roll_over(self, index: int, command: RolloverSegment) -> RolledOver:
        partition = self.partition(command.topic_id, command.partition)
        old = partition.open
        if (command.segment_id, command.leader) != (old.id, old.leader):
            raise StaleRollover(
                f"segment {command.segment_id} of leader {command.leader} isn't open: it is segment {old.id} of leader"
                f" {old.leader} now"
            )
        self._check_incarnation(command.leader, command.leader_incarnation)
        if command.first_offset != old.first_offset or command.end_offset < old.first_offset or command.size_bytes < 0:
            raise InvalidRequest(
                f"segment {old.id} begins at offset {old.first_offset}: it can't be sealed as"
                f" {command.first_offset} to {command.end_offset} in {command.size_bytes} bytes"
            )
        if not set(command.members) <= set(old.members):
            raise InvalidReplicaAssignment(f"{command.members} aren't all members of segment {old.id}: {old.members}")
        next_members = self._node_set(command.next_members, "the next members")
        if command.next_leader not in next_members:
            raise InvalidReplicaAssignment(f"the next leader {command.next_leader} is none of {next_members}")
        rolled = partition.roll_over(
            command, self._share(command.members), next_members, self._incarnations(next_members)
        )
        self.sealed_segment_count += 1
        if rolled.open.leader != old.leader:
            self._count_lost(old.leader)
            self.led_counts[rolled.open.leader] += 1
        return rolled

    def _move_log_start(self, index: int, command: MoveLogStart) -> tuple[SealedSegment, ...]:
        if command.log_start_offset < 0:
            raise OffsetOutOfRange(f"{command.log_start_offset} is no offset")
        dropped = self.partition(command.topic_id, command.partition).move_log_start(command.log_start_offset)
        self.sealed_segment_count -= len(dropped)
        return dropped

    def _compact_segment(self, index: int, command: CompactSegment) -> SealedSegment | None:
        partition = self.partition(command.topic_id, command.partition)
        place = place_of(partition.sealed, command.segment_id)
        if place is None or partition.sealed[place].generation >= command.generation:
            raise StaleCompaction(
                f"segment {command.segment_id} is gone, or has generation {command.generation} or a later one"
            )
        if command.size_bytes < 0:
            raise InvalidRequest(f"segment {command.segment_id} can't have {command.size_bytes} bytes")
        compacted = partition.compact(place, command)
        if compacted is None:
            self.sealed_segment_count -= 1
        return compacted

    def _set_configs(self, index: int, command: SetConfigs) -> None:
        if command.resource_type == ResourceType.TOPIC:
            topic = self.topics_by_name.get(command.name)
            if topic is None:
                raise UnknownTopicOrPartition(f"there is no topic {command.name}")
            topic.configs = _changed(topic.configs, command.configs)
        elif command.resource_type == ResourceType.BROKER:
            configs = _changed(self.node_configs.get(command.name, {}), command.configs)
            self.node_configs[command.name] = configs
            if not configs:
                del self.node_configs[command.name]
        else:
            raise InvalidRequest(f"there are no configs for resources of type {command.resource_type}")

    def _allocate_producer_ids(self, index: int, command: AllocateProducerIds) -> int:
        self._check_incarnation(command.node_id, command.incarnation)
        first = self.next_producer_id
        if command.count < 1 or command.count > MAX_PRODUCER_ID - first:
            raise InvalidRequest(f"{command.count} producer ids can't be had from {first} on")
        self.next_producer_id = first + command.count
        return first

    def _set_feature_level(self, index: int, command: SetFeatureLevel) -> None:
        known = min((node.highest_feature_level for node in self.nodes.values()), default=self.feature_level)
        if not self.feature_level <= command.level <= known:
            raise FeatureLevelRefused(
                f"the feature level is {self.feature_level}, and the nodes know levels up to {known}: it can't be"
                f" {command.level}"
            )
        self.feature_level = command.level


def _changed(configs: dict[str, str], changes: list[NamedValue]) -> dict[str, str]:
    """Configs after changes; a value of None removes one. A new dict: others may hold the old one."""
    changed = dict(configs)
    for change in changes:
        if change.value is None:
            changed.pop(change.name, None)
        else:
            changed[change.name] = change.value
    return changed

"""The partitions that this node leads, as the image says: opened, changed and closed as commands are applied."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from walrusmq.broker.commands import (
    ALL_NODES,
    CompactSegment,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    MoveLogStart,
    ResourceType,
    RolloverSegment,
    SetConfigs,
)
from walrusmq.broker.topic_configs import log_config
from walrusmq.broker.topics import is_internal
from walrusmq.protocol.errors import UnknownTopicOrPartition

if TYPE_CHECKING:
    from walrusmq.broker.image_parts import PartitionImage, RolledOver, TopicImage
    from walrusmq.broker.node import Node
    from walrusmq.segments.facts import SealedSegment
    from walrusmq.segments.log_config import LogConfig
    from walrusmq.segments.partition import Partition

logger = logging.getLogger("walrusmq.partitions")


class LedPartitions:
    """Two tables for the hot path, by topic name and by topic id, kept true to the image."""

    __slots__ = ("_node", "by_id", "by_name")

    def __init__(self, node: Node) -> None:
        self._node = node
        self.by_id: dict[bytes, dict[int, Partition]] = {}
        self.by_name: dict[str, dict[int, Partition]] = {}

    def open_all(self) -> None:
        """At the start: open all that we lead, drop what belongs to nobody, seal what an unclean stop left."""
        node = self._node
        for topic in node.image.topics.values():
            self._open_topic(topic)
        known = {(topic.id, index) for topic, index, _ in node.image.partitions()}
        node.store.remove_strays(known)
        for partition in self:
            if partition.recovery is not None and partition.recovery.needs_rollover:
                node.rollovers.begin(partition, "recovery")

    def __iter__(self) -> Any:
        for partitions in list(self.by_id.values()):
            yield from list(partitions.values())

    def follow(self, index: int, command: Any, result: Any) -> None:
        """Do what an applied command asks of this node's files."""
        match command:
            case RolloverSegment():
                self._rolled_over(command, result)
            case CreateTopic():
                logger.info("created topic %s (partitions: %d)", result.name, len(result.partitions))
                self._open_topic(result)
            case CreatePartitions():
                self._open_topic(result)
            case DeleteTopic():
                logger.info("deleted topic %s (partitions: %d)", result.name, len(result.partitions))
                self._close_topic(command.topic_id)
            case MoveLogStart():
                self._log_start_moved(command)
            case CompactSegment():
                self._compacted(command, result)
            case SetConfigs():
                self._configure(command)

    def _open_topic(self, topic: TopicImage) -> None:
        config = self._log_config(topic)
        for index, image in enumerate(topic.partitions):
            if image.open.leader == self._node.node_id and index not in self.by_id.get(topic.id, ()):
                self._open(topic, index, image, config)

    def _open(self, topic: TopicImage, index: int, image: PartitionImage, config: Any) -> None:
        partition = self._node.store.open_partition(
            topic.name, topic.id, index, config, image.sealed, image.open, image.log_start_offset
        )
        partition.on_full = self._node.rollovers.begin
        partitions = self.by_id.get(topic.id)
        if partitions is None:
            partitions = self.by_id[topic.id] = self.by_name[topic.name] = {}
        partitions[index] = partition

    def _close_topic(self, topic_id: bytes) -> None:
        partitions = self.by_id.pop(topic_id, {})
        for index, partition in partitions.items():
            self.by_name.pop(partition.topic, None)
            self._node.store.remove(topic_id, index)
            self._node.held_appends.release(partition, UnknownTopicOrPartition("the topic was deleted"))

    def _named_by(self, command: RolloverSegment | MoveLogStart | CompactSegment) -> Partition | None:
        return self.by_id.get(command.topic_id, {}).get(command.partition)

    def _rolled_over(self, command: RolloverSegment, rolled: RolledOver) -> None:
        partition = self._named_by(command)
        if partition is not None:
            partition.open_next(rolled.open, rolled.sealed)
            self._node.held_appends.release(partition, None)

    def _log_start_moved(self, command: MoveLogStart) -> None:
        partition = self._named_by(command)
        if partition is not None:
            partition.move_log_start(command.log_start_offset)

    def _compacted(self, command: CompactSegment, facts: SealedSegment | None) -> None:
        partition = self._named_by(command)
        if partition is not None:
            partition.compacted(command.segment_id, facts)

    def _configure(self, command: SetConfigs) -> None:
        topics = self._node.image.topics_by_name
        if command.resource_type == ResourceType.TOPIC:
            self._set_configs((topics[command.name],))
        elif command.name in (ALL_NODES, str(self._node.node_id)):
            self._node.take_changed_settings()
            self._set_configs(topics.values())

    def _set_configs(self, topics: Iterable[TopicImage]) -> None:
        """Have the topics' partitions go by the configs of the image; those that have the same share them."""
        shared: dict[tuple[bool, frozenset[tuple[str, str]]], LogConfig] = {}
        for topic in topics:
            own = is_internal(topic.name), frozenset(topic.configs.items())
            if own not in shared:
                shared[own] = self._log_config(topic)
            for partition in self.by_id.get(topic.id, {}).values():
                partition.config = shared[own]

    def _log_config(self, topic: TopicImage) -> LogConfig:
        config = log_config(topic.configs, self._node.settings)
        config.is_reserved = is_internal(topic.name)
        return config

"""A cluster image as bytes: format version (int16), then the fields of that version.

The declared structs have the names of the image's own attributes, so that an image is written without being copied.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from walrusmq.broker.commands import CommandListener, NamedValue
from walrusmq.broker.image_parts import NodeImage, PartitionImage, TopicImage
from walrusmq.protocol.codec import codec
from walrusmq.protocol.errors import MalformedMessage
from walrusmq.protocol.primitives import Array, Int16, Int32, Int64, String, Uuid
from walrusmq.protocol.schema import field, message
from walrusmq.protocol.schema import struct as declared_struct
from walrusmq.segments.facts import OpenSegment, SealedSegment

if TYPE_CHECKING:
    from walrusmq.broker.image import ClusterImage

SNAPSHOT_VERSION = 1
"""Version 1 has the generations of sealed segments."""
_PREFIX = struct.Struct(">h")


class UnreadableSnapshot(Exception):
    """A snapshot of the cluster image can't be read: it is malformed, or of a newer version."""


@declared_struct
class SavedNode:
    """A NodeImage."""

    id: int = field(Int32, "0+")
    incarnation: int = field(Int64, "0+")
    rack: str | None = field(String, "0+", nullable="0+")
    listeners: list[CommandListener] = field(Array(CommandListener), "0+")
    software_version: str = field(String, "0+")
    highest_feature_level: int = field(Int16, "0+")


@declared_struct
class SavedSealedSegment:
    """A SealedSegment."""

    id: int = field(Int32, "0+")
    leader: int = field(Int32, "0+")
    leader_epoch: int = field(Int32, "0+")
    first_offset: int = field(Int64, "0+")
    end_offset: int = field(Int64, "0+")
    size_bytes: int = field(Int64, "0+")
    max_timestamp: int = field(Int64, "0+")
    max_timestamp_offset: int = field(Int64, "0+")
    members: list[int] = field(Array(Int32), "0+")
    generation: int = field(Int32, "1+")


@declared_struct
class SavedOpenSegment:
    """An OpenSegment."""

    id: int = field(Int32, "0+")
    leader: int = field(Int32, "0+")
    leader_epoch: int = field(Int32, "0+")
    first_offset: int = field(Int64, "0+")
    members: list[int] = field(Array(Int32), "0+")


@declared_struct
class SavedPartition:
    """A PartitionImage."""

    assigned: list[int] = field(Array(Int32), "0+")
    log_start_offset: int = field(Int64, "0+")
    sealed: list[SavedSealedSegment] = field(Array(SavedSealedSegment), "0+")
    open: SavedOpenSegment = field(SavedOpenSegment, "0+")
    member_incarnations: list[int] = field(Array(Int64), "0+")


@declared_struct
class SavedTopic:
    """A TopicImage."""

    id: bytes = field(Uuid, "0+")
    name: str = field(String, "0+")
    configs: list[NamedValue] = field(Array(NamedValue), "0+")
    partitions: list[SavedPartition] = field(Array(SavedPartition), "0+")


@declared_struct
class SavedNodeConfigs:
    """The configs of one node, or of all ("")."""

    name: str = field(String, "0+")
    configs: list[NamedValue] = field(Array(NamedValue), "0+")


@message(api_key=None, kind="data", versions="0-1", flexible="0+")
class SavedImage:
    """A ClusterImage."""

    applied_index: int = field(Int64, "0+")
    feature_level: int = field(Int16, "0+")
    next_producer_id: int = field(Int64, "0+")
    nodes: list[SavedNode] = field(Array(SavedNode), "0+")
    topics: list[SavedTopic] = field(Array(SavedTopic), "0+")
    node_configs: list[SavedNodeConfigs] = field(Array(SavedNodeConfigs), "0+")


class DecodedImage(NamedTuple):
    """What a snapshot holds, as the image holds it; ``shared`` are the sets of nodes, each once."""

    applied_index: int
    feature_level: int
    next_producer_id: int
    nodes: list[NodeImage]
    topics: list[TopicImage]
    node_configs: dict[str, dict[str, str]]
    shared: dict[tuple[int, ...], tuple[int, ...]]


def encode_image(image: ClusterImage) -> bytes:
    """Write an image."""
    saved = SavedImage(
        applied_index=image.applied_index,
        feature_level=image.feature_level,
        next_producer_id=image.next_producer_id,
        nodes=[_saved_node(node) for node in image.nodes.values()],
        topics=[_saved_topic(topic) for topic in image.topics.values()],
        node_configs=[
            SavedNodeConfigs(name=name, configs=_saved_configs(configs)) for name, configs in image.node_configs.items()
        ],
    )
    return _PREFIX.pack(SNAPSHOT_VERSION) + codec(SavedImage, SNAPSHOT_VERSION).encode(saved)


def decode_image(snapshot: bytes) -> DecodedImage:
    """Read an image. Raises UnreadableSnapshot."""
    if len(snapshot) < _PREFIX.size:
        raise UnreadableSnapshot(f"a snapshot of {len(snapshot)} bytes is none")
    (version,) = _PREFIX.unpack_from(snapshot)
    if not 0 <= version <= SNAPSHOT_VERSION:
        raise UnreadableSnapshot(
            f"the snapshot of the cluster image has version {version}, which this version of WalrusMQ can't read:"
            " start the newer version that wrote it"
        )
    try:
        saved, end = codec(SavedImage, version).decode(snapshot, _PREFIX.size)
    except MalformedMessage as error:
        raise UnreadableSnapshot(f"the snapshot of the cluster image is malformed: {error}") from error
    if end != len(snapshot):
        raise UnreadableSnapshot(f"the snapshot of the cluster image has {len(snapshot) - end} bytes too many")
    shared: dict[tuple[int, ...], tuple[int, ...]] = {}
    return DecodedImage(
        applied_index=saved.applied_index,
        feature_level=saved.feature_level,
        next_producer_id=saved.next_producer_id,
        nodes=[_node(node) for node in saved.nodes],
        topics=[_topic(topic, shared) for topic in saved.topics],
        node_configs={each.name: _configs(each.configs) for each in saved.node_configs},
        shared=shared,
    )


def _saved_node(node: NodeImage) -> SavedNode:
    return SavedNode(
        id=node.id,
        incarnation=node.incarnation,
        rack=node.rack,
        listeners=[CommandListener(name=name, host=host, port=port) for name, (host, port) in node.listeners.items()],
        software_version=node.software_version,
        highest_feature_level=node.highest_feature_level,
    )


def _node(saved: SavedNode) -> NodeImage:
    return NodeImage(
        id=saved.id,
        incarnation=saved.incarnation,
        rack=saved.rack,
        listeners={listener.name: (listener.host, listener.port) for listener in saved.listeners},
        software_version=saved.software_version,
        highest_feature_level=saved.highest_feature_level,
    )


def _saved_topic(topic: TopicImage) -> SavedTopic:
    partitions: list[Any] = topic.partitions  # written as they are: their attributes are the fields
    return SavedTopic(id=topic.id, name=topic.name, configs=_saved_configs(topic.configs), partitions=partitions)


def _topic(saved: SavedTopic, shared: dict[tuple[int, ...], tuple[int, ...]]) -> TopicImage:
    def share(numbers: list[int]) -> tuple[int, ...]:
        wanted = tuple(numbers)
        return shared.setdefault(wanted, wanted)

    partitions = [
        PartitionImage(
            assigned=share(each.assigned),
            log_start_offset=each.log_start_offset,
            sealed=[
                SealedSegment(
                    segment.id, segment.leader, segment.leader_epoch, segment.first_offset, segment.end_offset,
                    segment.size_bytes, segment.max_timestamp, segment.max_timestamp_offset, share(segment.members),
                    segment.generation,
                )
                for segment in each.sealed
            ],
            open=OpenSegment(
                each.open.id, each.open.leader, each.open.leader_epoch, each.open.first_offset, share(each.open.members)
            ),
            member_incarnations=share(each.member_incarnations),
        )
        for each in saved.partitions
    ]  # fmt: skip
    return TopicImage(id=saved.id, name=saved.name, configs=_configs(saved.configs), partitions=partitions)


def _saved_configs(configs: dict[str, str]) -> list[NamedValue]:
    return [NamedValue(name=name, value=value) for name, value in configs.items()]


def _configs(saved: list[NamedValue]) -> dict[str, str]:
    return {each.name: each.value for each in saved if each.value is not None}

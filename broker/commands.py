"""The commands of the metadata log: everything that can change the cluster image.

On disk and between nodes a command is: type (int16), version (int16), then the fields of that version. Whatever isn't
the same on every node (times, ids, placements) is decided by who proposes, and stands in the command.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any, NamedTuple

from walrusmq.protocol.codec import codec
from walrusmq.protocol.errors import MalformedMessage, UnsupportedVersion
from walrusmq.protocol.primitives import ZERO_UUID, Array, Int8, Int16, Int32, Int64, String, Uint16, Uuid
from walrusmq.protocol.schema import field, message
from walrusmq.protocol.schema import struct as declared_struct

FEATURE_LEVEL = 1
"""The highest feature level that this version knows: which commands, in which versions, may be proposed."""

ALL_NODES = ""
"""The name under which configs of all nodes stand."""

_PREFIX = struct.Struct(">hh")


class UnreadableCommand(Exception):
    """The metadata log holds a command that this node can't read. It can't follow the cluster, and must stop."""


class RolloverReason(IntEnum):
    """Why a segment was sealed (design.md §2)."""

    ENTRIES = 1
    BYTES = 2
    AGE = 3
    LEADER_LOST = 4
    REPLICA_LOST = 5
    REPLICA_GAINED = 6
    DRAIN = 7
    REBALANCE = 8
    MANUAL = 9
    RECOVERY = 10


class ResourceType(IntEnum):
    """What a config belongs to; the numbers are those of Kafka's ConfigResource."""

    TOPIC = 2
    BROKER = 4


@declared_struct
class CommandListener:
    """A named address at which a node answers."""

    name: str = field(String, "0+")
    host: str = field(String, "0+")
    port: int = field(Uint16, "0+")


@declared_struct
class NewPartition:
    """A partition to be made: where it should live, and the first of these nodes that leads its first segment.

    ``members`` are those of them that hold the first segment, its leader first; empty means all.
    """

    assigned: list[int] = field(Array(Int32), "0+")
    members: list[int] = field(Array(Int32), "0+")


@declared_struct
class NamedValue:
    """A config's name and value; null removes it."""

    name: str = field(String, "0+")
    value: str | None = field(String, "0+", nullable="0+")


@message(api_key=None, kind="data", versions="0", flexible="0+")
class RegisterNode:
    """A node has started. Its incarnation is the index of this command, which ends the one before."""

    node_id: int = field(Int32, "0+")
    rack: str | None = field(String, "0+", nullable="0+", default=None)
    listeners: list[CommandListener] = field(Array(CommandListener), "0+")
    software_version: str = field(String, "0+")
    highest_feature_level: int = field(Int16, "0+", default=FEATURE_LEVEL)


@message(api_key=None, kind="data", versions="0", flexible="0+")
class UnregisterNode:
    """A node has left for good."""

    node_id: int = field(Int32, "0+")
    incarnation: int = field(Int64, "0+")


@message(api_key=None, kind="data", versions="0", flexible="0+")
class CreateTopic:
    """A topic with its partitions, each with an open segment 1."""

    topic_id: bytes = field(Uuid, "0+", default=ZERO_UUID)
    name: str = field(String, "0+")
    partitions: list[NewPartition] = field(Array(NewPartition), "0+")
    configs: list[NamedValue] = field(Array(NamedValue), "0+")


@message(api_key=None, kind="data", versions="0", flexible="0+")
class DeleteTopic:
    """A topic goes, with its partitions and configs."""

    topic_id: bytes = field(Uuid, "0+")


@message(api_key=None, kind="data", versions="0", flexible="0+")
class CreatePartitions:
    """A topic gets more partitions. ``first_partition`` is how many it has: done twice, it has no effect."""

    topic_id: bytes = field(Uuid, "0+")
    first_partition: int = field(Int32, "0+")
    partitions: list[NewPartition] = field(Array(NewPartition), "0+")


@message(api_key=None, kind="data", versions="0", flexible="0+")
class RolloverSegment:
    """The open segment is sealed with these facts, and the next one opened (design.md §2).

    It is refused unless segment, leader and incarnation are the present ones: done twice, it has no effect.
    """

    topic_id: bytes = field(Uuid, "0+")
    partition: int = field(Int32, "0+")
    segment_id: int = field(Int32, "0+")
    leader: int = field(Int32, "0+")
    leader_incarnation: int = field(Int64, "0+")
    first_offset: int = field(Int64, "0+")
    end_offset: int = field(Int64, "0+")
    size_bytes: int = field(Int64, "0+")
    max_timestamp: int = field(Int64, "0+", default=-1)
    max_timestamp_offset: int = field(Int64, "0+", default=-1)
    members: list[int] = field(Array(Int32), "0+")
    reason: int = field(Int8, "0+")
    next_leader: int = field(Int32, "0+")
    next_members: list[int] = field(Array(Int32), "0+")


@message(api_key=None, kind="data", versions="0", flexible="0+")
class MoveLogStart:
    """Entries below the offset are gone, and with them the sealed segments that lie wholly below."""

    topic_id: bytes = field(Uuid, "0+")
    partition: int = field(Int32, "0+")
    log_start_offset: int = field(Int64, "0+")


@message(api_key=None, kind="data", versions="0", flexible="0+")
class SetConfigs:
    """Named configs of a topic (by its name) or a node (by its id in digits, "" for all nodes) take new values."""

    resource_type: int = field(Int8, "0+")
    name: str = field(String, "0+")
    configs: list[NamedValue] = field(Array(NamedValue), "0+")


@message(api_key=None, kind="data", versions="0", flexible="0+")
class AllocateProducerIds:
    """A block of producer ids for a node; no id is ever handed out twice."""

    node_id: int = field(Int32, "0+")
    incarnation: int = field(Int64, "0+")
    count: int = field(Int32, "0+")


@message(api_key=None, kind="data", versions="0", flexible="0+")
class CompactSegment:
    """A sealed segment has a new log, with these facts, in which superseded records are gone.

    Its offsets and entries stay as they are. A size of 0 says that nothing is left: the segment leaves the chain. It is
    refused unless the generation is a later one than the present: done twice, it has no effect.
    """

    topic_id: bytes = field(Uuid, "0+")
    partition: int = field(Int32, "0+")
    segment_id: int = field(Int32, "0+")
    generation: int = field(Int32, "0+")
    size_bytes: int = field(Int64, "0+")
    max_timestamp: int = field(Int64, "0+", default=-1)
    max_timestamp_offset: int = field(Int64, "0+", default=-1)


@message(api_key=None, kind="data", versions="0", flexible="0+")
class SetFeatureLevel:
    """From here on commands of this level may be proposed."""

    level: int = field(Int16, "0+")


Command = (
    RegisterNode
    | UnregisterNode
    | CreateTopic
    | DeleteTopic
    | CreatePartitions
    | RolloverSegment
    | MoveLogStart
    | SetConfigs
    | AllocateProducerIds
    | SetFeatureLevel
    | CompactSegment
)


class CommandType(NamedTuple):
    """A command's number, and the feature level from which on each of its versions may be proposed."""

    number: int
    command: Any
    levels: tuple[int, ...]
    """The level of version 0, of version 1 …; rising."""


COMMAND_TYPES = (
    CommandType(1, RegisterNode, (1,)),
    CommandType(2, UnregisterNode, (1,)),
    CommandType(3, CreateTopic, (1,)),
    CommandType(4, DeleteTopic, (1,)),
    CommandType(5, CreatePartitions, (1,)),
    CommandType(6, RolloverSegment, (1,)),
    CommandType(7, MoveLogStart, (1,)),
    CommandType(8, SetConfigs, (1,)),
    CommandType(9, AllocateProducerIds, (1,)),
    CommandType(10, SetFeatureLevel, (1,)),
    CommandType(11, CompactSegment, (1,)),
)
"""A number, once given, is never given to another command."""

_BY_NUMBER = {each.number: each for each in COMMAND_TYPES}
_BY_CLASS = {each.command: each for each in COMMAND_TYPES}


def encode_command(command: Command, feature_level: int = FEATURE_LEVEL) -> bytes:
    """Write a command in its newest version that the feature level allows.

    Raises UnsupportedVersion if there is none, UnencodableMessage for values that its fields can't hold.
    """
    kind = _BY_CLASS[type(command)]
    version = sum(level <= feature_level for level in kind.levels) - 1
    if version < 0:
        raise UnsupportedVersion(
            f"{kind.command.__name__} needs feature level {kind.levels[0]}, and the cluster is at {feature_level}"
        )
    return _PREFIX.pack(kind.number, version) + codec(kind.command, version).encode(command)


def decode_command(payload: bytes, feature_level: int = FEATURE_LEVEL) -> Command:
    """Read a command. Raises UnreadableCommand for one that isn't known at this feature level."""
    if len(payload) < _PREFIX.size:
        raise UnreadableCommand(f"a metadata command of {len(payload)} bytes is none")
    number, version = _PREFIX.unpack_from(payload)
    kind = _BY_NUMBER.get(number)
    if kind is None or not 0 <= version < len(kind.levels):
        name = kind.command.__name__ if kind else "unknown here"
        raise UnreadableCommand(
            f"the metadata log holds a command of type {number} ({name}), version {version}, which this version of"
            " WalrusMQ can't read: start one that is as new as the newest node of the cluster"
        )
    if kind.levels[version] > feature_level:
        raise UnreadableCommand(
            f"the metadata log holds {kind.command.__name__} version {version}, which needs feature level"
            f" {kind.levels[version]}, while the cluster is at {feature_level}: the node that proposed it is at fault"
        )
    try:
        command: Command
        command, end = codec(kind.command, version).decode(payload, _PREFIX.size)
    except MalformedMessage as error:
        raise UnreadableCommand(f"a {kind.command.__name__} in the metadata log is malformed: {error}") from error
    if end != len(payload):
        raise UnreadableCommand(
            f"a {kind.command.__name__} in the metadata log has {len(payload) - end} bytes too many"
        )
    return command

"""CreatePartitions: raise the number of a topic's partitions (KIP-195)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Bool, Int16, Int32, String
from walrusmq.protocol.schema import field, message, struct


@struct
class CreatePartitionsAssignment:
    """The replicas of one new partition; the first leads at first."""

    broker_ids: list[int] = field(Array(Int32), "0+")


@struct
class CreatePartitionsTopic:
    """A topic and how many partitions it is to have; without assignments the broker places the new ones."""

    name: str = field(String, "0+")
    count: int = field(Int32, "0+")
    assignments: list[CreatePartitionsAssignment] | None = field(Array(CreatePartitionsAssignment), "0+", nullable="0+")


@message(api_key=37, kind="request", versions="0-3", flexible="2+")
class CreatePartitionsRequest:
    """Raise the number of partitions of topics, or only check what would happen."""

    topics: list[CreatePartitionsTopic] = field(Array(CreatePartitionsTopic), "0+")
    timeout_ms: int = field(Int32, "0+")
    validate_only: bool = field(Bool, "0+")


@struct
class CreatePartitionsTopicResult:
    """What became of one topic."""

    name: str = field(String, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", default=None, nullable="0+")


@message(api_key=37, kind="response", versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    """The outcome for each topic."""

    throttle_time_ms: int = field(Int32, "0+")
    results: list[CreatePartitionsTopicResult] = field(Array(CreatePartitionsTopicResult), "0+")

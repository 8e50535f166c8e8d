"""CreateTopics: create topics, or say what would happen (KIP-4, KIP-525)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Bool, Int8, Int16, Int32, String, Uuid
from walrusmq.protocol.schema import field, message, struct


@struct
class CreatableReplicaAssignment:
    """Which nodes hold one partition, where the client wants to say so."""

    partition_index: int = field(Int32, "0+")
    broker_ids: list[int] = field(Array(Int32), "0+")


@struct
class CreatableTopicConfig:
    """A setting of a new topic."""

    name: str = field(String, "0+")
    value: str | None = field(String, "0+", nullable="0+")


@struct
class CreatableTopic:
    """A topic to create; -1 partitions or replicas means the cluster's default (KIP-464)."""

    name: str = field(String, "0+")
    num_partitions: int = field(Int32, "0+")
    replication_factor: int = field(Int16, "0+")
    assignments: list[CreatableReplicaAssignment] = field(Array(CreatableReplicaAssignment), "0+")
    configs: list[CreatableTopicConfig] = field(Array(CreatableTopicConfig), "0+")


@message(api_key=19, kind="request", versions="2-7", flexible="5+")
class CreateTopicsRequest:
    """Create topics, or only check with ``validate_only``."""

    topics: list[CreatableTopic] = field(Array(CreatableTopic), "0+")
    timeout_ms: int = field(Int32, "0+", default=60000)
    validate_only: bool = field(Bool, "1+")


@struct
class CreatableTopicConfigs:
    """A setting that the new topic has, with where it came from (KIP-525)."""

    name: str = field(String, "5+")
    value: str | None = field(String, "5+", nullable="5+")
    read_only: bool = field(Bool, "5+")
    config_source: int = field(Int8, "5+", default=-1, ignorable=True)
    is_sensitive: bool = field(Bool, "5+")


@struct
class CreatableTopicResult:
    """What became of one topic."""

    name: str = field(String, "0+")
    topic_id: bytes = field(Uuid, "7+", ignorable=True)
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "1+", nullable="0+", ignorable=True)
    topic_config_error_code: int = field(Int16, "5+", tag=0, ignorable=True)
    num_partitions: int = field(Int32, "5+", default=-1, ignorable=True)
    replication_factor: int = field(Int16, "5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = field(
        Array(CreatableTopicConfigs), "5+", nullable="5+", ignorable=True
    )


@message(api_key=19, kind="response", versions="2-7", flexible="5+")
class CreateTopicsResponse:
    """The outcome for each topic."""

    throttle_time_ms: int = field(Int32, "2+", ignorable=True)
    topics: list[CreatableTopicResult] = field(Array(CreatableTopicResult), "0+")

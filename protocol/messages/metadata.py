"""Metadata: which nodes there are, and who leads which partition."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Bool, Int16, Int32, String, Uuid
from walrusmq.protocol.schema import field, message, struct


@struct
class MetadataRequestTopic:
    """One topic, by name or, from version 10 on, by id (KIP-516)."""

    topic_id: bytes = field(Uuid, "10+", ignorable=True)
    name: str | None = field(String, "0+", nullable="10+")


@message(api_key=3, kind="request", versions="0-13", flexible="9+")
class MetadataRequest:
    """Ask about some topics or all: null from version 1 on; in version 0 an empty list means all."""

    topics: list[MetadataRequestTopic] | None = field(Array(MetadataRequestTopic), "0+", nullable="1+")
    allow_auto_topic_creation: bool = field(Bool, "4+", default=True)
    include_cluster_authorized_operations: bool = field(Bool, "8-10")
    include_topic_authorized_operations: bool = field(Bool, "8+")


@struct
class MetadataResponseBroker:
    """A node and where this client reaches it."""

    node_id: int = field(Int32, "0+")
    host: str = field(String, "0+")
    port: int = field(Int32, "0+")
    rack: str | None = field(String, "1+", nullable="1+", default=None, ignorable=True)


@struct
class MetadataResponsePartition:
    """One partition: its leader (-1 none), replicas and in-sync replicas."""

    error_code: int = field(Int16, "0+")
    partition_index: int = field(Int32, "0+")
    leader_id: int = field(Int32, "0+")
    leader_epoch: int = field(Int32, "7+", default=-1, ignorable=True)
    replica_nodes: list[int] = field(Array(Int32), "0+")
    isr_nodes: list[int] = field(Array(Int32), "0+")
    offline_replicas: list[int] = field(Array(Int32), "5+", ignorable=True)


@struct
class MetadataResponseTopic:
    """One topic; the name is null where an unknown id was asked for."""

    error_code: int = field(Int16, "0+")
    name: str | None = field(String, "0+", nullable="12+")
    topic_id: bytes = field(Uuid, "10+", ignorable=True)
    is_internal: bool = field(Bool, "1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = field(Array(MetadataResponsePartition), "0+")
    topic_authorized_operations: int = field(Int32, "8+", default=-0x8000_0000)


@message(api_key=3, kind="response", versions="0-13", flexible="9+")
class MetadataResponse:
    """The cluster as this node knows it."""

    throttle_time_ms: int = field(Int32, "3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = field(Array(MetadataResponseBroker), "0+")
    cluster_id: str | None = field(String, "2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = field(Int32, "1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = field(Array(MetadataResponseTopic), "0+")
    cluster_authorized_operations: int = field(Int32, "8-10", default=-0x8000_0000)
    error_code: int = field(Int16, "13+", ignorable=True)

"""DescribeCluster: the nodes of the cluster, for admin clients (KIP-700)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Bool, Int8, Int16, Int32, String
from walrusmq.protocol.schema import field, message, struct


@message(api_key=60, kind="request", versions="0-2", flexible="0+")
class DescribeClusterRequest:
    """Ask for brokers (endpoint type 1) or controllers (2, KIP-919); fenced ones too from version 2 on (KIP-1073)."""

    include_cluster_authorized_operations: bool = field(Bool, "0+")
    endpoint_type: int = field(Int8, "1+", default=1)
    include_fenced_brokers: bool = field(Bool, "2+")


@struct
class DescribeClusterBroker:
    """A node and where this client reaches it."""

    broker_id: int = field(Int32, "0+")
    host: str = field(String, "0+")
    port: int = field(Int32, "0+")
    rack: str | None = field(String, "0+", nullable="0+", default=None)
    is_fenced: bool = field(Bool, "2+")


@message(api_key=60, kind="response", versions="0-2", flexible="0+")
class DescribeClusterResponse:
    """The nodes, the controller and the cluster's id."""

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+", default=None)
    endpoint_type: int = field(Int8, "1+", default=1)
    cluster_id: str = field(String, "0+")
    controller_id: int = field(Int32, "0+", default=-1)
    brokers: list[DescribeClusterBroker] = field(Array(DescribeClusterBroker), "0+")
    cluster_authorized_operations: int = field(Int32, "0+", default=-0x8000_0000)

"""ApiVersions: which APIs, versions and features a node offers (KIP-35, KIP-511, KIP-584)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Bool, Int16, Int32, Int64, String
from walrusmq.protocol.schema import field, message, struct


@message(api_key=18, kind="request", versions="0-5", flexible="3+")
class ApiVersionsRequest:
    """The client's software (KIP-511) and, from version 5 on, the cluster and node that it expects (KIP-1242)."""

    client_software_name: str = field(String, "3+", ignorable=True)
    client_software_version: str = field(String, "3+", ignorable=True)
    cluster_id: str | None = field(String, "5+", nullable="5+", default=None, ignorable=True)
    node_id: int = field(Int32, "5+", default=-1, ignorable=True)


@struct
class ApiVersion:
    """An API with the range of its versions."""

    api_key: int = field(Int16, "0+")
    min_version: int = field(Int16, "0+")
    max_version: int = field(Int16, "0+")


@struct
class SupportedFeatureKey:
    """A feature with the levels that this node supports (KIP-584)."""

    name: str = field(String, "3+")
    min_version: int = field(Int16, "3+")
    max_version: int = field(Int16, "3+")


@struct
class FinalizedFeatureKey:
    """A feature with the level that the cluster has agreed on (KIP-584)."""

    name: str = field(String, "3+")
    max_version_level: int = field(Int16, "3+")
    min_version_level: int = field(Int16, "3+")


@message(api_key=18, kind="response", versions="0-5", flexible="3+")
class ApiVersionsResponse:
    """What is offered; always sent with response header version 0, so that any client can read it (KIP-511)."""

    error_code: int = field(Int16, "0+")
    api_keys: list[ApiVersion] = field(Array(ApiVersion), "0+")
    throttle_time_ms: int = field(Int32, "1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = field(Array(SupportedFeatureKey), "3+", tag=0, ignorable=True)
    finalized_features_epoch: int = field(Int64, "3+", tag=1, default=-1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = field(Array(FinalizedFeatureKey), "3+", tag=2, ignorable=True)
    zk_migration_ready: bool = field(Bool, "3+", tag=3, ignorable=True)

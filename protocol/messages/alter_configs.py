"""AlterConfigs: replace all the dynamic settings of topics and brokers (KIP-133)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Bool, Int8, Int16, Int32, String
from walrusmq.protocol.schema import field, message, struct


@struct
class AlterableConfig:
    """A setting and its new value."""

    name: str = field(String, "0+")
    value: str | None = field(String, "0+", nullable="0+")


@struct
class AlterConfigsResource:
    """A topic (type 2), broker (4) or other resource; a setting that isn't named goes back to its default."""

    resource_type: int = field(Int8, "0+")
    resource_name: str = field(String, "0+")
    configs: list[AlterableConfig] = field(Array(AlterableConfig), "0+")


@message(api_key=33, kind="request", versions="0-2", flexible="2+")
class AlterConfigsRequest:
    """Replace the dynamic settings of resources, or only check what would happen."""

    resources: list[AlterConfigsResource] = field(Array(AlterConfigsResource), "0+")
    validate_only: bool = field(Bool, "0+")


@struct
class AlterConfigsResourceResponse:
    """What became of one resource."""

    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+")
    resource_type: int = field(Int8, "0+")
    resource_name: str = field(String, "0+")


@message(api_key=33, kind="response", versions="0-2", flexible="2+")
class AlterConfigsResponse:
    """The outcome for each resource."""

    throttle_time_ms: int = field(Int32, "0+")
    responses: list[AlterConfigsResourceResponse] = field(Array(AlterConfigsResourceResponse), "0+")

"""IncrementalAlterConfigs: change single settings of topics and brokers (KIP-339)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Bool, Int8, Int16, Int32, String
from walrusmq.protocol.schema import field, message, struct


@struct
class AlterableConfig:
    """A change of one setting: ``config_operation`` is 0 set, 1 delete, 2 append, 3 subtract."""

    name: str = field(String, "0+")
    config_operation: int = field(Int8, "0+")
    value: str | None = field(String, "0+", nullable="0+")


@struct
class AlterConfigsResource:
    """A topic (type 2), broker (4) or other resource, and the changes to it; all of them are made or none."""

    resource_type: int = field(Int8, "0+")
    resource_name: str = field(String, "0+")
    configs: list[AlterableConfig] = field(Array(AlterableConfig), "0+")


@message(api_key=44, kind="request", versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest:
    """Change settings of resources, or only check what would happen."""

    resources: list[AlterConfigsResource] = field(Array(AlterConfigsResource), "0+")
    validate_only: bool = field(Bool, "0+")


@struct
class AlterConfigsResourceResponse:
    """What became of one resource."""

    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+")
    resource_type: int = field(Int8, "0+")
    resource_name: str = field(String, "0+")


@message(api_key=44, kind="response", versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse:
    """The outcome for each resource."""

    throttle_time_ms: int = field(Int32, "0+")
    responses: list[AlterConfigsResourceResponse] = field(Array(AlterConfigsResourceResponse), "0+")

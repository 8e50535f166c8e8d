"""ListConfigResources: the resources that have settings of their own (KIP-1142)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Int8, Int16, Int32, String
from walrusmq.protocol.schema import field, message, struct


@message(api_key=74, kind="request", versions="0-1", flexible="0+")
class ListConfigResourcesRequest:
    """Ask for resources of some types, or of all supported ones where none is named."""

    resource_types: list[int] = field(Array(Int8), "1+")


@struct
class ConfigResource:
    """A resource; in version 0 there are only client metrics (type 16)."""

    resource_name: str = field(String, "0+")
    resource_type: int = field(Int8, "1+", default=16, ignorable=True)


@message(api_key=74, kind="response", versions="0-1", flexible="0+")
class ListConfigResourcesResponse:
    """The resources."""

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    config_resources: list[ConfigResource] = field(Array(ConfigResource), "0+")

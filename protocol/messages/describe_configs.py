"""DescribeConfigs: the settings of topics and brokers, with where each came from (KIP-133, KIP-226)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Bool, Int8, Int16, Int32, String
from walrusmq.protocol.schema import field, message, struct


@struct
class DescribeConfigsResource:
    """A topic (type 2), broker (4) or other resource; null keys mean all settings."""

    resource_type: int = field(Int8, "0+")
    resource_name: str = field(String, "0+")
    configuration_keys: list[str] | None = field(Array(String), "0+", nullable="0+")


@message(api_key=32, kind="request", versions="1-4", flexible="4+")
class DescribeConfigsRequest:
    """Ask for settings, with synonyms (KIP-226) and documentation (KIP-569) if wanted."""

    resources: list[DescribeConfigsResource] = field(Array(DescribeConfigsResource), "0+")
    include_synonyms: bool = field(Bool, "1+")
    include_documentation: bool = field(Bool, "3+")


@struct
class DescribeConfigsSynonym:
    """Another place where the value of a setting may come from, in the order of precedence (KIP-226)."""

    name: str = field(String, "1+")
    value: str | None = field(String, "1+", nullable="0+")
    source: int = field(Int8, "1+")


@struct
class DescribeConfigsResourceResult:
    """One setting; the value is null where it is sensitive."""

    name: str = field(String, "0+")
    value: str | None = field(String, "0+", nullable="0+")
    read_only: bool = field(Bool, "0+")
    config_source: int = field(Int8, "1+", default=-1, ignorable=True)
    is_sensitive: bool = field(Bool, "0+")
    synonyms: list[DescribeConfigsSynonym] = field(Array(DescribeConfigsSynonym), "1+", ignorable=True)
    config_type: int = field(Int8, "3+", ignorable=True)
    documentation: str | None = field(String, "3+", nullable="0+", ignorable=True)


@struct
class DescribeConfigsResult:
    """The settings of one resource."""

    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+")
    resource_type: int = field(Int8, "0+")
    resource_name: str = field(String, "0+")
    configs: list[DescribeConfigsResourceResult] = field(Array(DescribeConfigsResourceResult), "0+")


@message(api_key=32, kind="response", versions="1-4", flexible="4+")
class DescribeConfigsResponse:
    """The outcome for each resource."""

    throttle_time_ms: int = field(Int32, "0+")
    results: list[DescribeConfigsResult] = field(Array(DescribeConfigsResult), "0+")

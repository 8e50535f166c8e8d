"""DescribeAcls: the access rules that match a filter (KIP-140, KIP-290)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Int8, Int16, Int32, String
from walrusmq.protocol.schema import field, message, struct


@message(api_key=29, kind="request", versions="1-3", flexible="2+")
class DescribeAclsRequest:
    """Ask for the rules that match: null, or the type 1 (any), matches everything."""

    resource_type_filter: int = field(Int8, "0+")
    resource_name_filter: str | None = field(String, "0+", nullable="0+")
    pattern_type_filter: int = field(Int8, "1+", default=3)
    principal_filter: str | None = field(String, "0+", nullable="0+")
    host_filter: str | None = field(String, "0+", nullable="0+")
    operation: int = field(Int8, "0+")
    permission_type: int = field(Int8, "0+")


@struct
class AclDescription:
    """A rule: who may or may not do what, from which host."""

    principal: str = field(String, "0+")
    host: str = field(String, "0+")
    operation: int = field(Int8, "0+")
    permission_type: int = field(Int8, "0+")


@struct
class DescribeAclsResource:
    """The rules about one pattern of resources; ``pattern_type`` is 3 literal, 4 prefixed."""

    resource_type: int = field(Int8, "0+")
    resource_name: str = field(String, "0+")
    pattern_type: int = field(Int8, "1+", default=3)
    acls: list[AclDescription] = field(Array(AclDescription), "0+")


@message(api_key=29, kind="response", versions="1-3", flexible="2+")
class DescribeAclsResponse:
    """The rules by resource."""

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+")
    resources: list[DescribeAclsResource] = field(Array(DescribeAclsResource), "0+")

"""DeleteAcls: remove the access rules that match filters (KIP-140, KIP-290)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Int8, Int16, Int32, String
from walrusmq.protocol.schema import field, message, struct


@struct
class DeleteAclsFilter:
    """Which rules to remove: null, or the type 1 (any), matches everything."""

    resource_type_filter: int = field(Int8, "0+")
    resource_name_filter: str | None = field(String, "0+", nullable="0+")
    pattern_type_filter: int = field(Int8, "1+", default=3)
    principal_filter: str | None = field(String, "0+", nullable="0+")
    host_filter: str | None = field(String, "0+", nullable="0+")
    operation: int = field(Int8, "0+")
    permission_type: int = field(Int8, "0+")


@message(api_key=31, kind="request", versions="1-3", flexible="2+")
class DeleteAclsRequest:
    """Remove what matches any of the filters."""

    filters: list[DeleteAclsFilter] = field(Array(DeleteAclsFilter), "0+")


@struct
class DeleteAclsMatchingAcl:
    """A rule that matched, and what became of it."""

    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+")
    resource_type: int = field(Int8, "0+")
    resource_name: str = field(String, "0+")
    pattern_type: int = field(Int8, "1+", default=3)
    principal: str = field(String, "0+")
    host: str = field(String, "0+")
    operation: int = field(Int8, "0+")
    permission_type: int = field(Int8, "0+")


@struct
class DeleteAclsFilterResult:
    """What one filter matched."""

    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+")
    matching_acls: list[DeleteAclsMatchingAcl] = field(Array(DeleteAclsMatchingAcl), "0+")


@message(api_key=31, kind="response", versions="1-3", flexible="2+")
class DeleteAclsResponse:
    """The outcome for each filter, in the request's order."""

    throttle_time_ms: int = field(Int32, "0+")
    filter_results: list[DeleteAclsFilterResult] = field(Array(DeleteAclsFilterResult), "0+")

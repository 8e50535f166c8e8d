"""CreateAcls: add access rules (KIP-140, KIP-290)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Int8, Int16, Int32, String
from walrusmq.protocol.schema import field, message, struct


@struct
class AclCreation:
    """A rule to add; ``resource_pattern_type`` is 3 literal, 4 prefixed."""

    resource_type: int = field(Int8, "0+")
    resource_name: str = field(String, "0+")
    resource_pattern_type: int = field(Int8, "1+", default=3)
    principal: str = field(String, "0+")
    host: str = field(String, "0+")
    operation: int = field(Int8, "0+")
    permission_type: int = field(Int8, "0+")


@message(api_key=30, kind="request", versions="1-3", flexible="2+")
class CreateAclsRequest:
    """Add rules."""

    creations: list[AclCreation] = field(Array(AclCreation), "0+")


@struct
class AclCreationResult:
    """What became of one rule."""

    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+")


@message(api_key=30, kind="response", versions="1-3", flexible="2+")
class CreateAclsResponse:
    """The outcome for each rule, in the request's order."""

    throttle_time_ms: int = field(Int32, "0+")
    results: list[AclCreationResult] = field(Array(AclCreationResult), "0+")

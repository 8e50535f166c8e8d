"""DeleteGroups: delete empty groups with their offsets (KIP-229)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Int16, Int32, String
from walrusmq.protocol.schema import field, message, struct


@message(api_key=42, kind="request", versions="0-3", flexible="2+")
class DeleteGroupsRequest:
    """Delete groups."""

    groups_names: list[str] = field(Array(String), "0+")


@struct
class DeletableGroupResult:
    """What became of one group."""

    group_id: str = field(String, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "3+", default=None, nullable="3+", ignorable=True)


@message(api_key=42, kind="response", versions="0-3", flexible="2+")
class DeleteGroupsResponse:
    """The outcome for each group."""

    throttle_time_ms: int = field(Int32, "0+")
    results: list[DeletableGroupResult] = field(Array(DeletableGroupResult), "0+")

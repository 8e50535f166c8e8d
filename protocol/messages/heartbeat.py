"""Heartbeat: a member of a group says that it lives, and hears of a rebalance."""

from __future__ import annotations

from walrusmq.protocol.primitives import Int16, Int32, String
from walrusmq.protocol.schema import field, message


@message(api_key=12, kind="request", versions="0-4", flexible="4+")
class HeartbeatRequest:
    """A member's sign of life in its generation."""

    group_id: str = field(String, "0+")
    generation_id: int = field(Int32, "0+")
    member_id: str = field(String, "0+")
    group_instance_id: str | None = field(String, "3+", default=None, nullable="3+")


@message(api_key=12, kind="response", versions="0-4", flexible="4+")
class HeartbeatResponse:
    """All is well, or why the member must join again."""

    throttle_time_ms: int = field(Int32, "1+", ignorable=True)
    error_code: int = field(Int16, "0+")

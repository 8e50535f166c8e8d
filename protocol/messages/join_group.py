"""JoinGroup: become a member of a group, or take part in its rebalance."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Bool, Bytes, Int16, Int32, String
from walrusmq.protocol.schema import field, message, struct


@struct
class JoinGroupRequestProtocol:
    """An assignment protocol that the member can use, and what it subscribes to, as the protocol has it."""

    name: str = field(String, "0+")
    metadata: bytes = field(Bytes, "0+")


@message(api_key=11, kind="request", versions="0-9", flexible="6+")
class JoinGroupRequest:
    """Join a group; ``protocols`` are in order of preference, and the id is empty at first (KIP-394)."""

    group_id: str = field(String, "0+")
    session_timeout_ms: int = field(Int32, "0+")
    rebalance_timeout_ms: int = field(Int32, "1+", default=-1, ignorable=True)
    member_id: str = field(String, "0+")
    group_instance_id: str | None = field(String, "5+", default=None, nullable="5+")
    protocol_type: str = field(String, "0+")
    protocols: list[JoinGroupRequestProtocol] = field(Array(JoinGroupRequestProtocol), "0+")
    reason: str | None = field(String, "8+", default=None, nullable="8+", ignorable=True)


@struct
class JoinGroupResponseMember:
    """A member, for the leader."""

    member_id: str = field(String, "0+")
    group_instance_id: str | None = field(String, "5+", default=None, nullable="5+", ignorable=True)
    metadata: bytes = field(Bytes, "0+")


@message(api_key=11, kind="response", versions="0-9", flexible="6+")
class JoinGroupResponse:
    """The new generation; only the leader hears of the members, and ``skip_assignment`` is for it (KIP-814)."""

    throttle_time_ms: int = field(Int32, "2+", ignorable=True)
    error_code: int = field(Int16, "0+")
    generation_id: int = field(Int32, "0+", default=-1)
    protocol_type: str | None = field(String, "7+", default=None, nullable="7+", ignorable=True)
    protocol_name: str | None = field(String, "0+", nullable="7+")
    leader: str = field(String, "0+")
    skip_assignment: bool = field(Bool, "9+")
    member_id: str = field(String, "0+")
    members: list[JoinGroupResponseMember] = field(Array(JoinGroupResponseMember), "0+")

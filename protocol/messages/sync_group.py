"""SyncGroup: the leader hands out the assignments of a generation, each member gets its own."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Bytes, Int16, Int32, String
from walrusmq.protocol.schema import field, message, struct


@struct
class SyncGroupRequestAssignment:
    """The assignment of one member, as the group's protocol has it."""

    member_id: str = field(String, "0+")
    assignment: bytes = field(Bytes, "0+")


@message(api_key=14, kind="request", versions="0-5", flexible="4+")
class SyncGroupRequest:
    """Ask for one's assignment; the leader's request brings everyone's (KIP-559: and the protocol's name)."""

    group_id: str = field(String, "0+")
    generation_id: int = field(Int32, "0+")
    member_id: str = field(String, "0+")
    group_instance_id: str | None = field(String, "3+", default=None, nullable="3+")
    protocol_type: str | None = field(String, "5+", default=None, nullable="5+", ignorable=True)
    protocol_name: str | None = field(String, "5+", default=None, nullable="5+", ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = field(Array(SyncGroupRequestAssignment), "0+")


@message(api_key=14, kind="response", versions="0-5", flexible="4+")
class SyncGroupResponse:
    """The member's own assignment."""

    throttle_time_ms: int = field(Int32, "1+", ignorable=True)
    error_code: int = field(Int16, "0+")
    protocol_type: str | None = field(String, "5+", default=None, nullable="5+", ignorable=True)
    protocol_name: str | None = field(String, "5+", default=None, nullable="5+", ignorable=True)
    assignment: bytes = field(Bytes, "0+")

"""LeaveGroup: leave a group, or remove members from it (KIP-345)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Int16, Int32, String
from walrusmq.protocol.schema import field, message, struct


@struct
class MemberIdentity:
    """A member by its id or, with an empty id, by its instance id; with the reason from version 5 on (KIP-800)."""

    member_id: str = field(String, "3+")
    group_instance_id: str | None = field(String, "3+", default=None, nullable="3+")
    reason: str | None = field(String, "5+", default=None, nullable="5+", ignorable=True)


@message(api_key=13, kind="request", versions="0-5", flexible="4+")
class LeaveGroupRequest:
    """One member up to version 2, a list from version 3 on."""

    group_id: str = field(String, "0+")
    member_id: str = field(String, "0-2")
    members: list[MemberIdentity] = field(Array(MemberIdentity), "3+")


@struct
class MemberResponse:
    """What became of one member."""

    member_id: str = field(String, "3+")
    group_instance_id: str | None = field(String, "3+", nullable="3+")
    error_code: int = field(Int16, "3+")


@message(api_key=13, kind="response", versions="0-5", flexible="4+")
class LeaveGroupResponse:
    """The outcome, for each member from version 3 on."""

    throttle_time_ms: int = field(Int32, "1+", ignorable=True)
    error_code: int = field(Int16, "0+")
    members: list[MemberResponse] = field(Array(MemberResponse), "3+")

"""DescribeGroups: the state and the members of groups of the classic protocol."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Bool, Bytes, Int16, Int32, String
from walrusmq.protocol.schema import field, message, struct


@message(api_key=15, kind="request", versions="0-6", flexible="5+")
class DescribeGroupsRequest:
    """Ask about groups, with what the principal may do to them if wanted (KIP-430)."""

    groups: list[str] = field(Array(String), "0+")
    include_authorized_operations: bool = field(Bool, "3+")


@struct
class DescribedGroupMember:
    """A member, with what it subscribed to and was assigned, in the bytes of the group's protocol."""

    member_id: str = field(String, "0+")
    group_instance_id: str | None = field(String, "4+", default=None, nullable="4+", ignorable=True)
    client_id: str = field(String, "0+")
    client_host: str = field(String, "0+")
    member_metadata: bytes = field(Bytes, "0+")
    member_assignment: bytes = field(Bytes, "0+")


@struct
class DescribedGroup:
    """A group; one that doesn't exist is Dead, and an error only from version 6 on (KIP-1043)."""

    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "6+", default=None, nullable="6+")
    group_id: str = field(String, "0+")
    group_state: str = field(String, "0+")
    protocol_type: str = field(String, "0+")
    protocol_data: str = field(String, "0+")
    members: list[DescribedGroupMember] = field(Array(DescribedGroupMember), "0+")
    authorized_operations: int = field(Int32, "3+", default=-2147483648)


@message(api_key=15, kind="response", versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    """The groups, in the request's order."""

    throttle_time_ms: int = field(Int32, "1+", ignorable=True)
    groups: list[DescribedGroup] = field(Array(DescribedGroup), "0+")

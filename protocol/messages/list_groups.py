"""ListGroups: the groups that a node coordinates."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Int16, Int32, String
from walrusmq.protocol.schema import field, message, struct


@message(api_key=16, kind="request", versions="0-5", flexible="3+")
class ListGroupsRequest:
    """Ask for groups in some states (KIP-518) and of some types (KIP-848); an empty filter passes all."""

    states_filter: list[str] = field(Array(String), "4+")
    types_filter: list[str] = field(Array(String), "5+")


@struct
class ListedGroup:
    """A group; its type is classic, consumer, share or streams."""

    group_id: str = field(String, "0+")
    protocol_type: str = field(String, "0+")
    group_state: str = field(String, "4+", ignorable=True)
    group_type: str = field(String, "5+", ignorable=True)


@message(api_key=16, kind="response", versions="0-5", flexible="3+")
class ListGroupsResponse:
    """The groups."""

    throttle_time_ms: int = field(Int32, "1+", ignorable=True)
    error_code: int = field(Int16, "0+")
    groups: list[ListedGroup] = field(Array(ListedGroup), "0+")

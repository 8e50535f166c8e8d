"""A group in the words of the wire: as it is stored, described and told to its members, and members as they come in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from walrusmq.broker.groups.member import GroupState, Member, Protocols
from walrusmq.protocol.errors import KafkaError
from walrusmq.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from walrusmq.protocol.messages.group_records import GroupMetadataValue, MemberMetadata
from walrusmq.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

if TYPE_CHECKING:
    from walrusmq.broker.groups.group import Group

#: Stored or sent by a version that has no rebalance timeout: the session timeout counts.
NO_TIMEOUT = -1


def joining_member(request: JoinGroupRequest, client_id: str, client_host: str) -> Member:
    """What a request says about its member; the member id is for the caller to give."""
    has_rebalance_timeout = request.rebalance_timeout_ms >= 0
    protocols: Protocols = [(protocol.name, bytes(protocol.metadata)) for protocol in request.protocols]
    return Member(
        member_id="",
        instance_id=request.group_instance_id,
        client_id=client_id,
        client_host=client_host,
        rebalance_timeout_ms=request.rebalance_timeout_ms if has_rebalance_timeout else request.session_timeout_ms,
        session_timeout_ms=request.session_timeout_ms,
        protocols=protocols,
        deadline_ms=0,
        protocol_type=request.protocol_type,
    )


def stored_member(stored: MemberMetadata, protocol: str | None) -> Member:
    """A member as the group's last generation was stored, which went by ``protocol``."""
    has_rebalance_timeout = stored.rebalance_timeout != NO_TIMEOUT
    return Member(
        member_id=stored.member_id,
        instance_id=stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        rebalance_timeout_ms=stored.rebalance_timeout if has_rebalance_timeout else stored.session_timeout,
        session_timeout_ms=stored.session_timeout,
        protocols=[(protocol or "", stored.subscription)],
        deadline_ms=0,
        is_new=False,
        assignment=stored.assignment,
    )


def stored_value(group: Group, now_ms: int, assignments: Mapping[str, bytes] | None) -> GroupMetadataValue:
    """The group as it is stored, with these assignments in place of those that its members have."""
    return GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=now_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol),
                assignment=member.assignment if assignments is None else assignments.get(member.member_id, b""),
            )
            for member in group.members.values()
        ],
    )


def described(group: Group) -> DescribedGroup:
    """The group as DescribeGroups shows it: what members can do is told once they are stable."""
    is_stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if is_stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol) if is_stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def joined(group: Group, member: Member, with_members: bool, leader: str, skip_assignment: bool) -> JoinGroupResponse:
    """What a member is told of the generation that it is in; ``with_members`` as the leader is."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=leader,
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=other.member_id, group_instance_id=other.instance_id, metadata=other.metadata(group.protocol)
            )
            for other in (group.members.values() if with_members else ())
        ],
    )


def refused_join(member_id: str, error: KafkaError) -> JoinGroupResponse:
    """The answer to a JoinGroup that can't be served."""
    return JoinGroupResponse(error_code=error.code, protocol_name="", leader="", member_id=member_id, members=[])

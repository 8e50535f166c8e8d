"""What a group wants done: answers to give, and its state to store."""

from __future__ import annotations

from dataclasses import dataclass

from walrusmq.protocol.messages.group_records import GroupMetadataValue
from walrusmq.protocol.messages.join_group import JoinGroupResponse
from walrusmq.protocol.messages.sync_group import SyncGroupResponse


@dataclass(slots=True)
class Reply:
    """An answer to a JoinGroup or SyncGroup request; ``to`` is what came with the request."""

    to: object
    response: JoinGroupResponse | SyncGroupResponse


@dataclass(slots=True)
class Store:
    """State to write down; the group wants to hear through ``Group.stored`` how that ended."""

    generation: int
    value: GroupMetadataValue


Effect = Reply | Store

"""The answers that a group owes its members, and what it gives out: who waits for what, and how a wait ends."""

from __future__ import annotations

from typing import Any

from walrusmq.broker.groups.effects import Effect, Reply
from walrusmq.broker.groups.group_messages import refused_join
from walrusmq.protocol.errors import KafkaError, RebalanceInProgress
from walrusmq.protocol.messages.sync_group import SyncGroupResponse


class Answers:
    """``joins`` and ``syncs`` have, by member, to whom the answer goes that it waits for."""

    __slots__ = ("effects", "joins", "syncs")

    def __init__(self) -> None:
        self.effects: list[Effect] = []
        """What is to be done, in this order."""
        self.joins: dict[str, object] = {}
        self.syncs: dict[str, object] = {}

    def take_effects(self) -> list[Effect]:
        """What is to be done since the last call."""
        effects, self.effects = self.effects, []
        return effects

    def are_awaited_by(self, member_id: str) -> bool:
        """Whether the member waits for one."""
        return member_id in self.joins or member_id in self.syncs

    def reply(self, to: object, response: Any) -> None:
        """Give an answer."""
        self.effects.append(Reply(to, response))

    def refuse_join(self, to: object, member_id: str, error: KafkaError) -> None:
        self.reply(to, refused_join(member_id, error))

    def refuse_sync(self, to: object, error: KafkaError) -> None:
        self.reply(to, SyncGroupResponse(error_code=error.code))

    def await_join(self, member_id: str, to: object) -> None:
        """The member waits for the next generation; who waited for it before is told that this is over."""
        self.fail_join(member_id, RebalanceInProgress("another JoinGroup of the member replaces this one"))
        self.joins[member_id] = to

    def await_sync(self, member_id: str, to: object) -> None:
        """The member waits for its assignment; who waited for it before is told that this is over."""
        self.fail_sync(member_id, RebalanceInProgress("another SyncGroup of the member replaces this one"))
        self.syncs[member_id] = to

    def fail(self, member_id: str, error: KafkaError) -> None:
        """Whatever the member waits for, it gets this."""
        self.fail_join(member_id, error)
        self.fail_sync(member_id, error)

    def fail_join(self, member_id: str, error: KafkaError) -> None:
        to = self.joins.pop(member_id, None)
        if to is not None:
            self.refuse_join(to, member_id, error)

    def fail_sync(self, member_id: str, error: KafkaError) -> None:
        to = self.syncs.pop(member_id, None)
        if to is not None:
            self.refuse_sync(to, error)

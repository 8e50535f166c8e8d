"""Who is in a group: members by id and by instance id, and which protocols they have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from walrusmq.broker.groups.member import Member


class Roster(Mapping[str, Member]):
    """Members by their ids, in the order in which they came; it changes through the methods below only."""

    __slots__ = ("_ids_by_instance", "_members", "protocol_counts")

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}
        self._ids_by_instance: dict[str, str] = {}
        self.protocol_counts: Counter[str] = Counter()
        """How many members can do each protocol; names that nobody has aren't in it, so that they can't pile up."""

    def __getitem__(self, member_id: str) -> Member:
        return self._members[member_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def id_of(self, instance_id: str | None) -> str | None:
        """The member id of the static member with this instance id, if there is one."""
        return None if instance_id is None else self._ids_by_instance.get(instance_id)

    def add(self, member: Member) -> None:
        """Take in a member that isn't there yet."""
        self._members[member.member_id] = member
        self._count(member)
        if member.instance_id is not None:
            self._ids_by_instance[member.instance_id] = member.member_id

    def update(self, member: Member, joining: Member) -> None:
        """Take what a member says about itself now."""
        self._uncount(member)
        member.protocols = joining.protocols
        member.session_timeout_ms = joining.session_timeout_ms
        member.rebalance_timeout_ms = joining.rebalance_timeout_ms
        self._count(member)

    def replace(self, old_id: str, new: Member) -> Member:
        """Put a static member's new life in the place of the old one, which is returned."""
        assert new.instance_id is not None
        old = self._members[old_id]
        self._members = {new.member_id if key == old_id else key: value for key, value in self._members.items()}
        self._members[new.member_id] = new
        self._uncount(old)
        self._count(new)
        self._ids_by_instance[new.instance_id] = new.member_id
        return old

    def remove(self, member_id: str) -> None:
        """Take a member out."""
        member = self._members.pop(member_id)
        self._uncount(member)
        if member.instance_id is not None:
            del self._ids_by_instance[member.instance_id]

    def clear(self) -> None:
        """Take all out."""
        self._members.clear()
        self._ids_by_instance.clear()
        self.protocol_counts.clear()

    def have_any_of(self, protocols: Iterable[str]) -> bool:
        """Whether all members can do one of these."""
        return any(self.protocol_counts[name] == len(self) for name in protocols)

    def chosen_protocol(self, leader_id: str | None) -> str:
        """What most members like best among what all can do; of equals, what the leader likes better."""
        common = {name for name, count in self.protocol_counts.items() if count == len(self)}
        members = list(self._members.values())
        votes = Counter(next(name for name, _ in member.protocols if name in common) for member in members)
        best = max(votes.values())
        leader = self._members.get(leader_id or "") or members[0]
        return next(name for name, _ in [*leader.protocols, *((vote, b"") for vote in votes)] if votes[name] == best)

    def rebalance_timeout_ms(self) -> int:
        """The longest that a member wants to be waited for; 0 where there is none."""
        return max((member.rebalance_timeout_ms for member in self._members.values()), default=0)

    def _count(self, member: Member) -> None:
        self.protocol_counts.update({name for name, _ in member.protocols})

    def _uncount(self, member: Member) -> None:
        counts = self.protocol_counts
        for name in {name for name, _ in member.protocols}:
            counts[name] -= 1
            if not counts[name]:
                del counts[name]

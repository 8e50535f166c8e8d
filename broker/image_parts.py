"""What the cluster image is made of: nodes, topics, partitions. Only applied commands change them."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

from walrusmq.broker.commands import CompactSegment, RolloverReason, RolloverSegment
from walrusmq.segments.facts import OpenSegment, SealedSegment

EPOCH_RAISING_REASONS = frozenset({RolloverReason.RECOVERY, RolloverReason.LEADER_LOST})
"""After these even the same leader gets a new epoch: what it had beyond the seal is gone, and clients must notice."""

Address = tuple[str, int]


@dataclass(slots=True)
class NodeImage:
    """A node as it registered when it last started; ``incarnation`` is the index of that registration."""

    id: int
    incarnation: int
    rack: str | None
    listeners: dict[str, Address]
    """Host and port by the listener's name."""
    software_version: str
    highest_feature_level: int


class RolledOver(NamedTuple):
    """What a rollover made: the segment that it sealed, and the one that it opened."""

    sealed: SealedSegment
    open: OpenSegment


@dataclass(slots=True)
class PartitionImage:
    """A partition's chain of segments, oldest first; the last one is open.

    ``member_incarnations`` belong to ``open.members``, in their order: those that the nodes had when it was opened.
    """

    assigned: tuple[int, ...]
    log_start_offset: int
    sealed: list[SealedSegment]
    open: OpenSegment
    member_incarnations: tuple[int, ...]

    def roll_over(
        self, command: RolloverSegment, members: tuple[int, ...], next_members: tuple[int, ...],
        next_incarnations: tuple[int, ...],
    ) -> RolledOver:  # fmt: skip
        """Seal the open segment with the command's facts, which have been checked, and open the next."""
        old = self.open
        sealed = SealedSegment(
            id=old.id,
            leader=old.leader,
            leader_epoch=old.leader_epoch,
            first_offset=old.first_offset,
            end_offset=command.end_offset,
            size_bytes=command.size_bytes,
            max_timestamp=command.max_timestamp,
            max_timestamp_offset=command.max_timestamp_offset,
            members=members,
        )
        keeps_epoch = command.next_leader == old.leader and command.reason not in EPOCH_RAISING_REASONS
        opened = OpenSegment(
            id=old.id + 1,
            leader=command.next_leader,
            # on the wire an epoch is the id of its first segment, minus one: new topics begin with epoch 0
            leader_epoch=old.leader_epoch if keeps_epoch else old.id,
            first_offset=command.end_offset,
            members=next_members,
        )
        self.sealed.append(sealed)
        self.open = opened
        self.member_incarnations = next_incarnations
        return RolledOver(sealed, opened)

    def move_log_start(self, log_start_offset: int) -> tuple[SealedSegment, ...]:
        """Raise the log start; give the sealed segments that are thereby dropped."""
        self.log_start_offset = max(self.log_start_offset, log_start_offset)
        count = bisect_right(self.sealed, self.log_start_offset, key=attrgetter("end_offset"))
        dropped = tuple(self.sealed[:count])
        del self.sealed[:count]
        return dropped

    def compact(self, place: int, command: CompactSegment) -> SealedSegment | None:
        """Take over the command's facts, which have been checked; None where they say that nothing is left."""
        if not command.size_bytes:
            del self.sealed[place]
            return None
        compacted = replace(
            self.sealed[place],
            generation=command.generation,
            size_bytes=command.size_bytes,
            max_timestamp=command.max_timestamp,
            max_timestamp_offset=command.max_timestamp_offset,
        )
        self.sealed[place] = compacted
        return compacted


@dataclass(slots=True)
class TopicImage:
    """A topic: its configs are those that were set on it, its partitions are known by their place in the list."""

    id: bytes
    name: str
    configs: dict[str, str]
    partitions: list[PartitionImage]

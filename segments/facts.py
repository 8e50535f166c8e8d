"""What the cluster image knows about a partition's segments: the chain's facts, as RolloverSegment recorded them.

Leader epochs here are those of the wire: the id of the first segment of the leader's present run, minus one, so that
a new topic begins with epoch 0 as Kafka's do. Segment ids begin at 1. `members` are the nodes that hold the segment.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

NO_TIMESTAMP = -1
"""The largest timestamp of a segment whose batches carry none, and the offset that goes with it."""


@dataclass(frozen=True, slots=True)
class SealedSegment:
    """An immutable segment with its exact facts.

    Entries are `end_offset - first_offset`. `max_timestamp_offset` is the first record with the largest timestamp (ms).
    """

    id: int
    leader: int
    leader_epoch: int
    first_offset: int
    end_offset: int
    size_bytes: int
    max_timestamp: int
    max_timestamp_offset: int
    members: tuple[int, ...]
    generation: int = 0
    """0 for the log as it was sealed, greater with each compaction: every one has a file of its own."""


@dataclass(frozen=True, slots=True)
class OpenSegment:
    """The last segment of a partition: its leader may append to it."""

    id: int
    leader: int
    leader_epoch: int
    first_offset: int
    members: tuple[int, ...]


def place_of(sealed: Sequence[SealedSegment], segment_id: int) -> int | None:
    """Where in a chain a segment is; None where it isn't."""
    place = bisect_left(sealed, segment_id, key=attrgetter("id"))
    return place if place < len(sealed) and sealed[place].id == segment_id else None

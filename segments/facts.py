"""What the cluster image knows about a partition's segments: the chain's facts, as RolloverSegment recorded them.

Leader epochs here are those of the wire: the id of the first segment of the leader's present run, minus one, so that
a new topic begins with epoch 0 as Kafka's do. Segment ids begin at 1. `members` are the nodes that hold the segment.
"""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class OpenSegment:
    """The last segment of a partition: its leader may append to it."""

    id: int
    leader: int
    leader_epoch: int
    first_offset: int
    members: tuple[int, ...]

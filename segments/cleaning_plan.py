"""Which part of a partition is to be compacted now: a plain decision over the chain's facts, by Kafka's rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from walrusmq.segments.facts import SealedSegment


class CleaningPlan(NamedTuple):
    """What a round would do."""

    dirty: list[SealedSegment]
    """The sealed segments that have come since the last round and are old enough."""
    dirty_share: float
    """Their part of the bytes of all that the round would go over."""


def plan_cleaning(sealed: Sequence[SealedSegment], cleaned_offset: int, now_ms: int, min_lag_ms: int) -> CleaningPlan:
    """What could be compacted. A segment with a record younger than `min_lag_ms` stays, with all that come after it."""
    clean_bytes = dirty_bytes = 0
    dirty: list[SealedSegment] = []
    for facts in sealed:
        if facts.end_offset <= cleaned_offset:
            clean_bytes += facts.size_bytes
            continue
        if min_lag_ms and facts.max_timestamp > now_ms - min_lag_ms:
            break
        dirty.append(facts)
        dirty_bytes += facts.size_bytes
    return CleaningPlan(dirty, dirty_bytes / (clean_bytes + dirty_bytes) if dirty_bytes else 0.0)

"""Which sealed segments are past their time: a plain decision over the chain's facts."""

from __future__ import annotations

from collections.abc import Sequence

from walrusmq.segments.facts import SealedSegment

NO_LIMIT = -1


def expired(
    sealed: Sequence[SealedSegment],
    now_ms: int,
    retention_ms: int,
    retention_bytes: int,
    open_size: int,
    log_start_offset: int,
) -> int | None:
    """Where the log may begin from now on; None where everything is to stay.

    `open_size` is the open segment's bytes; a negative limit is none. As in Kafka, segments go whole and oldest first:
    by age when their largest timestamp (ms) is too old (one without timestamps never is), by size as long as what
    is left is still `retention_bytes` or more; and those that were sealed when all in them had been deleted already.
    """
    start: int | None = None
    excess = open_size + sum(facts.size_bytes for facts in sealed) - retention_bytes if retention_bytes >= 0 else -1
    for facts in sealed:
        is_too_old = retention_ms >= 0 and 0 <= facts.max_timestamp < now_ms - retention_ms
        if facts.end_offset > log_start_offset and not is_too_old and excess < facts.size_bytes:
            break
        excess -= facts.size_bytes
        start = max(facts.end_offset, log_start_offset)
    return start

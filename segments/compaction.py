"""Compaction of a partition's sealed segments: of each key only the last value stays (Kafka's cleaner).

Pure: batches go in and batches come out, one at a time. Offsets, their order and a batch's producer fields stay. Two
passes are made: `note_keys` over what is to be compacted, then `compacted` over each segment of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from walrusmq.protocol.records.batch import Producer, Record, RecordBatch, decode_batch, encode_batch
from walrusmq.protocol.records.compression import Codec
from walrusmq.protocol.records.header import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, BatchHeader

HASH_BYTES = 16
"""Two keys with the same hash would be taken for one; of 128 bits that doesn't happen."""
DEFAULT_MAX_KEYS = 1_000_000
"""Keys that one round remembers: about 150 MB. A log with more is compacted in several rounds."""


class NewestOffsets:
    """The newest offset of each key up to `end_offset`, by the hash of the key. Knows at most `max_keys` keys."""

    __slots__ = ("_offsets", "end_offset", "max_keys")

    def __init__(self, max_keys: int = DEFAULT_MAX_KEYS) -> None:
        self.max_keys = max_keys
        self.end_offset = 0
        """Behind the last offset that was noted. Records from there on may be newer than what is known, and stay."""
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    def note(self, batch: RecordBatch) -> bool:
        """Take in the next batch; False, and nothing is noted, where it could have more keys than there is room for."""
        if len(self._offsets) + len(batch.records) > self.max_keys and self._offsets:
            return False
        if not batch.header.is_control:
            for record in batch.records:
                if record.key is not None:
                    self._offsets[_hash(record.key)] = record.offset
        self.end_offset = batch.header.last_offset + 1
        return True

    def is_newest(self, record: Record) -> bool:
        """Whether no later record with its key is known."""
        if record.offset >= self.end_offset:
            return True
        return record.key is not None and self._offsets.get(_hash(record.key), -1) <= record.offset


@dataclass(frozen=True, slots=True)
class CompactionRules:
    """What a round needs to know beside the batches."""

    now_ms: int
    delete_retention_ms: int
    """How long a tombstone stays after the round that first met it, for readers that haven't seen it yet."""
    producer_ends: Mapping[int, int]
    """The last offset of each producer that is still remembered: the batch there stays, empty if it must be, so that
    the producer's sequence number can be found again."""


def note_keys(batches: Iterable[bytes | memoryview], newest: NewestOffsets) -> bool:
    """The first pass; whether all batches were noted. Raises what `decode_batch` does."""
    return all(newest.note(decode_batch(batch)) for batch in batches)


def compacted(
    batches: Iterable[bytes | memoryview], newest: NewestOffsets, rules: CompactionRules, last_offset: int
) -> Iterator[bytes | memoryview]:
    """The second pass over one segment, whose last batch ends at `last_offset`. Raises what `decode_batch` does.

    That batch stays, empty if it must be: a reader that asks for an offset in the segment finds where it ends. Batches
    of which nothing goes come out as they were.
    """
    for data in batches:
        batch = decode_batch(data)
        header = batch.header
        if header.is_control:
            yield data
            continue
        horizon = header.delete_horizon_ms
        kept = [record for record in batch.records if newest.is_newest(record) and not _is_over(record, horizon, rules)]
        needs_horizon = horizon is None and any(record.value is None for record in kept)
        if len(kept) == len(batch.records) and not needs_horizon:
            if kept or _stays_empty(header, rules, last_offset):
                yield data
        elif kept or _stays_empty(header, rules, last_offset):
            if needs_horizon:
                horizon = rules.now_ms + rules.delete_retention_ms
            yield _packed(header, kept, horizon)


def _is_over(record: Record, horizon_ms: int | None, rules: CompactionRules) -> bool:
    return record.value is None and horizon_ms is not None and rules.now_ms >= horizon_ms


def _stays_empty(header: BatchHeader, rules: CompactionRules, last_offset: int) -> bool:
    return header.last_offset == last_offset or (
        header.producer_id >= 0 and rules.producer_ends.get(header.producer_id) == header.last_offset
    )


def _packed(header: BatchHeader, records: list[Record], horizon_ms: int | None) -> bytes:
    """The batch with these of its records, at its own offsets; an empty one keeps its largest timestamp."""
    return encode_batch(
        records,
        codec=Codec(header.codec) if records else Codec.NONE,
        producer=Producer(header.producer_id, header.producer_epoch, header.base_sequence),
        leader_epoch=header.partition_leader_epoch,
        flags=header.attributes & (TRANSACTIONAL | CONTROL | LOG_APPEND_TIME),
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        max_timestamp=header.max_timestamp if header.has_log_append_time or not records else None,
        delete_horizon_ms=horizon_ms if records else None,
    )


def _hash(key: bytes) -> bytes:
    return blake2b(key, digest_size=HASH_BYTES).digest()

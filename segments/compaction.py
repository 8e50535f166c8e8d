"""Compaction of a partition's sealed segments: of each key only the last value stays (Kafka's cleaner).

Pure: batches go in and batches come out, one at a time. Offsets, their order and a batch's producer fields stay. Two
passes are made: `NewestOffsets.note` takes in what is to be compacted, then `compacted` goes over each segment of it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from walrusmq.protocol.records.batch import Producer, Record, RecordBatch, decode_batch, encode_batch
from walrusmq.protocol.records.compression import Codec
from walrusmq.protocol.records.header import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, BatchHeader, parse_header

HASH_BYTES = 16
"""Two keys with the same hash would be taken for one; of 128 bits that doesn't happen. Shorter keys stand for
themselves."""
DEFAULT_MAX_KEYS = 1_000_000
"""Keys that one round remembers: about 150 MB. A log with more is compacted in several rounds."""


class NewestOffsets:
    """The newest offset of each key in a stretch of log. Knows at most `max_keys` keys, or those of one batch.

    First all batches of the stretch are noted, in order; after `settle` it can be asked about any batch of the log.
    """

    __slots__ = ("_by_key", "_offsets", "end_offset", "max_keys", "start_offset")

    def __init__(self, max_keys: int = DEFAULT_MAX_KEYS) -> None:
        self.max_keys = max_keys
        self.start_offset = 0
        """The first offset that was noted. Records before it stay unless their key comes later."""
        self.end_offset = 0
        """Behind the last offset that was noted. Records from there on may be newer than what is known, and stay."""
        self._by_key: dict[bytes, int] = {}
        self._offsets = array("q")

    def has_room_for(self, header: BatchHeader) -> bool:
        """Whether there is room for as many keys as a batch may have."""
        return not self._by_key or len(self._by_key) + header.record_count <= self.max_keys

    def note(self, header: BatchHeader, keys: Iterable[tuple[int, bytes | None]]) -> None:
        """Take in the next batch: the offsets and keys of its records."""
        by_key = self._by_key
        if not self.end_offset:
            self.start_offset = header.base_offset
        if not header.is_control:
            for offset, key in keys:
                if key is not None:
                    by_key[key if len(key) < HASH_BYTES else _hash(key)] = offset
        self.end_offset = header.last_offset + 1

    def settle(self) -> None:
        """All is noted."""
        self._offsets = array("q", sorted(self._by_key.values()))

    def knows_all_of(self, header: BatchHeader) -> bool:
        """Whether a batch is of the stretch that was noted."""
        return self.start_offset <= header.base_offset < self.end_offset

    def are_all_superseded(self, header: BatchHeader) -> bool:
        """Whether no record of a batch of the noted stretch is its key's newest: tells without unpacking it."""
        offsets = self._offsets
        at = bisect_left(offsets, header.base_offset)
        return at == len(offsets) or offsets[at] > header.last_offset

    def is_newest(self, record: Record) -> bool:
        """Whether no later record with its key is known. One without a key isn't worth keeping."""
        key = record.key
        return key is not None and self._by_key.get(key if len(key) < HASH_BYTES else _hash(key), -1) <= record.offset


def _hash(key: bytes) -> bytes:
    return blake2b(key, digest_size=HASH_BYTES).digest()


@dataclass(frozen=True, slots=True)
class CompactionRules:
    """What a round needs to know beside the batches."""

    now_ms: int
    delete_retention_ms: int
    """How long a tombstone stays after the round that first met it, for readers that haven't seen it yet."""
    producer_ends: Mapping[int, int]
    """The last offset of each producer that is still remembered: the batch there stays, empty if it must be, so that
    the producer's sequence number can be found again."""

    def is_producers_end(self, header: BatchHeader) -> bool:
        """Whether a batch is the last one of a producer."""
        return header.producer_id >= 0 and self.producer_ends.get(header.producer_id) == header.last_offset


class Kept(NamedTuple):
    """A batch that stays."""

    data: bytes | memoryview
    header: BatchHeader
    is_as_it_was: bool


def compacted(
    batches: Iterable[bytes | memoryview], newest: NewestOffsets, rules: CompactionRules, last_offset: int
) -> Iterator[Kept]:
    """The second pass over one segment, whose last batch ends at `last_offset`. Raises what `decode_batch` does.

    That batch stays, empty if it must be: a reader that asks for an offset in the segment finds where it ends. Batches
    of which nothing goes come out as they were.
    """
    for data in batches:
        header = parse_header(data)
        if header.is_control or header.base_offset >= newest.end_offset:
            yield Kept(data, header, True)
            continue
        stays_empty = header.last_offset == last_offset or rules.is_producers_end(header)
        kept: list[Record] = []
        horizon = None
        if newest.knows_all_of(header) and newest.are_all_superseded(header):
            pass  # seen without unpacking it, as most of a log with many updates is
        else:
            kept, horizon = _kept(decode_batch(data), newest, rules)
        if len(kept) == header.record_count and (not kept or horizon == header.delete_horizon_ms):
            if kept or stays_empty:
                yield Kept(data, header, True)
        elif kept or stays_empty:
            yield _packed(header, kept, horizon)


def _kept(batch: RecordBatch, newest: NewestOffsets, rules: CompactionRules) -> tuple[list[Record], int | None]:
    """The records that stay, and when those of them without a value are over (KIP-534)."""
    horizon = batch.header.delete_horizon_ms
    is_over = horizon is not None and rules.now_ms >= horizon
    kept = [record for record in batch.records if newest.is_newest(record) and not (is_over and record.value is None)]
    if horizon is None and any(record.value is None for record in kept):
        horizon = rules.now_ms + rules.delete_retention_ms
    return kept, horizon


def _packed(header: BatchHeader, records: list[Record], horizon_ms: int | None) -> Kept:
    """The batch with these of its records, at its own offsets; an empty one keeps its largest timestamp."""
    data = encode_batch(
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
    return Kept(data, parse_header(data), False)

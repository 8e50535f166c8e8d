"""What a partition remembers of idempotent producers (KIP-98): it tells a repeated batch from a new one and from a gap.

A plain core: batches go in, a verdict comes out. The rules and codes are Kafka 4.4's, asked on the wire: a repeat of
one of the last five batches is recognised by its first and last sequence number; one that is older looks like a gap.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from walrusmq.protocol.errors import InvalidProducerEpoch, OutOfOrderSequenceNumber
from walrusmq.protocol.records.header import MAX_SEQUENCE, BatchHeader

REMEMBERED_BATCHES = 5
"""As many as a producer may have in flight (max.in.flight.requests.per.connection with idempotence)."""
MAX_PRODUCERS = 10_000
"""Producers remembered for one partition; past it the ones idle longest are forgotten, and may then begin anywhere."""
FORGOTTEN_AT_ONCE = MAX_PRODUCERS // 10
DEFAULT_EXPIRATION_MS = 86_400_000

_COUNT = Struct("<I")
_PRODUCER = Struct("<qhqB")
_BATCH = Struct("<iiqqq")


class ProducerBatch(NamedTuple):
    """One of the last batches of a producer, as it was appended. Timestamps are in ms."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    end_offset: int
    max_timestamp: int


MAX_AWAITED = 1000
"""Producers whose first batch was lost: they send it again at once, so few are waited for at a time."""


class _Producer:
    __slots__ = ("batches", "epoch", "last_seen_ms", "next_sequence")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: list[ProducerBatch] = []
        self.next_sequence = 0
        self.last_seen_ms = 0


Snapshot = list[tuple[int, int, int, tuple[ProducerBatch, ...]]]
"""(producer id, epoch, last seen in ms, its last batches) for each producer: can be encoded on another thread."""


class Producers:
    """The producers of one partition."""

    __slots__ = ("_awaited", "_states", "expiration_ms")

    def __init__(self, expiration_ms: int = DEFAULT_EXPIRATION_MS) -> None:
        self.expiration_ms = expiration_ms
        """How long a producer is remembered after its last batch; may be changed at any time."""
        self._states: dict[int, _Producer] = {}
        self._awaited: dict[int, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._states)

    def check(
        self, producer_id: int, epoch: int, base_sequence: int, last_sequence: int, now_ms: int
    ) -> ProducerBatch | None:
        """The batch that this one repeats; None where it is new and may be appended.

        Raises OutOfOrderSequenceNumber for a gap (and for a repeat too old to be known), InvalidProducerEpoch for an
        epoch below the last one.
        """
        state = self._states.get(producer_id)
        if state is None:
            if self._awaited:
                self._check_awaited(producer_id, epoch, base_sequence)
            return None
        if epoch == state.epoch:
            if base_sequence == state.next_sequence:
                return None
            for batch in state.batches:
                if batch.base_sequence == base_sequence and batch.last_sequence == last_sequence:
                    return batch
        if now_ms - state.last_seen_ms >= self.expiration_ms:
            del self._states[producer_id]
            return None
        if epoch < state.epoch:
            raise InvalidProducerEpoch(f"producer {producer_id} sent epoch {epoch}, its epoch here is {state.epoch}")
        if epoch > state.epoch and base_sequence == 0:
            return None
        expected = state.next_sequence if epoch == state.epoch else 0
        raise OutOfOrderSequenceNumber(
            f"producer {producer_id}, epoch {epoch}: sequence number {base_sequence} where {expected} is next"
        )

    def await_again(self, producer_id: int, epoch: int, base_sequence: int) -> None:
        """A batch was lost: a producer that isn't known otherwise must begin with it, not with one that came behind it.

        Else what it sent behind would be taken, and the lost batch refused for ever when it comes again.
        """
        if producer_id not in self._states and producer_id not in self._awaited:
            if len(self._awaited) >= MAX_AWAITED:
                del self._awaited[next(iter(self._awaited))]
            self._awaited[producer_id] = epoch, base_sequence

    def await_lost(self, end_offset: int) -> None:
        """All batches from this offset on are lost: of each producer's, the first is awaited."""
        for producer_id, state in self._states.items():
            lost = [batch for batch in state.batches if batch.end_offset > end_offset]
            if lost and len(self._awaited) < MAX_AWAITED:
                self._awaited[producer_id] = state.epoch, lost[0].base_sequence

    def _check_awaited(self, producer_id: int, epoch: int, base_sequence: int) -> None:
        awaited = self._awaited.get(producer_id)
        if awaited is not None and awaited[0] == epoch and awaited[1] != base_sequence:
            raise OutOfOrderSequenceNumber(
                f"producer {producer_id}, epoch {epoch}: sequence number {base_sequence} where {awaited[1]} was lost"
            )

    def record(self, producer_id: int, epoch: int, batch: ProducerBatch, now_ms: int) -> None:
        """Remember a batch that was appended."""
        state = self._states.get(producer_id)
        if self._awaited:
            self._awaited.pop(producer_id, None)
        if state is None:
            if len(self._states) >= MAX_PRODUCERS:
                self._make_room(now_ms)
            state = self._states[producer_id] = _Producer(epoch)
        batches = state.batches
        if epoch != state.epoch:
            state.epoch = epoch
            batches.clear()
        batches.append(batch)
        if len(batches) > REMEMBERED_BATCHES:
            del batches[0]
        state.next_sequence = (batch[1] + 1) & MAX_SEQUENCE
        state.last_seen_ms = now_ms

    def observe(self, header: BatchHeader, now_ms: int) -> None:
        """Remember a batch that a scan found in the log."""
        if header.producer_id >= 0:
            end_offset = header.last_offset + 1
            batch = ProducerBatch(
                header.base_sequence, header.last_sequence, header.base_offset, end_offset, header.max_timestamp
            )
            self.record(header.producer_id, header.producer_epoch, batch, now_ms)

    def snapshot(self, now_ms: int) -> Snapshot:
        """What is remembered now, without producers that have expired."""
        oldest = now_ms - self.expiration_ms
        return [
            (producer_id, state.epoch, state.last_seen_ms, tuple(state.batches))
            for producer_id, state in self._states.items()
            if state.last_seen_ms > oldest
        ]

    def last_offsets(self, now_ms: int) -> dict[int, int]:
        """The last offset of each producer that hasn't expired."""
        return {producer_id: batches[-1].end_offset - 1 for producer_id, _, _, batches in self.snapshot(now_ms)}

    def restore(self, snapshot: Snapshot) -> None:
        """Remember what a snapshot says, and nothing else."""
        self._states.clear()
        for producer_id, epoch, last_seen_ms, batches in snapshot:
            state = self._states[producer_id] = _Producer(epoch)
            state.batches.extend(batches)
            state.next_sequence = (batches[-1].last_sequence + 1) & MAX_SEQUENCE
            state.last_seen_ms = last_seen_ms

    def _make_room(self, now_ms: int) -> None:
        oldest_first = sorted(self._states, key=lambda producer_id: self._states[producer_id].last_seen_ms)
        expired = now_ms - self.expiration_ms
        for index, producer_id in enumerate(oldest_first):
            if index >= FORGOTTEN_AT_ONCE and self._states[producer_id].last_seen_ms > expired:
                break
            del self._states[producer_id]


def encode_snapshot(snapshot: Iterable[tuple[int, int, int, tuple[ProducerBatch, ...]]]) -> bytes:
    """The snapshot's bytes, for a `.producers` file or a checkpoint."""
    out = bytearray(_COUNT.size)
    count = 0
    for producer_id, epoch, last_seen_ms, batches in snapshot:
        out += _PRODUCER.pack(producer_id, epoch, last_seen_ms, len(batches))
        for batch in batches:
            out += _BATCH.pack(*batch)
        count += 1
    _COUNT.pack_into(out, 0, count)
    return bytes(out)


def decode_snapshot(data: bytes) -> Snapshot:
    """What `encode_snapshot` wrote. The bytes are checked by the checksum of the file that they come in."""
    (count,) = _COUNT.unpack_from(data)
    position = _COUNT.size
    snapshot: Snapshot = []
    for _ in range(count):
        producer_id, epoch, last_seen_ms, batch_count = _PRODUCER.unpack_from(data, position)
        position += _PRODUCER.size
        batches = tuple(
            ProducerBatch._make(_BATCH.unpack_from(data, at))
            for at in range(position, position + batch_count * _BATCH.size, _BATCH.size)
        )
        position += batch_count * _BATCH.size
        snapshot.append((producer_id, epoch, last_seen_ms, batches))
    return snapshot

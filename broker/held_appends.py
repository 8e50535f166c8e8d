"""Batches that came while their partition's segment was being sealed: kept in order for the next one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from walrusmq.protocol.errors import KafkaError, KafkaStorageError, NotLeaderOrFollower

if TYPE_CHECKING:
    from walrusmq.segments.partition import Partition

#: What may wait for one partition, and for all: past it producers are told to come again (nothing was written).
MAX_HELD_BYTES_PER_PARTITION = 1 << 25
MAX_HELD_BYTES = 1 << 27
#: And as many batches: each costs 1.5 KB besides its bytes, and they are handed out in one turn of the loop.
MAX_HELD_BATCHES_PER_PARTITION = 10_000
MAX_HELD_BATCHES = 50_000

Opened = Callable[[KafkaError | None, memoryview], None]


class HeldAppends:
    """One per node. A rollover takes milliseconds, so what is held is little; it is bounded all the same."""

    __slots__ = ("_held", "_held_bytes_of", "_refusals", "held_batches", "held_bytes")

    def __init__(self) -> None:
        self._held: dict[Partition, deque[tuple[bytearray, Opened]]] = {}
        self._held_bytes_of: dict[Partition, int] = {}
        self._refusals: dict[Partition, str] = {}
        self.held_bytes = 0
        self.held_batches = 0

    def add(self, partition: Partition, batch: memoryview, opened: Opened) -> None:
        """Keep a copy of ``batch``; ``opened`` gets it, or the error that says why it can't be appended.

        Raises NotLeaderOrFollower when too much waits already, KafkaStorageError after ``refuse``.
        """
        if partition in self._refusals:
            raise KafkaStorageError(self._refusals[partition])
        size = len(batch)
        held = self._held_bytes_of.get(partition, 0)
        batches = self._held.get(partition, ())
        if (
            held + size > MAX_HELD_BYTES_PER_PARTITION
            or self.held_bytes + size > MAX_HELD_BYTES
            or len(batches) >= MAX_HELD_BATCHES_PER_PARTITION
            or self.held_batches >= MAX_HELD_BATCHES
        ):
            raise NotLeaderOrFollower("the partition's segment is being sealed and too much waits for the next one")
        self._held.setdefault(partition, deque()).append((bytearray(batch), opened))
        self.held_batches += 1
        self._held_bytes_of[partition] = held + size
        self.held_bytes += size

    def release(self, partition: Partition, error: KafkaError | None) -> None:
        """The next segment is open, or (``error``) never will be: hand out what waits, oldest first."""
        self._refusals.pop(partition, None)
        self._hand_out(partition, error)

    def refuse(self, partition: Partition, why: str) -> None:
        """The disk doesn't let the next segment be opened: hold nothing more until ``release``."""
        self._refusals[partition] = why
        self._hand_out(partition, KafkaStorageError(why))

    def _hand_out(self, partition: Partition, error: KafkaError | None) -> None:
        self.held_bytes -= self._held_bytes_of.pop(partition, 0)
        batches = self._held.pop(partition, ())
        self.held_batches -= len(batches)
        for batch, opened in batches:
            opened(error, memoryview(batch))

"""Receive buffers for frames that arrive in pieces, reused, because fresh memory costs more than the bytes in it."""

from __future__ import annotations

#: A frame's buffer starts no larger than this and doubles as bytes really arrive: an announced size costs nothing.
FIRST_BUFFER_BYTES = 1 << 20
#: The smallest buffer worth keeping.
LEAST_BUFFER_BYTES = 1 << 14
#: Buffers above this are given back to the allocator at once.
LARGEST_POOLED_BYTES = 1 << 22
#: What the pool keeps at the most, over all sizes.
MAX_POOLED_BYTES = 1 << 24


class BufferPool:
    """Byte arrays by powers of two. One per node, used on the event loop only."""

    __slots__ = ("_free", "lent_bytes", "pooled_bytes")

    def __init__(self) -> None:
        self._free: dict[int, list[bytearray]] = {}
        self.pooled_bytes = 0
        self.lent_bytes = 0

    def take(self, least_bytes: int) -> bytearray:
        """A buffer of at least so many bytes; its content is whatever was there before."""
        size = max(LEAST_BUFFER_BYTES, 1 << (least_bytes - 1).bit_length())
        self.lent_bytes += size
        free = self._free.get(size)
        if free:
            self.pooled_bytes -= size
            return free.pop()
        return bytearray(size)

    def give_back(self, buffer: bytearray) -> None:
        """Return what ``take`` lent. No view of it may be alive."""
        size = len(buffer)
        self.lent_bytes -= size
        if size <= LARGEST_POOLED_BYTES and self.pooled_bytes + size <= MAX_POOLED_BYTES:
            self.pooled_bytes += size
            self._free.setdefault(size, []).append(buffer)

"""Finding batches in a log by walking over their headers from a place that an index knows.

Reads are small pieces: a walk begins at most one index interval, or one batch, before what it looks for.
"""

from __future__ import annotations

from struct import Struct

from walrusmq.protocol.errors import KafkaStorageError
from walrusmq.protocol.records.legacy import LOG_OVERHEAD_BYTES, MIN_BATCH_LENGTH
from walrusmq.segments.files import Files

WALK_BYTES = 4096
"""What one step reads: an index interval's batches when they are small, one batch's header when they are large."""

_POSITION_FIELDS = Struct(">qi11xi")  # base offset, batch length, last offset delta
_unpack = _POSITION_FIELDS.unpack_from
_FIELDS_BYTES = _POSITION_FIELDS.size


def find_batch(files: Files, fd: int, position: int, end: int, offset: int) -> tuple[int, int]:
    """(position, size) of the first batch from `position` on that contains `offset` or lies behind it.

    Raises KafkaStorageError where there is none before `end`, OSError where the file can't be read.
    """
    while position < end:
        block = files.pread(fd, min(WALK_BYTES, end - position), position)
        at = 0
        usable = len(block) - _FIELDS_BYTES
        while at <= usable:
            base_offset, length, last_delta = _unpack(block, at)
            _check_length(length, position + at)
            if base_offset + last_delta >= offset:
                return position + at, length + LOG_OVERHEAD_BYTES
            at += length + LOG_OVERHEAD_BYTES
        if not at:
            break
        position += at
    raise KafkaStorageError(f"no batch with offset {offset} before position {end}")


def last_boundary(files: Files, fd: int, position: int, limit: int) -> int:
    """Where the last batch ends that lies whole between the batch boundary `position` and `limit`; `position`: none.

    Raises OSError where the file can't be read.
    """
    boundary = position
    while limit - boundary >= _FIELDS_BYTES:
        block = files.pread(fd, min(WALK_BYTES, limit - boundary), boundary)
        at = 0
        usable = len(block) - _FIELDS_BYTES
        while at <= usable:
            _, length, _ = _unpack(block, at)
            _check_length(length, boundary + at)
            after = at + length + LOG_OVERHEAD_BYTES
            if boundary + after > limit:
                return boundary + at
            at = after
        if not at:
            break
        boundary += at
    return boundary


def batch_size(files: Files, fd: int, position: int) -> int:
    """The size of the batch that begins at `position`. Raises KafkaStorageError, OSError."""
    block = files.pread(fd, _FIELDS_BYTES, position)
    if len(block) < _FIELDS_BYTES:
        raise KafkaStorageError(f"no batch at position {position}")
    _, length, _ = _unpack(block)
    _check_length(length, position)
    return int(length) + LOG_OVERHEAD_BYTES


def _check_length(length: int, position: int) -> None:
    if length < MIN_BATCH_LENGTH:
        raise KafkaStorageError(f"no batch at position {position}: its length would be {length}")

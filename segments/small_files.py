"""Small files that are read and written whole: a kind, a version, a checksum, and what they say.

They are written aside and renamed, so that at any moment a whole one is there, the old or the new. Whatever doesn't
check out is taken as not there: all of them can be made again from the log.
"""

from __future__ import annotations

from struct import Struct

from walrusmq.protocol.records.crc import crc32c
from walrusmq.segments.files import Buffer, Files

_HEAD = Struct("<4sHxxIQ")  # kind, version, CRC-32C of the payload, its size
UNFINISHED = ".new"
"""Added to the name of a file that is being written."""
MAX_SMALL_FILE_BYTES = 1 << 30
"""More than any of these files can need: a longer one isn't ours."""


def wrap(kind: bytes, version: int, payload: bytes) -> bytes:
    """The file's bytes. `kind` is four bytes."""
    return _HEAD.pack(kind, version, crc32c(payload), len(payload)) + payload


def unwrap(kind: bytes, version: int, data: Buffer) -> bytes | None:
    """The payload; None where the bytes aren't a whole file of this kind and version."""
    if len(data) < _HEAD.size:
        return None
    found_kind, found_version, checksum, size = _HEAD.unpack_from(data)
    payload = bytes(data[_HEAD.size :])
    if (found_kind, found_version, size) != (kind, version, len(payload)) or crc32c(payload) != checksum:
        return None
    return payload


def read_whole(files: Files, path: str) -> bytes | None:
    """All bytes of a file; None where there is none. Raises OSError where it can't be read."""
    try:
        fd = files.open(path)
    except FileNotFoundError:
        return None
    try:
        return read_exactly(files, fd, min(files.size(fd), MAX_SMALL_FILE_BYTES), 0)
    finally:
        files.close(fd)


def read_exactly(files: Files, fd: int, size: int, position: int) -> bytes:
    """`size` bytes from `position` on; fewer only where the file ends. A pread may stop short of 2 GiB."""
    data = files.pread(fd, size, position)
    if len(data) == size or not data:
        return data
    parts = [data]
    got = len(data)
    while got < size:
        data = files.pread(fd, size - got, position + got)
        if not data:
            break
        parts.append(data)
        got += len(data)
    return b"".join(parts)


def write_exactly(files: Files, fd: int, data: Buffer, position: int) -> None:
    """Write all of `data`. Raises OSError where there is no room for it."""
    view = memoryview(data)
    while view:
        written = files.pwrite(fd, view, position)
        if written <= 0:
            raise OSError(f"wrote {written} of {len(view)} bytes")
        view = view[written:]
        position += written


def write_whole(files: Files, path: str, data: bytes) -> None:
    """Put a file in place of `path`, synced before its name changes. The caller syncs the folder where that matters."""
    aside = path + UNFINISHED
    fd = files.open(aside, create=True)
    try:
        write_exactly(files, fd, data, 0)
        files.ftruncate(fd, len(data))
        files.fdatasync(fd)
    finally:
        files.close(fd)
    files.replace(aside, path)

"""Files that are there whole or not at all: written aside, synced, renamed, and the folder synced."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import Protocol

ASIDE_SUFFIX = ".new"
"""Ends the name of a file that isn't complete yet; what a crash leaves behind of these is removed at the next start."""

Buffer = bytes | bytearray | memoryview


class Files(Protocol):
    """The calls to the disk that the metadata log makes; ``walrusmq.segments.files`` describes them.

    Paths are absolute texts, sizes and positions bytes. All calls may raise OSError.
    """

    def open(self, path: str, /, *, create: bool = False) -> int: ...
    def close(self, fd: int, /) -> None: ...
    def pread(self, fd: int, size: int, position: int, /) -> bytes: ...
    def pwrite(self, fd: int, data: Buffer, position: int, /) -> int: ...
    def fdatasync(self, fd: int, /) -> None: ...
    def ftruncate(self, fd: int, size: int, /) -> None: ...
    def size(self, fd: int, /) -> int: ...
    def replace(self, source: str, target: str, /) -> None: ...
    def unlink(self, path: str, /) -> None: ...
    def mkdir(self, path: str, /) -> None: ...
    def listdir(self, path: str, /) -> list[str]: ...
    def exists(self, path: str, /) -> bool: ...
    def sync_folder(self, path: str, /) -> None: ...


def write_all(files: Files, fd: int, data: Buffer, position: int) -> None:
    """Write everything. Raises OSError, with a part of it perhaps written."""
    view = memoryview(data)
    while view:
        written = files.pwrite(fd, view, position)
        if written <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        view = view[written:]
        position += written


def read_all(files: Files, fd: int) -> bytes:
    """The whole content of an open file."""
    pieces: list[bytes] = []
    position = 0
    size = files.size(fd)
    while position < size:
        piece = files.pread(fd, size - position, position)
        if not piece:
            break
        pieces.append(piece)
        position += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def read_file(files: Files, path: str) -> bytes:
    """The whole content of a file. Raises FileNotFoundError."""
    fd = files.open(path)
    try:
        return read_all(files, fd)
    finally:
        files.close(fd)


def create_durably(files: Files, path: str, data: Buffer) -> int:
    """Make the file with this content, in place of one of that name; give it open.

    When it returns, content and name are on stable storage. When it raises, either content may be found there.
    """
    aside = path + ASIDE_SUFFIX
    fd = files.open(aside, create=True)
    try:
        files.ftruncate(fd, 0)
        write_all(files, fd, data, 0)
        files.fdatasync(fd)
        files.replace(aside, path)
        files.sync_folder(os.path.dirname(path))
    except BaseException:
        files.close(fd)
        with contextlib.suppress(OSError):  # on a full disk it would hold the room that others wait for
            files.unlink(aside)
        raise
    return fd


def write_durably(files: Files, path: str, data: Buffer) -> None:
    """As create_durably, for a file that is then left alone."""
    files.close(create_durably(files, path, data))


def remove_unfinished(files: Files, folder: str) -> None:
    """Remove what a crash left half written."""
    for name in files.listdir(folder):
        if name.endswith(ASIDE_SUFFIX):
            files.unlink(os.path.join(folder, name))

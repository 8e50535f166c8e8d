"""Every call that a node makes to its disk. A Node is given one, so that a test can hold back, fail or lose each call.

Paths are absolute texts, sizes and positions are bytes. All calls may raise OSError.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import Protocol

OPEN_FLAGS = os.O_RDWR | os.O_CLOEXEC
FILE_MODE = 0o644
FOLDER_MODE = 0o755
NOT_SUPPORTED = (errno.ENOTSUP, errno.EINVAL, errno.ENOTTY)

Buffer = bytes | bytearray | memoryview


class Files(Protocol):
    """The disk as the broker sees it. Calls are made from the event loop's thread and from background threads."""

    def open(self, path: str, /, *, create: bool = False) -> int:
        """A descriptor for reading and writing. FileNotFoundError where there is no file and `create` is False."""
        ...

    def close(self, fd: int, /) -> None: ...

    def pread(self, fd: int, size: int, position: int, /) -> bytes:
        """Up to `size` bytes; fewer only at the file's end."""
        ...

    def pwrite(self, fd: int, data: Buffer, position: int, /) -> int:
        """How many bytes were written: fewer than given where there was no room for more."""
        ...

    def fdatasync(self, fd: int, /) -> None:
        """Return once the file's bytes and its size are on stable storage."""
        ...

    def ftruncate(self, fd: int, size: int, /) -> None: ...

    def size(self, fd: int, /) -> int: ...

    def size_of(self, path: str, /) -> int | None:
        """The file's size by its path; None where there is no file."""
        ...

    def replace(self, source: str, target: str, /) -> None:
        """Rename, atomically taking the place of what was there."""
        ...

    def unlink(self, path: str, /) -> None: ...

    def mkdir(self, path: str, /) -> None:
        """Make a folder in one that exists; nothing happens where it is there already."""
        ...

    def listdir(self, path: str, /) -> list[str]: ...

    def exists(self, path: str, /) -> bool: ...

    def sync_folder(self, path: str, /) -> None:
        """Return once the names in the folder (files made, renamed, removed) are on stable storage."""
        ...

    def free_bytes(self, path: str, /) -> int:
        """What an ordinary user may still write to the file system of `path`."""
        ...

    def total_bytes(self, path: str, /) -> int:
        """The size of the file system of `path`."""
        ...

    def remove_tree(self, path: str, /) -> None:
        """Remove a folder with all in it; nothing happens where there is none."""
        ...


def _sync_data(fd: int, /) -> None:
    os.fsync(fd)


if sys.platform == "darwin":
    from fcntl import F_FULLFSYNC, fcntl

    def _sync_data(fd: int, /) -> None:
        """On macOS fsync leaves the bytes in the drive's cache; only this call reaches the medium."""
        try:
            fcntl(fd, F_FULLFSYNC)
        except OSError as error:
            if error.errno not in NOT_SUPPORTED:
                raise
            os.fsync(fd)  # file systems without it, as those of network mounts

elif hasattr(os, "fdatasync"):
    _sync_data = os.fdatasync


class OsFiles:
    """The real disk. Calls of the hot path are the system's own functions, without a Python frame between."""

    close = staticmethod(os.close)
    pread = staticmethod(os.pread)
    pwrite = staticmethod(os.pwrite)
    fdatasync = staticmethod(_sync_data)
    ftruncate = staticmethod(os.ftruncate)
    replace = staticmethod(os.replace)
    unlink = staticmethod(os.unlink)
    listdir = staticmethod(os.listdir)
    exists = staticmethod(os.path.exists)

    def open(self, path: str, /, *, create: bool = False) -> int:
        return os.open(path, OPEN_FLAGS | os.O_CREAT if create else OPEN_FLAGS, FILE_MODE)

    def size(self, fd: int, /) -> int:
        return os.fstat(fd).st_size

    def size_of(self, path: str, /) -> int | None:
        try:
            return os.stat(path).st_size
        except FileNotFoundError:
            return None

    def mkdir(self, path: str, /) -> None:
        try:
            os.mkdir(path, FOLDER_MODE)
        except FileExistsError:
            if not os.path.isdir(path):
                raise

    def sync_folder(self, path: str, /) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def free_bytes(self, path: str, /) -> int:
        found = os.statvfs(path)
        return found.f_bavail * found.f_frsize

    def total_bytes(self, path: str, /) -> int:
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize

    def remove_tree(self, path: str, /) -> None:
        try:
            names = os.listdir(path)
        except FileNotFoundError:
            return
        for name in names:
            inner = os.path.join(path, name)
            if stat.S_ISDIR(os.lstat(inner).st_mode):
                self.remove_tree(inner)
            else:
                os.unlink(inner)
        os.rmdir(path)

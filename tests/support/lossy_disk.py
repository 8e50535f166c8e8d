"""A disk in memory that keeps what was synced and, at a crash, any part of what wasn't.

It stands in for ``walrusmq.segments.files.OsFiles`` as far as the metadata log needs it, fast enough for thousands
of lives; ``crash_disk`` does the same with real files, for whole nodes. Bytes are kept or lost by the sector, names
by the call. A failed sync loses pages as Linux does: they count as clean from then on.
"""

from __future__ import annotations

import errno
import os
import random
import threading
from collections.abc import Callable

SECTOR_BYTES = 512
Buffer = bytes | bytearray | memoryview


class PowerLoss(BaseException):
    """The machine stops in the middle of a call to the disk."""


class Inode:
    """A file's content: as the cache has it, as the disk has it, and which sectors differ."""

    def __init__(self) -> None:
        self.cached = bytearray()
        self.stable = bytearray()
        self.dirty: set[int] = set()

    def write(self, data: Buffer, position: int) -> None:
        if position > len(self.cached):
            self.cached.extend(bytes(position - len(self.cached)))
        self.cached[position : position + len(data)] = data
        self.dirty.update(range(position // SECTOR_BYTES, (position + len(data) - 1) // SECTOR_BYTES + 1))

    def sync(self) -> None:
        self._keep(self.dirty, len(self.cached))
        self.dirty.clear()

    def write_back_some(self, chance: random.Random) -> None:
        """What the system may do at any time. It only shows where the content is then cut: the cut isn't synced."""
        sectors = {sector for sector in sorted(self.dirty) if chance.random() < 0.5}
        self._keep(sectors, max(len(self.stable), len(self.cached)))
        self.dirty -= sectors

    def lose_some(self, chance: random.Random) -> None:
        """What a failed sync or a crash does: some of the dirty sectors arrive, and perhaps the new size."""
        low, high = sorted((len(self.stable), len(self.cached)))
        sizes = {low, high, *(start for start in (s * SECTOR_BYTES for s in self.dirty) if low < start < high)}
        size = chance.choice(sorted(sizes))
        self._keep({sector for sector in sorted(self.dirty) if chance.random() < 0.5}, size)
        self.dirty.clear()

    def _keep(self, sectors: set[int], size: int) -> None:
        for sector in sectors:
            start = sector * SECTOR_BYTES
            piece = self.cached[start : start + SECTOR_BYTES]
            if len(self.stable) < start:
                self.stable.extend(bytes(start - len(self.stable)))
            self.stable[start : start + len(piece)] = piece
        del self.stable[size:]
        self.stable.extend(bytes(size - len(self.stable)))


class LossyDisk:
    """Every call first asks ``before_call(name)``, which may raise: OSError for a fault, PowerLoss for a crash."""

    def __init__(self, seed: int = 0) -> None:
        self.chance = random.Random(seed)
        self.before_call: Callable[[str], None] = lambda name: None
        self.free_space: int | None = None
        """Bytes that can still be written; None: no limit."""
        self.names: dict[str, Inode] = {}
        self.open_files: dict[int, Inode] = {}
        self._stable_names: dict[str, Inode] = {}
        self._folders: set[str] = set()
        self._next_fd = 100
        self._lock = threading.RLock()

    def crash(self) -> None:
        """Lose what wasn't synced, in part; all descriptors are gone. What is left is what a start finds."""
        changed = {
            path
            for path in self._stable_names.keys() | self.names.keys()
            if self._stable_names.get(path) is not self.names.get(path)
        }
        for path in sorted(changed):
            if self.chance.random() < 0.5:
                self._set_stable_name(path)
        for inode in {id(inode): inode for inode in self._stable_names.values()}.values():
            inode.lose_some(self.chance)
            inode.cached = bytearray(inode.stable)
        self.names = dict(self._stable_names)
        self.open_files.clear()
        self.before_call = lambda name: None
        self.free_space = None

    def kill(self) -> None:
        """The process dies, the machine lives on: the cache stays, descriptors are closed."""
        self.open_files.clear()
        self.before_call = lambda name: None

    def open(self, path: str, /, *, create: bool = False) -> int:
        with self._call("open"):
            if path not in self.names:
                if not create:
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
                self.names[path] = Inode()
            self._next_fd += 1
            self.open_files[self._next_fd] = self.names[path]
            return self._next_fd

    def close(self, fd: int, /) -> None:
        del self.open_files[fd]

    def pread(self, fd: int, size: int, position: int, /) -> bytes:
        with self._call("pread"):
            return bytes(self.open_files[fd].cached[position : position + size])

    def pwrite(self, fd: int, data: Buffer, position: int, /) -> int:
        with self._lock:
            try:
                self._enter("pwrite")
            except (OSError, PowerLoss):
                part = data[: self.chance.randint(0, len(data))]
                if part:
                    self.open_files[fd].write(part, position)
                raise
            inode = self.open_files[fd]
            growth = max(0, position + len(data) - len(inode.cached))
            if self.free_space is not None and growth > self.free_space:
                data = data[: len(data) - growth + self.free_space]
                if not data:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                growth = self.free_space
            if self.free_space is not None:
                self.free_space -= growth
            inode.write(data, position)
            return len(data)

    def fdatasync(self, fd: int, /) -> None:
        with self._lock:
            try:
                self._enter("fdatasync")
            except OSError:
                self.open_files[fd].lose_some(self.chance)
                raise
            self.open_files[fd].sync()

    def ftruncate(self, fd: int, size: int, /) -> None:
        with self._call("ftruncate"):
            inode = self.open_files[fd]
            inode.write_back_some(self.chance)
            if self.free_space is not None:
                self.free_space += max(0, len(inode.cached) - size)
            del inode.cached[size:]
            inode.cached.extend(bytes(size - len(inode.cached)))

    def size(self, fd: int, /) -> int:
        with self._call("size"):
            return len(self.open_files[fd].cached)

    def replace(self, source: str, target: str, /) -> None:
        with self._call("replace"):
            self.names[target] = self.names.pop(source)

    def unlink(self, path: str, /) -> None:
        with self._call("unlink"):
            if path not in self.names:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            del self.names[path]

    def mkdir(self, path: str, /) -> None:
        with self._call("mkdir"):
            self._folders.add(path)

    def listdir(self, path: str, /) -> list[str]:
        with self._call("listdir"):
            return [os.path.basename(name) for name in self.names if os.path.dirname(name) == path]

    def exists(self, path: str, /) -> bool:
        with self._call("exists"):
            return path in self.names or path in self._folders

    def sync_folder(self, path: str, /) -> None:
        with self._call("sync_folder"):
            for name in self.names.keys() | self._stable_names.keys():
                if os.path.dirname(name) == path:
                    self._set_stable_name(name)

    def _set_stable_name(self, path: str) -> None:
        if path in self.names:
            self._stable_names[path] = self.names[path]
        else:
            self._stable_names.pop(path, None)

    def _enter(self, name: str) -> None:
        self.before_call(name)

    def _call(self, name: str) -> threading.RLock:
        self._enter(name)
        return self._lock

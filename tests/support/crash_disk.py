"""A disk that fails as told, and that loses what wasn't synced when the power goes: real files in a folder, real
descriptors, so that a whole node runs on it.

It is a `walrusmq.segments.files.Files`. Beside the real files, which stand for the system's cache, it keeps what has
reached the medium: bytes by the sector, names by the entry. `power_off` ends all calls; `power_on` puts into the folder
what a start after that finds: all that was synced, and of the rest any part, by the disk's seed.

    disk = CrashDisk(seed)
    disk.fail("fdatasync", errno.EIO)           # the next call of that name fails
    disk.room = 4096                            # bytes that still fit
    with disk.held("fdatasync"): ...            # its calls wait
    disk.power_off(); await store.stop(); disk.power_on()
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

from walrusmq.segments.files import Buffer, OsFiles

SECTOR_BYTES = 512


class PowerIsOff(OSError):
    """The machine is off: nothing has any effect."""

    def __init__(self) -> None:
        super().__init__(errno.EIO, "the power is off")


class _Inode:
    """A file's content on the medium, and which sectors of the cached one (the real file) differ from it."""

    def __init__(self) -> None:
        self.stable = bytearray()
        self.dirty: set[int] = set()

    def touch(self, start: int, end: int) -> None:
        if end > start:
            self.dirty.update(range(start // SECTOR_BYTES, (end - 1) // SECTOR_BYTES + 1))

    def keep(self, cached: bytes, sectors: set[int], size: int) -> None:
        for sector in sorted(sectors):
            start = sector * SECTOR_BYTES
            piece = cached[start : start + SECTOR_BYTES]
            self.stable.extend(bytes(max(0, start - len(self.stable))))
            self.stable[start : start + len(piece)] = piece
        del self.stable[size:]
        self.stable.extend(bytes(size - len(self.stable)))
        self.dirty.clear()

    def lose_some(self, cached: bytes, chance: random.Random) -> None:
        """Some of the unsynced sectors arrived, and perhaps the new size, or any on the way to it."""
        low, high = sorted((len(self.stable), len(cached)))
        between = [start for start in (sector * SECTOR_BYTES for sector in self.dirty) if low < start < high]
        size = chance.choice(sorted({low, high, *between, chance.randint(low, high)}))
        likelihood = chance.choice([0.0, 0.5, 1.0])
        self.keep(cached, {sector for sector in sorted(self.dirty) if chance.random() < likelihood}, size)


class _Folder(_Inode):
    """A folder has no content of its own: its names are entries."""


class CrashDisk(OsFiles):
    """May be called from any thread, as the real one."""

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self._root = str(folder)
        self.chance = random.Random(seed)
        self.room: int | None = None
        """Bytes by which files may still grow; None: as many as they like."""
        self.calls: list[str] = []
        """The names of all calls that change something, in order."""
        self._faults: list[tuple[str, str, int]] = []
        self._off_at: int | None = None
        self._is_off = False
        self._lock = threading.RLock()
        self._was_off = False
        self._gates: dict[str, threading.Event] = {}
        self._live: dict[str, _Inode] = {}
        self._stable: dict[str, _Inode] = {}
        self._inodes: dict[int, _Inode] = {}
        self._paths: dict[int, str] = {}

    # --- what tests do to it

    def fail(self, call: str, error: int = errno.EIO, *, path: str = "", times: int = 1) -> None:
        """Let the next calls of that name fail whose path contains `path`."""
        self._faults += [(call, path, error)] * times

    def heal(self) -> None:
        """All is well again."""
        self._faults.clear()
        self.room = None

    @contextlib.contextmanager
    def held(self, call: str) -> Iterator[None]:
        """Let calls of that name wait inside this block."""
        gate = self._gates[call] = threading.Event()
        try:
            yield
        finally:
            del self._gates[call]
            gate.set()

    def power_off(self, after_calls: int = 0) -> None:
        """From now on, or in the middle of the call that changes something after so many, nothing has any effect."""
        if after_calls:
            self._off_at = len(self.calls) + after_calls
        else:
            self._is_off = True

    @property
    def is_off(self) -> bool:
        return self._is_off

    def power_on(self) -> None:
        """What was synced is there, and of the rest any part. Nobody may use the disk meanwhile."""
        with self._lock:
            for path in sorted(self._live.keys() | self._stable.keys()):
                if self._live.get(path) is not self._stable.get(path) and self.chance.random() < 0.5:
                    self._keep_name(path)
            for _, inode in sorted(self._stable.items()):
                if not isinstance(inode, _Folder):
                    inode.lose_some(self._cached(inode), self.chance)
            self._start_over()

    def restart_process(self) -> None:
        """The process died, the machine didn't: all that was written is there, synced or not."""
        with self._lock:
            for fd in list(self._inodes):
                self._really_close(fd)
            self._is_off, self._off_at = False, None

    # --- the calls

    def open(self, path: str, /, *, create: bool = False) -> int:
        with self._lock:
            is_new = create and not os.path.exists(path)
            self._enter("open", path, changes=is_new)
            fd = super().open(path, create=create)
            if is_new:
                self._live[path] = _Inode()
            elif path not in self._live:
                self._adopt(path)
            self._inodes[fd] = self._live[path]
            self._paths[fd] = path
            return fd

    def close(self, fd: int, /) -> None:  # type: ignore[override]
        with self._lock:
            if fd in self._inodes:
                self._really_close(fd)

    def pread(self, fd: int, size: int, position: int, /) -> bytes:  # type: ignore[override]
        self._enter("pread", self._paths.get(fd, ""), changes=False)
        return os.pread(fd, size, position)

    def pwrite(self, fd: int, data: Buffer, position: int, /) -> int:  # type: ignore[override]
        self._wait("pwrite")
        with self._lock:
            inode = self._inodes[fd]
            try:
                self._enter("pwrite", self._paths[fd])
            except OSError:
                part = data[: self.chance.randint(0, len(data))]
                if part and not self._was_off:
                    self._write(fd, inode, part, position)
                raise
            growth = max(0, position + len(data) - os.fstat(fd).st_size)
            if self.room is not None:
                if growth > self.room:
                    data = data[: len(data) - growth + self.room]
                    growth = self.room
                self.room -= growth
                if not data:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return self._write(fd, inode, data, position)

    def fdatasync(self, fd: int, /) -> None:  # type: ignore[override]
        self._wait("fdatasync")
        with self._lock:
            inode = self._inodes[fd]
            try:
                self._enter("fdatasync", self._paths[fd])
            except OSError:
                if not self._was_off:
                    inode.lose_some(self._read_all(fd), self.chance)  # and what was lost counts as clean from now on
                raise
            inode.keep(self._read_all(fd), inode.dirty, os.fstat(fd).st_size)

    def ftruncate(self, fd: int, size: int, /) -> None:  # type: ignore[override]
        with self._lock:
            self._enter("ftruncate", self._paths[fd])
            before = os.fstat(fd).st_size
            if self.room is not None:
                self.room += before - size
            os.ftruncate(fd, size)
            self._inodes[fd].touch(min(before, size), max(before, size))

    def size(self, fd: int, /) -> int:
        self._enter("size", "", changes=False)
        return super().size(fd)

    def size_of(self, path: str, /) -> int | None:
        self._enter("size_of", path, changes=False)
        return super().size_of(path)

    def replace(self, source: str, target: str, /) -> None:  # type: ignore[override]
        with self._lock:
            self._enter("replace", target)
            if source not in self._live:
                self._adopt(source)
            os.replace(source, target)
            self._live[target] = self._live.pop(source)

    def unlink(self, path: str, /) -> None:  # type: ignore[override]
        with self._lock:
            self._enter("unlink", path)
            os.unlink(path)
            self._live.pop(path, None)

    def mkdir(self, path: str, /) -> None:
        with self._lock:
            self._enter("mkdir", path)
            super().mkdir(path)
            self._live.setdefault(path, _Folder())

    def listdir(self, path: str, /) -> list[str]:  # type: ignore[override]
        self._enter("listdir", path, changes=False)
        return sorted(os.listdir(path))

    def exists(self, path: str, /) -> bool:  # type: ignore[override]
        self._enter("exists", path, changes=False)
        return os.path.exists(path)

    def sync_folder(self, path: str, /) -> None:
        self._wait("sync_folder")
        with self._lock:
            self._enter("sync_folder", path)
            for name in list(self._live.keys() | self._stable.keys()):
                if os.path.dirname(name) == path:
                    self._keep_name(name)

    def free_bytes(self, path: str, /) -> int:
        self._enter("free_bytes", path, changes=False)
        return super().free_bytes(path) if self.room is None else self.room

    def remove_tree(self, path: str, /) -> None:
        with self._lock:
            self._enter("remove_tree", path)
            shutil.rmtree(path, ignore_errors=True)
            for name in [name for name in self._live if name == path or name.startswith(path + "/")]:
                del self._live[name]

    # --- inside

    def _enter(self, call: str, path: str, *, changes: bool = True) -> None:
        with self._lock:
            self._was_off = self._is_off
            if self._is_off:
                raise PowerIsOff
            if changes:
                self.calls.append(call)
                if self._off_at is not None and len(self.calls) >= self._off_at:
                    self._is_off = True
                    raise PowerIsOff
            for fault in self._faults:
                failing_call, in_path, error = fault
                if failing_call == call and in_path in path:
                    self._faults.remove(fault)
                    raise OSError(error, os.strerror(error), path)

    def _wait(self, call: str) -> None:
        gate = self._gates.get(call)
        if gate is not None:
            gate.wait()

    def _write(self, fd: int, inode: _Inode, data: Buffer, position: int) -> int:
        size = os.fstat(fd).st_size
        written = os.pwrite(fd, data, position)
        inode.touch(min(size, position), position + written)
        return written

    def _keep_name(self, path: str) -> None:
        if path in self._live:
            self._stable[path] = self._live[path]
        else:
            self._stable.pop(path, None)

    def _adopt(self, path: str) -> None:
        """A file that was there before the disk was: all of it is on the medium."""
        inode = self._live[path] = self._stable[path] = _Inode()
        inode.stable[:] = Path(path).read_bytes()

    def _cached(self, inode: _Inode) -> bytes:
        for path, live in self._live.items():
            if live is inode:
                return Path(path).read_bytes()
        return bytes(inode.stable)

    @staticmethod
    def _read_all(fd: int) -> bytes:
        return os.pread(fd, os.fstat(fd).st_size, 0)

    def _really_close(self, fd: int) -> None:
        del self._inodes[fd], self._paths[fd]
        os.close(fd)

    def _start_over(self) -> None:
        for fd in list(self._inodes):
            self._really_close(fd)
        known = {path for path in self._live.keys() | self._stable.keys() if os.path.dirname(path) == self._root}
        for path in known:
            if os.path.isdir(path):
                shutil.rmtree(path)
            elif os.path.exists(path):
                os.unlink(path)
        for path, inode in sorted(self._stable.items()):
            if not os.path.isdir(os.path.dirname(path)):
                del self._stable[path]
            elif isinstance(inode, _Folder):
                os.mkdir(path)
            else:
                Path(path).write_bytes(inode.stable)
        self._live = dict(self._stable)
        self._faults.clear()
        self.room = None
        self._is_off, self._off_at = False, None

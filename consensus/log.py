"""The durable log: entries in files that follow each other, each known by the index of its first entry.

What ``append`` has returned for is on stable storage. Opening finds it again whatever happened in between, or refuses.
Calls block on the disk, and are made by one thread at a time.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from itertools import pairwise

from walrusmq.consensus.durable_file import Files, create_durably, read_file, write_all
from walrusmq.consensus.entry import ENTRY_HEADER_BYTES, Entry, Scan, encode_entries, scan_entries
from walrusmq.consensus.errors import EntriesRefused, EntriesUncertain, MetadataDamaged
from walrusmq.consensus.log_file import (
    ENTRIES_START,
    MARK_POSITION,
    LogFileHeader,
    decode_header,
    decode_mark,
    encode_header,
    encode_mark,
    file_name,
    first_indexes,
)

logger = logging.getLogger("walrusmq.metadata")

LOG_FILE_BYTES = 1 << 20
"""A file is followed by a new one once it is this large. Small: a start reads the last file as a whole, and old entries
are only removed by the file."""


class DurableLog:
    """The log of one folder.

    ``append`` after a failed sync goes on in a new file that begins behind the last synced entry: the kernel may have
    dropped what it couldn't write, and a later sync of the same file would succeed without it.
    """

    def __init__(self, folder: str, files: Files, *, file_bytes: int = LOG_FILE_BYTES) -> None:
        self.last_index = 0
        """The last entry on stable storage; 0 where there is none."""
        self.last_term = 0
        self.written_bytes = 0
        """Bytes of entries: those that opening gave, and those appended since."""
        self.sync_count = 0
        self._folder = folder
        self._files = files
        self._file_bytes = file_bytes
        self._first_indexes: list[int] = []
        self._fd = -1
        self._end = 0
        self._needs_new_file = True

    @property
    def is_empty(self) -> bool:
        """Whether the log has never held an entry."""
        return self.last_index == 0

    def create(self) -> None:
        """Begin a new log. Raises OSError."""
        self._start_file()

    def exists(self) -> bool:
        """Whether the folder holds a log."""
        return bool(first_indexes(self._files.listdir(self._folder)))

    def open(self, after_index: int, after_term: int) -> list[Entry]:
        """Find the entries behind those that a snapshot stands for, make them durable, and be ready to append.

        The names in the folder are on stable storage, for the caller has synced it.
        Raises MetadataDamaged, NewerFormat, OSError.
        """
        indexes = first_indexes(self._files.listdir(self._folder))
        if not indexes or indexes[0] > after_index + 1:
            first = self._path(indexes[0]) if indexes else self._folder
            raise MetadataDamaged(first, f"the entries from {after_index + 1} on are missing before it")
        # files that a snapshot stands for as a whole aren't read: they are kept for the case that it is damaged
        needed = [index for index, following in pairwise(indexes) if following > after_index + 1] + indexes[-1:]
        self._first_indexes = indexes
        entries: list[Entry] = []
        previous_term: int | None = None
        for first_index, following in pairwise([*needed, None]):
            assert first_index is not None
            found = self._recover_file(first_index, following, previous_term)
            entries += found.entries
            previous_term = self.last_term
        if self.last_index < after_index:
            raise MetadataDamaged(
                self._path(indexes[-1]), f"it ends with entry {self.last_index}, before the snapshot's {after_index}"
            )
        kept = [entry for entry in entries if entry.index > after_index]
        if kept and kept[0].term < after_term:
            raise MetadataDamaged(self._path(needed[0]), f"entry {kept[0].index} is of a term before the snapshot's")
        self.written_bytes = sum(ENTRY_HEADER_BYTES + len(entry.payload) for entry in kept)
        return kept

    def append(self, entries: Sequence[Entry]) -> None:
        """Put entries on stable storage, all with one sync.

        Raises EntriesRefused if the disk took none, EntriesUncertain if it failed on the way; the log goes on from
        the entry before them in both cases, and the next append tries the disk again.
        """
        assert entries[0].index == self.last_index + 1, "entries follow each other"
        if self._needs_new_file or self._end >= self._file_bytes:
            try:
                self._start_file()
            except OSError as error:
                raise EntriesRefused("a new file of the metadata log couldn't be made") from error
        data = encode_entries(entries)
        self._write(data)
        try:
            self._files.fdatasync(self._fd)
        except OSError as error:
            self._needs_new_file = True
            raise EntriesUncertain("the metadata log couldn't be synced") from error
        self._end += len(data)
        self.sync_count += 1
        self.written_bytes += len(data)
        self.last_index = entries[-1].index
        self.last_term = entries[-1].term
        self._write_mark()

    def purge(self, up_to_index: int) -> None:
        """Remove the files that hold nothing behind ``up_to_index``. Raises OSError."""
        while len(self._first_indexes) > 1 and self._first_indexes[1] <= up_to_index + 1:
            self._files.unlink(self._path(self._first_indexes[0]))
            del self._first_indexes[0]

    def close(self) -> None:
        """Let go of the file. Nothing is lost by not calling it."""
        if self._fd >= 0:
            self._files.close(self._fd)
            self._fd = -1

    def _path(self, first_index: int) -> str:
        return os.path.join(self._folder, file_name(first_index))

    def _recover_file(self, first_index: int, following: int | None, previous_term: int | None) -> Scan:
        """Read one file and check that it joins the one before; the last one is also repaired and opened.

        ``following`` is the first index of the next file. What this file holds from there on is void: it is what a
        failed sync left.
        """
        path = self._path(first_index)
        data = read_file(self._files, path)
        header = decode_header(data, path)
        if header.first_index != first_index:
            raise MetadataDamaged(path, f"it begins with entry {header.first_index}, and its name says otherwise")
        if previous_term is not None and header.previous_term != previous_term:
            raise MetadataDamaged(path, f"it follows an entry of term {header.previous_term}, not {previous_term}")
        scan = scan_entries(data, ENTRIES_START, first_index, header.previous_term, following)
        self.last_index = first_index + len(scan.entries) - 1
        self.last_term = scan.entries[-1].term if scan.entries else header.previous_term
        if following is None:
            self._check_tail(path, scan, decode_mark(data, header))
            self._open_last(path, header, data, scan)
        elif self.last_index + 1 != following:
            raise MetadataDamaged(path, self._describe(scan) + f", and the next file begins with entry {following}")
        return scan

    def _describe(self, scan: Scan) -> str:
        where = f"entry {self.last_index + 1} at byte {scan.end}"
        return f"{where} is damaged ({scan.fault})" if scan.fault else f"{where} is missing"

    def _check_tail(self, path: str, scan: Scan, synced_end: int | None) -> None:
        """Raise MetadataDamaged unless all that was ever confirmed is there."""
        if synced_end is None:
            if scan.fault:
                raise MetadataDamaged(path, self._describe(scan) + ", and so is the mark of how far it was synced")
            logger.warning("%s: the mark of how far it was synced is damaged, the entries are whole", path)
        elif scan.end < synced_end:
            raise MetadataDamaged(path, self._describe(scan) + f", and the file was synced up to byte {synced_end}")

    def _open_last(self, path: str, header: LogFileHeader, data: bytes, scan: Scan) -> None:
        """Cut a torn tail, make sure of what was never known to be synced, and go on in this file."""
        files = self._files
        self._fd = files.open(path)
        self._end = scan.end
        self._needs_new_file = False
        synced_end = decode_mark(data, header) or ENTRIES_START
        if synced_end == scan.end == len(data):
            return
        if scan.end < len(data):
            files.ftruncate(self._fd, scan.end)
            logger.warning(
                "%s: cut %d bytes at the end that a crash left unfinished (entry %d: %s); nothing confirmed is lost",
                path, len(data) - scan.end, self.last_index + 1, scan.fault,
            )  # fmt: skip
        # written once more: after a failed sync the kernel takes such pages for clean, and would sync nothing
        write_all(files, self._fd, data[synced_end : scan.end], synced_end)
        files.fdatasync(self._fd)
        self._write_mark()

    def _start_file(self) -> None:
        """Go on in a new file behind the last synced entry. Raises OSError.

        The next append then tries again, for the reason is still there. It mustn't use the old file: once the new name
        may be on the disk, entries in the old one are void.
        """
        first_index = self.last_index + 1
        content = encode_header(LogFileHeader(first_index, self.last_term))
        fd = create_durably(self._files, self._path(first_index), content)
        self.close()
        self._fd = fd
        self._end = len(content)
        if not self._first_indexes or self._first_indexes[-1] != first_index:
            self._first_indexes.append(first_index)
        self._needs_new_file = False

    def _write(self, data: bytes) -> None:
        """Write behind the last synced entry, or leave the file as it was. Raises EntriesRefused, EntriesUncertain."""
        try:
            write_all(self._files, self._fd, data, self._end)
        except OSError as error:
            self._take_back(error)
            raise EntriesRefused("the metadata log couldn't be written") from error

    def _take_back(self, cause: OSError) -> None:
        """Remove, durably, what a failed write may have left. Raises EntriesUncertain."""
        try:
            self._files.ftruncate(self._fd, self._end)
            self._files.fdatasync(self._fd)
        except OSError:
            self._needs_new_file = True
            raise EntriesUncertain("the metadata log couldn't be written, nor cut back") from cause

    def _write_mark(self) -> None:
        """Note in the file how far it is synced. If that fails the entries are safe, and a new file follows."""
        try:
            write_all(self._files, self._fd, encode_mark(self._first_indexes[-1], self._end), MARK_POSITION)
        except OSError as error:
            self._needs_new_file = True
            logger.warning("%s: couldn't note how far it is synced (%s)", self._path(self._first_indexes[-1]), error)

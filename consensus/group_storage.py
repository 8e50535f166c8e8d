"""All that a member of the group keeps in its folder: hard state, log and snapshots, opened together."""

from __future__ import annotations

import os
from typing import NamedTuple

from walrusmq.consensus.durable_file import Files, remove_unfinished
from walrusmq.consensus.entry import Entry
from walrusmq.consensus.errors import MetadataDamaged
from walrusmq.consensus.log import LOG_FILE_BYTES, DurableLog
from walrusmq.consensus.snapshot import NO_SNAPSHOT, Snapshot, SnapshotStore
from walrusmq.consensus.storage import FILE_NAME, HardState, load_hard_state, save_hard_state

FIRST_TERM = 1
"""The term of a group of one, which needs no election."""


class Recovered(NamedTuple):
    """What a folder held: the newest snapshot, and the entries behind it."""

    hard_state: HardState
    snapshot: Snapshot
    entries: list[Entry]


class GroupStorage:
    """The folder ``metadata`` of a node. Calls block on the disk; ``log`` and ``snapshots`` may have a thread each."""

    def __init__(self, folder: str, files: Files, *, log_file_bytes: int = LOG_FILE_BYTES) -> None:
        self._folder = folder
        self._files = files
        self.log = DurableLog(folder, files, file_bytes=log_file_bytes)
        self.snapshots = SnapshotStore(folder, files)

    def open(self) -> Recovered:
        """Find what the folder holds, or begin anew in an empty one.

        Raises MetadataDamaged, NewerFormat, OSError.
        """
        self._make_folder()
        remove_unfinished(self._files, self._folder)
        # a name may be there that the last process didn't live to sync: it must not vanish once it was built upon
        self._files.sync_folder(self._folder)
        hard_state = load_hard_state(self._folder, self._files)
        snapshot = self.snapshots.load()
        if hard_state is None:
            return self._first_start(snapshot)
        entries = self.log.open(snapshot.last_index, snapshot.last_term)
        if self.log.last_term > hard_state.term:
            raise MetadataDamaged(
                self._path(FILE_NAME),
                f"it says term {hard_state.term}, and the log has entries of {self.log.last_term}",
            )
        return Recovered(hard_state, snapshot, entries)

    def close(self) -> None:
        """Let go of the files."""
        self.log.close()

    def _make_folder(self) -> None:
        if not self._files.exists(self._folder):
            self._files.mkdir(self._folder)
            self._files.sync_folder(os.path.dirname(self._folder))

    def _first_start(self, snapshot: Snapshot) -> Recovered:
        """Make the log, then the hard state, whose presence says that the log is there."""
        if self.log.exists():
            self.log.open(0, 0)
        if snapshot is not NO_SNAPSHOT or self.log.last_index > 0:
            raise MetadataDamaged(self._path(FILE_NAME), "it is missing, though the log beside it has been used")
        if not self.log.exists():
            self.log.create()
        hard_state = HardState(FIRST_TERM)
        save_hard_state(self._folder, self._files, hard_state)
        return Recovered(hard_state, NO_SNAPSHOT, [])

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)

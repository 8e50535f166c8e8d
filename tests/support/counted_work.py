"""What a node does for a request, counted: calls of its own functions and of its disk. Load doesn't change counts."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import walrusmq
from walrusmq.segments.files import OsFiles

SOURCES = str(Path(walrusmq.__file__).parent)
DISK_CALLS = (
    "open", "close", "pread", "pwrite", "fdatasync", "ftruncate", "size", "size_of", "replace", "unlink", "mkdir",
    "listdir", "exists", "sync_folder", "free_bytes", "remove_tree",
)  # fmt: skip


class CountedFiles(OsFiles):
    """The real disk, with ``calls`` by name. Syncs are counted, but not made, since they take time."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        for name in DISK_CALLS:
            call = (lambda *_: None) if "sync" in name else getattr(OsFiles(), name)
            setattr(self, name, self._counted(name, call))

    def _counted(self, name: str, call: Any) -> Any:
        def counted(*arguments: Any, **named: Any) -> Any:
            self.calls[name] += 1
            return call(*arguments, **named)

        return counted


@dataclass
class Work:
    """What was counted."""

    calls: int = 0
    """Calls of Python functions of the house on this thread, compiled codecs included."""
    disk: Counter[str] = field(default_factory=Counter)
    """Calls to the disk, by name."""


@contextmanager
def counted(files: CountedFiles) -> Iterator[Work]:
    """Count what is done inside of the block."""
    work = Work()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith((SOURCES, "<")):
            work.calls += 1

    before = files.calls.copy()
    sys.setprofile(note)
    try:
        yield work
    finally:
        sys.setprofile(None)
        work.disk = files.calls - before

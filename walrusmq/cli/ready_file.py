"""The file that tells other programs that a node serves, and where."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Readiness:
    """What is in the file. Addresses are ``host:port``; ``internal_listen`` is null while nothing listens there."""

    pid: int
    node_id: int
    listen: str
    internal_listen: str | None
    http_listen: str


class ReadyFile:
    """There while the node serves, whole at any moment that somebody looks."""

    def __init__(self, path: str) -> None:
        #: Absolute.
        self.path = Path(os.path.abspath(path))
        self._content = ""

    def write(self, readiness: Readiness) -> None:
        """Written aside, then renamed. Raises OSError."""
        self._content = json.dumps(asdict(readiness)) + "\n"
        aside = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        aside.write_text(self._content)
        os.replace(aside, self.path)

    def prepare(self) -> None:
        """Before the start: remove what a process that was killed left behind, so that nobody takes it for this one's.

        Raises OSError if the file can't stand there, as where its folder doesn't exist.
        """
        self.path.unlink(missing_ok=True)
        if not self.path.parent.is_dir():
            raise OSError(f"there is no folder {self.path.parent}")

    def remove(self) -> None:
        """Remove it, unless another node has written its own there meanwhile."""
        with contextlib.suppress(OSError):
            if self._content and self.path.read_text() == self._content:
                self.path.unlink()

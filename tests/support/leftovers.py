"""What a node could leave behind in the process that it lived in."""

from __future__ import annotations

import asyncio
import os
import threading
from dataclasses import dataclass
from pathlib import Path

DESCRIPTORS = next((Path(name) for name in ("/proc/self/fd", "/dev/fd") if Path(name).exists()), None)


@dataclass(frozen=True)
class Belongings:
    """What the process and its running loop have now."""

    threads: frozenset[str]
    tasks: frozenset[str]
    descriptors: frozenset[str]

    @classmethod
    def now(cls) -> Belongings:
        threads = frozenset(f"{thread.name} {thread.ident}" for thread in threading.enumerate())
        tasks = frozenset(f"{task.get_name()} {id(task)}" for task in asyncio.all_tasks())
        return cls(threads, tasks, frozenset(_descriptors()))


def _descriptors() -> list[str]:
    """Every open descriptor with what it stands for, sockets included."""
    assert DESCRIPTORS is not None
    found = []
    for name in os.listdir(DESCRIPTORS):
        try:
            found.append(f"{name} {os.readlink(DESCRIPTORS / name)}")
        except FileNotFoundError:  # the one by which the folder was listed
            continue
        except OSError:  # macOS has no links there
            found.append(name)
    return found

"""What a process uses: CPU seconds of all its threads and children, and resident memory. From /proc, so Linux only."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
BYTES_PER_MB = 1e6


def cpu_s(pid: int) -> float:
    """User and system seconds of a process and its descendants so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    own = sum(int(field) for field in fields[11:15]) / TICKS_PER_S
    children = " ".join(path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children"))
    return own + sum(cpu_s(int(child)) for child in children.split())


def resident_mb(pid: int) -> float:
    """Resident memory in megabytes (1e6 bytes)."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / BYTES_PER_MB


@dataclass(slots=True)
class Usage:
    """CPU seconds of the broker and of this process over a stretch of time; the broker's are None if unknown."""

    wall_s: float
    client_s: float
    broker_s: float | None


class Meter:
    """Takes the usage between ``start`` and ``stop``."""

    def __init__(self, broker_pid: int | None) -> None:
        self._pid = broker_pid
        self._began_s = 0.0
        self._client_s = 0.0
        self._broker_s = 0.0

    def start(self) -> None:
        """Begin, or begin anew."""
        self._began_s, self._client_s = time.perf_counter(), time.process_time()
        self._broker_s = cpu_s(self._pid) if self._pid else 0.0

    def stop(self) -> Usage:
        """What was used since ``start``."""
        return Usage(
            wall_s=time.perf_counter() - self._began_s,
            client_s=time.process_time() - self._client_s,
            broker_s=cpu_s(self._pid) - self._broker_s if self._pid else None,
        )

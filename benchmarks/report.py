"""Figures of several runs as a table for people, and as JSON for programs."""

from __future__ import annotations

import json
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path

from benchmarks.throughput import Figure

UNITS = {
    "records_per_s": "records/s",
    "mb_per_s": "MB/s",
    "broker_cpu_s_per_gb": "broker CPU s/GB",
    "client_busy": "of client's core",
    "requests_per_s": "requests/s",
    "p50_us": "µs p50",
    "p99_us": "µs p99",
    "broker_cpu_us_per_request": "broker CPU µs/request",
    "first_answer_ms": "ms to the first answer",
    "idle_mb": "MB idle",
    "idle_cpu_percent": "% CPU idle",
}


def summarise(runs: Sequence[Figure]) -> dict[str, list[float]]:
    """Median, least and most of each value over the runs; what no run could measure is left out."""
    summary = {}
    for key in runs[0]:
        values = [value for run in runs if (value := run[key]) is not None]
        if values:
            summary[key] = [statistics.median(values), min(values), max(values)]
    return summary


def number(value: float) -> str:
    """Three digits that count."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def row(name: str, summary: dict[str, list[float]]) -> str:
    """One line of a markdown table: the medians, with least and most of the first value."""
    first = next(iter(summary))
    cells = [f"{number(values[0])} {UNITS[key]}" for key, values in summary.items()]
    spread = f"{number(summary[first][1])} to {number(summary[first][2])}"
    return f"| {name} | {' · '.join(cells)} | {spread} |"


def machine() -> str:
    """One line about where the figures come from."""
    cpu = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    return f"{cpu}, {platform.system()} {platform.release()}, Python {platform.python_version()}"


def write_json(path: Path, bootstrap: str, figures: dict[str, dict[str, list[float]]]) -> None:
    """All figures with their median, least and most."""
    path.write_text(json.dumps({"machine": machine(), "bootstrap": bootstrap, "figures": figures}, indent=2) + "\n")

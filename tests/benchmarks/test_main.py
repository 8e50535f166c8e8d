"""Every figure can be measured, in small."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.figures import BENCHMARKS

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


def test_a_small_run_measures_every_figure_of_a_broker_of_its_own(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks", "--scale", "0.02", "--runs", "1", "--json", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(json.loads(out.read_text())["figures"]) == {benchmark.name for benchmark in BENCHMARKS}

"""The broker of a run keeps its log lines out of the table."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.target import logged, own_broker, spawn


def test_what_a_broker_writes_goes_to_a_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for word in ("once", "again"):
        code = f"import sys; print('out'); print('{word}', file=sys.stderr)"
        assert spawn([sys.executable, "-c", code], tmp_path).wait(30) == 0
    assert logged(tmp_path) == "once\nagain\n"
    assert capfd.readouterr() == ("", "")


def test_a_run_without_trouble_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with own_broker({}) as target, target.topic():
        assert capfd.readouterr() == ("", "")
    assert capfd.readouterr() == ("", "")


def test_a_broker_that_cannot_start_says_why_in_the_end(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="did not start"), own_broker({"num.partitions": "0"}):
        pass
    assert "num.partitions is '0'" in capfd.readouterr().err

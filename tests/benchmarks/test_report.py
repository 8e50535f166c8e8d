"""The table says what was measured."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.report import number, row, summarise, write_json


def test_a_summary_has_median_least_and_most_of_what_was_measured() -> None:
    runs = [{"p50_us": value, "broker_cpu_s_per_gb": None} for value in (3.0, 1.0, 8.0)]
    assert summarise(runs) == {"p50_us": [3.0, 1.0, 8.0]}


def test_numbers_have_three_digits_that_count() -> None:
    assert [number(value) for value in (0.12345, 12.345, 123.45, 123456.7)] == ["0.123", "12.3", "123", "123,457"]


def test_a_row_names_each_value_with_its_unit() -> None:
    assert row("end to end", {"p50_us": [3.0, 1.0, 8.0], "p99_us": [9.0, 9.0, 9.0]}) == (
        "| end to end | 3 µs p50 · 9 µs p99 | 1 to 8 |"
    )


def test_the_json_has_every_figure_and_the_machine(tmp_path: Path) -> None:
    write_json(tmp_path / "out", "127.0.0.1:1", {"start": {"idle_mb": [1, 1, 1]}})
    written = json.loads((tmp_path / "out").read_text())
    assert written["figures"] == {"start": {"idle_mb": [1, 1, 1]}}
    assert written["machine"]

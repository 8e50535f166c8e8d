"""The differences from Apache Kafka that are accounted for stand on the page, and others come to light."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "docs" / "differences.py"
LISTED = (
    "DIFF CreateTopics v5-7 | create_topics_bad: a.b | topics[a.b].configs[preallocate] | "
    'A: {"name": "preallocate", "value": "false"} | B: "<absent>"'
)
NEW = "DIFF Fetch v4-12 | fetch: a | responses[a].partitions[0].errorCode | A: 0 | B: 6"


@pytest.fixture(scope="module")
def differences() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_every_row_that_accounts_for_a_difference_stands_on_the_page(differences: dict[str, Any]) -> None:
    assert differences["missing_rows"](differences["PAGE"].read_text()) == []
    assert differences["missing_rows"]("") == list(differences["ACCOUNTED_FOR"])


def test_a_difference_without_a_row_comes_to_light(
    differences: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "output"
    output.write_text("\n".join(("SKIP groups", LISTED, NEW, NEW.replace("DIFF", "QUIRK"))))
    assert differences["main"]([str(output)]) == 1
    assert capsys.readouterr().out.splitlines() == [NEW, "2 differences, 1 of them without a row"]


def test_differences_that_all_have_rows_are_no_failure(differences: dict[str, Any], tmp_path: Path) -> None:
    output = tmp_path / "output"
    output.write_text(LISTED)
    assert differences["main"]([str(output)]) == 0

"""The pages say what the code says."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])


@pytest.fixture(scope="module")
def generate() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "generate.py"))


def test_every_generated_part_is_up_to_date(generate: dict[str, Any]) -> None:
    assert list(generate["stale"]()) == []


def test_every_generator_has_a_place_in_some_page(generate: dict[str, Any]) -> None:
    placed = {name for page in PAGES for _, name, _ in generate["BLOCK"].findall(page.read_text())}
    assert placed == set(generate["GENERATORS"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_a_page_links_to_exists(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    for path, name in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page.read_text()):
        source = ROOT / path
        assert source.exists(), path
        assert not name or f"def {name}(" in source.read_text(), f"{path}::{name}"

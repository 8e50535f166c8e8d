"""The arrows between the folders are really kept by import-linter, through the links in ``walrusmq/``."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("walrusmq", "broker", "consensus", "segments", "metrics", "protocol")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the sources and of the contracts, free to be broken."""
    for name in FOLDERS:
        shutil.copytree(ROOT / name, tmp_path / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def lint(tree: Path) -> subprocess.CompletedProcess[str]:
    program = "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports_command as c; c()"
    command = [sys.executable, "-c", program, "--no-cache"]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=100, check=False)


def test_the_code_keeps_the_contracts(tree: Path) -> None:
    done = lint(tree)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("file", "line", "named"),
    [
        ("protocol/frames.py", "import walrusmq.broker.clock", "walrusmq.protocol.frames -> walrusmq.broker.clock"),
        ("metrics/counters.py", "import walrusmq.protocol.errors", "walrusmq.metrics.counters -> walrusmq.protocol"),
        ("broker/clock.py", "import walrusmq.cli", "walrusmq.broker.clock -> walrusmq.cli"),
    ],
)
def test_an_import_that_points_up_is_caught(tree: Path, file: str, line: str, named: str) -> None:
    with (tree / file).open("a") as source:
        source.write(f"\n{line}\n")
    done = lint(tree)
    assert done.returncode == 1
    assert named in done.stdout


def test_a_folder_without_a_place_in_the_layers_is_caught(tree: Path) -> None:
    (tree / "walrusmq" / "extra").mkdir()
    (tree / "walrusmq" / "extra" / "__init__.py").write_text("")
    done = lint(tree)
    assert done.returncode == 1
    assert "extra" in done.stdout

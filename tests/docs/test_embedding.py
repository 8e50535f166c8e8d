"""The program on the page about embedding runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "embedding.md"
LIMIT_S = 20.0


def test_the_program_on_the_page_starts_a_node_talks_to_it_and_ends(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-"], input=program, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello, walrus\n", "")
    assert list(tmp_path.iterdir()) == []

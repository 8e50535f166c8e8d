"""The client that README.md shows does what the page says, and soon."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from support.broker_process import BrokerProcess

README = Path(__file__).parents[2] / "README.md"
ADDRESS = "127.0.0.1:9092"
#: All of it, the close of the consumer too: a client that looks for a coordinator there waits for 45 s.
LIMIT_S = 10.0


def shown_client() -> str:
    """The Python program that the page feeds to the interpreter."""
    (program,) = re.findall(r"python - <<'END'\n(.*?)^END$", README.read_text(), re.DOTALL | re.MULTILINE)
    assert program.count(ADDRESS) == 1
    return str(program)


def test_the_client_that_the_page_shows_prints_what_it_sent_and_ends(broker: BrokerProcess) -> None:
    program = shown_client().replace(ADDRESS, broker.bootstrap)
    done = subprocess.run(
        [sys.executable, "-"], input=program, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert (done.returncode, done.stdout) == (0, "hello, walrus\n"), done.stderr
    assert f"prints `{done.stdout.strip()}`" in README.read_text()

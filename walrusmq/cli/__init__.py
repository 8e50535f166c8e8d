"""The command ``walrusmq``: finds the subcommand, and imports nothing but that."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Sequence
from typing import NamedTuple

from walrusmq import __version__

#: Exit codes: a command that failed; a command line that can't be understood; ended by Ctrl-C (128 + SIGINT).
FAILED = 1
MISUSED = 2
INTERRUPTED = 130


class Command(NamedTuple):
    """A subcommand: ``run(arguments) -> exit code`` in its own module."""

    module: str
    meaning: str


COMMANDS = {
    "serve": Command("walrusmq.cli.serve", "run a broker"),
    "config": Command("walrusmq.cli.config", "show each setting, its value, and where the value came from"),
}

HELP = f"""usage: walrusmq COMMAND [OPTION]...

A Kafka-compatible broker.

commands:
{chr(10).join(f"  {name:<12}{command.meaning}" for name, command in COMMANDS.items())}

options:
  -h, --help  show this, or after a command what that takes
  --version   show the version

`walrusmq serve` needs no option: it listens on 127.0.0.1:9092 and keeps its data in ./walrus-data.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    first = words[0] if words else ""
    if first in ("-h", "--help"):
        print(HELP, end="")
        return 0
    if first == "--version":
        print(f"walrusmq {__version__}")
        return 0
    command = COMMANDS.get(first)
    if command is None:
        print(_no_command(first), file=sys.stderr)
        return MISUSED
    # What a start imports and makes stays: to look for garbage in it meanwhile costs a tenth of the start.
    gc.disable()
    try:
        code: int = importlib.import_module(command.module).run(words[1:])
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        gc.enable()
    return code


def _no_command(word: str) -> str:
    if not word:
        return HELP.rstrip()
    import difflib

    nearest = difflib.get_close_matches(word, COMMANDS, n=1)
    advice = f"did you mean {nearest[0]}?" if nearest else "`walrusmq --help` lists the commands"
    return f"walrusmq: there is no command {word!r}: {advice}"

"""Log lines: one record, one line, key=value."""

from __future__ import annotations

import logging
import shlex
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from walrusmq.cli.log_lines import KeyValueFormatter, log_to_stderr


def record(message: str, *arguments: object, **extra: object) -> logging.LogRecord:
    made = logging.LogRecord("walrusmq.node", logging.WARNING, "", 0, message, arguments, None)
    made.created = 1_700_000_000.25
    made.msecs = 250.0
    vars(made).update(extra)
    return made


def test_a_line_has_time_level_logger_message_and_what_else_was_given() -> None:
    line = KeyValueFormatter().format(record("%s left", "peer", topic="a", bytes_cut=7))
    assert line == (
        'time=2023-11-14T22:13:20.250Z level=warning logger=walrusmq.node message="peer left" topic=a bytes_cut=7'
    )


def test_a_traceback_stays_on_the_line() -> None:
    made = record("failed")
    try:
        raise ValueError("odd")
    except ValueError:
        made.exc_info = sys.exc_info()
    line = KeyValueFormatter().format(made)
    assert "\n" not in line
    assert line.endswith('ValueError: odd"')


@given(st.text())
def test_any_message_is_one_line_with_quotes_that_match(message: str) -> None:
    line = KeyValueFormatter().format(record("%s", message))
    assert line.isprintable()
    assert len(shlex.split(line.replace("'", ""), comments=False)) == 4


def test_the_level_holds_for_every_logger(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    try:
        log_to_stderr("warning")
        logging.getLogger("walrusmq.anything").info("quiet")
        logging.getLogger("walrusmq.anything").warning("loud")
    finally:
        root.handlers[:], root.level = before
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].endswith("level=warning logger=walrusmq.anything message=loud")

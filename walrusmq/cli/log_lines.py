"""Log lines as key=value pairs: one line a record, for people and for collectors that read logfmt."""

from __future__ import annotations

import logging
import re
import sys
import time

#: What every record has anyway; anything else was given with ``extra=`` and is shown.
_STANDARD = frozenset(vars(logging.LogRecord("", 0, "", 0, "", None, None))) | {"message", "asctime", "taskName"}
_PLAIN = re.compile(r"[^\s\"=\\]+")


class KeyValueFormatter(logging.Formatter):
    """``time=… level=… logger=… message="…"``, then what ``extra`` gave, then the traceback of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        pairs: dict[str, object] = {
            "time": f"{moment}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        pairs.update((name, value) for name, value in vars(record).items() if name not in _STANDARD)
        if record.exc_info:
            pairs["traceback"] = self.formatException(record.exc_info)
        return " ".join(f"{name}={_quoted(str(value))}" for name, value in pairs.items())


def log_to_stderr(level: str) -> None:
    """Have every logger of this process write such lines, from this severity (``log.level``) up."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(KeyValueFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def _quoted(text: str) -> str:
    """The text itself if it is one plain word, else in quotes with line breaks and the like escaped."""
    if _PLAIN.fullmatch(text) and text.isprintable():
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return (
        '"' + "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in escaped) + '"'
    )

"""An answer that comes later: lighter than a Future, because tens of thousands a second wait for one sync."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Deferred:
    """A handler returns one when the answer must wait; whoever ends the wait resolves it, once."""

    __slots__ = ("_callback", "is_done", "response")

    def __init__(self) -> None:
        self.is_done = False
        self.response: Any = None
        self._callback: Callable[[Any], None] | None = None

    def resolve(self, response: Any) -> None:
        """Give the answer. Later calls change nothing: a timeout and an acknowledgement may both come."""
        if self.is_done:
            return
        self.is_done = True
        self.response = response
        callback = self._callback
        if callback is not None:
            self._callback = None
            callback(response)

    def when_done(self, callback: Callable[[Any], None]) -> None:
        """Have ``callback`` called with the answer: now, if it is there."""
        if self.is_done:
            callback(self.response)
        else:
            self._callback = callback

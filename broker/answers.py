"""Answers on their way out of a connection: in the order of the requests, as bytes and regions of files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from walrusmq.protocol.frames import FileRegion


class Slot:
    """An answer's place in the queue of its connection."""

    __slots__ = ("closes", "is_ready", "parts", "request_bytes")

    def __init__(self, request_bytes: int) -> None:
        self.parts: list[Any] = []
        self.is_ready = False
        self.closes = False
        self.request_bytes = request_bytes


def release(parts: Iterable[Any]) -> None:
    """Let go of the files of an answer that won't be sent."""
    for part in parts:
        if type(part) is FileRegion:
            part.handle.unpin()

"""A metadata log over the simplest of state machines, and what its tests need around it."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from typing import Any

from support.lossy_disk import LossyDisk

from walrusmq.consensus.durable_file import Files
from walrusmq.consensus.metadata_log import MetadataLog
from walrusmq.protocol.errors import InvalidRequest

FOLDER = "/data/metadata"
PATIENCE_S = 20.0


class Journal:
    """A state machine that remembers what it was given. It refuses b"no", and can't follow b"poison"."""

    def __init__(self) -> None:
        self.applied: list[bytes] = []
        self.indexes: list[int] = []
        self.on_apply: Callable[[bytes], None] = lambda payload: None

    def apply(self, index: int, term: int, payload: bytes) -> bytes:
        assert term == 1
        self.indexes.append(index)
        if payload == b"no":
            raise InvalidRequest("refused by the state machine")
        if payload == b"poison":
            raise RuntimeError("a command from the future")
        self.applied.append(payload)
        self.on_apply(payload)
        return b"done " + payload

    def snapshot(self) -> bytes:
        return b"\n".join(self.applied)

    def restore(self, snapshot: bytes) -> None:
        self.applied = snapshot.split(b"\n")


def make_log(journal: Journal, files: Files, folder: str = FOLDER, **settings: Any) -> MetadataLog:
    return MetadataLog(
        folder, files, apply=journal.apply, take_snapshot=journal.snapshot, restore=journal.restore, **settings
    )


async def started(files: Files, folder: str = FOLDER, **settings: Any) -> tuple[MetadataLog, Journal]:
    journal = Journal()
    log = make_log(journal, files, folder, **settings)
    await log.start()
    return log, journal


def run(scenario: Awaitable[None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(scenario, PATIENCE_S)

    asyncio.run(bounded())


def fail(disk: LossyDisk, call: str) -> None:
    def before_call(name: str) -> None:
        if name == call:
            raise OSError(errno.EIO, "injected")

    disk.before_call = before_call


def heal(disk: LossyDisk) -> None:
    disk.before_call = lambda name: None


async def outcomes(futures: list[asyncio.Future[Any]]) -> list[Any]:
    return await asyncio.gather(*futures, return_exceptions=True)

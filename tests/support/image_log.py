"""A metadata log with the cluster image on top, as a node has it, without the node."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from walrusmq.broker.commands import encode_command
from walrusmq.broker.image import ClusterImage
from walrusmq.consensus.metadata_log import MetadataLog
from walrusmq.segments.files import OsFiles


class Metadata:
    """The two in a folder, which may have been used before."""

    def __init__(self, folder: Path) -> None:
        self.image = ClusterImage()
        self.log = MetadataLog(
            str(folder),
            OsFiles(),
            apply=lambda index, term, payload: self.image.apply_entry(index, term, payload),
            take_snapshot=lambda: self.image.snapshot(),
            restore=lambda snapshot: self.image.load(snapshot),
        )

    async def propose_all(self, commands: list[Any]) -> list[Any]:
        return await asyncio.gather(*(self.log.propose(encode_command(command)) for command in commands))


async def started(folder: Path) -> Metadata:
    metadata = Metadata(folder)
    await metadata.log.start()
    return metadata

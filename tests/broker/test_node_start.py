"""What keeps a node from starting on a data folder that isn't whole."""

import asyncio
import shutil
from pathlib import Path

import pytest
from support.embedded import Wire, batch_of, create_topic, produce, running_node

from walrusmq.broker.data_folder import MetadataMissing


def test_a_folder_whose_metadata_is_gone_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    async def fill() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            await wire.ask(produce("t", batch_of(b"precious")), 9)

    async def start() -> None:
        async with running_node(tmp_path):
            pass

    asyncio.run(fill())
    shutil.rmtree(tmp_path / "metadata")
    logs = {path: path.read_bytes() for path in tmp_path.glob("topics/*/*.log")}
    assert logs
    with pytest.raises(MetadataMissing, match="put its metadata folder back"):
        asyncio.run(start())
    assert {path: path.read_bytes() for path in tmp_path.glob("topics/*/*.log")} == logs

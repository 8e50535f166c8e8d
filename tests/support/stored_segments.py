"""What lies in a data folder: the chain that the metadata log knows, held against the bytes in the files."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from walrusmq.broker.image import PartitionImage
from walrusmq.broker.node import Node
from walrusmq.broker.settings import Settings
from walrusmq.protocol.records.scan import scan_verified


def partition_image(data: Path, topic: str) -> PartitionImage:
    """The image of partition 0 of ``topic``, by a node that is started on the stopped data folder."""

    async def look() -> PartitionImage:
        addresses = dict.fromkeys(("listen", "internal.listen", "http.listen"), "127.0.0.1:0")
        node = Node(Settings.load({"data.dir": str(data), **addresses}))
        await node.start()
        try:
            return node.image.topics_by_name[topic].partitions[0]
        finally:
            await node.stop()

    return asyncio.run(look())


def partition_folder(data: Path, topic: str) -> Path:
    """The folder of partition 0 of ``topic``; the name stands in a small file in it."""
    for folder in (data / "topics").iterdir():
        if folder.name.endswith("-0") and any(
            topic.encode() in file.read_bytes() for file in folder.iterdir() if not file.stem.isdigit()
        ):
            return folder
    raise AssertionError(f"no folder of {topic}")


def written(log: Path) -> tuple[int, int, int]:
    """First offset, end offset and bytes of a log file's batches, every checksum checked."""
    size = log.stat().st_size
    descriptor = os.open(log, os.O_RDONLY)
    try:
        batches = list(scan_verified(lambda count, position: os.pread(descriptor, count, position), 0, size))
    finally:
        os.close(descriptor)
    first, last = batches[0][1], batches[-1][1]
    return first.base_offset, last.last_offset + 1, batches[-1][0] + last.size_bytes


def check_chain(data: Path, topic: str, entries: int) -> int:
    """Hold the sealed facts to the files; ``entries`` is what was acknowledged. Returns the number of segments."""
    image = partition_image(data, topic)
    folder = partition_folder(data, topic)
    expected_offset = 0
    for position, sealed in enumerate(image.sealed):
        assert sealed.id == position + 1
        assert sealed.first_offset == expected_offset
        facts = (sealed.first_offset, sealed.end_offset, sealed.size_bytes)
        assert written(folder / f"{sealed.id:010}.log") == facts
        expected_offset = sealed.end_offset
    assert image.open.id == len(image.sealed) + 1
    assert image.open.first_offset == expected_offset
    last = folder / f"{image.open.id:010}.log"
    if last.exists() and last.stat().st_size:
        first_offset, expected_offset, _ = written(last)
        assert first_offset == image.open.first_offset
    assert expected_offset == entries
    return len(image.sealed) + 1

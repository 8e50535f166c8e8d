"""What a consumer finds, over the wire: every record with its offset."""

from __future__ import annotations

import os
from typing import Any

from support.embedded import Wire, fetch

from walrusmq.protocol.frames import FileRegion
from walrusmq.protocol.records.batch import Record, decode_batches

Found = list[tuple[int, bytes | None]]
"""Offset and value of each record, in the order in which they came."""


def only_partition(answer: Any) -> Any:
    """The one partition of a Produce, Fetch or ListOffsets answer about one."""
    (topic,) = answer.responses if hasattr(answer, "responses") else answer.topics
    (part,) = getattr(topic, "partition_responses", None) or topic.partitions
    return part


def found_in(data: Any) -> Found:
    """The records of one partition's part of a Fetch answer."""
    records = data.records or b""
    if isinstance(records, FileRegion):
        records = os.pread(records.handle.fd, records.size, records.position)
    return [(record.offset, record.value) for batch in decode_batches(records) for record in batch.records]


async def read_all(wire: Wire, topic: str, *, partition: int = 0, offset: int = 0, max_bytes: int = 1 << 20) -> Found:
    """Every record from ``offset`` to the high watermark; none comes twice, and offsets only grow."""
    found: Found = []
    while True:
        request = fetch(topic, offset, partition=partition, partition_max_bytes=max_bytes)
        data = only_partition(await wire.ask(request, 12))
        assert data.error_code == 0, f"error {data.error_code} at offset {offset} of {topic}-{partition}"
        new = [each for each in found_in(data) if each[0] >= offset]
        if not new:
            assert offset == data.high_watermark, f"nothing at {offset} below {data.high_watermark}"
            return found
        assert [each[0] for each in new] == list(range(offset, offset + len(new)))
        found += new
        offset = new[-1][0] + 1


async def read_compacted(wire: Wire, topic: str, *, partition: int = 0, offset: int = 0) -> list[Record]:
    """Every record from ``offset`` to the high watermark of a log that has gaps; offsets only grow."""
    found: list[Record] = []
    while True:
        data = only_partition(await wire.ask(fetch(topic, offset, partition=partition), 12))
        assert data.error_code == 0, f"error {data.error_code} at offset {offset} of {topic}-{partition}"
        batches = list(decode_batches(data.records or b""))
        if not batches:
            assert offset == data.high_watermark, f"nothing at {offset} below {data.high_watermark}"
            return found
        found += [record for batch in batches for record in batch.records if record.offset >= offset]
        assert batches[-1].header.last_offset >= offset, "what comes lies before what was asked for"
        offset = batches[-1].header.last_offset + 1

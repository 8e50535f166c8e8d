"""Stores and partitions for tests of segments: batches as producers send them, a clock that stands, a chain that the
test keeps in place of the cluster image.
"""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from walrusmq.protocol.errors import KafkaError
from walrusmq.protocol.records.batch import Producer, Record, RecordBatch, decode_batches, encode_batch
from walrusmq.segments.facts import OpenSegment, SealedSegment
from walrusmq.segments.files import Files, OsFiles
from walrusmq.segments.log_config import LogConfig
from walrusmq.segments.partition import Appended, Partition
from walrusmq.segments.store import SegmentStore

NOW_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(16))


def in_loop(test: Callable[..., Coroutine[None, None, None]]) -> Callable[..., None]:
    """Run a test's coroutine in an event loop of its own."""

    @functools.wraps(test)
    def run(*args: object, **named: object) -> None:
        asyncio.run(test(*args, **named))

    return run


class StillClock:
    """Stands until it is moved."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000


@dataclass
class Image:
    """What the cluster image would know of one partition."""

    sealed: list[SealedSegment] = field(default_factory=list)
    open: OpenSegment = field(default_factory=lambda: OpenSegment(1, 1, 0, 0, (1,)))
    log_start_offset: int = 0

    def roll(self, sealed: SealedSegment, *, leader_epoch: int | None = None) -> None:
        epoch = self.open.leader_epoch if leader_epoch is None else leader_epoch
        self.sealed.append(sealed)
        self.open = OpenSegment(sealed.id + 1, 1, epoch, sealed.end_offset, (1,))

    def move_log_start(self, offset: int) -> None:
        self.log_start_offset = max(offset, self.log_start_offset)
        self.sealed = [facts for facts in self.sealed if facts.end_offset > self.log_start_offset]


def a_store(folder: Path, files: Files | None = None, clock: StillClock | None = None, **settings: int) -> SegmentStore:
    """A store that has started."""
    store = SegmentStore(str(folder), files or OsFiles(), clock or StillClock(), **settings)  # type: ignore[arg-type]
    store.start()
    return store


def a_partition(
    store: SegmentStore, image: Image | None = None, config: LogConfig | None = None, *, index: int = 0
) -> Partition:
    """Partition `index` of the topic `t`, as the image knows it."""
    image = image or Image()
    return store.open_partition(
        "t", TOPIC_ID, index, config or LogConfig(), list(image.sealed), image.open, image.log_start_offset
    )


def batch(*values: bytes | str, timestamps: Sequence[int] | None = None, producer: Producer | None = None) -> bytearray:
    """A batch as a producer sends it; timestamps (ms) count up from NOW_MS unless they are given."""
    times = timestamps or range(NOW_MS, NOW_MS + len(values))
    records = [
        Record(offset, timestamp, None, value.encode() if isinstance(value, str) else value)
        for offset, (value, timestamp) in enumerate(zip(values, times, strict=True))
    ]
    return bytearray(encode_batch(records) if producer is None else encode_batch(records, producer=producer))


def append(partition: Partition, *values: bytes | str, now_ms: int = NOW_MS, **of_batch: object) -> Appended:
    """Append one batch of these values."""
    return partition.append(memoryview(batch(*values, **of_batch)), now_ms)  # type: ignore[arg-type]


async def acknowledged(partition: Partition, end_offset: int) -> KafkaError | None:
    """Wait until all up to `end_offset` is acknowledged, or never will be."""
    done: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()
    partition.when_acknowledged(end_offset, done.set_result)
    return await asyncio.wait_for(done, 30)


async def append_durably(partition: Partition, *values: bytes | str, **of_batch: object) -> Appended:
    """Append one batch and wait for its acknowledgement."""
    appended = append(partition, *values, **of_batch)  # type: ignore[arg-type]
    if not appended.acknowledged:
        assert await acknowledged(partition, appended.end_offset) is None
    return appended


async def roll(partition: Partition, image: Image, *, leader_epoch: int | None = None) -> SealedSegment:
    """Seal the open segment and open the next."""
    partition.stop()
    sealed = await partition.seal()
    image.roll(sealed, leader_epoch=leader_epoch)
    partition.open_next(image.open, sealed)
    return sealed


def read_bytes(partition: Partition, offset: int, max_bytes: int = 1 << 20, *, minimum_one: bool = True) -> bytes:
    """What a consumer gets."""
    region = partition.read(offset, max_bytes, minimum_one)
    if region is None:
        return b""
    try:
        return os.pread(region.handle.fd, region.size, region.position)
    finally:
        region.handle.unpin()


def read_batches(partition: Partition, offset: int, max_bytes: int = 1 << 20) -> list[RecordBatch]:
    """One read's batches."""
    return list(decode_batches(read_bytes(partition, offset, max_bytes)))


def read_all(partition: Partition, max_bytes: int = 1 << 20) -> list[Record]:
    """All records that a consumer sees who begins at the log's start."""
    records: list[Record] = []
    offset = partition.log_start_offset
    while found := read_batches(partition, offset, max_bytes):
        records += [record for one in found for record in one.records if record.offset >= offset]
        offset = found[-1].header.last_offset + 1
    return records


def values(records: Iterable[Record]) -> list[bytes | None]:
    return [record.value for record in records]

"""The figures that a run measures, by name."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.end_to_end import end_to_end
from benchmarks.one_in_flight import repeat
from benchmarks.requests import fetch_at, produce_one
from benchmarks.starting import start_figure
from benchmarks.target import Target
from benchmarks.throughput import Figure, consume, produce

MB = 1_000_000
#: Bytes of values per bulk run at scale 1: long enough to outlast start-up effects, short enough for a laptop's disk.
VOLUME_BYTES = 500 * MB
REPEAT_SECONDS = 4.0
END_TO_END_RECORDS = 2000
END_TO_END_RATE_PER_S = 200.0
ACKS_ALL = -1
PARTITIONS = 4
MANY_PARTITIONS = 2000
#: The cost of a partition with so many segments is compared with that of one that has just begun.
MANY_SEGMENTS = 500
#: A batch of twice a segment's entries closes the segment at once.
SEGMENT_ENTRIES = 2000


#: Measures once; the number shortens the run.
Measure = Callable[[Target, float], Figure]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A figure's name and what measures it."""

    name: str
    measure: Measure
    needs_walrusmq: bool = False


def _produce(record_bytes: int, batch_bytes: int, **settings: Any) -> Measure:
    def measure(target: Target, scale: float) -> Figure:
        with target.topic() as topic:
            options = {"batch.size": batch_bytes, "batch.num.messages": batch_bytes, **_dotted(settings)}
            return produce(target, topic, record_bytes, VOLUME_BYTES * scale, options)

    return measure


def _consume(record_bytes: int, **settings: Any) -> Measure:
    def measure(target: Target, scale: float) -> Figure:
        with target.topic() as topic:
            volume = VOLUME_BYTES * scale
            produce(
                target, topic, record_bytes, volume, {"batch.size": MB, "batch.num.messages": MB, **_dotted(settings)}
            )
            return consume(target, topic, int(volume / record_bytes), {})

    return measure


def _one_record(connections: int, acks: int = ACKS_ALL, **configs: str) -> Measure:
    def measure(target: Target, scale: float) -> Figure:
        with target.topic(PARTITIONS, _dotted(configs)) as topic:
            requests = [produce_one(topic, partition, acks) for partition in range(PARTITIONS)]
            return repeat(target, requests, connections, REPEAT_SECONDS * scale)

    return measure


def _end_to_end(target: Target, scale: float) -> Figure:
    with target.topic() as topic:
        return end_to_end(target, topic, int(END_TO_END_RECORDS * scale), END_TO_END_RATE_PER_S)


def _beside_partitions(target: Target, scale: float) -> Figure:
    """One-record requests to one topic while another has thousands of partitions."""
    with target.topic(MANY_PARTITIONS):
        return _one_record(8)(target, scale)


def _after_segments(segments: int) -> Measure:
    """One-record requests to a partition with a chain of so many sealed segments."""

    def measure(target: Target, scale: float) -> Figure:
        with _chain(target, segments) as topic:
            return repeat(target, [produce_one(topic, 0, ACKS_ALL)], 1, REPEAT_SECONDS * scale)

    return measure


def _fetch_from_chain(part: float) -> Measure:
    """Fetch requests for an offset at ``part`` (0 to 1) of a long chain."""

    def measure(target: Target, scale: float) -> Figure:
        with _chain(target, MANY_SEGMENTS) as topic:
            last_offset = MANY_SEGMENTS * 2 * SEGMENT_ENTRIES - 1
            return repeat(target, [fetch_at(topic, int(part * last_offset))], 1, REPEAT_SECONDS * scale)

    return measure


@contextlib.contextmanager
def _chain(target: Target, segments: int) -> Iterator[str]:
    """A topic whose partition has so many sealed segments behind it."""
    with target.topic(configs={"walrus.segment.entries": str(SEGMENT_ENTRIES)}) as topic:
        if segments:
            batch = 2 * SEGMENT_ENTRIES
            options = {"batch.num.messages": batch, "linger.ms": 100, "max.in.flight": 1}
            produce(target, topic, 10, 10 * batch * segments, options)
        yield topic


def _starting(partitions: int) -> Measure:
    return lambda target, scale: start_figure(partitions)


def _dotted(settings: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in settings.items()}


BENCHMARKS = (
    Benchmark("produce 1000 B, 1 MB batches, acks=1", _produce(1000, MB, acks=1)),
    Benchmark("produce 1000 B, 1 MB batches, acks=all", _produce(1000, MB, acks="all")),
    Benchmark("produce 1000 B, 1 MB batches, idempotent", _produce(1000, MB, enable_idempotence=True)),
    Benchmark("produce 1000 B, 1 MB batches, lz4", _produce(1000, MB, acks="all", compression_type="lz4")),
    Benchmark("produce 100 B, 1 MB batches, acks=all", _produce(100, MB, acks="all")),
    Benchmark("produce 100 B, 64 KB batches, acks=all", _produce(100, 65536, acks="all")),
    Benchmark("produce 100 B, 16 KB batches, acks=all", _produce(100, 16384, acks="all")),
    Benchmark("consume 1000 B", _consume(1000)),
    Benchmark("consume 1000 B, lz4", _consume(1000, compression_type="lz4")),
    Benchmark("consume 100 B", _consume(100)),
    Benchmark("one-record requests, 1 connection", _one_record(1)),
    Benchmark("one-record requests, 8 connections", _one_record(8)),
    Benchmark("one-record requests, 32 connections", _one_record(32)),
    Benchmark("one-record requests, 32 connections, synced", _one_record(32, flush_messages="1")),
    Benchmark("one-record requests beside 2000 partitions, 8 connections", _beside_partitions),
    Benchmark("one-record requests after 0 segments, 1 connection", _after_segments(0), needs_walrusmq=True),
    Benchmark(
        "one-record requests after 500 segments, 1 connection", _after_segments(MANY_SEGMENTS), needs_walrusmq=True
    ),
    Benchmark("fetch requests at the middle of 500 segments", _fetch_from_chain(0.5), needs_walrusmq=True),
    Benchmark("fetch requests at the end of 500 segments", _fetch_from_chain(1.0), needs_walrusmq=True),
    Benchmark("end to end, 200 records/s", _end_to_end),
    Benchmark("start, no partitions", _starting(0), needs_walrusmq=True),
    Benchmark("start, 1000 partitions", _starting(1000), needs_walrusmq=True),
)

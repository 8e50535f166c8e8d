"""Batches on their way over a thread: in order, bounded, and none lost at the stop."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from support.segment_stores import NOW_MS, a_partition, a_store, batch, in_loop

from walrusmq.protocol.errors import InvalidTimestamp, KafkaError, NotLeaderOrFollower
from walrusmq.protocol.records.batch import decode_batch
from walrusmq.protocol.records.compression import Codec
from walrusmq.protocol.records.header import check_batch
from walrusmq.segments import prepared_appends as module
from walrusmq.segments.log_config import LogConfig
from walrusmq.segments.partition import Partition
from walrusmq.segments.preparation import RecordsOutOfTime

PATIENCE_S = 30
GZIP = LogConfig(codec=Codec.GZIP)
Outcome = memoryview | KafkaError


class Sink:
    """Takes what is handed on, and can be waited for."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self._changed = asyncio.Event()

    def __call__(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self._changed.set()

    async def has(self, count: int) -> list[Outcome]:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.outcomes) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.outcomes


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """While it isn't set, no batch comes out of preparation."""
    gate = threading.Event()
    work = module.prepared

    def held(*arguments: object) -> memoryview:
        assert gate.wait(PATIENCE_S)
        return work(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "prepared", held)
    return gate


def send(partition: Partition, text: str, done: Sink) -> None:
    """Add a batch, whose bytes are the caller's again afterwards."""
    data = batch(text)
    partition.store.prepared.add(partition, memoryview(data), done)
    data[:] = bytes(len(data))


def texts(outcomes: list[Outcome]) -> list[bytes | None]:
    assert not [each for each in outcomes if isinstance(each, KafkaError)]
    return [decode_batch(each).records[0].value for each in outcomes]  # type: ignore[arg-type]


@in_loop
async def test_a_batch_comes_back_in_the_topics_codec_in_a_later_turn(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition, done = a_partition(store, config=GZIP), Sink()
    assert store.prepared.takes(partition, memoryview(batch("a")))
    send(partition, "a", done)
    assert not done.outcomes
    (outcome,) = await done.has(1)
    assert isinstance(outcome, memoryview)
    assert check_batch(outcome).codec == Codec.GZIP
    await store.stop()


@in_loop
async def test_what_needs_nothing_waits_for_what_came_before_it(tmp_path: Path, gate: threading.Event) -> None:
    store = a_store(tmp_path)
    partition, done = a_partition(store, config=GZIP), Sink()
    send(partition, "a", done)
    partition.config = LogConfig()
    assert partition.prepares, "b mustn't be appended before a"
    send(partition, "b", done)
    partition.config = GZIP
    send(partition, "c", done)
    partition.config = LogConfig()
    send(partition, "d", done)
    gate.set()
    outcomes = await done.has(4)
    assert texts(outcomes) == [b"a", b"b", b"c", b"d"]
    codecs = [check_batch(each).codec for each in outcomes if isinstance(each, memoryview)]
    assert codecs == [Codec.GZIP, Codec.NONE, Codec.GZIP, Codec.NONE], "each as the settings were when it came"
    assert not partition.prepares
    assert not store.prepared.takes(partition, memoryview(batch("e")))
    await store.stop()


@in_loop
async def test_a_refused_batch_holds_up_none_behind_it(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition, done = a_partition(store, config=LogConfig(needs_keys=True)), Sink()
    send(partition, "keyless", done)
    partition.config = LogConfig()
    send(partition, "b", done)
    refused, following = await done.has(2)
    assert isinstance(refused, KafkaError)
    assert texts([following]) == [b"b"]
    await store.stop()


@in_loop
async def test_partitions_do_not_wait_for_each_other(
    tmp_path: Path, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = a_store(tmp_path)
    stuck, other = a_partition(store, config=GZIP), a_partition(store, config=GZIP, index=1)
    first, second = Sink(), Sink()
    send(stuck, "a", first)
    with monkeypatch.context() as patched:
        patched.setattr(module, "prepared", lambda data, *_: data)
        send(other, "b", second)
        await second.has(1)
    assert not first.outcomes
    gate.set()
    await first.has(1)
    await store.stop()


@in_loop
async def test_what_waits_is_bounded_for_one_partition_and_for_all(
    tmp_path: Path, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = a_store(tmp_path)
    one, other = a_partition(store, config=GZIP), a_partition(store, config=GZIP, index=1)
    done, size = Sink(), len(batch("a"))
    monkeypatch.setattr(module, "MAX_PREPARING_BYTES_PER_PARTITION", 2 * size)
    monkeypatch.setattr(module, "MAX_PREPARING_BYTES", 3 * size)
    for partition in (one, one, other):
        send(partition, "a", done)
    for partition in (one, other):
        with pytest.raises(NotLeaderOrFollower):
            send(partition, "a", done)
    refusal = InvalidTimestamp("old")
    with pytest.raises(InvalidTimestamp) as caught:
        store.prepared.explain(one, memoryview(batch("a")), refusal, done)
    assert caught.value is refusal
    gate.set()
    await done.has(3)
    assert store.prepared.waiting_bytes == 0
    send(one, "a", done)
    await done.has(4)
    await store.stop()


@in_loop
async def test_a_stop_waits_for_all_that_was_taken(tmp_path: Path, gate: threading.Event) -> None:
    store = a_store(tmp_path)
    partitions = [a_partition(store, config=GZIP, index=index) for index in range(3)]
    done = Sink()
    for partition in partitions:
        send(partition, "a", done)
        send(partition, "b", done)
    stopping = asyncio.ensure_future(store.stop())
    await asyncio.sleep(0)
    assert not stopping.done()
    gate.set()
    await asyncio.wait_for(stopping, PATIENCE_S)
    assert len(done.outcomes) == 6


@in_loop
async def test_a_refusal_for_timestamps_is_explained_record_by_record(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    partition, done = a_partition(store, config=LogConfig(timestamp_before_max_ms=1000)), Sink()
    data = batch("a", "b", timestamps=[5, NOW_MS])
    store.prepared.explain(partition, memoryview(data), InvalidTimestamp("old"), done)
    data[:] = bytes(len(data))
    (outcome,) = await done.has(1)
    assert isinstance(outcome, RecordsOutOfTime)
    assert list(outcome.faults) == [0]
    assert store.prepared.waiting_bytes == 0
    await store.stop()


@in_loop
async def test_a_defect_costs_one_batch_and_the_log_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = a_store(tmp_path)
    partition, done = a_partition(store, config=GZIP), Sink()

    def broken(*_: object) -> memoryview:
        raise ZeroDivisionError("a defect")

    with monkeypatch.context() as patched:
        patched.setattr(module, "prepared", broken)
        send(partition, "a", done)
        (outcome,) = await done.has(1)
    assert isinstance(outcome, KafkaError)
    assert "ZeroDivisionError" in str(outcome)
    assert "couldn't be prepared" in caplog.text
    send(partition, "b", done)
    assert texts((await done.has(2))[1:]) == [b"b"]
    await store.stop()

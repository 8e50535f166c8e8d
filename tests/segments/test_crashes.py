"""Random histories on a disk that loses what wasn't synced: nothing acknowledged is lost, offsets are dense, in order.

A failure prints its seed; `_History(folder, seed)` replays it.
"""

from __future__ import annotations

import asyncio
import errno
import random
from functools import partial
from pathlib import Path

import pytest
from support.crash_disk import CrashDisk
from support.segment_stores import Image, StillClock, a_partition, a_store, append, batch, in_loop, read_batches, roll

from walrusmq.protocol.errors import KafkaError, KafkaStorageError, NotLeaderOrFollower
from walrusmq.protocol.records.batch import Producer
from walrusmq.segments import index_files, thresholds
from walrusmq.segments.log_config import Durability, LogConfig
from walrusmq.segments.partition import Partition
from walrusmq.segments.store import SegmentStore

SEEDS = range(200)
LIVES = 4
CHECKPOINT_BYTES = 2000
STEPS = 25
PRODUCERS = 3


class _Attempt:
    """A batch that was appended: where, and what it held."""

    def __init__(self, base_offset: int, values: list[bytes], producer: Producer) -> None:
        self.base_offset = base_offset
        self.end_offset = base_offset + len(values)
        self.values = values
        self.producer = producer


class _Model:
    """What one partition must hold: the attempts of its present log, of which those up to `acknowledged` are safe."""

    def __init__(self, index: int, durability: Durability) -> None:
        self.index = index
        self.config = LogConfig(durability=durability)
        self.image = Image()
        self.attempts: list[_Attempt] = []
        self.acknowledged = 0
        self.sequences = [0] * PRODUCERS

    @property
    def end_offset(self) -> int:
        return self.attempts[-1].end_offset if self.attempts else 0

    def cut(self, end_offset: int) -> None:
        """The log ends there after a crash."""
        assert end_offset >= self.acknowledged, f"acknowledged {self.acknowledged}, but the log ends at {end_offset}"
        while self.attempts and self.attempts[-1].base_offset >= end_offset:
            self.attempts.pop()
        assert self.end_offset == end_offset, "the log ends inside a batch"
        self.sequences = [0] * PRODUCERS
        for attempt in self.attempts:
            self.sequences[attempt.producer.id] = attempt.producer.base_sequence + len(attempt.values)


class _History:
    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.disk = CrashDisk(folder, seed)
        self.folder = folder
        self.clock = StillClock()
        durability = Durability.BATCH if seed % 4 else Durability.INTERVAL
        self.models = [_Model(index, durability) for index in range(self.chance.randint(1, 3))]
        self.is_durable = durability is Durability.BATCH
        self.store: SegmentStore
        self.partitions: dict[int, Partition] = {}
        self.counter = 0

    async def run(self) -> None:
        for _ in range(LIVES):
            self._start()
            for model in self.models:
                self._check(model)
            await self._live()
        self._start()
        for model in self.models:
            self._check(model)
        await self.store.stop()

    def _start(self) -> None:
        self.store = a_store(self.folder, self.disk, self.clock, max_open_files=2)
        self.partitions = {}
        for model in self.models:
            partition = a_partition(self.store, model.image, model.config, index=model.index)
            self.partitions[model.index] = partition
            model.cut(partition.log_end_offset)
            if self.is_durable:
                model.acknowledged = partition.high_watermark

    async def _live(self) -> None:
        """A life of the store: random steps, and one of four ends."""
        end = self.chance.choice(["stop", "kill", "power", "power in a call"])
        if end == "power in a call":
            self.disk.power_off(after_calls=self.chance.randint(1, STEPS * 3))
        for _ in range(self.chance.randint(1, STEPS)):
            await self._step(self.chance.choice(self.models))
            if self.disk.is_off:
                break
        if end != "stop":
            self.disk.power_off()
        await self.store.stop()
        if end == "kill" and not self.is_durable:
            end = "power"
        if end == "kill":
            self.disk.restart_process()
        elif end != "stop":
            self.disk.power_on()
        if end == "stop":
            for model in self.models:
                model.acknowledged = model.end_offset

    async def _step(self, model: _Model) -> None:
        partition = self.partitions[model.index]
        match self.chance.choice(["append"] * 6 + ["wait", "wait", "roll", "trim", "full", "broken sync"]):
            case "append":
                self._append(model, partition)
            case "wait":
                await asyncio.sleep(0.001)
                await self.store.background.run(lambda: None)
            case "roll" if partition.log_end_offset > partition.log.facts.first_offset:
                await self._roll(model, partition)
            case "trim" if model.acknowledged:
                self._trim(model, partition)
            case "full":
                self.disk.room = self.chance.randint(0, 300)
                self._append(model, partition)
                self.disk.room = None
            case "broken sync" if self.is_durable and self.chance.random() < 0.3:
                await self._break_a_sync(model, partition)

    def _append(self, model: _Model, partition: Partition) -> None:
        self.counter += 1
        count, length = 1 + self.counter % 3, self.chance.choice([1, 30, 300])
        values = [b"%d.%d " % (self.counter, place) * length for place in range(count)]
        number = self.chance.randrange(PRODUCERS)
        producer = Producer(number, 0, model.sequences[number])
        try:
            appended = append(partition, *values, producer=producer)
        except (KafkaStorageError, NotLeaderOrFollower):
            return
        attempt = _Attempt(appended.base_offset, values, producer)
        assert attempt.base_offset == model.end_offset, "offsets are dense"
        model.attempts.append(attempt)
        model.sequences[number] += len(values)
        partition.when_acknowledged(attempt.end_offset, partial(self._acknowledged, model, attempt.end_offset))

    def _acknowledged(self, model: _Model, end_offset: int, error: KafkaError | None) -> None:
        if error is None:
            model.acknowledged = max(model.acknowledged, end_offset)

    async def _roll(self, model: _Model, partition: Partition) -> None:
        await roll(partition, model.image)
        model.cut(partition.log_end_offset)

    def _trim(self, model: _Model, partition: Partition) -> None:
        offset = self.chance.randint(0, model.acknowledged)
        model.image.move_log_start(offset)
        partition.move_log_start(offset)

    async def _break_a_sync(self, model: _Model, partition: Partition) -> None:
        self.disk.fail("fdatasync", errno.EIO, path=partition.log.file.path)
        self._append(model, partition)
        await self._roll_after_failure(model, partition)

    async def _roll_after_failure(self, model: _Model, partition: Partition) -> None:
        await roll(partition, model.image, leader_epoch=model.image.open.id)
        model.cut(partition.log_end_offset)

    def _check(self, model: _Model) -> None:
        """The partition holds what the model says, and recognises what its producers sent last."""
        partition = self.partitions[model.index]
        found = []
        offset = partition.log_start_offset
        while batches := read_batches(partition, offset, self.chance.choice([1, 100, 5000, 1 << 20])):
            found += batches
            offset = batches[-1].header.last_offset + 1
        expected = [attempt for attempt in model.attempts if attempt.end_offset > partition.log_start_offset]
        assert [(one.header.base_offset, [record.value for record in one.records]) for one in found] == [
            (attempt.base_offset, attempt.values) for attempt in expected
        ]
        last = {attempt.producer.id: attempt for attempt in model.attempts}
        for attempt in last.values():
            again = memoryview(batch(*attempt.values, producer=attempt.producer))
            assert partition.append(again, self.clock.ms).base_offset == attempt.base_offset, "a repeat is recognised"


@pytest.mark.parametrize("seed", SEEDS)
@in_loop
async def test_a_crash_loses_nothing_acknowledged(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "CHECKPOINT_INTERVAL_BYTES", CHECKPOINT_BYTES)
    monkeypatch.setattr(index_files, "SMALL_REST_BYTES", 0)
    await _History(tmp_path, seed).run()

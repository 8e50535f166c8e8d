"""Random histories of a compacted topic on a disk that loses what wasn't synced: of each key the last value stays.

A failure prints its seed; `_History(folder, seed)` replays it, but for the moments at which threads run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.compacted import CompactedModel
from support.crash_disk import CrashDisk
from support.embedded import PATIENCE_S, Wire, create_topic, produce, settings
from support.reading import only_partition, read_compacted

from walrusmq.broker.node import Node
from walrusmq.protocol.errors import KafkaError
from walrusmq.protocol.records.batch import Record, encode_batch
from walrusmq.segments.partition_folder import LOG

SEEDS = range(40)
LIVES = 4
KEYS = 8
LONGEST_LIFE_S = 0.15
CUT_OFF = (OSError, asyncio.IncompleteReadError, TimeoutError)
"""What a client sees of a node that goes away."""


class _History:
    def __init__(self, folder: Path, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.disk = CrashDisk(folder, seed)
        self.settings = settings(
            folder, monitor_check_ms=1, log_cleaner_backoff_ms=1, log_cleaner_min_cleanable_ratio=0
        )
        self.configs = {
            "cleanup_policy": "compact",
            "walrus_segment_entries": str(chance.choice([1, 3, 10])),
            "delete_retention_ms": chance.choice(["0", "100000000"]),
        }
        self.model = CompactedModel()
        self.value = 0

    async def run(self) -> None:
        async with asyncio.timeout(4 * PATIENCE_S):
            async with self._up() as node, await Wire.to(node) as wire:
                await create_topic(wire, "t", **self.configs)
            for _ in range(LIVES):
                await self._live(self.chance.choice(["stop", "kill", "power", "power in a call"]))
            async with self._up() as node:
                await self._check(node)
                await self._produce(node, 20)
                await self._check(node)

    @contextlib.asynccontextmanager
    async def _up(self) -> AsyncIterator[Node]:
        node = Node(self.settings, files=self.disk)
        await node.start()
        try:
            yield node
        finally:
            await node.stop()

    async def _live(self, end: str) -> None:
        if end == "power in a call":
            self.disk.power_off(after_calls=self.chance.randint(1, 400))
        with contextlib.suppress(OSError, KafkaError):
            async with self._up() as node:
                if end != "power in a call":
                    await self._check(node)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self.chance.random() * LONGEST_LIFE_S):
                        while not self.disk.is_off:
                            await self._produce(node, self.chance.randint(1, 30))
                            await asyncio.sleep(self.chance.choice([0, 0, 0.01]))
                if end in ("kill", "power"):
                    self.disk.power_off()
        if end == "kill":
            self.disk.restart_process()
        elif end != "stop":
            self.disk.power_on()

    async def _produce(self, node: Node, count: int) -> None:
        with contextlib.suppress(*CUT_OFF):
            async with await Wire.to(node) as wire:
                for _ in range(count):
                    records = [self._record(place) for place in range(self.chance.choice([1, 1, 3]))]
                    answer = await wire.ask(produce("t", encode_batch(records)), 9)
                    part = only_partition(answer)
                    if not part.error_code:
                        self.model.acknowledged(part.base_offset, records)

    def _record(self, place: int) -> Record:
        self.value += 1
        value = None if self.chance.random() < 0.1 else b"%d" % self.value
        record = Record(place, self.value, b"k%d" % self.chance.randrange(KEYS), value)
        self.model.sent(record)
        return record

    async def _check(self, node: Node) -> None:
        node.image.check()
        async with await Wire.to(node) as wire:
            self.model.check(await read_compacted(wire, "t"))
        folder = node.led.by_name["t"][0].log.folder
        for facts in node.image.topics_by_name["t"].partitions[0].sealed:
            assert os.path.getsize(folder.file(facts.id, LOG, facts.generation)) >= facts.size_bytes, facts  # noqa: ASYNC240


@pytest.mark.parametrize("seed", SEEDS)
def test_no_keys_last_value_is_lost(tmp_path: Path, seed: int) -> None:
    asyncio.run(_History(tmp_path, seed).run())

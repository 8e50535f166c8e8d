"""An orderly stop while many clients write and read: nothing acknowledged is lost, nobody is cut off in an answer."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path

import pytest
from support.chains import check_chain
from support.embedded import Wire, batch_of, create_topic, fetch, produce, running_node, settings
from support.reading import found_in, only_partition, read_all
from support.waiting import until

from walrusmq.broker.node import Node
from walrusmq.protocol.error_codes import ErrorCode

STOPS = 5
PRODUCERS = 16
CONSUMERS = 4
WINDOW = 8
ENTRIES_BEFORE_STOP = 500
STOP_S = 4.0
"""Well below the grace that a stop gives to clients that don't read."""


class _Load:
    """What clients got acknowledged and saw until the node went away."""

    def __init__(self) -> None:
        self.acknowledged: dict[int, bytes] = {}
        self.seen: dict[int, bytes | None] = {}
        self.count = 0
        self.cut_answers = 0

    async def write(self, node: Node) -> None:
        async with await Wire.to(node) as wire:
            try:
                while True:
                    await self._write_some(wire)
            except ConnectionError:
                return
            except asyncio.IncompleteReadError as end:
                self.cut_answers += bool(end.partial)

    async def _write_some(self, wire: Wire) -> None:
        values = []
        for _ in range(WINDOW):
            self.count += 1
            values.append(b"%d" % self.count)
            wire.send(produce("t", batch_of(values[-1])), 9)
        for value in values:
            part = only_partition(await wire.receive(produce("t", None), 9))
            if part.error_code == 0:
                assert part.base_offset not in self.acknowledged
                self.acknowledged[part.base_offset] = value
            else:
                assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER, "the only thing that a stop may answer"

    async def read(self, node: Node) -> None:
        async with await Wire.to(node) as wire:
            try:
                while True:
                    request = fetch("t", len(self.seen), max_wait_ms=1000)
                    self.seen |= dict(found_in(only_partition(await wire.ask(request, 12))))
            except ConnectionError:
                return
            except asyncio.IncompleteReadError as end:
                self.cut_answers += bool(end.partial)


def test_stops_under_load_lose_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        load = _Load()
        for _ in range(STOPS):
            node = Node(settings(tmp_path, monitor_check_ms=2))
            await node.start()
            if "t" not in node.image.topics_by_name:
                async with await Wire.to(node) as wire:
                    await create_topic(wire, "t", walrus_segment_entries="20")
            clients = [asyncio.create_task(load.write(node)) for _ in range(PRODUCERS)]
            clients += [asyncio.create_task(load.read(node)) for _ in range(CONSUMERS)]
            await until(lambda: node.metrics.entries_appended > ENTRIES_BEFORE_STOP)  # noqa: B023
            began = time.monotonic()
            await node.stop()
            assert time.monotonic() - began < STOP_S
            await asyncio.gather(*clients)
            assert all(partition.is_gone for partition in node.led)
        assert load.cut_answers == 0
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            found = await read_all(wire, "t")
            check_chain(node, "t", found)
            assert load.acknowledged.items() <= dict(found).items()
            assert load.seen.items() <= dict(found).items()
            assert len({value for _, value in found}) == len(found)

    asyncio.run(scenario())
    ours = [record for record in caplog.records if record.name.startswith("walrusmq")]
    assert [record.getMessage() for record in ours if record.levelno >= logging.WARNING] == []

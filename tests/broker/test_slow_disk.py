"""A disk whose writes stall: producers wait for it, nobody else does."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support.embedded import Wire, batch_of, create_topic, produce, running_node, until
from support.reading import only_partition, read_all

from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.api_versions import ApiVersionsRequest
from walrusmq.protocol.records.batch import Producer
from walrusmq.segments import aside as aside_module
from walrusmq.segments.files import Buffer, OsFiles

VERSION = 12
STALL_S = 0.2


class StallingFiles(OsFiles):
    """Writes to the logs of topics take `stall_s`, or wait while `gate` is not set."""

    def __init__(self) -> None:
        self.stall_s = 0.0
        self.gate = threading.Event()
        self.gate.set()
        self.loop_stalls = 0
        self._logs: set[int] = set()
        self._loop_thread = threading.get_ident()

    def open(self, path: str, /, *, create: bool = False) -> int:
        fd = super().open(path, create=create)
        (self._logs.add if "/topics/" in path and path.endswith(".log") else self._logs.discard)(fd)
        return fd

    def pwrite(self, fd: int, data: Buffer, position: int, /) -> int:  # type: ignore[override]
        if fd in self._logs:
            is_on_loop = threading.get_ident() == self._loop_thread
            self.loop_stalls += is_on_loop and self.stall_s > 0
            time.sleep(self.stall_s)
            if not is_on_loop:
                assert self.gate.wait(30)
        return super().pwrite(fd, data, position)


async def make_slow(wire: Wire, files: StallingFiles, topic: str = "t") -> None:
    """Append one batch whose write stalls the loop."""
    files.stall_s = STALL_S
    part = only_partition(await wire.ask(produce(topic, batch_of(b"first")), VERSION))
    assert (part.error_code, part.base_offset) == (0, 0)
    files.stall_s = 0.0


def test_one_stalled_write_is_all_that_the_loop_waits_for(tmp_path: Path) -> None:
    async def run() -> None:
        files = StallingFiles()
        async with (
            running_node(tmp_path, files=files) as node,
            await Wire.to(node) as wire,
            await Wire.to(node) as idle,
        ):
            await create_topic(wire, "t")
            files.stall_s = STALL_S
            longest_s = 0.0
            for number in range(4):
                wire.send(produce("t", batch_of(b"%d" % number)), VERSION)
            answers = asyncio.ensure_future(_receive(wire, 4))
            await until(lambda: node.store.aside.is_slow)
            while not answers.done():
                started = time.perf_counter()
                await idle.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
                longest_s = max(longest_s, time.perf_counter() - started)
                await asyncio.sleep(0.005)
            assert [part.base_offset for part in await answers] == [0, 1, 2, 3]
            assert files.loop_stalls == 1
            assert longest_s < STALL_S / 2
            files.stall_s = 0.0
            assert [value for _, value in await read_all(wire, "t")] == [b"0", b"1", b"2", b"3"]

    asyncio.run(run())


async def _receive(wire: Wire, count: int) -> list[Any]:
    return [only_partition(await wire.receive(produce("t", None), VERSION)) for _ in range(count)]


@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("fsync", ["batch", "interval", "never"])
def test_every_durability_and_acks_is_served_aside_and_after_it(
    tmp_path: Path, acks: int, fsync: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        files = StallingFiles()
        async with running_node(tmp_path, files=files, fsync=fsync) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            await make_slow(wire, files)
            for number in range(1, 4):
                request = produce("t", batch_of(b"x"), acks=acks)
                assert only_partition(await wire.ask(request, VERSION)).base_offset == number
            assert node.store.aside.is_active
            monkeypatch.setattr(aside_module, "CALM_S", 0.0)
            for number in range(4, 7):
                request = produce("t", batch_of(b"x"), acks=acks)
                assert only_partition(await wire.ask(request, VERSION)).base_offset == number
            assert not node.store.aside.is_active
            assert node.metrics.entries_appended == 7
            assert len(await read_all(wire, "t")) == 7

    asyncio.run(run())


def test_acks_0_keeps_its_order_and_is_held_back_as_unanswered(tmp_path: Path) -> None:
    async def run() -> None:
        files = StallingFiles()
        async with (
            running_node(tmp_path, files=files) as node,
            await Wire.to(node) as wire,
            await Wire.to(node) as reader,
        ):
            await create_topic(wire, "t")
            await make_slow(wire, files)
            files.gate.clear()
            for number in range(200):
                wire.send(produce("t", batch_of(b"%d" % number), acks=0), VERSION)
            await until(lambda: node.store.aside.waiting_batches > 0)
            assert node.store.aside.waiting_batches < 200, "what has no answer is bounded for each connection"
            files.gate.set()
            await until(lambda: node.led.by_name["t"][0].high_watermark == 201)
            read = [value for _, value in await read_all(reader, "t")]
            assert read == [b"first", *(b"%d" % number for number in range(200))]

    asyncio.run(run())


def test_an_idempotent_producer_loses_and_doubles_nothing_over_rollovers_of_a_slow_disk(tmp_path: Path) -> None:
    async def run() -> None:
        files = StallingFiles()
        async with running_node(tmp_path, files=files) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t", walrus_segment_entries="20")
            await make_slow(wire, files)
            files.stall_s = 0.001
            expected = []
            for number in range(100):
                value = b"%d" % number
                expected.append(value)
                wire.send(produce("t", batch_of(value, producer=Producer(7, 0, number))), VERSION)
            for part in await _receive(wire, 100):
                assert part.error_code == 0
            files.stall_s = 0.0
            assert len(node.led.by_name["t"][0].chain) > 1
            assert [value for _, value in await read_all(wire, "t")] == [b"first", *expected]

    asyncio.run(run())


def test_a_batch_that_waits_for_a_slow_disk_times_out_as_one_that_waits_for_its_sync(tmp_path: Path) -> None:
    async def run() -> None:
        files = StallingFiles()
        async with running_node(tmp_path, files=files) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            await make_slow(wire, files)
            files.gate.clear()
            request = produce("t", batch_of(b"late"))
            request.timeout_ms = 50
            part = only_partition(await wire.ask(request, VERSION))
            assert part.error_code == ErrorCode.REQUEST_TIMED_OUT
            files.gate.set()
            await until(lambda: node.led.by_name["t"][0].high_watermark == 2)
            assert only_partition(await wire.ask(produce("t", batch_of(b"x")), VERSION)).base_offset == 2

    asyncio.run(run())

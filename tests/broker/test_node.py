"""A node as an object in a running loop: started and stopped at will, beside others, leaving nothing behind."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import socket
import statistics
import time
import weakref
from pathlib import Path

import pytest
from support.cancelling import cancelled_at
from support.crash_disk import CrashDisk
from support.embedded import Wire, batch_of, create_topic, fetch, produce, running_node, settings
from support.leftovers import Belongings
from support.reading import read_all
from support.waiting import until

from walrusmq.broker import node as node_module
from walrusmq.broker.data_folder import FolderInUse
from walrusmq.broker.node import Node
from walrusmq.protocol.messages.api_versions import ApiVersionsRequest
from walrusmq.protocol.messages.metadata import MetadataRequest

STARTS = 100
START_S = 0.150
"""Three times what is promised: the machines of CI share their disks."""
FEWEST_SUSPENSIONS = 4
"""A start waits at least for the metadata log, for both of its ports, and for its registration."""
HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1")


async def live(folder: Path) -> None:
    """A short life with something of everything: a topic, a record there and back, a page."""
    async with running_node(folder) as node, await Wire.to(node) as wire:
        await wire.ask(MetadataRequest(topics=None), 12)
        if "t" not in node.image.topics_by_name:
            await create_topic(wire, "t")
        await wire.ask(produce("t", batch_of(b"x")), 9)
        answer = await wire.ask(fetch("t", 0), 12)
        assert answer.responses[0].partitions[0].records
        reader, writer = await asyncio.open_connection(*node.http_address)
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b"200 OK" in await reader.read()
        writer.close()
        await writer.wait_closed()


def test_a_hundred_starts_and_stops_leave_no_thread_task_socket_or_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        await live(tmp_path)
        await asyncio.sleep(0)
        before = Belongings.now()
        for _ in range(STARTS):
            await live(tmp_path)
        await asyncio.sleep(0)
        assert Belongings.now() == before

    asyncio.run(scenario())


def test_a_stopped_node_is_not_kept_in_memory(tmp_path: Path) -> None:
    async def scenario() -> None:
        await live(tmp_path)
        node = Node(settings(tmp_path))
        await node.start()
        await node.stop()
        gone = weakref.ref(node)
        del node
        await asyncio.sleep(node_module.GRAIN_S)  # a cancelled timer is kept until its time
        gc.collect()
        assert gone() is None

    asyncio.run(scenario())


def test_a_start_in_a_running_process_takes_a_blink(tmp_path: Path) -> None:
    async def scenario() -> list[float]:
        await live(tmp_path / "warm")
        took = []
        for number in range(11):
            node = Node(settings(tmp_path / f"{number}"))
            began = time.perf_counter()
            await node.start()
            took.append(time.perf_counter() - began)
            await node.stop()
        return took

    median_s = statistics.median(asyncio.run(scenario()))
    print(f"a start on a new folder takes {median_s * 1000:.1f} ms")
    assert median_s < START_S


def test_several_nodes_live_in_one_process_each_with_its_own_topics(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            running_node(tmp_path / "a") as first,
            running_node(tmp_path / "b") as second,
            running_node(tmp_path / "c") as third,
        ):
            nodes = [first, second, third]
            for number, node in enumerate(nodes):
                async with await Wire.to(node) as wire:
                    await create_topic(wire, f"topic-{number}")
                    await wire.ask(produce(f"topic-{number}", batch_of(b"%d" % number)), 9)
            assert [list(node.image.topics_by_name) for node in nodes] == [["topic-0"], ["topic-1"], ["topic-2"]]
            assert len({node.listen_address for node in nodes}) == 3
            assert len({node.cluster_id for node in nodes}) == 3

    asyncio.run(scenario())


def test_a_node_beside_another_goes_on_when_that_one_stops(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path / "a") as stays:
            async with running_node(tmp_path / "b"):
                pass
            async with await Wire.to(stays) as wire:
                assert (await wire.ask(HELLO, 3)).error_code == 0

    asyncio.run(scenario())


def test_a_second_node_on_the_same_folder_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            with pytest.raises(FolderInUse, match="this very process"):
                await Node(settings(tmp_path)).start()
            async with await Wire.to(node) as wire:
                assert (await wire.ask(HELLO, 3)).error_code == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("setting", ["listen", "http_listen"])
def test_a_start_that_fails_leaves_nothing_and_the_folder_can_be_used(tmp_path: Path, setting: str) -> None:
    async def scenario() -> None:
        await live(tmp_path)
        with socket.create_server(("127.0.0.1", 0)) as holder:
            taken = f"127.0.0.1:{holder.getsockname()[1]}"
            before = Belongings.now()
            with pytest.raises(OSError, match="in use"):
                await Node(settings(tmp_path, **{setting: taken})).start()
            await asyncio.sleep(0)
            assert Belongings.now() == before
        await live(tmp_path)

    asyncio.run(scenario())


def test_a_start_may_be_cancelled_at_any_moment(tmp_path: Path) -> None:
    async def scenario() -> None:
        await live(tmp_path)
        await asyncio.sleep(0)
        before = Belongings.now()
        for suspension in itertools.count(1):
            node = Node(settings(tmp_path))
            start = asyncio.create_task(cancelled_at(suspension, node.start()))
            (outcome,) = await asyncio.gather(start, return_exceptions=True)
            await node.stop()
            was_cancelled = isinstance(outcome, asyncio.CancelledError)
            del node, start, outcome
            await asyncio.sleep(0)
            assert Belongings.now() == before, f"cancelled where the start waits for the {suspension}. time"
            if not was_cancelled:
                break
        assert suspension > FEWEST_SUSPENSIONS
        await live(tmp_path)

    asyncio.run(scenario())


def test_a_node_may_be_stopped_twice_and_without_a_start(tmp_path: Path) -> None:
    async def scenario() -> None:
        node = Node(settings(tmp_path))
        await node.stop()
        node = Node(settings(tmp_path))
        await node.start()
        await node.stop()
        await node.stop()

    asyncio.run(scenario())


def test_a_restart_keeps_ids_and_data_and_registers_anew(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            topic_id = await create_topic(wire, "t", 3)
            await wire.ask(produce("t", batch_of(b"kept"), partition=2), 9)
            node_id, cluster_id, incarnation = node.node_id, node.cluster_id, node.incarnation
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            assert (node.node_id, node.cluster_id) == (node_id, cluster_id)
            assert node.incarnation > incarnation
            assert node.image.topics_by_name["t"].id == topic_id
            assert await read_all(wire, "t", partition=2) == [(0, b"kept")]

    asyncio.run(scenario())


def test_a_stop_answers_what_is_in_work(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        node = Node(settings(tmp_path), files=disk)
        await node.start()
        async with await Wire.to(node) as wire:
            await create_topic(wire, "t")
            with disk.held("fdatasync"):
                for number in range(5):
                    wire.send(produce("t", batch_of(b"%d" % number)), 9)
                await until(lambda: node.metrics.entries_appended == 5)
                stop = asyncio.create_task(node.stop())
                await until(lambda: node.is_stopping)
            for number in range(5):
                answer = await wire.receive(produce("t", None), 9)
                part = answer.responses[0].partition_responses[0]
                assert (part.error_code, part.base_offset) == (0, number)
            assert await wire.is_closed_by_peer()
            await stop

    asyncio.run(scenario())


def test_a_stop_answers_waiting_fetches_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        node = Node(settings(tmp_path))
        await node.start()
        async with await Wire.to(node) as wire:
            await create_topic(wire, "t")
            wire.send(fetch("t", 0, max_wait_ms=250_000), 12)
            await until(lambda: node.waiting_fetches)
            stop = asyncio.create_task(node.stop())
            answer = await wire.receive(fetch("t", 0), 12)
            assert answer.responses[0].partitions[0].error_code == 0
            await stop

    asyncio.run(scenario())


def test_a_stop_waits_only_so_long_for_a_client_that_does_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_module, "STOP_GRACE_S", 0.2)

    async def scenario() -> None:
        node = Node(settings(tmp_path))
        await node.start()
        async with await Wire.to(node) as wire, await Wire.to(node) as deaf:
            await create_topic(wire, "t")
            for _ in range(30):
                await wire.ask(produce("t", batch_of(bytes(1_000_000))), 9)
            deaf.writer.transport.pause_reading()  # type: ignore[attr-defined]
            deaf.send(fetch("t", 0, partition_max_bytes=1 << 25, max_bytes=1 << 25), 12)
            await until(lambda: any(connection.is_sending for connection in node.listener.connections))
            began = time.monotonic()
            await node.stop()
            assert time.monotonic() - began < 3
            assert not node.listener.connections

    asyncio.run(scenario())


def test_a_node_that_lost_its_disk_can_still_be_stopped(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        node = Node(settings(tmp_path), files=disk)
        await node.start()
        async with await Wire.to(node) as wire:
            await create_topic(wire, "t", walrus_segment_entries="1")
            await wire.ask(produce("t", batch_of(b"x")), 9)
            before = Belongings.now()
            disk.power_off()
            wire.send(produce("t", batch_of(b"x")), 9)
            await node.stop()
        assert not any("walrus" in thread for thread in Belongings.now().threads)
        assert len(Belongings.now().tasks) <= len(before.tasks)

    asyncio.run(scenario())


def test_stopping_takes_no_further_connections(tmp_path: Path) -> None:
    async def scenario() -> None:
        node = Node(settings(tmp_path))
        await node.start()
        await node.stop()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*node.listen_address)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*node.http_address)

    asyncio.run(scenario())


def test_a_life_without_trouble_logs_nothing_above_info(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(live(tmp_path))
    asyncio.run(live(tmp_path))
    assert [record.getMessage() for record in caplog.records if record.levelno > logging.INFO] == []

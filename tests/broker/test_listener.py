"""A listener's limits and its watch over connections, as clients come across them."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from pathlib import Path

import pytest
from support.clocks import MovedClock
from support.embedded import Wire, batch_of, create_topic, fetch, produce, running_node
from support.reading import found_in, only_partition
from support.waiting import until

from walrusmq.broker import listener
from walrusmq.broker.connection import Connection
from walrusmq.protocol.messages.api_versions import ApiVersionsRequest
from walrusmq.protocol.messages.metadata import MetadataRequest

HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_port_of_zero_is_a_free_one_that_is_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            assert node.listen_address[1] > 0
            (broker,) = (await wire.ask(MetadataRequest(topics=[]), 9)).brokers
            assert (broker.host, broker.port) == node.listen_address

    asyncio.run(scenario())


def test_it_listens_on_ipv6_too(tmp_path: Path) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")

    async def scenario() -> None:
        async with running_node(tmp_path, listen="[::1]:0") as node, await Wire.to(node) as wire:
            (broker,) = (await wire.ask(MetadataRequest(topics=[]), 9)).brokers
            assert (broker.host, broker.port) == ("::1", node.listen_address[1])

    asyncio.run(scenario())


def test_a_connection_that_ends_makes_room_for_another(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, max_connections=1) as node:
            for _ in range(5):
                async with await Wire.to(node) as wire:
                    assert (await wire.ask(HELLO, 3)).error_code == 0
                await until(lambda: not node.listener.connections)

    asyncio.run(scenario())


def test_many_refused_connections_are_one_line_a_second(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        clock = MovedClock()
        clock.monotonic = lambda: 1000.0  # type: ignore[method-assign]
        async with running_node(tmp_path, clock=clock, max_connections=1) as node, await Wire.to(node) as first:
            await first.ask(HELLO, 3)
            for _ in range(30):
                async with await Wire.to(node) as refused:
                    assert await refused.is_closed_by_peer()
            assert node.metrics.connections_refused == {"max.connections": 30}
            assert len(warnings(caplog)) == 1
            assert "max.connections is 1" in warnings(caplog)[0]

    asyncio.run(scenario())


def test_a_stop_goes_by_real_time_though_the_nodes_clock_stands_still(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = MovedClock()
        clock.monotonic = lambda: 1000.0  # type: ignore[method-assign]
        async with running_node(tmp_path, clock=clock) as node, await Wire.to(node) as deaf:
            await create_topic(deaf, "t")
            for _ in range(30):
                await deaf.ask(produce("t", batch_of(bytes(1_000_000))), 9)
            deaf.writer.transport.pause_reading()  # type: ignore[attr-defined]
            deaf.send(fetch("t", 0, partition_max_bytes=1 << 25, max_bytes=1 << 25), 12)
            await until(lambda: any(connection.is_sending for connection in node.listener.connections))
            async with asyncio.timeout(5):
                await node.listener.stop(0.1)
            assert not node.listener.connections

    asyncio.run(scenario())


def test_a_waiting_fetch_is_no_idle_connection(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, connections_max_idle_ms=100) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            data = only_partition(await wire.ask(fetch("t", 0, max_wait_ms=500), 12))
            assert (data.error_code, found_in(data)) == (0, [])
            assert (await wire.ask(HELLO, 3)).error_code == 0

    asyncio.run(scenario())


def test_a_client_that_doesnt_read_its_answers_is_dropped_in_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, connections_max_idle_ms=200) as node, await Wire.to(node) as deaf:
            await create_topic(deaf, "t")
            for _ in range(30):
                await deaf.ask(produce("t", batch_of(bytes(1_000_000))), 9)
            deaf.writer.transport.pause_reading()  # type: ignore[attr-defined]
            deaf.send(fetch("t", 0, partition_max_bytes=1 << 25, max_bytes=1 << 25), 12)
            await until(lambda: not node.listener.connections)
            assert "it doesn't read its answers" in warnings(caplog)[0]

    asyncio.run(scenario())


def test_when_memory_is_short_the_slowest_give_way_to_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "SHORT_MEMORY_PATIENCE_S", 0.05)
    monkeypatch.setattr(listener, "IDLE_CHECK_S", 0.02)

    async def scenario() -> None:
        async with running_node(tmp_path, max_buffered_bytes=4 << 20) as node:
            hungry = [await Wire.to(node) for _ in range(8)]
            for wire in hungry:
                wire.writer.write(struct.pack(">i", 50_000_000) + bytes(4 << 20))
            await until(lambda: any("max.buffered.bytes" in line for line in warnings(caplog)))
            await until(lambda: node.listener.buffered_bytes <= 4 << 20)
            async with await Wire.to(node) as wire:
                await create_topic(wire, "t")
                part = only_partition(await wire.ask(produce("t", batch_of(bytes(900_000))), 9))
                assert part.error_code == 0
            for wire in hungry:
                wire.writer.close()

    asyncio.run(scenario())


def test_all_that_was_buffered_is_given_back_when_clients_leave(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            wires = [await Wire.to(node) for _ in range(20)]
            for wire in wires:
                wire.writer.write(struct.pack(">i", 5_000_000) + bytes(100_000))
            await until(lambda: sum(connection.is_mid_frame for connection in node.listener.connections) == 20)
            assert node.listener.buffered_bytes > 0
            for wire in wires:
                wire.writer.close()
            await until(lambda: not node.listener.connections)
            assert node.listener.buffered_bytes == 0

    asyncio.run(scenario())


def test_what_comes_at_once_is_answered_at_once_and_a_failure_is_its_connections_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sent: list[int] = []
    flush = Connection.flush

    def noted(connection: Connection) -> None:
        sent.append(id(connection))
        if connection is unlucky:
            raise RuntimeError("a defect")
        flush(connection)

    unlucky: Connection | None = None

    async def scenario() -> None:
        nonlocal unlucky
        async with running_node(tmp_path) as node:
            wires = []
            for _ in range(8):
                wires.append(await Wire.to(node))
                assert (await wires[-1].ask(HELLO, 3)).error_code == 0
            unlucky = next(iter(node.listener.connections))
            monkeypatch.setattr(Connection, "flush", noted)
            for wire in wires:
                wire.send(HELLO, 3)
            answers = await asyncio.gather(*(wire.receive(HELLO, 3) for wire in wires), return_exceptions=True)
            assert sorted(isinstance(answer, Exception) for answer in answers) == [False] * 7 + [True]
            assert len(sent) == len(set(sent)) == 8, "each connection once"
            for wire in wires:
                wire.writer.close()
        (told,) = [record for record in caplog.records if record.exc_info]
        assert "a defect" in str(told.exc_info)

    asyncio.run(scenario())

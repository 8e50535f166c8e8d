"""What one client may do to a node, and what it may not."""

import asyncio
import logging
import os
import random
import struct
from pathlib import Path
from typing import Any

import pytest
from support.embedded import Wire, batch_of, create_topic, fetch, produce, running_node, until

from walrusmq.protocol.messages.api_versions import ApiVersionsRequest
from walrusmq.protocol.messages.fetch import FetchRequest
from walrusmq.protocol.messages.metadata import MetadataRequest

HELLO = ApiVersionsRequest(client_software_name="test", client_software_version="1")


async def is_served(node: Any) -> bool:
    """Whether a healthy client gets its answer."""
    async with Wire(*await asyncio.open_connection(*node.listen_address)) as wire:
        return (await wire.ask(HELLO, 3)).error_code == 0


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_pipelined_requests_are_answered_in_their_order(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            frames = [wire.frame(produce("t", batch_of(b"%d" % n)), 9) for n in range(50)]
            wire.writer.write(b"".join(frames))
            for n in range(50):
                answer = await wire.receive(produce("t", None), 9)
                assert answer.responses[0].partition_responses[0].base_offset == n

    asyncio.run(scenario())


def test_a_request_behind_a_waiting_fetch_is_answered_after_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            waiting = fetch("t", 0, max_wait_ms=300)
            wire.send(waiting, 12)
            wire.send(HELLO, 3)
            answer = await wire.receive(waiting, 12)
            assert answer.responses[0].partitions[0].records in (b"", None)
            assert (await wire.receive(HELLO, 3)).error_code == 0

    asyncio.run(scenario())


def test_a_waiting_fetch_holds_up_no_other_connection(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as waiting, await Wire.to(node) as other:
            await create_topic(other, "t")
            waiting.send(fetch("t", 0, max_wait_ms=10_000), 12)
            assert (await other.ask(HELLO, 3)).error_code == 0
            await other.ask(produce("t", batch_of(b"x")), 9)
            answer = await waiting.receive(fetch("t", 0), 12)
            assert answer.responses[0].partitions[0].high_watermark == 1

    asyncio.run(scenario())


def test_a_frame_may_come_byte_by_byte_and_in_any_pieces(tmp_path: Path) -> None:
    async def scenario() -> None:
        chance = random.Random(7)
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            data = b"".join(
                wire.frame(produce("t", batch_of(os.urandom(chance.choice((1, 3000, 40_000))))), 9) for _ in range(30)
            )
            while data:
                size = chance.choice((1, 2, 3, 5, 1000, 70_000))
                wire.writer.write(data[:size])
                await wire.writer.drain()
                await asyncio.sleep(0)
                data = data[size:]
            for n in range(30):
                answer = await wire.receive(produce("t", None), 9)
                assert answer.responses[0].partition_responses[0].base_offset == n

    asyncio.run(scenario())


def test_acks_0_gets_no_answer_and_an_error_closes_the_connection_after_earlier_answers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            wire.send(produce("t", batch_of(b"x"), acks=0), 9)
            answer = await wire.ask(produce("t", batch_of(b"y")), 9)
            assert answer.responses[0].partition_responses[0].base_offset == 1
            wire.send(HELLO, 3)
            wire.send(produce("no-such-topic", batch_of(b"x"), acks=0), 9)
            assert (await wire.receive(HELLO, 3)).error_code == 0
            assert await wire.is_closed_by_peer()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("sent", "looks_like"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100), "TLS"),
        (struct.pack(">i", 2_000_000_000) + b"x" * 100, "2000000000 bytes"),
        (struct.pack(">i", -5), "-5 bytes"),
        (struct.pack(">i", 0), "0 bytes"),
        (struct.pack(">ihhih", 10, 999, 0, 1, -1), "999"),
        (struct.pack(">ihhihx", 11, 3, 999, 1, -1), "v999"),
    ],
)
def test_what_is_no_request_closes_its_connection_with_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, sent: bytes, looks_like: str
) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            caplog.clear()
            wire.writer.write(sent)
            assert await wire.is_closed_by_peer()
            assert len(warnings(caplog)) == 1
            assert looks_like in warnings(caplog)[0]
            assert await is_served(node)

    asyncio.run(scenario())


def test_a_large_frame_that_is_refused_smuggles_nothing_in(tmp_path: Path) -> None:
    """original.md: a frame inside of an oversized payload was carried out."""

    async def scenario() -> None:
        async with running_node(tmp_path, socket_request_max_bytes=4096) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            hidden = wire.frame(produce("t", batch_of(b"smuggled")), 9)
            wire.writer.write(struct.pack(">i", 100_000) + hidden * 100)
            assert await wire.is_closed_by_peer()
            async with await Wire.to(node) as other:
                answer = await other.ask(fetch("t", 0), 12)
                assert answer.responses[0].partitions[0].high_watermark == 0

    asyncio.run(scenario())


def test_a_client_that_never_reads_is_read_no_further_and_disturbs_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire, await Wire.to(node) as deaf:
            await create_topic(wire, "t")
            for _ in range(20):
                await wire.ask(produce("t", batch_of(bytes(900_000))), 9)
            asked = deaf.frame(fetch("t", 0, partition_max_bytes=1 << 24), 12)
            deaf.writer.transport.pause_reading()  # type: ignore[attr-defined]
            for _ in range(2000):
                deaf.writer.write(asked)
            await until(lambda: any(connection.is_sending for connection in node.listener.connections))
            assert node.listener.buffered_bytes < 8 << 20
            assert await is_served(node)

    asyncio.run(scenario())


def test_an_announced_frame_costs_no_memory_until_it_comes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            wires = [await Wire.to(node) for _ in range(50)]
            for wire in wires:
                wire.writer.write(struct.pack(">ihh", 100_000_000, 0, 9))
            await until(lambda: sum(connection.is_mid_frame for connection in node.listener.connections) >= 50)
            assert node.listener.buffered_bytes <= 50 << 20
            assert await is_served(node)
            for wire in wires:
                wire.writer.close()

    asyncio.run(scenario())


def test_a_request_that_is_begun_and_not_finished_is_dropped_in_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, connections_max_idle_ms=300) as node, await Wire.to(node) as slow:
            slow.writer.write(struct.pack(">i", 1000))

            async def drip() -> None:
                for _ in range(100):
                    slow.writer.write(b"x")
                    await asyncio.sleep(0.02)

            dripping = asyncio.create_task(drip())
            assert await slow.is_closed_by_peer()
            dripping.cancel()
            assert any("not finished" in line for line in warnings(caplog))

    asyncio.run(scenario())


def test_an_idle_connection_is_closed_without_a_word(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, connections_max_idle_ms=200) as node, await Wire.to(node) as wire:
            assert await wire.is_closed_by_peer()
            assert warnings(caplog) == []

    asyncio.run(scenario())


def test_connections_beyond_the_limits_are_refused_and_counted(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, max_connections=3) as node:
            wires = [await Wire.to(node) for _ in range(3)]
            for wire in wires:
                await wire.ask(HELLO, 3)
            async with await Wire.to(node) as refused:
                assert await refused.is_closed_by_peer()
            assert node.metrics.connections_refused == {"max.connections": 1}
            assert (await wires[0].ask(HELLO, 3)).error_code == 0
            for wire in wires:
                wire.writer.close()

    asyncio.run(scenario())


def test_connections_of_one_address_are_limited_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, max_connections_per_ip=1) as node, await Wire.to(node) as first:
            await first.ask(HELLO, 3)
            async with await Wire.to(node) as refused:
                assert await refused.is_closed_by_peer()
            assert node.metrics.connections_refused == {"max.connections.per.ip": 1}

    asyncio.run(scenario())


def test_memory_for_half_received_requests_is_bounded_and_small_requests_go_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        limit = 4 << 20
        async with running_node(tmp_path, max_buffered_bytes=limit) as node:
            hungry = [await Wire.to(node) for _ in range(8)]
            for wire in hungry:
                wire.writer.write(struct.pack(">i", 50_000_000) + bytes(4 << 20))
            await until(lambda: node.listener.buffered_bytes > limit)
            assert node.listener.buffered_bytes <= 4 * limit
            assert await is_served(node)
            for wire in hungry:
                wire.writer.close()

    asyncio.run(scenario())


def test_more_unanswered_requests_than_allowed_wait_their_turn(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, max_unanswered_requests=2) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            for n in range(20):
                wire.send(produce("t", batch_of(b"%d" % n)), 9)
            for n in range(20):
                answer = await wire.receive(produce("t", None), 9)
                assert answer.responses[0].partition_responses[0].base_offset == n

    asyncio.run(scenario())


def test_random_bytes_never_hurt(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        chance = random.Random(11)
        async with running_node(tmp_path) as node:
            for _ in range(200):
                async with await Wire.to(node) as wire:
                    body = chance.randbytes(chance.randrange(8, 200))
                    wire.writer.write(struct.pack(">i", len(body)) + body)
                    wire.writer.write_eof()
                    await wire.reader.read()
            assert await is_served(node)
        assert not any(record.exc_info for record in caplog.records)

    asyncio.run(scenario())


def test_a_client_that_leaves_while_its_fetch_waits_leaves_nothing_behind(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            async with await Wire.to(node) as leaver:
                leaver.send(fetch("t", 0, max_wait_ms=250_000), 12)
                await until(lambda: bool(node.waiting_fetches))
            await until(lambda: not node.waiting_fetches)

    asyncio.run(scenario())


def test_metadata_of_a_version_from_the_future_closes_and_api_versions_answers(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            body = struct.pack(">hhih", 18, 99, 7, -1) + b"\0"
            wire.writer.write(struct.pack(">i", len(body)) + body)
            frame = await wire.receive_frame()
            correlation_id, code, count = struct.unpack_from(">ihi", frame)
            assert (correlation_id, code, count) == (7, 35, 1)
            assert struct.unpack_from(">hhh", frame, 10) == (18, 0, 5)
            assert (await wire.ask(MetadataRequest(topics=[]), 12)).brokers[0].node_id == node.node_id

    asyncio.run(scenario())


def test_an_empty_fetch_is_answered_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            answer = await wire.ask(FetchRequest(max_wait_ms=60_000, min_bytes=1), 12)
            assert answer.responses == []

    asyncio.run(scenario())

"""What one fetch may cost the node, however it is put together and whether or not its client reads."""

import asyncio
from pathlib import Path

import pytest
from support.embedded import Wire, batch_of, create_topic, fetch, produce, running_node, until

from walrusmq.broker import fetch_sessions
from walrusmq.broker.connection import REFILL_BYTES
from walrusmq.broker.fetch_sessions import FetchSessions, WantedPartition
from walrusmq.protocol.errors import FetchSessionIdNotFound
from walrusmq.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic


def wanted(topic: str) -> WantedPartition:
    return WantedPartition(topic, 0, 0, 1 << 20, -1, -1)


def test_of_a_partition_named_many_times_the_last_wish_counts(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            for value in (b"first", b"second"):
                await wire.ask(produce("t", batch_of(value)), 9)
            parts = [FetchPartition(partition=0, fetch_offset=n % 2, partition_max_bytes=1 << 20) for n in range(1000)]
            request = fetch("t", 0)
            request.topics[0].partitions = parts
            answer = await wire.ask(request, 11)
            (part,) = answer.responses[0].partitions
            assert part.records[:8] == bytes(7) + b"\x01"

    asyncio.run(scenario())


def test_small_pieces_of_many_partitions_are_not_all_read_for_a_client_that_does_not_read(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, fsync="never") as node, await Wire.to(node) as wire:
            await create_topic(wire, "t", 1000)
            batch = batch_of(bytes(30_000))
            for index in range(1000):
                wire.send(produce("t", batch, partition=index), 9)
            for _ in range(1000):
                await wire.receive_frame()
            (connection,) = node.listener.connections
            wire.writer.transport.pause_reading()
            parts = [FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=1 << 15) for n in range(1000)]
            request = FetchRequest(
                min_bytes=1, max_bytes=1 << 30, topics=[FetchTopic(topic="t", partitions=parts)], max_wait_ms=0
            )
            wire.send(request, 11)
            await until(lambda: connection.is_sending and connection._is_write_paused)
            assert connection._transport is not None
            assert connection._transport.get_write_buffer_size() <= 2 * REFILL_BYTES
            wire.writer.transport.resume_reading()
            answer = await wire.receive(request, 11)
            assert [len(part.records) for part in answer.responses[0].partitions] == [len(batch)] * 1000

    asyncio.run(scenario())


def test_a_session_that_grows_past_the_limit_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_sessions, "MAX_CACHED_PARTITIONS", 10)
    sessions = FetchSessions(5)
    session = sessions.create([wanted(f"t{n}") for n in range(8)], False, 0.0)
    assert session is not None
    sessions.advance(session.id, 1, [wanted("u1"), wanted("u2")], [], False, 1.0)
    with pytest.raises(FetchSessionIdNotFound):
        sessions.advance(session.id, 2, [wanted("u3")], [], False, 2.0)
    assert not len(sessions)
    assert sessions.create([wanted(f"t{n}") for n in range(10)], False, 3.0) is not None


def test_a_session_keeps_no_name_that_no_topic_has() -> None:
    sessions = FetchSessions(5)
    assert sessions.create([wanted("x" * 250)], False, 0.0) is None
    session = sessions.create([wanted("x" * 249)], False, 0.0)
    assert session is not None
    with pytest.raises(FetchSessionIdNotFound):
        sessions.advance(session.id, 1, [wanted("y" * 250)], [], False, 1.0)
    assert not len(sessions)

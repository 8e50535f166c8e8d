"""A client that sends more at once than is handled at once: others get their turn, and memory stays bounded."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.embedded import Wire, batch_of, create_topic, fetch, produce, running_node, until

from walrusmq.broker.clock import SystemClock
from walrusmq.broker.connection import MAX_TURN_S
from walrusmq.broker.dispatcher import Dispatcher
from walrusmq.protocol.messages.produce import ProduceRequest

REQUESTS = 300


class SlowedClock(SystemClock):
    """Each look at it finds it a millisecond later, so that requests seem to take that long at the least."""

    slowed_s = 0.0

    def monotonic(self) -> float:
        self.slowed_s += 0.001
        return super().monotonic() + self.slowed_s


@pytest.mark.parametrize("acks", [None, 0, 1])
def test_many_requests_at_once_take_no_more_than_a_turn_at_a_time(
    acks: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = 0
    handled: Counter[int] = Counter()
    handle = Dispatcher.handle

    def counted(self: Dispatcher, connection: Any, frame: memoryview) -> None:
        handled[turn] += 1
        handle(self, connection, frame)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()

        def tick() -> None:
            nonlocal turn
            turn += 1
            loop.call_soon(tick)

        async with running_node(tmp_path, clock=SlowedClock(), fsync="never") as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            monkeypatch.setattr(Dispatcher, "handle", counted)
            tick()
            request: Any = fetch("t", 0) if acks is None else produce("t", batch_of(b"x"), acks=acks)
            wire.writer.write(wire.frame(request, 12) * REQUESTS)
            for _ in range(0 if acks == 0 else REQUESTS):
                await wire.receive(request, 12)
            await until(lambda: sum(handled.values()) == REQUESTS)

    asyncio.run(scenario())
    assert max(handled.values()) <= MAX_TURN_S / 0.001 + 2


def test_a_producer_that_wants_no_answers_is_held_back_while_a_segment_is_sealed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, max_unanswered_requests=20) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            partition = node.partitions_by_name["t"][0]
            partition.stop()
            frames = [wire.frame(produce("t", batch_of(b"%d" % n), acks=0), 9) for n in range(REQUESTS)]
            wire.writer.write(b"".join(frames))
            held = node.held_appends
            await until(lambda: held.held_batches == 20 and bool(node.listener.backlog_bytes))
            wire.send(produce("t", batch_of(b"last")), 9)
            node.rollovers.begin(partition, "entries")
            answer = await wire.receive(ProduceRequest(), 9)
            assert answer.responses[0].partition_responses[0].base_offset == REQUESTS
            assert held.held_batches == held.held_bytes == node.listener.backlog_bytes == 0
            data = (await wire.ask(fetch("t", 0), 12)).responses[0].partitions[0].records
            places = [bytes(data).find(b"%d\0" % n) for n in range(100, REQUESTS)]
            assert places == sorted(places)

    asyncio.run(scenario())

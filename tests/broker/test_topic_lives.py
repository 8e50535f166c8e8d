"""Topics made and deleted under clients that write and read them, while segments roll and few files may be open."""

from __future__ import annotations

import asyncio
import logging
import random
from pathlib import Path

import pytest
from support.chains import check_chain, no_rollover
from support.embedded import Wire, batch_of, fetch, produce, running_node
from support.reading import only_partition, read_all
from support.waiting import until

from walrusmq.broker.node import Node
from walrusmq.protocol.error_codes import ErrorCode
from walrusmq.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from walrusmq.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

SEEDS = range(3)
LIVES = 2
CLIENTS = 8
STEPS = 80
PARTITIONS = 3
PIPELINED = 8

GONE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
CREATED = {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}
DELETED = {ErrorCode.NONE, GONE, ErrorCode.UNKNOWN_TOPIC_ID}
WRITTEN = {ErrorCode.NONE, GONE}
READ = {ErrorCode.NONE, GONE, ErrorCode.OFFSET_OUT_OF_RANGE}


class _Client:
    """Does one random thing after another, on one connection."""

    def __init__(self, wire: Wire, chance: random.Random) -> None:
        self._wire = wire
        self._chance = chance

    async def act(self) -> None:
        name = self._chance.choice("abc")
        match self._chance.choice(["create", "delete", "produce", "produce", "produce", "fetch", "fetch"]):
            case "create":
                await self._create(name)
            case "delete":
                request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=10_000)
                assert (await self._wire.ask(request, 6)).responses[0].error_code in DELETED
            case "produce":
                await self._produce(name)
            case "fetch":
                await self._fetch(name)

    async def _create(self, name: str) -> None:
        entries = CreatableTopicConfig(name="walrus.segment.entries", value=self._chance.choice(["1", "2", "5", "100"]))
        topic = CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1, configs=[entries])
        answer = await self._wire.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
        assert answer.topics[0].error_code in CREATED

    async def _produce(self, name: str) -> None:
        for _ in range(PIPELINED):
            partition, acks = self._chance.randrange(PARTITIONS), self._chance.choice([1, -1])
            self._wire.send(produce(name, batch_of(name.encode()), partition=partition, acks=acks), 9)
        for _ in range(PIPELINED):
            assert only_partition(await self._wire.receive(produce(name, None), 9)).error_code in WRITTEN

    async def _fetch(self, name: str) -> None:
        offset, partition = self._chance.choice([0, 0, 3, 20]), self._chance.randrange(PARTITIONS)
        how = self._chance.choice([{}, {"max_wait_ms": 5, "min_bytes": 1 << 20}])
        assert (
            only_partition(await self._wire.ask(fetch(name, offset, partition=partition, **how), 12)).error_code in READ
        )


async def live(node: Node, seed: int) -> None:
    async def be_a_client(number: int) -> None:
        async with await Wire.to(node) as wire:
            client = _Client(wire, random.Random(seed * 1000 + number))
            for _ in range(STEPS):
                await client.act()

    await asyncio.gather(*(be_a_client(number) for number in range(CLIENTS)))


async def check(node: Node, folder: Path) -> None:
    """What can be read is what the image says, each topic has only its own, and nothing is left of those deleted."""
    await no_rollover(node)
    async with await Wire.to(node) as wire:
        for name in node.image.topics_by_name:
            for partition in range(PARTITIONS):
                found = await read_all(wire, name, partition=partition)
                assert {value for _, value in found} <= {name.encode()}
                check_chain(node, name, found, partition)
    ids = {topic_id.hex() for topic_id in node.image.topics}
    await until(lambda: {path.name.split("-")[0] for path in (folder / "topics").iterdir()} <= ids)


@pytest.mark.parametrize("seed", SEEDS)
def test_topics_come_and_go_under_their_clients(tmp_path: Path, caplog: pytest.LogCaptureFixture, seed: int) -> None:
    async def scenario() -> None:
        for life in range(LIVES):
            async with running_node(tmp_path, monitor_check_ms=3, max_open_files=16) as node:
                await live(node, seed * LIVES + life)
                await check(node, tmp_path)

    asyncio.run(scenario())
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []

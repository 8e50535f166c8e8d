"""A node in the test's own event loop, and an asyncio client that sends requests as they go over the wire."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from walrusmq.broker.node import Node
from walrusmq.broker.settings import Settings
from walrusmq.protocol.codec import codec
from walrusmq.protocol.frames import request_header_version, response_header_version
from walrusmq.protocol.messages import API_BY_KEY
from walrusmq.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from walrusmq.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from walrusmq.protocol.messages.headers import RequestHeader, ResponseHeader
from walrusmq.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from walrusmq.protocol.records.batch import Record, encode_batch
from walrusmq.protocol.schema import schema_of

PATIENCE_S = 15.0


def settings(folder: Path, **given: Any) -> Settings:
    """Settings of a node on free ports; ``given`` has underscores for dots."""
    ports = {"listen": "127.0.0.1:0", "internal.listen": "127.0.0.1:0", "http.listen": "127.0.0.1:0"}
    named = {name.replace("_", "."): str(value) for name, value in given.items()}
    return Settings.load({**ports, "data.dir": str(folder), **named})


@asynccontextmanager
async def running_node(folder: Path, *, files: Any = None, clock: Any = None, **given: Any) -> AsyncIterator[Node]:
    """A started node, stopped at the end."""
    node = Node(settings(folder, **given), files=files, clock=clock)
    await node.start()
    try:
        yield node
    finally:
        await node.stop()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that nothing announces."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


class Wire:
    """One connection to a node. Every wait is bounded."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._correlation_id = 0

    @classmethod
    async def to(cls, node: Node) -> Wire:
        return cls(*await asyncio.open_connection(*node.listen_address, limit=1 << 27))

    async def __aenter__(self) -> Wire:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def ask(self, request: Any, version: int) -> Any:
        """Send a request and return its decoded answer."""
        self.send(request, version)
        return await self.receive(request, version)

    def send(self, request: Any, version: int) -> None:
        self.writer.write(self.frame(request, version))

    def frame(self, request: Any, version: int) -> bytes:
        """A request's whole frame."""
        key = schema_of(type(request)).api_key
        assert key is not None
        self._correlation_id += 1
        header = RequestHeader(api_key=key, api_version=version, correlation_id=self._correlation_id, client_id="test")
        body = codec(RequestHeader, request_header_version(key, version)).encode(header)
        body += codec(type(request), version).encode(request)
        return struct.pack(">i", len(body)) + body

    async def receive(self, request: Any, version: int) -> Any:
        """The answer to the oldest unanswered request, which was ``request``."""
        key = schema_of(type(request)).api_key
        assert key is not None
        frame = await self.receive_frame()
        header, end = codec(ResponseHeader, response_header_version(key, version)).decode(frame, 0)
        self.last_correlation_id = header.correlation_id
        response, end = codec(API_BY_KEY[key].response, version).decode(frame, end)
        assert end == len(frame)
        return response

    async def receive_frame(self) -> bytes:
        async with asyncio.timeout(PATIENCE_S):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            return await self.reader.readexactly(size)

    async def is_closed_by_peer(self) -> bool:
        """Wait until the node closes the connection; False if it sends something instead."""
        async with asyncio.timeout(PATIENCE_S):
            try:
                return await self.reader.read(1) == b""
            except ConnectionResetError:
                return True

    async def is_silent(self, seconds: float) -> bool:
        """Whether nothing comes for so long."""
        try:
            async with asyncio.timeout(seconds):
                return await self.reader.read(1) == b""
        except TimeoutError:
            return True


async def create_topic(wire: Wire, name: str, partitions: int = 1, **configs: str) -> bytes:
    """Make a topic; returns its id."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )
    answer = await wire.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
    assert answer.topics[0].error_code == 0, answer.topics[0].error_message
    topic_id: bytes = answer.topics[0].topic_id
    return topic_id


def batch_of(*values: bytes, **how: Any) -> bytes:
    """A batch of records with these values; ``how`` goes to ``encode_batch``."""
    return encode_batch(
        [Record(offset, 1_700_000_000_000, None, value, ()) for offset, value in enumerate(values)], **how
    )


def produce(
    topic: str, batch: bytes | None, *, partition: int = 0, acks: int = -1, timeout_ms: int = 10_000
) -> ProduceRequest:
    """A Produce request with one batch, for versions 3 to 12."""
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[data])


def fetch(
    topic: str, offset: int, *, partition: int = 0, max_wait_ms: int = 0, min_bytes: int = 1, **more: Any
) -> FetchRequest:
    """A Fetch request for one partition, for versions 4 to 12."""
    wanted = FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=more.pop("partition_max_bytes", 1 << 20)
    )
    return FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=min_bytes, topics=[FetchTopic(topic=topic, partitions=[wanted])], **more
    )

"""As little of a node as handlers need: a real cluster image, to which proposals are applied at once."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass, field
from typing import Any

from walrusmq.broker.commands import CommandListener, RegisterNode, decode_command, encode_command
from walrusmq.broker.config_locks import ConfigLocks
from walrusmq.broker.dispatcher import EncodedResponse
from walrusmq.broker.image import ClusterImage
from walrusmq.broker.image_cache import MAX_ENCODED_ANSWERS, ImageCache
from walrusmq.broker.producer_ids import ProducerIds
from walrusmq.broker.settings import Settings
from walrusmq.protocol.codec import codec
from walrusmq.protocol.errors import FencedLeaderEpoch, KafkaError, UnknownLeaderEpoch
from walrusmq.protocol.messages import API_BY_KEY
from walrusmq.protocol.schema import schema_of


@dataclass(slots=True)
class FakeConnection:
    listener_name: str = "CLIENT"
    local_host: str = "10.0.0.1"
    local_port: int = 9092
    software: str = ""


@dataclass(slots=True)
class FakeContext:
    node: FakeNode
    api_version: int
    connection: FakeConnection = field(default_factory=FakeConnection)
    client_id: str | None = "test"


@dataclass(slots=True)
class FakePartition:
    """What ListOffsets and OffsetForLeaderEpoch ask of a partition."""

    log_start_offset: int = 0
    high_watermark: int = 0
    log_end_offset: int = 0
    leader_epoch: int = 0
    records: list[tuple[int, int]] = field(default_factory=list)
    """Timestamp and offset of each record."""
    epoch_ends: dict[int, tuple[int, int]] = field(default_factory=dict)

    def check_leader_epoch(self, current: int) -> None:
        if 0 <= current < self.leader_epoch:
            raise FencedLeaderEpoch("old")
        if current > self.leader_epoch:
            raise UnknownLeaderEpoch("new")

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int] | None:
        return next((record for record in self.records if record[0] >= timestamp), None)

    def max_timestamp(self) -> tuple[int, int] | None:
        return max(self.records, key=lambda record: (record[0], -record[1]), default=None)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int] | None:
        return self.epoch_ends.get(epoch)


class FakeNode:
    """Node 1 of a cluster; ``join`` adds others."""

    def __init__(self, **settings: Any) -> None:
        self.node_id = 1
        self.cluster_id = "WalrusMQ-test-cluster1"
        self.settings = Settings(**settings)
        self.image = ClusterImage()
        self.producer_ids = ProducerIds()
        self.config_locks = ConfigLocks()
        self.metadata_entries: ImageCache[Any] = ImageCache(self.image)
        self.encoded_answers: ImageCache[EncodedResponse] = ImageCache(self.image, MAX_ENCODED_ANSWERS)
        self.partitions_by_name: dict[str, dict[int, FakePartition]] = {}
        self.refusals: list[KafkaError] = []
        """What the next proposals raise instead of being applied."""
        self.proposed: list[Any] = []
        self.hold: asyncio.Event | None = None
        """Proposals wait for it, if there is one."""
        self.incarnation = self.join(1)

    def apply(self, command: Any) -> Any:
        return self.image.apply(self.image.applied_index + 1, decode_command(encode_command(command)))

    def join(self, node_id: int, rack: str | None = None, **listeners: tuple[str, int]) -> int:
        registered = [CommandListener(name=name, host=host, port=port) for name, (host, port) in listeners.items()]
        incarnation: int = self.apply(RegisterNode(node_id=node_id, rack=rack, listeners=registered))
        return incarnation

    async def propose(self, command: Any) -> Any:
        self.proposed.append(command)
        refusal = self.refusals.pop(0) if self.refusals else None
        if self.hold is not None:
            await self.hold.wait()
        else:
            await asyncio.sleep(0)
        if refusal is not None:
            raise refusal
        return self.apply(command)

    def advertised_address(self, connection: FakeConnection) -> tuple[str, int]:
        return connection.local_host, connection.local_port


def answer(handler: Any, request: Any, node: FakeNode, version: int, **connection: Any) -> Any:
    """What a handler answers to a request, both as they go over the wire in this version."""
    context = FakeContext(node, version, FakeConnection(**connection))
    request_codec = codec(type(request), version)
    received, _ = request_codec.decode(request_codec.encode(request))
    outcome = handler(received, context)
    response = asyncio.run(outcome) if inspect.iscoroutine(outcome) else outcome
    body = response.body if isinstance(response, EncodedResponse) else codec(type(response), version).encode(response)
    sent, end = codec(API_BY_KEY[schema_of(type(request)).api_key].response, version).decode(body)
    assert end == len(body)
    return sent

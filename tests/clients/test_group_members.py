"""What members of groups see of one another: static members, groups beside groups, foreign protocols."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from confluent_kafka import Consumer, Producer
from support.broker_process import BrokerProcess
from support.raw_client import RawClient
from support.topics import make_topic

from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.describe_groups import DescribeGroupsRequest
from walrusmq.protocol.messages.find_coordinator import FindCoordinatorRequest
from walrusmq.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from walrusmq.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

PATIENCE_S = 20.0
POLL_MS = 100
RECORDS = 100
DESCRIBE_VERSION, FIND_VERSION, JOIN_VERSION, SYNC_VERSION = 6, 6, 9, 5


def produce(broker: BrokerProcess, topic: str) -> list[bytes]:
    values = [b"%d" % number for number in range(RECORDS)]
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(PATIENCE_S) == 0
    return values


@asynccontextmanager
async def static_member(broker: BrokerProcess, topic: str, instance: str) -> AsyncIterator[AIOKafkaConsumer]:
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=broker.bootstrap,
        group_id="static",
        group_instance_id=instance,
        session_timeout_ms=10_000,
        heartbeat_interval_ms=200,
    )
    await consumer.start()
    yield consumer
    await consumer.stop()


async def shared_out(*members: AIOKafkaConsumer) -> None:
    """Wait until each of the members has partitions."""
    async with asyncio.timeout(PATIENCE_S):
        while not all(member.assignment() for member in members):
            await asyncio.gather(*(member.getmany(timeout_ms=POLL_MS) for member in members))


async def restart_a_static_member(broker: BrokerProcess, topic: str) -> None:
    async with static_member(broker, topic, "stays") as stays:
        async with static_member(broker, topic, "restarts") as goes:
            await shared_out(stays, goes)
            owned: dict[str, set[TopicPartition]] = {"stays": stays.assignment(), "restarts": goes.assignment()}
            generation = goes._coordinator.generation
        async with static_member(broker, topic, "restarts") as back:
            await shared_out(stays, back)
            assert {"stays": stays.assignment(), "restarts": back.assignment()} == owned
            assert (stays._coordinator.generation, back._coordinator.generation) == (generation, generation)


def test_a_static_member_comes_back_to_the_same_partitions_in_the_same_generation(broker: BrokerProcess) -> None:
    """C21."""
    asyncio.run(restart_a_static_member(broker, make_topic(broker, partitions=4)))


async def read_all_asynchronously(broker: BrokerProcess, topic: str) -> list[bytes]:
    values: list[bytes] = []
    async with (
        asyncio.timeout(PATIENCE_S),
        AIOKafkaConsumer(
            topic, bootstrap_servers=broker.bootstrap, group_id="aiokafka", auto_offset_reset="earliest"
        ) as consumer,
    ):
        while len(values) < RECORDS:
            for records in (await consumer.getmany(timeout_ms=POLL_MS)).values():
                values += [record.value for record in records]
    return values


def read_all(broker: BrokerProcess, topic: str) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "confluent", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    messages = consumer.consume(RECORDS, PATIENCE_S)
    consumer.close()
    return [message.value() for message in messages]


async def read_twice(broker: BrokerProcess, topic: str) -> list[list[bytes]]:
    return await asyncio.gather(read_all_asynchronously(broker, topic), asyncio.to_thread(read_all, broker, topic))


def test_two_groups_each_read_all_of_a_topic(broker: BrokerProcess, topic: str) -> None:
    """C40, of groups: with fakes, only the first group got the records."""
    values = produce(broker, topic)
    assert asyncio.run(read_twice(broker, topic)) == [values, values]


def join(client: RawClient, group: str, member_id: str, metadata: bytes) -> JoinGroupResponse:
    """Join with the protocol of schema registries; a member without an id is given one first (KIP-394)."""
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="sr",
        protocols=[JoinGroupRequestProtocol(name="v0", metadata=metadata)],
    )
    answer = client.ask(request, JOIN_VERSION)
    assert isinstance(answer, JoinGroupResponse)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        return join(client, group, answer.member_id, metadata)
    assert answer.error_code == ErrorCode.NONE
    return answer


@pytest.mark.parametrize("metadata", [b"", bytes(range(256))])
def test_a_group_of_a_foreign_protocol_passes_bytes_through(broker: BrokerProcess, metadata: bytes) -> None:
    """C17: schema registries choose their leader so."""
    assignment = metadata[::-1]
    group = f"registry-{len(metadata)}"
    with RawClient(broker.bootstrap) as client:
        client.ask(FindCoordinatorRequest(coordinator_keys=[group]), FIND_VERSION)
        joined = join(client, group, "", metadata)
        assert (joined.protocol_type, joined.protocol_name) == ("sr", "v0")
        assert [member.metadata for member in joined.members] == [metadata]
        request = SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type="sr",
            protocol_name="v0",
            assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)],
        )
        synced = client.ask(request, SYNC_VERSION)
        assert (synced.error_code, synced.assignment) == (ErrorCode.NONE, assignment)
        (described,) = client.ask(DescribeGroupsRequest(groups=[group]), DESCRIBE_VERSION).groups
        assert (described.protocol_type, described.group_state) == ("sr", "Stable")
        assert described.members[0].member_assignment == assignment

"""Lag as tools work it out, by admin calls: what a group has committed, and where its partitions end."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from support.broker_process import BrokerProcess
from support.topics import make_topic

TIMEOUT_S = 30.0
RECORDS = 100
READINGS = 300


@pytest.fixture
def admin(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def fill(broker: BrokerProcess, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(TIMEOUT_S) == 0


def consumer(broker: BrokerProcess, group: str, **config: object) -> Consumer:
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    return Consumer({**settings, "enable.auto.commit": False, **config})


def end(admin: AdminClient, topic: str) -> int:
    partition = TopicPartition(topic, 0)
    offset: int = admin.list_offsets({partition: OffsetSpec.latest()})[partition].result(TIMEOUT_S).offset
    return offset


def lag(admin: AdminClient, group: str, topic: str) -> int:
    """The commit is read before the end, so that what comes in between makes it larger, never negative."""
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])
    committed = admin.list_consumer_group_offsets([wanted])[group].result(TIMEOUT_S).topic_partitions[0].offset
    return end(admin, topic) - max(committed, 0)


def test_a_group_that_nobody_is_in_keeps_its_lag(broker: BrokerProcess, admin: AdminClient) -> None:
    """C38: 10 of 100 committed, the consumer closed."""
    topic = make_topic(broker)
    fill(broker, topic, RECORDS)
    member = consumer(broker, "left")
    member.subscribe([topic])
    seen = 0
    while seen < RECORDS:
        seen += len(member.consume(RECORDS, 1.0))
    member.commit(offsets=[TopicPartition(topic, 0, 10)], asynchronous=False)
    member.close()
    (described,) = admin.describe_consumer_groups(["left"]).values()
    assert described.result(TIMEOUT_S).state is ConsumerGroupState.EMPTY
    assert lag(admin, "left", topic) == RECORDS - 10
    assert "left" in [group.group_id for group in admin.list_consumer_groups().result(TIMEOUT_S).valid]


def test_the_lag_of_a_group_at_work_is_never_negative_and_ends_at_0(broker: BrokerProcess, admin: AdminClient) -> None:
    """C38: a consumer commits as fast as it reads, while a producer writes."""
    topic = make_topic(broker)
    is_over, is_all_written = threading.Event(), threading.Event()

    def write() -> None:
        while not is_over.is_set():
            fill(broker, topic, 20)

    def read() -> None:
        member = consumer(broker, "works")
        member.assign([TopicPartition(topic, 0, 0)])
        while not is_all_written.is_set() or member.position([TopicPartition(topic, 0)])[0].offset < end(admin, topic):
            if member.consume(50, 0.05):
                member.commit(asynchronous=False)
        member.close()

    with ThreadPoolExecutor(2) as threads:
        writer, reader = threads.submit(write), threads.submit(read)
        try:
            readings = [lag(admin, "works", topic) for _ in range(READINGS)]
        finally:
            is_over.set()
            writer.exception(TIMEOUT_S)
            is_all_written.set()
        writer.result(TIMEOUT_S)
        reader.result(TIMEOUT_S)
    assert min(readings) >= 0
    assert max(readings) > 0, "there was something to read"
    assert lag(admin, "works", topic) == 0

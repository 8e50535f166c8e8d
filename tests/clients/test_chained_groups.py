"""Three groups in a chain whose members come and go (C17): each with another way of sharing out partitions."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from support.broker_process import BrokerProcess
from support.topics import make_topic

PATIENCE_S = 60.0
PARTITIONS = 4
MAX_MEMBERS = 3
POLL_S = 0.1
RECORDS_PER_S = 200
CHANGES_PER_S = 3
#: What a live member may be told at a commit: a rebalance has begun, or is over, since it last polled.
REBALANCED = {KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION, KafkaError._ASSIGNMENT_LOST}
#: Each group's own settings.
WAYS: dict[str, dict[str, Any]] = {
    "range": {"partition.assignment.strategy": "range"},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky"},
    "static": {"partition.assignment.strategy": "range"},
}


class Worker:
    """A member in a thread of its own: it reads a topic, writes what it read to the next one, then commits."""

    def __init__(self, bootstrap: str, group: str, source: str, target: str, instance: str | None) -> None:
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 200,
            **WAYS[group],
        }
        if instance:
            settings["group.instance.id"] = instance
        self.instance = instance
        self.failure: Exception | None = None
        self._consumer = Consumer(settings)
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        self._target = target
        self._is_leaving = threading.Event()
        self._has_to_commit = False
        self._consumer.subscribe([source])
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def _live(self) -> None:
        try:
            while not self._is_leaving.is_set():
                self._pass_on()
            self._consumer.close()
        except Exception as failure:
            self.failure = failure

    def _pass_on(self) -> None:
        messages = self._consumer.consume(200, POLL_S)
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
            self._producer.produce(self._target, message.value())
        assert self._producer.flush(PATIENCE_S) == 0
        self._has_to_commit = bool(messages) or self._has_to_commit
        if self._has_to_commit:
            self._commit()

    def _commit(self) -> None:
        """Commit; after a rebalance again, since in a cooperative one the member goes on with what it keeps."""
        try:
            self._consumer.commit(asynchronous=False)
            self._has_to_commit = False
        except KafkaException as error:
            if error.args[0].code() == KafkaError._NO_OFFSET:
                self._has_to_commit = False
            elif error.args[0].code() not in REBALANCED:
                raise

    def leave(self) -> None:
        self._is_leaving.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        if self.failure is not None:
            raise self.failure


class Stage:
    """A group between two topics, of one to three workers."""

    def __init__(self, bootstrap: str, group: str, source: str, target: str) -> None:
        self.group, self.source = group, source
        self._start: Callable[[str | None], Worker] = lambda instance: Worker(
            bootstrap, group, source, target, instance
        )
        self._workers: list[Worker] = []

    def grows(self) -> None:
        taken = {worker.instance for worker in self._workers}
        free = next(name for name in ("a", "b", "c") if name not in taken)
        self._workers.append(self._start(free if self.group == "static" else None))

    def changes(self, chance: random.Random) -> None:
        if len(self._workers) == 1 or (len(self._workers) < MAX_MEMBERS and chance.random() < 0.5):
            self.grows()
        else:
            self._workers.pop(chance.randrange(len(self._workers))).leave()

    def ends(self) -> None:
        while self._workers:
            self._workers.pop().leave()


def values_of(bootstrap: str, topic: str, expected: set[bytes]) -> set[bytes]:
    """Read the topic until all that's expected has come, or nothing comes for long."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    seen: set[bytes] = set()
    deadline = time.monotonic() + PATIENCE_S
    while not seen >= expected and time.monotonic() < deadline:
        seen.update(message.value() for message in consumer.consume(1000, POLL_S))
    consumer.close()
    return seen


def lags(bootstrap: str, group: str, topic: str) -> list[int]:
    """What the group has still to read, by partition."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    partitions = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    ends = admin.list_offsets({partition: OffsetSpec.latest() for partition in partitions})
    wanted = ConsumerGroupTopicPartitions(group, partitions)
    committed = admin.list_consumer_group_offsets([wanted])[group].result(PATIENCE_S).topic_partitions
    return [
        ends[partition].result(PATIENCE_S).offset - found.offset
        for partition, found in zip(partitions, committed, strict=True)
    ]


def catch_up(bootstrap: str, stage: Stage) -> None:
    """Wait until the group has committed all that there is."""
    deadline = time.monotonic() + PATIENCE_S
    while any(behind := lags(bootstrap, stage.group, stage.source)):
        assert time.monotonic() < deadline, f"{stage.group} is behind by {behind}"
        time.sleep(POLL_S)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [8, pytest.param(60, marks=[pytest.mark.soak, pytest.mark.timeout(240)])])
def test_nothing_is_lost_on_its_way_through_groups_whose_members_come_and_go(
    broker: BrokerProcess, seconds: int
) -> None:
    """C17: no live member is told that it is unknown, and what is committed was passed on."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    topics = [make_topic(broker, PARTITIONS, walrus_segment_entries="1000") for _ in range(len(WAYS) + 1)]
    stages = [
        Stage(broker.bootstrap, group, source, target)
        for group, source, target in zip(WAYS, topics, topics[1:], strict=False)
    ]
    for stage in stages:
        stage.grows()
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    sent: set[bytes] = set()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(RECORDS_PER_S // CHANGES_PER_S):
            value = b"%d" % len(sent)
            producer.produce(topics[0], value)
            sent.add(value)
        assert producer.flush(PATIENCE_S) == 0
        chance.choice(stages).changes(chance)
        time.sleep(chance.random() / CHANGES_PER_S)
    assert values_of(broker.bootstrap, topics[-1], sent) == sent
    for stage in stages:
        # what a rebalance kept from being committed comes again
        catch_up(broker.bootstrap, stage)
        stage.ends()
        assert lags(broker.bootstrap, stage.group, stage.source) == [0] * PARTITIONS

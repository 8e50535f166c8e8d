"""Consumer groups of real clients: their first record, members that come and go, commits over restarts."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient
from support.broker_process import BrokerProcess, StartBroker
from support.topics import make_topic

PATIENCE_S = 20.0
FIRST_RECORD_S = 0.5


def consumer(bootstrap: str, group: str, **config: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **config,
        }
    )


def produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(PATIENCE_S) == 0


def poll_until(consumers: list[Consumer], done: Callable[[], bool], seen: list[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline, f"after {len(seen)} records"
        for each in consumers:
            message = each.poll(0.05)
            if message is not None:
                assert message.error() is None
                seen.append(message.value())


def test_the_first_record_comes_soon_after_subscribing(broker: BrokerProcess) -> None:
    topic = make_topic(broker)
    produce(broker.bootstrap, topic, [b"one"])
    warm = consumer(broker.bootstrap, "warm")
    warm.subscribe([topic])
    poll_until([warm], lambda: bool(seen), seen := [])
    warm.close()
    member = consumer(broker.bootstrap, "soon")
    started = time.monotonic()
    member.subscribe([topic])
    poll_until([member], lambda: bool(seen), seen := [])
    assert time.monotonic() - started < FIRST_RECORD_S
    member.close()


def test_members_share_partitions_and_take_over_from_those_that_leave(broker: BrokerProcess) -> None:
    topic = make_topic(broker, partitions=4)
    members = [consumer(broker.bootstrap, "shared") for _ in range(2)]
    for member in members:
        member.subscribe([topic])
    seen: list[bytes] = []
    poll_until(members, lambda: [len(member.assignment()) for member in members] == [2, 2], seen)
    values = [str(i).encode() for i in range(200)]
    produce(broker.bootstrap, topic, values)
    poll_until(members, lambda: len(seen) >= len(values), seen)
    assert sorted(seen) == sorted(values)
    for member in members:
        member.commit(asynchronous=False)
    members.pop().close()
    poll_until(members, lambda: len(members[0].assignment()) == 4, seen)
    produce(broker.bootstrap, topic, [b"last"])
    poll_until(members, lambda: b"last" in seen, seen)
    assert sorted(seen) == sorted([*values, b"last"])
    members[0].close()


def test_committed_offsets_are_there_after_a_kill(start_broker: StartBroker) -> None:
    broker = start_broker()
    topic = make_topic(broker)
    produce(broker.bootstrap, topic, [str(i).encode() for i in range(20)])
    member = consumer(broker.bootstrap, "kept", **{"session.timeout.ms": 6000})
    member.subscribe([topic])
    seen: list[bytes] = []
    poll_until([member], lambda: len(seen) >= 7, seen)
    position = member.position(member.assignment())[0].offset
    member.commit(asynchronous=False)
    broker.kill()
    member.close()
    broker.start()
    again = consumer(broker.bootstrap, "kept")
    again.subscribe([topic])
    rest: list[bytes] = []
    poll_until([again], lambda: len(rest) == 20 - position, rest)
    assert rest == [str(i).encode() for i in range(position, 20)]
    again.close()


def test_admin_calls_list_describe_and_delete_a_group(broker: BrokerProcess) -> None:
    topic = make_topic(broker)
    produce(broker.bootstrap, topic, [b"one"])
    member = consumer(broker.bootstrap, "managed")
    member.subscribe([topic])
    poll_until([member], lambda: bool(seen), seen := [])
    member.commit(asynchronous=False)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    described = admin.describe_consumer_groups(["managed"])["managed"].result(PATIENCE_S)
    assert described.state.name == "STABLE"
    assert [partition.topic for partition in described.members[0].assignment.topic_partitions] == [topic]
    member.close()
    listed = admin.list_consumer_groups().result(PATIENCE_S)
    assert "managed" in [group.group_id for group in listed.valid]
    wanted = [ConsumerGroupTopicPartitions("managed")]
    offsets = admin.list_consumer_group_offsets(wanted)["managed"].result(PATIENCE_S)
    assert [(each.topic, each.offset) for each in offsets.topic_partitions] == [(topic, 1)]
    admin.delete_consumer_groups(["managed"])["managed"].result(PATIENCE_S)
    listed = admin.list_consumer_groups().result(PATIENCE_S)
    assert "managed" not in [group.group_id for group in listed.valid]

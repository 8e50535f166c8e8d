"""The first consumer group of a new node: nothing to set, nothing to wait for."""

from __future__ import annotations

import time

import pytest
from clients.compat.programs import CLIENTS, NotHere, Verdict, Workshop, measured
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, ConfigResource
from support.broker_process import BrokerProcess, StartBroker

PATIENCE_S = 20.0
FIRST_RECORD_S = 0.5
INTERNAL_TOPIC = "__consumer_offsets"


@pytest.mark.slow
@pytest.mark.timeout(800)
@pytest.mark.parametrize("name", ["confluent-kafka", "Java", "aiokafka"])
def test_the_first_group_of_a_new_node_reads_within_a_second(
    start_broker: StartBroker, workshop: Workshop, name: str
) -> None:
    """C03: where internal topics want three replicas, groups hang on one node without a word."""
    broker = start_broker()
    try:
        command = workshop.command(CLIENTS[name])
    except NotHere as reason:
        pytest.skip(str(reason))
    outcome = measured(command, broker.bootstrap, "first")
    assert outcome.verdict is Verdict.PASS, outcome.remark
    topics = AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=PATIENCE_S).topics
    replicas = {len(partition.replicas) for partition in topics[INTERNAL_TOPIC].partitions.values()}
    assert replicas == {1}


def read_first(bootstrap: str, topic: str, group: str) -> float:
    """Seconds from subscribing to the first record."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    started = time.monotonic()
    consumer.subscribe([topic])
    message = consumer.poll(PATIENCE_S)
    took_s = time.monotonic() - started
    assert message is not None
    assert message.error() is None
    consumer.close()
    return took_s


def test_no_group_waits_for_members_that_may_come(broker: BrokerProcess, topic: str) -> None:
    """C04: Kafka's default is to wait three seconds."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, b"one")
    assert producer.flush(PATIENCE_S) == 0
    assert min(read_first(broker.bootstrap, topic, group) for group in ("cold", "warm")) < FIRST_RECORD_S
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    (node,) = admin.list_topics(timeout=PATIENCE_S).brokers
    resource = ConfigResource(ConfigResource.Type.BROKER, str(node))
    configs = admin.describe_configs([resource])[resource].result(PATIENCE_S)
    assert configs["group.initial.rebalance.delay.ms"].value == "0"


def test_a_group_reads_a_topic_that_is_made_after_it_subscribed_by_pattern(broker: BrokerProcess) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "early",
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 100,
        }
    )
    consumer.subscribe(["^made-later-.*"])
    nothing = consumer.poll(PATIENCE_S)
    assert nothing is not None
    assert nothing.error().code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce("made-later-by-producing", b"one")
    assert producer.flush(PATIENCE_S) == 0
    message = consumer.poll(PATIENCE_S)
    assert message is not None
    assert message.value() == b"one"
    consumer.close()

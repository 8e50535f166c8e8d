"""The admin clients of confluent-kafka and kafka-python: partitions, records, sizes, producers, what there isn't."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
)
from kafka import KafkaAdminClient
from kafka.structs import TopicPartition as PythonPartition
from support.broker_process import BrokerProcess

from walrusmq.protocol.errors import ErrorCode

TIMEOUT_S = 30.0
RECORDS = 10


@pytest.fixture
def confluent(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


@pytest.fixture
def python(broker: BrokerProcess) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield client
    client.close()


def fill(broker: BrokerProcess, topic: str, **config: Any) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, **config})
    for number in range(RECORDS):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(TIMEOUT_S) == 0


def watermarks(broker: BrokerProcess, topic: str) -> tuple[int, int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "none"})
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_S)
    consumer.close()
    return low, high


def test_confluent_kafka_gives_a_topic_more_partitions(
    broker: BrokerProcess, topic: str, confluent: AdminClient
) -> None:
    confluent.create_partitions([NewPartitions(topic, 4)])[topic].result(TIMEOUT_S)
    assert len(confluent.list_topics(topic, TIMEOUT_S).topics[topic].partitions) == 4
    with pytest.raises(KafkaException) as refused:
        confluent.create_partitions([NewPartitions(topic, 2)])[topic].result(TIMEOUT_S)
    assert refused.value.args[0].code() == ErrorCode.INVALID_PARTITIONS


def test_confluent_kafka_deletes_records(broker: BrokerProcess, topic: str, confluent: AdminClient) -> None:
    fill(broker, topic)
    (future,) = confluent.delete_records([TopicPartition(topic, 0, 4)]).values()
    assert future.result(TIMEOUT_S).low_watermark == 4
    assert watermarks(broker, topic) == (4, RECORDS)


def test_confluent_kafka_is_told_that_there_are_no_acls(confluent: AdminClient) -> None:
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    # librdkafka makes no error of SECURITY_DISABLED here, with Kafka neither
    assert confluent.describe_acls(everything).result(TIMEOUT_S) == []
    binding = AclBinding(
        ResourceType.TOPIC, "t", ResourcePatternType.LITERAL, "User:a", "*", AclOperation.READ, AclPermissionType.ALLOW
    )
    with pytest.raises(KafkaException) as refused:
        confluent.create_acls([binding])[binding].result(TIMEOUT_S)
    assert refused.value.args[0].code() == ErrorCode.SECURITY_DISABLED


def test_confluent_kafka_is_told_that_nobody_has_credentials(confluent: AdminClient) -> None:
    assert confluent.describe_user_scram_credentials().result(TIMEOUT_S) == {}


def test_kafka_python_gives_a_topic_more_partitions_and_deletes_records(
    broker: BrokerProcess, topic: str, python: KafkaAdminClient
) -> None:
    fill(broker, topic)
    python.create_partitions({topic: 3})
    assert len(python.describe_topics([topic])[0]["partitions"]) == 3
    python.delete_records({PythonPartition(topic, 0): 6})
    assert watermarks(broker, topic) == (6, RECORDS)


def test_kafka_python_reads_sizes_producers_and_the_quorum(
    broker: BrokerProcess, topic: str, python: KafkaAdminClient
) -> None:
    fill(broker, topic, **{"enable.idempotence": True})
    (node,) = python.describe_log_dirs()
    (folder,) = node["log_dirs"]
    sizes = {each["name"]: each["partitions"][0]["partition_size"] for each in folder["topics"]}
    assert sizes[topic] > RECORDS
    assert 0 < folder["usable_bytes"] < folder["total_bytes"]
    partition = PythonPartition(topic, 0)
    (producer,) = python.describe_producers([partition])[partition].active_producers
    assert (producer.producer_epoch, producer.last_sequence) == (0, RECORDS - 1)
    (log,) = python.describe_metadata_quorum()["topics"][0]["partitions"]
    assert [voter["replica_id"] for voter in log["current_voters"]] == [log["leader_id"]]


def test_kafka_python_is_told_that_nothing_moves_and_nobody_has_credentials(python: KafkaAdminClient) -> None:
    assert python.list_partition_reassignments() == {}
    assert python.describe_user_scram_credentials() == {}

"""Configs as admin clients read and change them, and what they then do to a producer."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
)
from support.broker_process import BrokerProcess, StartBroker
from support.confluent import consume, produce
from support.raw_client import RawClient
from support.samples import check_same, samples
from support.topics import SEGMENT_ENTRIES, make_topic

from walrusmq.broker.topic_configs import TOPIC_CONFIGS
from walrusmq.protocol.messages.api_versions import ApiVersionsRequest

TIMEOUT_S = 30.0
#: By name: the value, where it comes from, and whether that is the default.
Configs = dict[str, tuple[str, ConfigSource, bool]]


@pytest.fixture
def admin(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def described(admin: AdminClient, kind: ResourceType, name: str) -> Configs:
    (future,) = admin.describe_configs([ConfigResource(kind, name)]).values()
    entries: dict[str, Any] = future.result(TIMEOUT_S)
    return {each.name: (each.value, ConfigSource(each.source), each.is_default) for each in entries.values()}


def set_one(admin: AdminClient, topic: str, name: str, value: str) -> None:
    """Through IncrementalAlterConfigs (44)."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    (future,) = admin.incremental_alter_configs([resource]).values()
    future.result(TIMEOUT_S)


def replace_all(admin: AdminClient, topic: str, **values: str) -> None:
    """Through AlterConfigs (33)."""
    configs = {name.replace("_", "."): value for name, value in values.items()}
    (future,) = admin.alter_configs([ConfigResource(ResourceType.TOPIC, topic, set_config=configs)]).values()
    future.result(TIMEOUT_S)


def test_both_ways_to_set_a_topics_config_give_the_same_and_the_old_one_resets_the_others(
    broker: BrokerProcess, admin: AdminClient
) -> None:
    """C14."""
    one, other = make_topic(broker), make_topic(broker)
    before = described(admin, ResourceType.TOPIC, one)
    assert set(before) == set(TOPIC_CONFIGS)
    assert before["retention.ms"] == ("604800000", ConfigSource.DEFAULT_CONFIG, True)
    own = (str(SEGMENT_ENTRIES), ConfigSource.DYNAMIC_TOPIC_CONFIG, False)
    assert before["walrus.segment.entries"] == own
    set_one(admin, one, "retention.ms", "70000")
    assert described(admin, ResourceType.TOPIC, one)["walrus.segment.entries"] == own, "the others stay"
    replace_all(admin, other, retention_ms="70000")
    after = described(admin, ResourceType.TOPIC, other)
    assert after["retention.ms"] == ("70000", ConfigSource.DYNAMIC_TOPIC_CONFIG, False)
    assert after["walrus.segment.entries"] == ("1000000", ConfigSource.DEFAULT_CONFIG, True)
    set_one(admin, other, "walrus.segment.entries", str(SEGMENT_ENTRIES))
    assert described(admin, ResourceType.TOPIC, other) == described(admin, ResourceType.TOPIC, one)


def test_what_consoles_read_of_a_broker_is_there_and_true(start_broker: StartBroker) -> None:
    """C23: names that others lack, and the feature by which consoles tell the version."""
    broker = start_broker(
        {
            "num.partitions": 3,
            "auto.create.topics.enable": "false",
            "log.retention.ms": 7_200_000,
            "message.max.bytes": 5000,
        }
    )
    configs = described(AdminClient({"bootstrap.servers": broker.bootstrap}), ResourceType.BROKER, "1")
    read = {
        "num.partitions": "3",
        "default.replication.factor": "1",
        "auto.create.topics.enable": "false",
        "delete.topic.enable": "true",
        "log.retention.ms": "7200000",
        "log.retention.hours": "2",
        "message.max.bytes": "5000",
    }
    assert {name: configs[name][0] for name in read} == read
    with RawClient(broker.bootstrap) as client:
        hello = ApiVersionsRequest(client_software_name="console", client_software_version="1")
        offered = client.ask(hello, 3)
    assert "metadata.version" in {feature.name for feature in offered.finalized_features}


def test_a_producer_learns_that_a_compacted_topic_takes_no_record_without_a_key(broker: BrokerProcess) -> None:
    """C10."""
    topic = make_topic(broker, cleanup_policy="compact")
    outcomes: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
    for key in (b"k", None, b"k"):
        producer.produce(topic, b"v", key, on_delivery=lambda error, _: outcomes.append(error))
        assert producer.flush(TIMEOUT_S) == 0
    refusals = [None if error is None else error.code() for error in outcomes]
    assert refusals == [None, KafkaError.INVALID_RECORD, None]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "none"])
@pytest.mark.parametrize("target", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_records_reach_a_consumer_whatever_codec_the_topic_has(broker: BrokerProcess, codec: str, target: str) -> None:
    records = samples(60, large=1)
    topic = make_topic(broker, compression_type=target)
    produce(broker.bootstrap, topic, records, **{"compression.type": codec})
    check_same(consume(broker.bootstrap, topic, len(records)), records)

"""The first produce to a topic that isn't there succeeds; looking for one doesn't make it."""

from __future__ import annotations

import asyncio
import logging
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka.admin import AdminClient
from kafka import KafkaProducer
from support.broker_process import BrokerProcess, StartBroker
from support.confluent import consume, produce
from support.raw_client import RawClient
from support.samples import Received, Sample

from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

RECORD = Sample(b"key", b"value")
FIRST = [Received(0, RECORD)]
TIMEOUT_S = 30.0


def topic_names(broker: BrokerProcess) -> set[str]:
    return set(AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=TIMEOUT_S).topics)


@pytest.fixture
def no_complaints(caplog: pytest.LogCaptureFixture, broker: BrokerProcess) -> Iterator[None]:
    """Hold the test to no warning by a client's library and none by the broker."""
    before = len(broker.log_text())
    yield
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == []
    assert "WARN" not in broker.log_text()[before:].upper()


@pytest.mark.usefixtures("no_complaints")
def test_confluent_kafka_makes_a_topic_by_its_first_record(broker: BrokerProcess) -> None:
    assert produce(broker.bootstrap, "by-confluent", [RECORD]) == [0]
    assert consume(broker.bootstrap, "by-confluent", 1) == FIRST


@pytest.mark.usefixtures("no_complaints")
def test_kafka_python_makes_a_topic_by_its_first_record(broker: BrokerProcess) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    assert producer.send("by-kafka-python", RECORD.value, RECORD.key).get(TIMEOUT_S).offset == 0
    producer.close()
    assert consume(broker.bootstrap, "by-kafka-python", 1) == FIRST


@pytest.mark.usefixtures("no_complaints")
def test_aiokafka_makes_a_topic_by_its_first_record(broker: BrokerProcess) -> None:
    async def send() -> int:
        async with asyncio.timeout(TIMEOUT_S), AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            metadata = await producer.send_and_wait("by-aiokafka", RECORD.value, RECORD.key)
            return int(metadata.offset)

    assert asyncio.run(send()) == 0
    assert consume(broker.bootstrap, "by-aiokafka", 1) == FIRST


@pytest.mark.skipif(shutil.which("kcat") is None, reason="needs kcat")
def test_kcat_makes_a_topic_by_its_first_record(broker: BrokerProcess) -> None:
    command = ["kcat", "-b", broker.bootstrap, "-P", "-t", "by-kcat", "-K:"]
    done = subprocess.run(command, input=b"key:value\n", capture_output=True, timeout=TIMEOUT_S, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert consume(broker.bootstrap, "by-kcat", 1) == FIRST


def ask_for(broker: BrokerProcess, topic: str, *, may_create: bool, version: int = 12) -> int:
    """The error code in the answer to Metadata for one topic."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=may_create)
    with RawClient(broker.bootstrap) as client:
        (found,) = client.ask(request, version).topics
    return int(found.error_code)


def test_asking_without_leave_to_create_makes_nothing(broker: BrokerProcess) -> None:
    assert ask_for(broker, "not-there", may_create=False) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "not-there" not in topic_names(broker)


def test_listing_everything_makes_nothing(broker: BrokerProcess) -> None:
    before = topic_names(broker)
    assert topic_names(broker) == before


@pytest.mark.parametrize("name", ["a b", "a/b", "..", "", "é", "x" * 250, "a:b", "../../x", "a\x00b"])
def test_an_illegal_name_is_error_17_and_makes_nothing(broker: BrokerProcess, name: str) -> None:
    before = topic_names(broker)
    assert ask_for(broker, name, may_create=True) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert topic_names(broker) == before


def test_created_means_usable_at_once(broker: BrokerProcess) -> None:
    for number in range(50):
        name = f"usable-{number}"
        assert ask_for(broker, name, may_create=True) == 0
        assert produce(broker.bootstrap, name, [RECORD]) == [0]


def test_with_auto_creation_off_producing_to_an_unknown_topic_fails(start_broker: StartBroker) -> None:
    broker = start_broker({"auto.create.topics.enable": "false"})
    assert ask_for(broker, "unknown", may_create=True) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert topic_names(broker) == set()

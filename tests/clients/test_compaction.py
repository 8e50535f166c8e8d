"""Compacted topics as clients see them, under kills and under many updates."""

from __future__ import annotations

import random
import time

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from support.broker_process import PATIENCE_S, BrokerProcess, StartBroker
from support.compacted import CompactedModel
from support.confluent import end_offset
from support.steady_producer import SteadyProducer
from support.topics import make_topic

from walrusmq.protocol.records.batch import Record

KILLS = 20
KEYS = 50
QUICK = {"monitor.check.ms": 10, "log.cleaner.backoff.ms": 5, "log.cleaner.min.cleanable.ratio": 0}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class KeyedProducer(SteadyProducer):
    """It sends numbered values for a few keys; the model knows what it has sent."""

    def __init__(self, bootstrap: str, topic: str, chance: random.Random) -> None:
        super().__init__(bootstrap, topic, compression_type="lz4")
        self.model = CompactedModel()
        self._chance = chance

    def send_next(self) -> None:
        number = self.sent + 1
        record = Record(0, number, b"key-%d" % self._chance.randrange(KEYS), b"%d" % number)
        self.model.sent(record)
        self.send(
            record.value,
            lambda offset: self.model.acknowledged(offset, [record]),
            key=record.key,
            timestamp=record.timestamp,
        )


def read_to_end(bootstrap: str, topic: str) -> list[Record]:
    """Every record of partition 0, by a consumer that checks each batch's checksum."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "check.crcs": True,
                         "enable.partition.eof": True, "enable.auto.commit": False})  # fmt: skip
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[Record] = []
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is None:
            continue
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, str(error)
            consumer.close()
            return found
        offset = message.offset()
        assert offset is not None
        found.append(Record(offset, message.timestamp()[1], message.key(), message.value()))
    raise AssertionError(f"no end after {len(found)} records")


def compacted_topic(broker: BrokerProcess) -> str:
    return make_topic(broker, cleanup_policy="compact")


def test_20_kills_at_any_moment_lose_no_keys_last_value(start_broker: StartBroker) -> None:
    seed = time.time_ns()
    print(f"seed {seed}")
    chance = random.Random(seed)
    broker = start_broker(QUICK)
    topic = compacted_topic(broker)
    producer = KeyedProducer(broker.bootstrap, topic, chance)
    compactions = 0.0
    for _ in range(KILLS):
        enough = producer.acknowledged + chance.randint(200, 3000)
        producer.send_until(lambda enough=enough: producer.acknowledged >= enough)  # type: ignore[misc]
        compactions += broker.metric("walrus_compactions_total")
        moment = time.monotonic() + chance.uniform(0, 0.05)
        producer.send_until(lambda moment=moment: time.monotonic() >= moment)  # type: ignore[misc]
        broker.kill()
        broker.start()
        producer.model.check(read_to_end(broker.bootstrap, topic))
    producer.finish()
    found = read_to_end(broker.bootstrap, topic)
    producer.model.check(found)
    assert broker.stop() == 0
    broker.start()
    producer.model.check(read_to_end(broker.bootstrap, topic))
    print(f"{producer.acknowledged} updates became {len(found)} records in {compactions:.0f} compactions")
    assert compactions > KILLS
    assert "Traceback" not in broker.log_text()


def test_many_updates_of_a_few_keys_become_small(start_broker: StartBroker) -> None:
    broker = start_broker({**QUICK, "max.segment.entries": 20_000})
    topic = make_topic(broker, cleanup_policy="compact", walrus_segment_entries="20000")
    producer = KeyedProducer(broker.bootstrap, topic, random.Random(1))
    producer.send_until(lambda: producer.acknowledged >= 200_000)
    producer.finish()
    end = end_offset(broker.bootstrap, topic)
    (folder,) = [path for path in (broker.data / "topics").iterdir() if path.is_dir()]
    deadline = time.monotonic() + PATIENCE_S
    while (size := sum(path.stat().st_size for path in folder.glob("*.log"))) > 2_000_000:
        assert time.monotonic() < deadline, f"{size} bytes are left"
        time.sleep(0.1)
    found = read_to_end(broker.bootstrap, topic)
    producer.model.check(found)
    assert end_offset(broker.bootstrap, topic) == end, "offsets stay"
    print(f"{end} updates are {len(found)} records in {size} bytes")

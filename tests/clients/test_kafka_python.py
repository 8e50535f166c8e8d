"""kafka-python: each codec and acks, across rollovers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from support.broker_process import BrokerProcess
from support.samples import Received, Sample, check_same, samples

RECORDS = 1000
TIMEOUT_S = 60.0


def produce(bootstrap: str, topic: str, records: Sequence[Sample], **config: Any) -> list[int]:
    producer = KafkaProducer(bootstrap_servers=bootstrap, batch_size=2000, **config)
    pending = [
        producer.send(topic, record.value, record.key, headers=list(record.headers), partition=0) for record in records
    ]
    offsets = [each.get(TIMEOUT_S).offset for each in pending]
    producer.close()
    return offsets


def consume(bootstrap: str, topic: str, count: int) -> list[Received]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    received: list[Received] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(received) < count:
        assert time.monotonic() < deadline, f"{len(received)} of {count} records"
        for record in consumer.poll(timeout_ms=1000).get(partition, ()):
            received.append(Received(record.offset, Sample(record.key, record.value, tuple(record.headers))))
    consumer.close()
    return received


@pytest.mark.parametrize("codec", [None, "gzip", "lz4", "snappy", "zstd"])
@pytest.mark.usefixtures("rolls_over")
def test_what_is_sent_with_any_codec_and_the_defaults_comes_back(
    broker: BrokerProcess, topic: str, codec: str | None
) -> None:
    sent = samples(RECORDS)
    assert produce(broker.bootstrap, topic, sent, compression_type=codec) == list(range(RECORDS))
    check_same(consume(broker.bootstrap, topic, RECORDS), sent)


@pytest.mark.parametrize("acks", [0, 1, "all"])
@pytest.mark.usefixtures("rolls_over")
def test_what_is_sent_with_any_acks_comes_back(broker: BrokerProcess, topic: str, acks: int | str) -> None:
    sent = samples(RECORDS)
    offsets = produce(broker.bootstrap, topic, sent, acks=acks, enable_idempotence=False)
    if acks != 0:
        assert offsets == list(range(RECORDS))
    check_same(consume(broker.bootstrap, topic, RECORDS), sent)

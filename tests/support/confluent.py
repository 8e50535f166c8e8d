"""Produce and consume with confluent-kafka, to the last record or AssertionError."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from support.samples import Received, Sample

TIMEOUT_S = 60.0
#: Small batches, so that a thousand records are dozens of appends.
SMALL_BATCHES = {"batch.num.messages": 25, "linger.ms": 2}


def produce(bootstrap: str, topic: str, records: Sequence[Sample], **config: object) -> list[int]:
    """Send ``records`` to partition 0; the offset that each was acknowledged with (-1 under acks=0)."""
    offsets: list[int] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        assert error is None, str(error)
        offsets.append(message.offset())

    settings: dict[str, Any] = {"bootstrap.servers": bootstrap, **SMALL_BATCHES}
    settings |= {name.replace("_", "."): value for name, value in config.items()}
    producer = Producer(settings)
    for record in records:
        producer.produce(
            topic, record.value, record.key, partition=0, headers=list(record.headers), on_delivery=delivered
        )
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0
    assert len(offsets) == len(records)
    return offsets


def consume(bootstrap: str, topic: str, count: int, first_offset: int = 0, **config: object) -> list[Received]:
    """``count`` records of partition 0 from ``first_offset`` on."""
    settings: dict[str, Any] = {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
    settings |= {name.replace("_", "."): value for name, value in config.items()}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, first_offset)])
    received: list[Received] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(received) < count:
        assert time.monotonic() < deadline, f"{len(received)} of {count} records"
        for message in consumer.consume(count - len(received), 1.0):
            assert message.error() is None, str(message.error())
            received.append(_received(message))
    consumer.close()
    return received


def end_offset(bootstrap: str, topic: str) -> int:
    """The high watermark of partition 0."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none"})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=TIMEOUT_S)
    consumer.close()
    return int(end)


def _received(message: Message) -> Received:
    offset = message.offset()
    assert offset is not None
    headers = tuple((name, value) for name, value in message.headers() or ())
    return Received(offset, Sample(message.key(), message.value(), headers))  # type: ignore[arg-type]

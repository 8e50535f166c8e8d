"""Produce and consume in bulk with confluent-kafka, and what that costs the broker."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from benchmarks.process import Meter
from benchmarks.target import Target

TIMEOUT_S = 120.0
#: Records in the client's queue: enough for some megabytes in flight, few enough for bounded memory.
QUEUED_RECORDS = 100_000
#: Records per call of ``consume``, so that the client's Python code costs little per record.
CONSUMED_AT_ONCE = 10_000
GB = 1e9
MB = 1e6

Figure = dict[str, float | None]


def produce(target: Target, topic: str, record_bytes: int, volume_bytes: float, settings: dict[str, Any]) -> Figure:
    """Send ``volume_bytes`` of values of ``record_bytes`` each to partition 0."""
    failures: list[str] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(str(error))

    producer = Producer(
        {
            "bootstrap.servers": target.bootstrap,
            "linger.ms": 5,
            "queue.buffering.max.messages": QUEUED_RECORDS,
            **settings,
        }
    )
    value = (b'{"user":12345,"kind":"abcdefg"} ' * (record_bytes // 32 + 1))[:record_bytes]
    count = int(volume_bytes / record_bytes)
    producer.list_topics(topic, timeout=TIMEOUT_S)
    meter = Meter(target.pid)
    meter.start()
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, value, partition=0, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    if producer.flush(TIMEOUT_S) or failures:
        raise RuntimeError(f"{len(failures)} records were not delivered: {failures[:1]}")
    return _figure(meter, count, count * record_bytes)


def consume(target: Target, topic: str, count: int, settings: dict[str, Any]) -> Figure:
    """Read ``count`` records of partition 0 from its beginning."""
    consumer = Consumer(
        {"bootstrap.servers": target.bootstrap, "group.id": "benchmark", "enable.auto.commit": False, **settings}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    meter = Meter(target.pid)
    meter.start()
    got = received_bytes = 0
    deadline = time.monotonic() + TIMEOUT_S
    while got < count:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{got} of {count} records came")
        messages = consumer.consume(CONSUMED_AT_ONCE, 1.0)
        got += len(messages)
        received_bytes += sum(len(message.value() or b"") for message in messages)
    figure = _figure(meter, got, received_bytes)
    consumer.close()
    return figure


def _figure(meter: Meter, count: int, size_bytes: int) -> Figure:
    usage = meter.stop()
    return {
        "records_per_s": count / usage.wall_s,
        "mb_per_s": size_bytes / MB / usage.wall_s,
        "broker_cpu_s_per_gb": None if usage.broker_s is None else usage.broker_s / size_bytes * GB,
        "client_busy": usage.client_s / usage.wall_s,
    }

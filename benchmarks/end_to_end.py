"""From the call that sends a record to the call that returns it, at a steady rate."""

from __future__ import annotations

import threading
import time

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.target import Target
from benchmarks.throughput import Figure

TIMEOUT_S = 60.0


def end_to_end(target: Target, topic: str, count: int, rate_per_s: float) -> Figure:
    """Latency of ``count`` records of one partition, each sent alone (``linger.ms`` 0) with acks=all."""
    consumer = Consumer(
        {
            "bootstrap.servers": target.bootstrap,
            "group.id": "benchmark",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 500,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    latencies_ns: list[int] = []
    is_flowing = threading.Event()

    def receive() -> None:
        deadline = time.monotonic() + TIMEOUT_S + count / rate_per_s
        while len(latencies_ns) < count and time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is None or message.error() is not None:
                continue
            if is_flowing.is_set():
                latencies_ns.append(time.perf_counter_ns() - int(message.value() or b"0"))
            is_flowing.set()

    receiver = threading.Thread(target=receive)
    receiver.start()
    producer = Producer({"bootstrap.servers": target.bootstrap, "linger.ms": 0, "acks": "all"})
    producer.produce(topic, b"opens the connections", partition=0)
    producer.flush(TIMEOUT_S)
    is_flowing.wait(TIMEOUT_S)
    began = time.perf_counter()
    for number in range(count):
        time.sleep(max(0.0, began + number / rate_per_s - time.perf_counter()))
        producer.produce(topic, b"%d" % time.perf_counter_ns(), partition=0)
        producer.poll(0)
    producer.flush(TIMEOUT_S)
    receiver.join()
    consumer.close()
    if len(latencies_ns) < count:
        raise RuntimeError(f"{len(latencies_ns)} of {count} records came")
    latencies_ns.sort()
    return {"p50_us": latencies_ns[count // 2] / 1000, "p99_us": latencies_ns[count * 99 // 100] / 1000}

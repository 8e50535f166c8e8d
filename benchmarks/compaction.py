"""What becomes of many updates of a few keys in a compacted topic: ``python -m benchmarks.compaction``.

Starts a ``walrusmq`` in a temporary folder, has it take the updates, and then lets it compact them. Prints the topic's
size before and after, the time and CPU time that took, and how long a small request took meanwhile.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from benchmarks.process import cpu_s
from benchmarks.target import PATIENCE_S, logged, serve_command, spawn, wait_ready

TOPIC = "updates"
VALUE = b"v" * 100
POLL_EACH = 1000
LONGEST_S = 600.0
#: Nothing happens for so long: all is compacted.
QUIET_S = 3.0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compaction", description=__doc__)
    parser.add_argument("--updates", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--codec", default="lz4", help="the producer's (default lz4)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process = spawn(serve_command(folder, {"monitor.check.ms": "100", "log.cleaner.backoff.ms": "100"}), folder)
        try:
            bootstrap = str(wait_ready(process, folder / "ready")["listen"])
            admin = AdminClient({"bootstrap.servers": bootstrap})
            admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(PATIENCE_S)
            produce(bootstrap, options.updates, options.keys, options.codec)
            before = size_bytes(folder)
            quiet = probe(bootstrap, 2.0)
            began_cpu_s, began_s = cpu_s(process.pid), time.monotonic()
            compact(admin)
            busy, ended_s = probe_until_settled(bootstrap, folder)
            used_s = cpu_s(process.pid) - began_cpu_s
        finally:
            process.terminate()
            process.wait(PATIENCE_S)
            sys.stderr.write(logged(folder))
        print(f"{options.updates} updates of {options.keys} keys: {before} bytes became {size_bytes(folder)}")
        print(f"in {ended_s - began_s:.1f} s, with {used_s:.1f} s of CPU time")
        print(f"a small request took, before: {summary(quiet)}; meanwhile: {summary(busy)}")
    return 0


def produce(bootstrap: str, updates: int, keys: int, codec: str) -> None:
    """Send all updates, the keys in turn, and return when they are acknowledged."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": codec,
            "linger.ms": 20,
            "enable.idempotence": True,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    names = [b"key-%d" % number for number in range(keys)]
    for number in range(updates):
        while True:
            try:
                producer.produce(TOPIC, VALUE, names[number % keys])
                break
            except BufferError:
                producer.poll(0.1)
        if number % POLL_EACH == 0:
            producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0


def compact(admin: AdminClient) -> None:
    """Have the topic compacted from now on."""
    entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)


def probe(bootstrap: str, seconds: float) -> list[float]:
    """How long the topic's offsets took to be told, in seconds each, asked for all the time."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "probe"})
    took = []
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        began_s = time.perf_counter()
        consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=PATIENCE_S)
        took.append(time.perf_counter() - began_s)
        time.sleep(0.002)
    consumer.close()
    return took


def probe_until_settled(bootstrap: str, folder: Path) -> tuple[list[float], float]:
    """As ``probe``, until the topic's size hasn't changed for a while; and when it last did."""
    took: list[float] = []
    last_bytes, changed_s = size_bytes(folder), time.monotonic()
    first_s = changed_s
    while time.monotonic() < first_s + LONGEST_S:
        took += probe(bootstrap, 0.5)
        now_bytes = size_bytes(folder)
        if now_bytes != last_bytes:
            last_bytes, changed_s = now_bytes, time.monotonic()
        elif changed_s > first_s and time.monotonic() > changed_s + QUIET_S:
            return took, changed_s
    raise SystemExit(f"nothing was settled after {LONGEST_S} s")


def size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in (folder / "data" / "topics").glob("*/*.log"))


def summary(took: list[float]) -> str:
    quantiles = statistics.quantiles(took, n=100)
    return f"median {quantiles[49] * 1000:.2f} ms, p99 {quantiles[98] * 1000:.2f} ms, most {max(took) * 1000:.1f} ms"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

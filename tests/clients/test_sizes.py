"""What a broker says of its disk, and what retention leaves there."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient
from support.broker_process import PATIENCE_S, BrokerProcess, StartBroker
from support.topics import make_topic

MIB = 1 << 20
VALUE = bytes(range(256)) * 40
BATCH_BYTES = 100_000
CHECK_S = 1.0


def fill(broker: BrokerProcess, topic: str, size_bytes: int) -> None:
    """Produce so many bytes to partition 0, in batches of at most BATCH_BYTES."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "batch.size": BATCH_BYTES, "linger.ms": 5})
    for _ in range(size_bytes // len(VALUE) + 1):
        producer.produce(topic, VALUE, partition=0)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0


def on_disk(broker: BrokerProcess, topic: str) -> dict[int, list[int]]:
    """By partition, the bytes of each of a topic's segments."""
    sizes: dict[int, list[int]] = {}
    for folder in (broker.data / "topics").iterdir():
        if (folder / "topic").exists() and topic in (folder / "topic").read_text():
            index = int(folder.name.rpartition("-")[2])
            sizes[index] = [size_of(log) for log in folder.glob("*.log")]
    return sizes


def size_of(file: Path) -> int:
    """0 for a file that has gone meanwhile."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def test_the_sizes_of_partitions_are_those_of_their_files(broker: BrokerProcess) -> None:
    """C22: within one batch of the truth, and the disk's own size and room beside them."""
    topic = make_topic(broker, partitions=2)
    fill(broker, topic, 3 * MIB)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    (node,) = admin.describe_log_dirs()
    admin.close()
    (folder,) = node["log_dirs"]
    assert Path(folder["log_dir"]) == broker.data.resolve()
    told = {
        part["partition_index"]: part["partition_size"]
        for each in folder["topics"]
        if each["name"] == topic
        for part in each["partitions"]
    }
    true = on_disk(broker, topic)
    assert told.keys() == {0, 1}
    assert told[0] > 3 * MIB
    for index, size_bytes in told.items():
        assert abs(size_bytes - sum(true.get(index, []))) <= BATCH_BYTES
    assert 0 < folder["usable_bytes"] < folder["total_bytes"]


@pytest.mark.parametrize("segment_bytes", [None, str(1 << 30)])
def test_retention_by_size_works_with_segments_of_any_size(
    start_broker: StartBroker, segment_bytes: str | None
) -> None:
    """C32: Kafka keeps all until a segment, 1 GB by default, is full."""
    broker = start_broker({"log.retention.check.interval.ms": int(CHECK_S * 1000)})
    configs = {"retention_bytes": str(MIB), "walrus_segment_entries": "1000000"}
    topic = make_topic(broker, **configs, **({"segment_bytes": segment_bytes} if segment_bytes else {}))
    fill(broker, topic, 5 * MIB)
    deadline = time.monotonic() + CHECK_S + PATIENCE_S
    while sum(segments := on_disk(broker, topic)[0]) > MIB + max(segments):
        assert time.monotonic() < deadline, f"segments of {segments} bytes"
        time.sleep(0.05)
    assert max(segments) <= 2 * MIB + BATCH_BYTES, "a segment is sealed at the latest when it is full twice"
    assert sum(segments) >= MIB, "less than is to be kept"

"""A full disk refuses writes, stays readable, and is written to again as soon as there is room."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from support.broker_process import PATIENCE_S, BrokerProcess
from support.raw_client import RawClient, produce_request
from support.topics import make_topic

from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from walrusmq.protocol.records.batch import Record, encode_batch
from walrusmq.protocol.records.header import parse_header

VALUE_BYTES = 500_000
DISK = "64m"
MAX_BATCHES = 1000
BATCH = encode_batch([Record(0, 1_700_000_000_000, None, bytes(VALUE_BYTES))])

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="mounts a small disk, as root on Linux"),
]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of 64 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("may not mount here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def broker(small_disk: Path, tmp_path: Path) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path / "broker", {"data.dir": small_disk / "data", "monitor.check.ms": 20}).start()
    yield broker
    assert broker.stop() == 0
    assert "Traceback" not in broker.log_text()


def send(client: RawClient, topic: str) -> tuple[int, int]:
    """Error code and base offset of one more batch."""
    result = client.ask(produce_request(topic, BATCH), 9).responses[0].partition_responses[0]
    return result.error_code, result.base_offset


def fill(client: RawClient, topic: str) -> tuple[int, int]:
    """Produce until an error: how many batches were acknowledged, and the error's code."""
    for count in range(MAX_BATCHES):
        error, offset = send(client, topic)
        if error:
            return count, error
        assert offset == count
    raise AssertionError("the disk never filled up")


def readable(client: RawClient, topic: str, count: int) -> bool:
    """Whether offsets 0 to ``count`` can be fetched, one after the other."""
    for offset in range(count):
        partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1)
        request = FetchRequest(
            max_wait_ms=100, min_bytes=1, max_bytes=1, topics=[FetchTopic(topic=topic, partitions=[partition])]
        )
        (found,) = client.ask(request, 11).responses[0].partitions
        if found.error_code or parse_header(bytes(found.records)).base_offset != offset:
            return False
    return True


def readiness(broker: BrokerProcess) -> tuple[int, str]:
    """Status and text of ``/readyz``."""
    try:
        return 200, broker.page("/readyz")
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


def test_a_full_disk_refuses_writes_stays_readable_and_resumes_by_itself(broker: BrokerProcess) -> None:
    filler, topic = make_topic(broker), make_topic(broker)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    with RawClient(broker.bootstrap) as client:
        for _ in range(20):
            assert send(client, filler)[0] == 0
        count, error = fill(client, topic)
        assert error == ErrorCode.KAFKA_STORAGE_ERROR
        status, reasons = readiness(broker)
        assert status == 503
        assert str(broker.settings["data.dir"]) in reasons or topic in reasons
        assert readable(client, topic, count)
        admin.delete_topics([filler], request_timeout=PATIENCE_S)[filler].result(PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        while (answer := send(client, topic))[0]:
            assert answer[0] == ErrorCode.KAFKA_STORAGE_ERROR
            assert time.monotonic() < deadline, "writes didn't resume"
            time.sleep(0.05)
        assert answer[1] == count
        assert readiness(broker) == (200, "ready\n")
        assert readable(client, topic, count + 1)
    broker.kill()
    broker.start()
    with RawClient(broker.bootstrap) as client:
        assert readable(client, topic, count + 1)

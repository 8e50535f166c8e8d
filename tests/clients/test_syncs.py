"""Synced requests are really synced, as the kernel sees it: one sync for what has gathered, never fewer than needed."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.broker_process import PATIENCE_S, BrokerProcess, StartBroker
from support.raw_client import RawClient, produce_request
from support.topics import make_topic

from walrusmq.protocol.records.batch import Record, encode_batch

CONNECTIONS = 32
REQUESTS_EACH = 50
BATCH = encode_batch([Record(0, 1_700_000_000_000, None, b"value")])
STRACE = shutil.which("strace")

pytestmark = pytest.mark.slow


def may_trace() -> bool:
    """Whether this machine lets strace attach."""
    if STRACE is None:
        return False
    return subprocess.run([STRACE, "-c", "true"], capture_output=True, check=False).returncode == 0


def produce_on_all_connections(bootstrap: str, topic: str) -> None:
    """One request after the other on each connection, each waiting for its acknowledgement."""
    failures: list[str] = []

    def run() -> None:
        with RawClient(bootstrap) as client:
            for _ in range(REQUESTS_EACH):
                result = client.ask(produce_request(topic, BATCH), 9).responses[0].partition_responses[0]
                if result.error_code:
                    failures.append(result.error_message)

    threads: Sequence[threading.Thread] = [threading.Thread(target=run) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def traced_syncs(broker: BrokerProcess, topic: str, out: Path) -> int:
    """The calls of fdatasync in all threads of the broker while the requests ran."""
    assert STRACE is not None
    command = [STRACE, "-f", "-c", "-e", "trace=fdatasync,fsync", "-o", str(out), "-p", str(broker.pid)]
    tracer = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert tracer.stderr is not None
    assert b"attached" in tracer.stderr.readline()
    produce_on_all_connections(broker.bootstrap, topic)
    tracer.terminate()
    tracer.wait(PATIENCE_S)
    return sum(
        int(calls) for calls in re.findall(r"(\d+)(?:\s+\d+)?\s+(?:fdatasync|fsync)$", out.read_text(), re.MULTILINE)
    )


@pytest.mark.skipif(not may_trace(), reason="needs strace, and leave to use it")
@pytest.mark.parametrize(
    ("settings", "configs"), [({"fsync": "batch"}, {}), ({"fsync": "never"}, {"flush_messages": "1"})], ids=str
)
def test_the_kernel_sees_at_least_one_sync_per_round_of_requests(
    start_broker: StartBroker, settings: dict[str, str], configs: dict[str, str], tmp_path: Path
) -> None:
    broker = start_broker(settings)
    topic = make_topic(broker, walrus_segment_entries="1000000", **configs)
    syncs = traced_syncs(broker, topic, tmp_path / "syncs")
    requests = CONNECTIONS * REQUESTS_EACH
    assert requests / CONNECTIONS <= syncs <= requests + 100
    assert broker.metric("walrus_fsyncs_total") >= requests / CONNECTIONS


def test_without_syncs_none_is_made_for_appends(start_broker: StartBroker) -> None:
    broker = start_broker({"fsync": "never"})
    topic = make_topic(broker, walrus_segment_entries="1000000")
    before = broker.metric("walrus_fsyncs_total")
    produce_on_all_connections(broker.bootstrap, topic)
    assert broker.metric("walrus_fsyncs_total") == before


def test_an_interval_syncs_a_few_times_for_many_appends(start_broker: StartBroker) -> None:
    broker = start_broker({"fsync": "interval", "fsync.interval.ms": 50})
    topic = make_topic(broker, walrus_segment_entries="1000000")
    before = broker.metric("walrus_fsyncs_total")
    produce_on_all_connections(broker.bootstrap, topic)
    deadline = time.monotonic() + PATIENCE_S
    while broker.metric("walrus_fsyncs_total") == before:
        assert time.monotonic() < deadline
    assert broker.metric("walrus_fsyncs_total") - before < CONNECTIONS * REQUESTS_EACH / 4

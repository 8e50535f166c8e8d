"""How long a start takes until a client has its first answer, and what an idle broker holds in memory.

The aims are those of one machine with a core to itself. A machine that runs other things beside the tests is given
``LENIENCE`` times as long; what was measured is printed (``pytest -s``), and ``benchmarks`` measures it properly.
"""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from support.broker_process import BrokerProcess
from support.raw_client import RawClient

from walrusmq.protocol.messages.metadata import MetadataRequest

FIRST_ANSWER_S = 0.3
IDLE_MB = 60
PARTITIONS = 1000
FIRST_ANSWER_WITH_PARTITIONS_S = 1.5
IDLE_WITH_PARTITIONS_MB = 100
LENIENCE = 3
STARTS = 5
PATIENCE_S = 30.0

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def first_answer_s(broker: BrokerProcess, address: str) -> float:
    """Seconds from the spawn to the first Metadata answer with a broker in it."""
    began = time.monotonic()
    broker.launch()
    while True:
        try:
            with RawClient(address) as client:
                assert client.ask(MetadataRequest(topics=[]), 8).brokers
                return time.monotonic() - began
        except ConnectionError:
            assert time.monotonic() < began + PATIENCE_S, broker.log_text()
            time.sleep(0.001)


def measure(broker: BrokerProcess, address: str) -> tuple[float, float]:
    """The best first answer of some starts, and the memory after the last."""
    times = []
    for _ in range(STARTS):
        times.append(first_answer_s(broker, address))
        broker.wait_ready()
        memory_mb = broker.memory_mb()
        assert broker.stop() == 0
    print(f"first answer after {min(times):.3f} s (of {STARTS}: {max(times):.3f} s at the most), {memory_mb:.1f} MB")
    return min(times), memory_mb


def test_an_empty_broker_answers_at_once_and_is_small(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    answer_s, memory_mb = measure(BrokerProcess(tmp_path, {"listen": address}), address)
    assert answer_s <= LENIENCE * FIRST_ANSWER_S
    assert memory_mb <= IDLE_MB


def test_a_thousand_empty_partitions_cost_little(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    broker = BrokerProcess(tmp_path, {"listen": address}).start()
    admin = AdminClient({"bootstrap.servers": address})
    for future in admin.create_topics([NewTopic("wide", PARTITIONS, 1)], request_timeout=PATIENCE_S).values():
        future.result(PATIENCE_S)
    assert broker.stop() == 0
    answer_s, memory_mb = measure(broker, address)
    assert answer_s <= LENIENCE * FIRST_ANSWER_WITH_PARTITIONS_S
    assert memory_mb <= IDLE_WITH_PARTITIONS_MB

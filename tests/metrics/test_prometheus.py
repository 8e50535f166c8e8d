"""A real Prometheus scrapes a node by the file in ``deploy/``, and finds what was counted."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from support.broker_process import BrokerProcess

CONFIG = Path(__file__).parents[2] / "deploy" / "prometheus" / "prometheus.yml"
PATIENCE_S = 60.0
RECORDS = 123

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("prometheus") is None, reason="there is no prometheus here"),
]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path / "broker").start()
    yield process
    assert process.stop() == 0


class Prometheus:
    """A server with one target, asked over its HTTP API."""

    def __init__(self, folder: Path, target: str) -> None:
        config = CONFIG.read_text().replace("127.0.0.1:9094", target).replace("15s", "1s")
        assert target in config
        (folder / "prometheus.yml").write_text(config)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._address = f"127.0.0.1:{free.getsockname()[1]}"
        flags = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                ["prometheus", *flags, f"--web.listen-address={self._address}"], stdout=log, stderr=log
            )

    def value(self, query: str) -> float | None:
        """The only value that a query finds; None where it finds none."""
        url = f"http://{self._address}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        except OSError:  # it isn't up yet
            return None
        assert len(found) <= 1, found
        return float(found[0]["value"][1]) if found else None

    def wait_for(self, query: str, value: float) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while (found := self.value(query)) != value:
            assert time.monotonic() < deadline, f"{query} is {found}, not {value}"
            time.sleep(0.2)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_S)


def test_a_real_prometheus_finds_the_node_up_and_what_it_counted(tmp_path: Path, broker: BrokerProcess) -> None:
    prometheus = Prometheus(tmp_path, broker.http)
    try:
        prometheus.wait_for("up", 1)
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(RECORDS):
            producer.produce("t", b"%d" % number)
        assert producer.flush(PATIENCE_S) == 0
        prometheus.wait_for("walrus_entries_appended_total", RECORDS)
        prometheus.wait_for("walrus_topics", 1)
        prometheus.wait_for('walrus_requests_total{api="Produce"} > bool 0', 1)
    finally:
        prometheus.stop()


@pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool here")
def test_promtool_finds_nothing_wrong_with_names_and_texts(broker: BrokerProcess) -> None:
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=broker.page("/metrics"), capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")

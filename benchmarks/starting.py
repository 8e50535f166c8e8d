"""From the spawn of ``walrusmq serve`` to a client's first answer, and what the idle process then holds."""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from pathlib import Path

from confluent_kafka.cimpl import NewTopic

from benchmarks.process import cpu_s, resident_mb
from benchmarks.target import PATIENCE_S, Target, logged, serve_command, spawn
from benchmarks.throughput import Figure
from walrusmq.protocol.codec import codec
from walrusmq.protocol.messages.headers import RequestHeader
from walrusmq.protocol.messages.metadata import MetadataRequest

METADATA_KEY = 3
METADATA_VERSION = 8
IDLE_S = 5.0


def start_figure(partitions: int) -> Figure:
    """Start on a data folder with so many empty partitions, after an orderly stop."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        address = f"127.0.0.1:{_free_port()}"
        command = serve_command(folder, {"listen": address})
        if partitions:
            process, _ = _start(command, address, folder)
            target = Target(address, process.pid)
            for future in target.admin.create_topics([NewTopic("empty", partitions, 1)]).values():
                future.result(PATIENCE_S)
            _stop(process)
        process, answer_s = _start(command, address, folder)
        used_s = cpu_s(process.pid)
        time.sleep(IDLE_S)
        figure: Figure = {
            "first_answer_ms": answer_s * 1000,
            "idle_mb": resident_mb(process.pid),
            "idle_cpu_percent": (cpu_s(process.pid) - used_s) / IDLE_S * 100,
        }
        _stop(process)
        return figure


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _start(command: list[str], address: str, folder: Path) -> tuple[subprocess.Popen[bytes], float]:
    began = time.perf_counter()
    process = spawn(command, folder)
    while not _answers(address):
        if process.poll() is not None or time.perf_counter() > began + PATIENCE_S:
            raise RuntimeError(f"walrusmq did not start: {logged(folder).strip()}")
        time.sleep(0.001)
    return process, time.perf_counter() - began


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(PATIENCE_S)


def _answers(address: str) -> bool:
    """Whether a Metadata request gets an answer."""
    header = RequestHeader(api_key=METADATA_KEY, api_version=METADATA_VERSION, correlation_id=1, client_id="start")
    body = codec(RequestHeader, 1).encode(header) + codec(MetadataRequest, METADATA_VERSION).encode(
        MetadataRequest(topics=[])
    )
    host, port = address.rsplit(":", 1)
    try:
        with socket.create_connection((host, int(port)), PATIENCE_S) as connection:
            connection.sendall(len(body).to_bytes(4, "big") + body)
            return len(connection.recv(4)) == 4
    except ConnectionError:
        return False

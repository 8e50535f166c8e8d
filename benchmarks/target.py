"""The broker that is measured: one that runs already, or a ``walrusmq`` started for the purpose."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

PATIENCE_S = 30.0
POLL_S = 0.002
LOG_NAME = "broker.log"
#: Of a topic with thousands of partitions these are the ones that are measured.
MAX_ASKED_PARTITIONS = 4


@dataclass(slots=True)
class Target:
    """A broker's address and, where its CPU and memory are to be measured, its process."""

    bootstrap: str
    pid: int | None
    admin: AdminClient = field(init=False)
    _numbers: Iterator[int] = field(init=False)

    def __post_init__(self) -> None:
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 2})
        self._numbers = itertools.count()

    @contextlib.contextmanager
    def topic(self, partitions: int = 1, configs: Mapping[str, str] | None = None) -> Iterator[str]:
        """A new topic with one replica whose partitions answer, deleted at the end."""
        name = f"benchmark-{time.time_ns():x}-{next(self._numbers)}"
        new = NewTopic(name, partitions, 1, config=dict(configs or {}))
        self.admin.create_topics([new], request_timeout=PATIENCE_S)[name].result(PATIENCE_S)
        self._wait_led(name, partitions)
        try:
            yield name
        finally:
            self.admin.delete_topics([name], request_timeout=PATIENCE_S)[name].result(PATIENCE_S)

    def _wait_led(self, topic: str, partitions: int) -> None:
        """Kafka answers that a topic is created before its leaders know of it: ask them until they do."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "benchmark"})
        deadline = time.monotonic() + PATIENCE_S
        for index in range(min(partitions, MAX_ASKED_PARTITIONS)):
            while True:
                try:
                    consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=PATIENCE_S)
                    break
                except KafkaException:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(POLL_S)
        consumer.close()


def serve_command(folder: Path, settings: Mapping[str, str]) -> list[str]:
    """The command for a ``walrusmq`` on free ports with its data in ``folder``, which logs what is amiss."""
    addresses = dict.fromkeys(("listen", "internal.listen", "http.listen"), "127.0.0.1:0")
    places = {"data.dir": str(folder / "data"), "ready.file": str(folder / "ready"), "log.level": "warning"}
    everything = {**places, **addresses, **settings}
    flags = [part for name, value in everything.items() for part in (f"--{name.replace('.', '-')}", value)]
    return [str(Path(sys.executable).with_name("walrusmq")), "serve", *flags]


def spawn(command: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
    """Start a broker whose log lines go to a file in ``folder``, not between the lines of the table."""
    with (folder / LOG_NAME).open("ab") as log:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log)


def logged(folder: Path) -> str:
    """What the brokers that were spawned with ``folder`` had to say."""
    return (folder / LOG_NAME).read_text(errors="replace")


@contextlib.contextmanager
def own_broker(settings: Mapping[str, str], prefix: Sequence[str] = ()) -> Iterator[Target]:
    """Start ``walrusmq serve`` in a temporary folder; ``prefix`` goes before the command, as ``taskset -c 0`` would.

    What it logged is shown on standard error at the end.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process = spawn([*prefix, *serve_command(folder, settings)], folder)
        try:
            facts = wait_ready(process, folder / "ready")
            yield Target(str(facts["listen"]), process.pid)
        finally:
            process.terminate()
            process.wait(PATIENCE_S)
            sys.stderr.write(logged(folder))


def wait_ready(process: subprocess.Popen[bytes], ready: Path) -> dict[str, object]:
    """What the ready file says, once it stands. Raises SystemExit where it never does."""
    deadline = time.monotonic() + PATIENCE_S
    while not ready.exists() or not ready.stat().st_size:
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("walrusmq did not start")
        time.sleep(POLL_S)
    return dict(json.loads(ready.read_text()))

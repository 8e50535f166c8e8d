"""The scenarios with kcat."""

from __future__ import annotations

import queue
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence

from scenarios import PATIENCE_S, Client, Member, NotInClient, Record, drained, require, run

KCAT = shutil.which("kcat") or "kcat"
#: kcat prints records so, and so it tells of rebalances.
FORMAT = "%p %o %s\n"
RECORD = re.compile(rb"(\d+) (\d+) (.*)")
REBALANCED = re.compile(rb"% Group \S+ rebalanced.*?: (?:incremental )?(assign|revoke)\w*(.*)")


def parsed(line: bytes) -> Record:
    match = RECORD.fullmatch(line.rstrip(b"\n"))
    assert match, line
    return Record(int(match[1]), int(match[2]), match[3])


def produce_stamped(bootstrap: str, topic: str, values: Sequence[bytes], first_timestamp_ms: int) -> None:
    """kcat can't set timestamps: confluent-kafka stands in."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap})
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=0, timestamp=first_timestamp_ms + 1000 * number)
    require(producer.flush(PATIENCE_S) == 0, "answers to what was produced")


class KcatMember(Member):
    """A ``kcat -G`` process, which commits on its own."""

    def __init__(self, arguments: Sequence[str]) -> None:
        super().__init__()
        self._records: queue.Queue[Record] = queue.Queue()
        self._process = subprocess.Popen([KCAT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._threads = [
            threading.Thread(target=self._read_records, daemon=True),
            threading.Thread(target=self._read_events, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _read_records(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._records.put(parsed(line))

    def _read_events(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if match := REBALANCED.search(line):
                partitions = [int(number) for number in re.findall(rb"\[(\d+)\]", match[2])]
                (self.gains if match[1] == b"assign" else self.loses)(partitions)

    def poll(self) -> list[Record]:
        return drained(self._records)

    def commit(self) -> None:
        """kcat commits by its own clock, and at its end."""

    def close(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(PATIENCE_S)


class KcatClient(Client):
    def _kcat(self, *arguments: str, stdin: bytes = b"") -> bytes:
        done = subprocess.run(
            [KCAT, "-b", self.bootstrap, *arguments], input=stdin, capture_output=True, timeout=PATIENCE_S, check=False
        )
        require(done.returncode == 0, done.stderr.decode(errors="replace").strip())
        return done.stdout

    def create_topic(self, topic: str, partitions: int) -> None:
        """kcat can't: confluent-kafka stands in."""
        from confluent_kafka.admin import AdminClient, NewTopic

        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
            future.result(PATIENCE_S)

    def produce(
        self, topic: str, partition: int, values: Sequence[bytes], codec: str = "none", first_timestamp_ms: int = 0
    ) -> None:
        if first_timestamp_ms:
            produce_stamped(self.bootstrap, topic, values, first_timestamp_ms)
            return
        settings = [f"-Xcompression.codec={codec}", "-Xacks=all"]
        self._kcat("-P", "-t", topic, "-p", str(partition), *settings, stdin=b"\n".join(values) + b"\n")

    def member(self, group: str, topic: str, instance: str | None = None, is_cooperative: bool = False) -> Member:
        settings = {
            "auto.offset.reset": "earliest",
            "session.timeout.ms": "10000",
            "heartbeat.interval.ms": "300",
            "partition.assignment.strategy": "cooperative-sticky" if is_cooperative else "range",
            **({"group.instance.id": instance} if instance else {}),
        }
        flags = [f"-X{name}={value}" for name, value in settings.items()]
        return KcatMember(["-b", self.bootstrap, *flags, "-u", "-f", FORMAT, "-G", group, topic])

    def read(self, topic: str, start: int, count: int) -> list[Record]:
        flags = ["-C", "-t", topic, "-p", "0", "-o", str(start), "-c", str(count), "-q", "-f", FORMAT]
        return [parsed(line) for line in self._kcat(*flags).splitlines()]

    def offset_for_time(self, topic: str, timestamp_ms: int) -> int | None:
        match = re.search(rb"offset (-?\d+)", self._kcat("-Q", "-t", f"{topic}:0:{timestamp_ms}"))
        require(match is not None, "an offset")
        assert match is not None
        return None if int(match[1]) < 0 else int(match[1])

    def lag(self, group: str, topic: str) -> int:
        raise NotInClient("kcat doesn't tell a group's lag")

    def admin_calls(self, topic: str, group: str) -> dict[str, Callable[[], object]]:
        raise NotInClient("kcat has no admin calls")


run(KcatClient)

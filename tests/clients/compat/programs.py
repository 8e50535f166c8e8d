"""The programs that run the scenarios, one for each client: how they are built, and what a run of one gives."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import version as distribution_version
from pathlib import Path

from clients.compat.scenarios import MISSING, NOT_IN_CLIENT, PASSED

FOLDER = Path(__file__).parent
#: A scenario waits up to 30 s for each thing; a healthy one takes a few seconds in all.
RUN_TIMEOUT_S = 100
#: Fetching and compiling everything for the first time took 75 s (Go) on two cores.
BUILD_TIMEOUT_S = 600
#: Status of a ``build.sh`` that couldn't fetch what it needs.
NOT_FETCHED = 3


class NotHere(Exception):
    """The client's toolchain, or the registry of its packages, isn't here."""


class Verdict(Enum):
    """A cell of the table."""

    PASS = "pass"
    NOT_IN_CLIENT = "not in client"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a program said of a feature: ``remark`` is what is missing, what the client hasn't, or the calls made."""

    verdict: Verdict
    remark: str


@dataclass(frozen=True, slots=True)
class Client:
    """A row of the table. ``toolchain`` is the folder beside this one that builds its program; empty for Python's."""

    name: str
    version: Callable[[], str]
    program: str
    toolchain: str = ""


#: What has to be on the path, by toolchain.
TOOLS = {"go": ("go",), "java": ("java", "javac", "mvn"), "node": ("node", "npm")}


def _from_file(path: str, pattern: str) -> Callable[[], str]:
    """The version that a file beside this folder pins."""

    def version() -> str:
        found = re.search(pattern, (FOLDER.parent / path).read_text())
        assert found, f"{path} has no {pattern}"
        return found[1]

    return version


def _kcat_version() -> str:
    if shutil.which("kcat") is None:
        raise NotHere("kcat isn't installed")
    said = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"Version (\S+).*?librdkafka (\d[\d.]*\d)", said)
    assert found, said
    return f"{found[1]}, librdkafka {found[2]}"


CLIENTS = {
    client.name: client
    for client in (
        Client("confluent-kafka", lambda: distribution_version("confluent-kafka"), "with_confluent_kafka.py"),
        Client("aiokafka", lambda: distribution_version("aiokafka"), "with_aiokafka.py"),
        Client("kafka-python", lambda: distribution_version("kafka-python"), "with_kafka_python.py"),
        Client("kcat", _kcat_version, "with_kcat.py"),
        Client("Java", _from_file("java/build.sh", r"build 4\.4 (\S+)"), "java-4.4", "java"),
        Client("Java (2019)", _from_file("java/build.sh", r"build 2\.1 (\S+)"), "java-2.1", "java"),
        Client("franz-go", _from_file("go/go.mod", r"twmb/franz-go v(\S+)"), "franz-go", "go"),
        Client("sarama", _from_file("go/go.mod", r"IBM/sarama v(\S+)"), "sarama", "go"),
        Client("kafkajs", _from_file("node/package.json", r'"kafkajs": "(\S+)"'), "kafkajs", "node"),
    )
}


class Workshop:
    """Builds what has to be built, once for each toolchain, under ``folder``; nothing is left in the sources."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._missing: dict[str, str] = {}

    def command(self, client: Client) -> list[str]:
        """What runs the client's program. NotHere where it can't; RuntimeError for what doesn't compile."""
        client.version()
        if not client.toolchain:
            return [sys.executable, str(FOLDER / client.program)]
        if client.toolchain not in self._missing:
            self._missing[client.toolchain] = self._build(client.toolchain)
        if reason := self._missing[client.toolchain]:
            raise NotHere(reason)
        return [str(self._folder / client.toolchain / client.program)]

    def _build(self, toolchain: str) -> str:
        """The reason why it can't be built here; empty once it is built."""
        if absent := [tool for tool in TOOLS[toolchain] if shutil.which(tool) is None]:
            return f"no {', '.join(absent)} on the path"
        output = self._folder / toolchain
        output.mkdir(parents=True)
        command = [str(FOLDER.parent / toolchain / "build.sh"), str(output)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
        if done.returncode == NOT_FETCHED:
            return f"the packages for {toolchain} can't be had: {done.stderr.strip()[-300:]}"
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
        return ""


def measured(command: list[str], bootstrap: str, feature: str) -> Outcome:
    """Run a program, and say what came of it. A run without an end is what's missing, too."""
    try:
        done = subprocess.run(
            [*command, bootstrap, feature],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Outcome(Verdict.MISSING, f"no end within {RUN_TIMEOUT_S} s")
    remark = " ".join(done.stdout.split())
    if done.returncode == PASSED:
        return Outcome(Verdict.PASS, remark)
    if done.returncode == NOT_IN_CLIENT:
        return Outcome(Verdict.NOT_IN_CLIENT, remark)
    if done.returncode == MISSING and remark:
        return Outcome(Verdict.MISSING, remark)
    raise RuntimeError(f"{command[-1]} {feature} ended with {done.returncode}:\n{done.stdout}{done.stderr}")

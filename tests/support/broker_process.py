"""A real ``walrusmq serve`` in a process of its own, on free ports, to be killed and started again at will."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

#: Bound on everything that is waited for; a start takes a fraction of a second.
PATIENCE_S = 30.0
POLL_S = 0.002
ADDRESSES = ("listen", "internal_listen", "http_listen")


def installed_command() -> list[str]:
    """The ``walrusmq`` command of the environment that runs the tests."""
    return [str(Path(sys.executable).with_name("walrusmq"))]


class BrokerProcess:
    """One data folder under ``folder`` and, while it is up, one broker process on it.

    The first start takes free ports; later ones take the same again, as a restarted service would.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, object] | None = None,
        command: Sequence[str] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """``settings`` are dotted names; ``command`` stands in for ``walrusmq``; ``environment`` is added to ours."""
        self.folder = folder
        self.data = folder / "data"
        self.log = folder / "broker.log"
        self.settings = dict(settings or {})
        self._command = list(command or installed_command())
        self._environment = {**os.environ, **(environment or {})}
        self._ready_file = folder / "ready.json"
        self._addresses = dict.fromkeys(ADDRESSES, "127.0.0.1:0")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> BrokerProcess:
        """Start the process and return once it serves; AssertionError with its log when it doesn't."""
        self.launch()
        self.wait_ready()
        return self

    def launch(self) -> None:
        """Start the process without waiting for it."""
        assert self._process is None, "already up"
        self.folder.mkdir(parents=True, exist_ok=True)
        self._ready_file.unlink(missing_ok=True)
        settings = {
            "data.dir": self.data,
            "listen": self._addresses["listen"],
            "internal.listen": self._addresses["internal_listen"],
            "http.listen": self._addresses["http_listen"],
            **self.settings,
        }
        flags = [part for name, value in settings.items() for part in (f"--{name.replace('.', '-')}", str(value))]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, "serve", *flags, "--ready-file", str(self._ready_file)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
                cwd=self.folder,
            )

    def wait_ready(self) -> None:
        """Return once the ready file stands."""
        assert self._process is not None
        deadline = time.monotonic() + PATIENCE_S
        while not (facts := self._ready_facts()):
            assert self._process.poll() is None, f"the broker ended at its start:\n{self.log_text()}"
            assert time.monotonic() < deadline, f"the broker isn't ready:\n{self.log_text()}"
            time.sleep(POLL_S)
        assert facts["pid"] == self._process.pid
        self._addresses = {name: facts[name] or "127.0.0.1:0" for name in ADDRESSES}

    def _ready_facts(self) -> dict[str, Any]:
        try:
            text = self._ready_file.read_text()
        except FileNotFoundError:
            return {}
        return dict(json.loads(text)) if text.endswith(("}", "}\n")) else {}

    def kill(self) -> None:
        """SIGKILL: the process has no say in it."""
        process = self._taken()
        process.kill()
        process.wait(PATIENCE_S)

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        process = self._taken()
        process.send_signal(signal.SIGTERM)
        return process.wait(PATIENCE_S)

    def wait_ended(self) -> int:
        """The exit status of a process that ends by itself."""
        return self._taken().wait(PATIENCE_S)

    def _taken(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not up"
        process, self._process = self._process, None
        return process

    @property
    def is_up(self) -> bool:
        return self._process is not None

    @property
    def pid(self) -> int:
        assert self._process is not None, "not up"
        return self._process.pid

    @property
    def bootstrap(self) -> str:
        """Address for clients."""
        return self._addresses["listen"]

    @property
    def http(self) -> str:
        """Address of the pages."""
        return self._addresses["http_listen"]

    def log_text(self) -> str:
        """Everything that all starts so far have written."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def page(self, path: str) -> str:
        """The body of a page on the HTTP port."""
        with urllib.request.urlopen(f"http://{self.http}{path}", timeout=PATIENCE_S) as answer:
            return str(answer.read().decode())

    def metric(self, name: str, **labels: str) -> float:
        """A metric's value, summed over all samples that carry ``labels``; 0 when there is none."""
        from prometheus_client.parser import text_string_to_metric_families

        return sum(
            sample.value
            for family in text_string_to_metric_families(self.page("/metrics"))
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def memory_mb(self) -> float:
        """Resident memory of the process, from /proc (Linux)."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("no VmRSS")


#: Starts a broker with settings by dotted name and the keyword arguments of ``BrokerProcess``.
StartBroker = Callable[..., BrokerProcess]

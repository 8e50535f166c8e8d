"""A broker in a process of its own for each module, and topics on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from clients.compat.programs import Workshop
from support.broker_process import BrokerProcess, StartBroker
from support.topics import make_topic

#: The monitor looks so often that a segment is closed soon after it is full.
SETTINGS = {"monitor.check.ms": 20}


def ended_well(broker: BrokerProcess) -> None:
    """Stop what is still up, and hold it to a clean exit and a log without tracebacks."""
    if broker.is_up:
        assert broker.stop() == 0, broker.log_text()
    assert "Traceback" not in broker.log_text(), broker.log_text()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """One broker for all tests of a module."""
    broker = BrokerProcess(tmp_path_factory.mktemp("broker"), SETTINGS).start()
    yield broker
    ended_well(broker)


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Start brokers of one's own, with settings by dotted name; they are stopped and checked at the end."""
    started: list[BrokerProcess] = []

    def start(settings: Mapping[str, object] | None = None, **how: Any) -> BrokerProcess:
        broker = BrokerProcess(tmp_path / f"broker-{len(started)}", {**SETTINGS, **(settings or {})}, **how)
        started.append(broker)
        return broker.start()

    yield start
    for broker in started:
        ended_well(broker)


@pytest.fixture
def topic(broker: BrokerProcess) -> str:
    """A new topic on the module's broker."""
    return make_topic(broker)


@pytest.fixture
def rolls_over(broker: BrokerProcess) -> Iterator[None]:
    """Hold the test to having caused several rollovers."""
    before = broker.metric("walrus_segment_rollovers_total")
    yield
    assert broker.metric("walrus_segment_rollovers_total") >= before + 3


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """Programs of clients in other languages, each toolchain's built once for all tests."""
    return Workshop(tmp_path_factory.mktemp("workshop"))

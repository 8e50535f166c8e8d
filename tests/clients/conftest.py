"""A broker in a process of its own for each module, and topics whose segments are so small that they roll often."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from support.broker_process import PATIENCE_S, BrokerProcess

#: The monitor looks so often that a segment of 100 entries is closed soon after it is full.
SETTINGS = {"monitor.check.ms": 20}
SEGMENT_ENTRIES = 100

StartBroker = Callable[..., BrokerProcess]
MakeTopic = Callable[..., str]

_numbers = itertools.count(1)


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

    def start(settings: Mapping[str, object] | None = None, **how: object) -> BrokerProcess:
        broker = BrokerProcess(tmp_path / f"broker-{len(started)}", {**SETTINGS, **(settings or {})}, **how)  # type: ignore[arg-type]
        started.append(broker)
        return broker.start()

    yield start
    for broker in started:
        ended_well(broker)


def make_topic(broker: BrokerProcess, **configs: str) -> str:
    """A new topic of one partition with segments of 100 entries; ``configs`` has underscores for dots."""
    name = f"topic-{next(_numbers)}"
    config = {"walrus.segment.entries": str(SEGMENT_ENTRIES)}
    config |= {key.replace("_", "."): value for key, value in configs.items()}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    futures = admin.create_topics([NewTopic(name, 1, 1, config=config)], request_timeout=PATIENCE_S)
    futures[name].result(PATIENCE_S)
    return name


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

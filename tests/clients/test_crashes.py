"""SIGKILL at random moments: what was acknowledged stays, once, in order, at its offset."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.broker_process import BrokerProcess, StartBroker
from support.confluent import consume, end_offset
from support.steady_producer import SteadyProducer
from support.stored_segments import check_chain
from support.topics import make_topic

MAX_START_S = 5.0
#: The longest that a producer goes on after the moment is chosen in which its broker is killed.
MAX_DELAY_S = 0.05

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class NumberingProducer(SteadyProducer):
    """It numbers its records and notes where each was acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(bootstrap, topic)
        self.offsets: dict[int, int] = {}

    def send_next(self) -> None:
        number = self.sent
        self.send(b"%d" % number, lambda offset: self.offsets.update({number: offset}))


def crash_again_and_again(
    broker: BrokerProcess, topic: str, rounds: int, chance: random.Random, damage: Callable[[], None]
) -> NumberingProducer:
    """Kill and start the broker ``rounds`` times under a producer, doing ``damage`` while it is down."""
    producer = NumberingProducer(broker.bootstrap, topic)
    longest_start_s = 0.0
    for _ in range(rounds):
        enough = len(producer.offsets) + chance.randint(1, 300)
        producer.send_until(lambda enough=enough: len(producer.offsets) >= enough)  # type: ignore[misc]
        moment = time.monotonic() + chance.uniform(0, MAX_DELAY_S)
        producer.send_until(lambda moment=moment: time.monotonic() >= moment)  # type: ignore[misc]
        broker.kill()
        damage()
        began = time.monotonic()
        broker.start()
        longest_start_s = max(longest_start_s, time.monotonic() - began)
    producer.finish()
    print(f"{rounds} crashes, {producer.sent} records, longest start {longest_start_s:.2f} s")
    assert longest_start_s < MAX_START_S
    return producer


def check_all_there(broker: BrokerProcess, topic: str, producer: NumberingProducer) -> None:
    """Everything was acknowledged in the end: so everything is there, once, in order, where the broker said."""
    assert producer.offsets == {number: number for number in range(producer.sent)}
    assert end_offset(broker.bootstrap, topic) == producer.sent
    received = consume(broker.bootstrap, topic, producer.sent, check_crcs=True)
    assert [(each.offset, each.record.value) for each in received] == [
        (number, b"%d" % number) for number in range(producer.sent)
    ]


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Randomness whose seed a failure prints."""
    seed = time.time_ns()
    print(f"seed {seed}")
    return random.Random(seed)


def test_30_kills_under_an_idempotent_producer_lose_and_double_nothing(
    start_broker: StartBroker, chance: random.Random
) -> None:
    broker = start_broker()
    topic = make_topic(broker)
    producer = crash_again_and_again(broker, topic, 30, chance, damage=lambda: None)
    check_all_there(broker, topic, producer)
    assert broker.stop() == 0
    check_chain(broker.data, topic, producer.sent)


def test_50_kills_with_cut_index_files_lose_and_double_nothing(
    start_broker: StartBroker, chance: random.Random
) -> None:
    broker = start_broker()
    topic = make_topic(broker)
    producer = crash_again_and_again(broker, topic, 50, chance, damage=lambda: cut_indexes(broker.data, chance))
    check_all_there(broker, topic, producer)
    assert broker.stop() == 0
    check_chain(broker.data, topic, producer.sent)


def cut_indexes(data: Path, chance: random.Random) -> None:
    """Cut some index files at any byte, remove some, and leave empty ones for segments that never were."""
    for index in sorted((data / "topics").glob("*/*")):
        if index.suffix not in (".index", ".times"):
            continue
        what = chance.randrange(6)
        if what == 0:
            index.unlink()
        elif what == 1:
            index.write_bytes(index.read_bytes()[: chance.randint(0, index.stat().st_size)])
    for folder in (data / "topics").iterdir():
        (folder / f"{chance.randint(10**6, 10**7):010}.index").touch()


def test_20_starts_in_a_row_find_the_same(start_broker: StartBroker) -> None:
    broker = start_broker()
    topic = make_topic(broker)
    producer = NumberingProducer(broker.bootstrap, topic)
    producer.send_until(lambda: len(producer.offsets) >= 1000)
    producer.finish()
    for number in range(20):
        if number % 2:
            broker.kill()
        else:
            assert broker.stop() == 0
        broker.start()
        check_all_there(broker, topic, producer)
    assert broker.stop() == 0
    check_chain(broker.data, topic, producer.sent)

"""SIGKILL at random moments: what was acknowledged stays, once, in order, at its offset."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer
from support.broker_process import BrokerProcess, StartBroker
from support.confluent import consume, end_offset
from support.stored_segments import check_chain
from support.topics import make_topic

MAX_UNACKNOWLEDGED = 500
MAX_START_S = 5.0
#: The longest that a producer goes on after the moment is chosen in which its broker is killed.
MAX_DELAY_S = 0.05
FLUSH_S = 120.0

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class SteadyProducer:
    """An idempotent producer with acks=all that numbers its records and notes where each was acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 20,
                "reconnect.backoff.ms": 5,
                "reconnect.backoff.max.ms": 50,
                "retry.backoff.ms": 5,
                "retry.backoff.max.ms": 50,
                "message.timeout.ms": 120_000,
            }
        )
        self.sent = 0
        self.offsets: dict[int, int] = {}

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        assert error is None, str(error)
        value, offset = message.value(), message.offset()
        assert value is not None
        assert offset is not None
        self.offsets[int(value)] = offset

    def send_until(self, is_enough: Callable[[], bool]) -> None:
        """Send and take acknowledgements until ``is_enough``."""
        while not is_enough():
            if self.sent - len(self.offsets) < MAX_UNACKNOWLEDGED:
                self._producer.produce(self._topic, b"%d" % self.sent, partition=0, on_delivery=self._delivered)
                self.sent += 1
                self._producer.poll(0)
            else:
                self._producer.poll(0.001)

    def finish(self) -> None:
        assert self._producer.flush(FLUSH_S) == 0


def crash_again_and_again(
    broker: BrokerProcess, topic: str, rounds: int, chance: random.Random, damage: Callable[[], None]
) -> SteadyProducer:
    """Kill and start the broker ``rounds`` times under a producer, doing ``damage`` while it is down."""
    producer = SteadyProducer(broker.bootstrap, topic)
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


def check_all_there(broker: BrokerProcess, topic: str, producer: SteadyProducer) -> None:
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
    producer = SteadyProducer(broker.bootstrap, topic)
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

"""A producer that goes on through a broker's deaths: idempotent, patient, and told when each record is acknowledged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from confluent_kafka import KafkaError, Message, Producer

MAX_UNACKNOWLEDGED = 500
FLUSH_S = 120.0
PERSISTENT: dict[str, str | int | float | bool] = {
    "enable.idempotence": True,
    "linger.ms": 1,
    "batch.num.messages": 20,
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 50,
    "retry.backoff.ms": 5,
    "retry.backoff.max.ms": 50,
    "message.timeout.ms": 120_000,
}


class SteadyProducer(ABC):
    """Sends what ``send_next`` of a subclass sends, to partition 0 of one topic."""

    def __init__(self, bootstrap: str, topic: str, **config: str | int | float | bool) -> None:
        named = {name.replace("_", "."): value for name, value in config.items()}
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": bootstrap, **PERSISTENT, **named})
        self.sent = 0
        self.acknowledged = 0

    @abstractmethod
    def send_next(self) -> None:
        """Call `send` with the next record."""

    def send(
        self, value: bytes | None, on_offset: Callable[[int], None], *, key: bytes | None = None, timestamp: int = 0
    ) -> None:
        """Send a record; ``on_offset`` is told where it was acknowledged. A ``timestamp`` of 0: now."""

        def delivered(error: KafkaError | None, message: Message) -> None:
            assert error is None, str(error)
            offset = message.offset()
            assert offset is not None
            self.acknowledged += 1
            on_offset(offset)

        self.sent += 1
        self._producer.produce(self._topic, value, key, partition=0, timestamp=timestamp, on_delivery=delivered)

    def send_until(self, is_enough: Callable[[], bool]) -> None:
        """Send and take acknowledgements until ``is_enough``."""
        while not is_enough():
            if self.sent - self.acknowledged < MAX_UNACKNOWLEDGED:
                self.send_next()
                self._producer.poll(0)
            else:
                self._producer.poll(0.001)

    def finish(self) -> None:
        """All that was sent is acknowledged."""
        assert self._producer.flush(FLUSH_S) == 0

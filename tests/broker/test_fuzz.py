"""What a broker makes of requests that nobody would send: nothing, but one line and a closed connection."""

from __future__ import annotations

import socket
import struct
import sys
import time
from collections.abc import Iterator
from typing import BinaryIO

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.broker_process import BrokerProcess
from support.embedded import batch_of, fetch, produce
from support.random_requests import ROUTES, RandomRequests
from support.raw_client import RawClient
from support.reading import found_in, only_partition

from walrusmq.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest

EXAMPLES = 500
FRAMES_EACH = 40
LAST_CORRELATION_ID = b"last"
LAST = struct.pack(">ihh4sh", 10, 18, 0, LAST_CORRELATION_ID, -1)
"""ApiVersions 0, which every broker answers."""
MAX_ANSWER_BYTES = 1 << 24
LINES_OF_A_LIFE = 10
MAX_LINE_LENGTH = 500
PATIENCE_S = 5.0
IMPATIENCE_S = 0.1
"""A changed fetch may wait for minutes: its client leaves earlier."""
MAX_GROWTH_MB = 32
SIZE_BYTES = 4
NOT_WHOLE = ("cut off", "size", "noise")
RESET_AT_CLOSE = struct.pack("ii", 1, 0)
"""Thousands of connections that end in order would use up the ports."""
SERVED_S = 2.0

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

KINDS = (
    *["none"] * 6, *["flip"] * 4, *["set"] * 3, "cut", "insert",
    *NOT_WHOLE,
)  # fmt: skip
"""What is done to a frame; often little, so that it gets far."""
EXTREMES = (b"\xff" * 4, b"\x7f\xff\xff\xff", b"\0" * 4, b"\x80\0\0\0")
SIZES = (-1, 0, 9, 10, 1 << 16, 100 << 20, (100 << 20) + 1, (1 << 31) - 1)

Mutation = tuple[str, int, bytes]
"""What is done, where, and with which bytes."""
mutations = st.tuples(st.sampled_from(KINDS), st.integers(0, 1 << 16), st.binary(min_size=1, max_size=64))
requests = st.tuples(st.sampled_from(ROUTES), st.integers(0, 1 << 16), mutations)


def mutated(frame: bytes, mutation: Mutation) -> bytes:
    """The frame with one kind of damage; its size stays true unless the damage is that it doesn't."""
    kind, number, noise = mutation
    body = bytearray(frame[SIZE_BYTES:])
    place = number % len(body)
    match kind:
        case "flip":
            for byte in noise[:3]:
                body[(place + byte) % len(body)] ^= 1 << number % 8
        case "set":
            body[place : place + 4] = EXTREMES[noise[0] % len(EXTREMES)]
        case "cut":
            del body[place:]
        case "insert":
            body[place:place] = noise[:8]
        case "cut off":
            return frame[:place]
        case "size":
            return struct.pack(">i", SIZES[number % len(SIZES)]) + body
        case "noise":
            return noise
    return struct.pack(">i", len(body)) + body


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path_factory.mktemp("fuzz"), {"fsync": "never"}).start()
    yield broker
    if broker.is_up:
        broker.kill()


class Healthy:
    """A client that sends a record and reads it, time and again."""

    def __init__(self, client: RawClient) -> None:
        self.client = client
        self.count = 0

    def is_served(self) -> bool:
        began = time.monotonic()
        value = b"%d" % self.count
        part = only_partition(self.client.ask(produce("healthy", batch_of(value)), 9))
        assert (part.error_code, part.base_offset) == (0, self.count)
        data = only_partition(self.client.ask(fetch("healthy", self.count), 12))
        self.count += 1
        return found_in(data) == [(part.base_offset, value)] and time.monotonic() - began < SERVED_S


class Attacker:
    """Sends frames of any kind, on one connection for as long as the broker leaves it open."""

    def __init__(self, broker: BrokerProcess) -> None:
        host, port = broker.bootstrap.rsplit(":", 1)
        self._address = host, int(port)
        self._connection: socket.socket | None = None
        self._stream: BinaryIO
        self.answers = self.closed = self.left = 0

    def send(self, frame: bytes, *, is_whole: bool) -> None:
        """Send a frame and a good one; take what comes until that is answered, the broker closes, or for too long.

        When the frame isn't whole the broker is told that there is no more.
        """
        try:
            connection = self._connect()
            connection.sendall(frame + LAST if is_whole else frame)
            if not is_whole:
                connection.shutdown(socket.SHUT_WR)
            while (answer := self._receive()) and answer[:SIZE_BYTES] != LAST_CORRELATION_ID:
                self.answers += 1
            if answer:
                return
            self.closed += 1
        except TimeoutError:
            self.left += 1
        except ConnectionError:
            self.closed += 1
        self.close()

    def _connect(self) -> socket.socket:
        if self._connection is None:
            self._connection = socket.create_connection(self._address, PATIENCE_S)
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
            self._connection.settimeout(IMPATIENCE_S)
            self._stream = self._connection.makefile("rb")
        return self._connection

    def _receive(self) -> bytes:
        """An answer without its size; nothing when the broker has closed."""
        prefix = self._stream.read(SIZE_BYTES)
        if len(prefix) < SIZE_BYTES:
            return b""
        (size,) = struct.unpack(">i", prefix)
        assert SIZE_BYTES <= size <= MAX_ANSWER_BYTES
        return self._stream.read(size)

    def close(self) -> None:
        if self._connection is not None:
            self._stream.close()
            self._connection.close()
            self._connection = None


def make_topic(client: RawClient, name: str) -> bytes:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    topic_id: bytes = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).topics[0].topic_id
    return topic_id


def test_twenty_thousand_requests_hurt_nobody(broker: BrokerProcess) -> None:
    with RawClient(broker.bootstrap) as client:
        make_topic(client, "healthy")
        maker = RandomRequests(make_topic(client, "t"))
        healthy, attacker = Healthy(client), Attacker(broker)
        for seed, (key, version) in enumerate(ROUTES):  # what is loaded and compiled once is no growth
            attacker.send(maker.frame(key, version, seed), is_whole=True)
        before_mb = broker.memory_mb()

        @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
        @given(st.lists(requests, min_size=FRAMES_EACH, max_size=FRAMES_EACH))
        def fuzz(examples: list[tuple[tuple[int, int], int, Mutation]]) -> None:
            for route, seed, mutation in examples:
                frame = mutated(maker.frame(*route, seed), mutation)
                attacker.send(frame, is_whole=mutation[0] not in NOT_WHOLE)
            assert healthy.is_served()

        fuzz()
        assert healthy.is_served()
        attacker.close()
        growth_mb = broker.memory_mb() - before_mb
    print(f"{attacker.answers} answers, {attacker.closed} closed, {attacker.left} left; {growth_mb:.1f} MB more")
    assert growth_mb < MAX_GROWTH_MB
    assert attacker.answers > EXAMPLES * FRAMES_EACH / 4, "most of it was thrown away unread"
    assert broker.stop() == 0
    lines = broker.log_text().splitlines()
    assert [line for line in lines if "level=error" in line or "Traceback" in line] == []
    assert len(lines) <= attacker.closed + LINES_OF_A_LIFE
    assert max(len(line) for line in lines) < MAX_LINE_LENGTH

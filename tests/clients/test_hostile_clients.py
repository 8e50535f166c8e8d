"""Clients that stall, flood or never read cost bounded memory and hold up nobody."""

from __future__ import annotations

import random
import socket
import struct
import sys
import time
from contextlib import ExitStack

import pytest
from support.broker_process import PATIENCE_S, BrokerProcess, StartBroker
from support.confluent import consume, produce
from support.raw_client import RawClient, produce_request
from support.samples import Received, Sample
from support.topics import make_topic

from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from walrusmq.protocol.messages.metadata import MetadataRequest
from walrusmq.protocol.records.batch import Record, encode_batch

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

MAX_GROWTH_MB = 100
HALF_FRAME_BYTES = 60_000
SECOND_BYTE_AFTER_S = 0.01


def serves_others(broker: BrokerProcess) -> bool:
    """Whether a stock client gets a record through just now."""
    topic = make_topic(broker)
    produce(broker.bootstrap, topic, [Sample(b"k", b"v")])
    return consume(broker.bootstrap, topic, 1) == [Received(0, Sample(b"k", b"v"))]


def test_a_thousand_clients_that_announce_a_frame_and_fall_silent_are_cheap_and_end(
    start_broker: StartBroker,
) -> None:
    broker = start_broker({"connections.max.idle.ms": 3000})
    before_mb = broker.memory_mb()
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(broker.bootstrap)) for _ in range(1000)]
        for client in clients:
            client.socket.sendall(struct.pack(">i", HALF_FRAME_BYTES) + b"\x00\x12")
        assert serves_others(broker)
        assert broker.memory_mb() - before_mb < MAX_GROWTH_MB
        assert all(client.is_closed_by_peer() for client in clients)


def test_a_client_that_sends_byte_by_byte_is_served_and_disturbs_nobody(start_broker: StartBroker) -> None:
    broker = start_broker()
    with RawClient(broker.bootstrap) as slow:
        slow.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        body = struct.pack(">hhih", 3, 0, 7, -1) + struct.pack(">i", 0)
        for byte in struct.pack(">i", len(body)) + body[:-1]:
            slow.socket.sendall(bytes([byte]))
            time.sleep(SECOND_BYTE_AFTER_S)
        assert serves_others(broker)
        slow.socket.sendall(body[-1:])
        assert slow.receive_frame()[:4] == b"\x00\x00\x00\x07"


def test_a_client_that_never_reads_its_answers_is_held_back(start_broker: StartBroker) -> None:
    broker = start_broker()
    topic = make_topic(broker, walrus_segment_entries="1000000")
    value = bytes(900_000)
    produce(broker.bootstrap, topic, [Sample(None, value)] * 40)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=50_000_000)
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=50_000_000, topics=[FetchTopic(topic=topic, partitions=[partition])]
    )
    before_mb = broker.memory_mb()
    with RawClient(broker.bootstrap) as deaf:
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.socket.settimeout(0.5)
        sent = 0
        try:
            while sent < 200_000:
                deaf.send(request, 11)
                sent += 1
        except TimeoutError:
            pass
        assert sent < 200_000, "the broker read on and on"
        assert serves_others(broker)
        assert broker.memory_mb() - before_mb < MAX_GROWTH_MB


def test_a_slow_fetch_holds_up_no_other_connection(start_broker: StartBroker) -> None:
    broker = start_broker()
    topic = make_topic(broker)
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    waiting = FetchRequest(
        max_wait_ms=20_000, min_bytes=1, max_bytes=1000, topics=[FetchTopic(topic=topic, partitions=[partition])]
    )
    with ExitStack() as stack:
        pollers = [stack.enter_context(RawClient(broker.bootstrap)) for _ in range(50)]
        for poller in pollers:
            poller.send(waiting, 11)
        with RawClient(broker.bootstrap) as client:
            assert client.ask(MetadataRequest(topics=[]), 8).brokers
        began = time.monotonic()
        produce(broker.bootstrap, topic, [Sample(b"k", b"v")])
        answers = [poller.receive(waiting, 11) for poller in pollers]
        assert time.monotonic() - began < PATIENCE_S / 2
    assert all(answer.responses[0].partitions[0].records for answer in answers)


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_a_batch_above_the_topics_limit_is_error_10_and_not_stored(start_broker: StartBroker, codec: str) -> None:
    from walrusmq.protocol.records.compression import Codec

    broker = start_broker()
    topic = make_topic(broker, max_message_bytes="51200")
    noise = random.Random(1).randbytes(10 << 20)
    batch = encode_batch([Record(0, 0, None, noise)], codec=Codec[codec.upper()])
    with RawClient(broker.bootstrap) as client:
        answer = client.ask(produce_request(topic, batch), 9)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.MESSAGE_TOO_LARGE
    produce(broker.bootstrap, topic, [Sample(None, b"small")])
    assert consume(broker.bootstrap, topic, 1) == [Received(0, Sample(None, b"small"))]


def test_connections_above_the_limit_are_refused_and_counted(start_broker: StartBroker) -> None:
    broker = start_broker({"max.connections": 20})
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(broker.bootstrap)) for _ in range(20)]
        assert all(client.ask(MetadataRequest(topics=[]), 8).brokers for client in clients)
        with RawClient(broker.bootstrap) as one_too_many:
            assert one_too_many.is_closed_by_peer()
    assert broker.metric("walrus_connections_refused_total") >= 1

"""Small answers leave at once: no timer of TCP stands between the broker and its client."""

from __future__ import annotations

import statistics
import time

from support.broker_process import BrokerProcess
from support.confluent import produce
from support.raw_client import RawClient
from support.samples import Sample

from walrusmq.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from walrusmq.protocol.messages.metadata import MetadataRequest

REQUESTS = 50
#: Nagle's algorithm against a delayed acknowledgement costs 40 ms; an answer itself costs well under one.
MAX_MEDIAN_S = 0.02


def median_s(client: RawClient, request: object, version: int) -> float:
    times = []
    for _ in range(REQUESTS):
        began = time.monotonic()
        client.ask(request, version)
        times.append(time.monotonic() - began)
    return statistics.median(times)


def test_a_fetch_answer_of_header_and_file_waits_for_no_timer(broker: BrokerProcess, topic: str) -> None:
    produce(broker.bootstrap, topic, [Sample(None, b"value")])
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topics = [FetchTopic(topic=topic, partitions=[partition])]
    with RawClient(broker.bootstrap) as client:
        request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=1000, topics=topics)
        assert median_s(client, request, 11) < MAX_MEDIAN_S


def test_pipelined_requests_of_different_kinds_are_all_answered(broker: BrokerProcess, topic: str) -> None:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topics = [FetchTopic(topic=topic, partitions=[partition])]
    fetch = FetchRequest(max_wait_ms=10, min_bytes=1, max_bytes=1000, topics=topics)
    metadata = MetadataRequest(topics=[])
    with RawClient(broker.bootstrap) as client:
        for _ in range(REQUESTS):
            client.send(metadata, 8)
            client.send(fetch, 11)
            client.send(metadata, 8)
        for _ in range(REQUESTS):
            assert client.receive(metadata, 8).brokers
            assert client.receive(fetch, 11).responses
            assert client.receive(metadata, 8).brokers

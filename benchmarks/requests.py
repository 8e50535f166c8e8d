"""The requests that ``one_in_flight`` repeats: produce one record, fetch from one offset.

Their versions are the newest before the flexible ones: every broker since Kafka 2.4 has them, and the error code of
the answer stands at a place that only the topic's name moves.
"""

from __future__ import annotations

import struct
import time
from typing import Any

from benchmarks.one_in_flight import Request
from walrusmq.protocol.codec import codec
from walrusmq.protocol.frames import request_header_version
from walrusmq.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from walrusmq.protocol.messages.headers import RequestHeader
from walrusmq.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from walrusmq.protocol.records.batch import Record, encode_batch

VALUE_BYTES = 100
PRODUCE_KEY, PRODUCE_VERSION = 0, 8
#: Size, correlation id, count of topics, the name's length, count of partitions, index.
PRODUCE_ERROR_AT = 4 + 4 + 4 + 2 + 4 + 4
FETCH_KEY, FETCH_VERSION = 1, 11
#: Size, correlation id, throttle time, error code, session id, and then as above.
FETCH_ERROR_AT = 4 + 4 + 4 + 2 + 4 + 4 + 2 + 4 + 4
FETCH_BYTES = 1000


def produce_one(topic: str, partition: int, acks: int) -> Request:
    """A Produce request with one batch of one record of 100 bytes."""
    record = Record(0, int(time.time() * 1000), None, bytes(VALUE_BYTES))
    data = PartitionProduceData(index=partition, records=encode_batch([record]))
    topic_data = [TopicProduceData(name=topic, partition_data=[data])]
    body = ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=topic_data)
    return Request(_frame(PRODUCE_KEY, PRODUCE_VERSION, body), PRODUCE_ERROR_AT + len(topic.encode()))


def fetch_at(topic: str, offset: int) -> Request:
    """A Fetch request for what stands at ``offset`` of partition 0."""
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
    topics = [FetchTopic(topic=topic, partitions=[partition])]
    body = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=FETCH_BYTES, topics=topics)
    return Request(_frame(FETCH_KEY, FETCH_VERSION, body), FETCH_ERROR_AT + len(topic.encode()))


def _frame(key: int, version: int, request: Any) -> bytes:
    header = RequestHeader(api_key=key, api_version=version, correlation_id=1, client_id="benchmark")
    body = codec(RequestHeader, request_header_version(key, version)).encode(header)
    body += codec(type(request), version).encode(request)
    return struct.pack(">i", len(body)) + body

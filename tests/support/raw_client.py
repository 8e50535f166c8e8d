"""Requests as they go over the wire, one blocking socket: for what no client library would send."""

from __future__ import annotations

import socket
import struct
from typing import Any

from walrusmq.protocol.codec import codec
from walrusmq.protocol.frames import request_header_version, response_header_version
from walrusmq.protocol.messages import API_BY_KEY
from walrusmq.protocol.messages.headers import RequestHeader, ResponseHeader
from walrusmq.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from walrusmq.protocol.schema import schema_of

TIMEOUT_S = 20.0


class RawClient:
    """One connection to a broker."""

    def __init__(self, bootstrap: str) -> None:
        host, port = bootstrap.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), TIMEOUT_S)
        self._correlation_id = 0

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, request: Any, version: int) -> Any:
        """Send a request and return its decoded answer."""
        self.send(request, version)
        return self.receive(request, version)

    def send(self, request: Any, version: int) -> None:
        """Send a request without waiting for the answer."""
        key = schema_of(type(request)).api_key
        assert key is not None
        self._correlation_id += 1
        header = RequestHeader(
            api_key=key,
            api_version=version,
            correlation_id=self._correlation_id,
            client_id="raw",
        )
        head = codec(RequestHeader, request_header_version(key, version)).encode(header)
        self.send_frame(head + codec(type(request), version).encode(request))

    def send_frame(self, body: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(body)) + body)

    def receive(self, request: Any, version: int) -> Any:
        """The answer to the oldest unanswered request, which was ``request``."""
        key = schema_of(type(request)).api_key
        assert key is not None
        frame = self.receive_frame()
        _, end = codec(ResponseHeader, response_header_version(key, version)).decode(frame, 0)
        response, end = codec(API_BY_KEY[key].response, version).decode(frame, end)
        assert end == len(frame)
        return response

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive_exactly(4))
        return self._receive_exactly(size)

    def is_closed_by_peer(self) -> bool:
        """Wait until the broker closes the connection: True; False if it sends something instead."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _receive_exactly(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            piece = self.socket.recv(size - len(received))
            if not piece:
                raise ConnectionError("the broker closed the connection")
            received += piece
        return bytes(received)


def produce_request(topic: str, batch: bytes, *, partition: int = 0, acks: int = -1) -> ProduceRequest:
    """A request with one batch for one partition, for versions that name the topic (3 to 12)."""
    data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)])
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[data])

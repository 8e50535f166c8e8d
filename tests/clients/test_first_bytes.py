"""What a broker does with the first bytes of clients from the future, and of what is no Kafka client."""

from __future__ import annotations

import os
import struct

import pytest
from support.broker_process import BrokerProcess
from support.raw_client import RawClient

from walrusmq.protocol.codec import codec
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from walrusmq.protocol.messages.metadata import MetadataRequest

API_VERSIONS_KEY, METADATA_KEY = 18, 3
UNKNOWN_VERSION = 99
FRAME_OF_2_GB = (2**31 - 1).to_bytes(4, "big") + b"\x00\x12\x00\x03"
NEGATIVE_FRAME = b"\xff\xff\xff\xff" + b"\x00\x12\x00\x03"

REQUEST = ApiVersionsRequest(client_software_name="raw", client_software_version="1")


def header(key: int, version: int) -> bytes:
    """A request header as it begins in any version: key, version, correlation id 7, no client id."""
    return struct.pack(">hhih", key, version, 7, -1)


def new_log(broker: BrokerProcess, before: int) -> list[str]:
    return broker.log_text()[before:].splitlines()


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_api_versions_is_answered_in_every_version_with_a_plain_header(broker: BrokerProcess, version: int) -> None:
    with RawClient(broker.bootstrap) as client:
        answer = client.ask(REQUEST, version)
        assert answer.error_code == 0
        offered = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        assert offered[0][0] == 0
        assert offered[API_VERSIONS_KEY][0] == 0


def test_an_api_versions_from_the_future_is_told_what_there_is_and_stays(broker: BrokerProcess) -> None:
    with RawClient(broker.bootstrap) as client:
        client.send_frame(header(API_VERSIONS_KEY, UNKNOWN_VERSION) + b"\x00whatever comes then")
        frame = client.receive_frame()
        answer, end = codec(ApiVersionsResponse, 0).decode(frame, 4)
        assert end == len(frame)
        assert frame[:4] == b"\x00\x00\x00\x07"
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert API_VERSIONS_KEY in {each.api_key for each in answer.api_keys}
        assert client.ask(REQUEST, 3).error_code == 0


@pytest.mark.parametrize(("key", "version"), [(METADATA_KEY, UNKNOWN_VERSION), (12345, 0)])
def test_another_api_or_version_that_is_not_offered_closes_the_connection(
    broker: BrokerProcess, key: int, version: int
) -> None:
    with RawClient(broker.bootstrap) as client:
        client.send_frame(header(key, version) + b"\x00" * 20)
        assert client.is_closed_by_peer()


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "TLS"),
        (FRAME_OF_2_GB, str(2**31 - 1)),
        (NEGATIVE_FRAME, "-1"),
    ],
    ids=["HTTP", "TLS", "2 GB", "negative"],
)
def test_what_is_no_request_is_closed_with_one_line_that_says_what_it_looks_like(
    broker: BrokerProcess, sent: bytes, told: str
) -> None:
    before = len(broker.log_text())
    with RawClient(broker.bootstrap) as client:
        client.socket.sendall(sent)
        assert client.is_closed_by_peer()
    (line,) = new_log(broker, before)
    assert told in line


def test_random_bytes_close_their_connection_and_disturb_nobody(broker: BrokerProcess) -> None:
    with RawClient(broker.bootstrap) as healthy:
        before = len(broker.log_text())
        for _ in range(100):
            with RawClient(broker.bootstrap) as client:
                client.send_frame(os.urandom(100))
                client.socket.shutdown(1)
                client.is_closed_by_peer()
            assert healthy.ask(MetadataRequest(topics=[]), 8).brokers
        assert "Traceback" not in "".join(new_log(broker, before))

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from walrusmq.protocol.codec import codec
from walrusmq.protocol.errors import MalformedMessage
from walrusmq.protocol.frames import (
    MAX_FRAME_BYTES,
    FileRegion,
    RequestHeader,
    ResponseHeader,
    decode_request_header,
    encode_response_header,
    read_frame_size,
    request_header_version,
    response_header_version,
)
from walrusmq.protocol.messages import API_BY_KEY
from walrusmq.protocol.vectors import NotDeclared, check_vector, read_vectors

FRAMES = Path(__file__).parents[1] / "data" / "wire" / "frames.jsonl.gz"


def test_kafkas_own_frames_are_read_and_written() -> None:
    checked = set()
    for number, vector in read_vectors(FRAMES):
        try:
            assert check_vector(FRAMES.name, vector) == [], number
            checked.add(vector["apiKey"])
        except NotDeclared:
            assert vector["apiKey"] not in API_BY_KEY
    assert checked == set(API_BY_KEY)


def test_a_frame_says_how_many_bytes_follow() -> None:
    assert read_frame_size(b"##\0\0\1\0", 2) == 256
    assert read_frame_size(MAX_FRAME_BYTES.to_bytes(4)) == MAX_FRAME_BYTES


@pytest.mark.parametrize("size", ["06400001", "ffffffff", "7fffffff", "47455420"])
def test_a_frame_above_the_limit_or_of_negative_size_is_refused(size: str) -> None:
    with pytest.raises(MalformedMessage, match="at most 104857600"):
        read_frame_size(bytes.fromhex(size))


@pytest.mark.parametrize(
    ("api_key", "api_version", "request_version", "response_version"),
    [
        (0, 8, 1, 0),
        (0, 9, 2, 1),
        (18, 0, 1, 0),
        (18, 3, 2, 0),
        (18, 99, 2, 0),
        (3, -1, 1, 0),
        (75, 0, 2, 1),
    ],
)
def test_flexible_versions_have_the_newer_headers_but_for_the_response_of_api_versions(
    api_key: int, api_version: int, request_version: int, response_version: int
) -> None:
    assert request_header_version(api_key, api_version) == request_version
    assert response_header_version(api_key, api_version) == response_version


@pytest.mark.parametrize("client_id", [None, "", "cliént"])
def test_a_request_header_is_read_whichever_its_version(client_id: str | None) -> None:
    for api_version, header_version in ((8, 1), (9, 2)):
        header = RequestHeader(api_key=0, api_version=api_version, correlation_id=7, client_id=client_id)
        data = codec(RequestHeader, header_version).encode(header)
        assert decode_request_header(b"#" + data + b"body", 1) == (header, 1 + len(data))


def test_the_header_of_a_version_that_does_not_exist_can_be_read_to_answer_it() -> None:
    header = RequestHeader(api_key=18, api_version=99, correlation_id=7, client_id="x")
    assert decode_request_header(codec(RequestHeader, 2).encode(header))[0] == header


def test_an_unknown_api_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="unknown api key 999"):
        decode_request_header((999).to_bytes(2) + bytes(20))


@given(st.binary(max_size=40) | st.binary(max_size=30).map(lambda data: b"\0\x12\0\3" + data))
def test_any_bytes_are_a_request_header_or_malformed(data: bytes) -> None:
    try:
        header, end = decode_request_header(memoryview(data))
    except MalformedMessage:
        return
    assert isinstance(header, RequestHeader)
    assert 10 <= end <= len(data)


def test_a_response_header_is_its_correlation_id_with_or_without_tagged_fields() -> None:
    header = ResponseHeader(correlation_id=-5)
    assert encode_response_header(-5, False) == codec(ResponseHeader, 0).encode(header) == b"\xff\xff\xff\xfb"
    assert encode_response_header(-5, True) == codec(ResponseHeader, 1).encode(header) == b"\xff\xff\xff\xfb\0"


class OpenFile:
    fd = 9

    def pin(self) -> None: ...

    def unpin(self) -> None: ...


def test_a_region_of_a_file_is_as_long_as_its_bytes() -> None:
    region = FileRegion(OpenFile(), position=4096, size=123)
    assert len(region) == 123
    assert repr(region) == "FileRegion(fd=9, position=4096, size=123)"

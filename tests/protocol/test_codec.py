"""The compiled codecs, held to Kafka's own bytes and to plain construct."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from construct import FormatField
from hypothesis import given, settings
from hypothesis import strategies as st

from walrusmq.protocol.codec import Codec, codec
from walrusmq.protocol.errors import MalformedMessage, UnencodableMessage, UnsupportedField, ValueOutOfRange
from walrusmq.protocol.frames import FileRegion
from walrusmq.protocol.layout import MAX_REQUEST_ELEMENTS, Absent, StructAdapter, TaggedFields, build, parse
from walrusmq.protocol.messages import API_BY_KEY, MESSAGES_BY_NAME
from walrusmq.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from walrusmq.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from walrusmq.protocol.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from walrusmq.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from walrusmq.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from walrusmq.protocol.messages.produce import (
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from walrusmq.protocol.primitives import (
    Array,
    Blob,
    Bytes,
    Float64,
    Int32,
    OrNull,
    String,
    Text,
    UuidBytes,
    Uvarint,
    Varint,
    Varlong,
    write_uvarint,
)
from walrusmq.protocol.schema import field, message, schema_of
from walrusmq.protocol.schema import struct as declared_struct
from walrusmq.protocol.vectors import check_vector, read_vectors

WIRE = Path(__file__).parents[1] / "data" / "wire"
MESSAGE_FILES = sorted(path for path in WIRE.glob("*.jsonl.gz") if path.name[0].isdigit() or path.name[0].isupper())


@declared_struct
class Point:
    """A struct that may be null, tagged or not."""

    x: int = field(Varint, "0+")
    y: int = field(Varlong, "0+")


@message(api_key=None, kind="data", versions="0-1", flexible="1+")
class EveryType:
    """What no message of Kafka's here has, but commands of the metadata log may."""

    weight: float = field(Float64, "0+")
    blob: bytes = field(Bytes, "0+")
    maybe_blob: bytes | None = field(Bytes, "0+", nullable="0+", default=None)
    count: int = field(Uvarint, "0+")
    point: Point = field(Point, "0+")
    maybe_point: Point | None = field(Point, "0+", nullable="0+", default=None)
    counts: list[int] = field(Array(Uvarint), "0+")
    blobs: list[bytes] = field(Array(Bytes), "0+")
    tagged_point: Point | None = field(Point, "1+", tag=3, nullable="1+", default=None)
    tagged_names: list[str] | None = field(Array(String), "1+", tag=0, nullable="1+", default=None)
    tagged_number: int = field(Int32, "1+", tag=200, default=7)


ALL_CLASSES = [
    *(cls for api in API_BY_KEY.values() for cls in (api.request, api.response)),
    *MESSAGES_BY_NAME.values(),
    EveryType,
]
ALL_CODECS: list[Codec[Any]] = [codec(cls, version) for cls in ALL_CLASSES for version in schema_of(cls).versions]

NUMBERS = {"b": 8, "h": 16, "l": 32, "q": 64}
EXTREMES = [b"\x7f\xff\xff\xff", b"\xff" * 5, b"\x80" * 11, b"\xfe", b"\x80\0", b"\x81\0", b"\xff\xff"]
texts = st.text(max_size=12) | st.text(min_size=120, max_size=140)
blobs = st.binary(max_size=12) | st.binary(min_size=120, max_size=140)


def values(construct: Any) -> st.SearchStrategy[Any]:
    """What a construct of a layout can carry."""
    match construct:
        case FormatField(fmtstr=">?"):
            return st.booleans()
        case FormatField(fmtstr=">d"):
            return st.floats(allow_nan=False)
        case FormatField(fmtstr=">H"):
            return st.integers(0, 0xFFFF)
        case FormatField():
            bits = NUMBERS[construct.fmtstr[1]]
            return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
        case UuidBytes():
            return st.binary(min_size=16, max_size=16)
        case Text():
            return or_null(construct, texts)
        case Blob():
            return or_null(construct, blobs)
        case Array():
            return or_null(construct, st.lists(values(construct.element), max_size=3))
        case OrNull():
            return st.none() | values(construct.subcon)
        case StructAdapter():
            return messages(construct)
    low, high = {Uvarint: (0, 2**32 - 1), Varint: (-(2**31), 2**31 - 1), Varlong: (-(2**63), 2**63 - 1)}[construct]
    return st.integers(low, high)


def or_null(construct: Any, strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy if construct.nullable else strategy


def messages(construct: StructAdapter) -> st.SearchStrategy[Any]:
    """Messages that hold something only in the fields that the version has."""
    fields = {}
    for member in construct.subcon.subcons:
        if isinstance(member.subcon, TaggedFields):
            for tagged in member.subcon.fields:
                fields[tagged.field.name] = st.just(tagged.field.default) | values(tagged.subcon)
        elif not isinstance(member.subcon, Absent):
            fields[member.name] = values(member.subcon)
    return st.builds(construct.cls, **fields)


MESSAGES = {id(tried): messages(tried.layout) for tried in ALL_CODECS}


@st.composite
def coded_messages(draw: st.DrawFn) -> tuple[Codec[Any], Any]:
    tried = draw(st.sampled_from(ALL_CODECS))
    return tried, draw(MESSAGES[id(tried)])


@st.composite
def mutated_bytes(draw: st.DrawFn) -> tuple[Codec[Any], bytes]:
    """A message's bytes with a stretch of them cut out, changed or doubled, or with other bytes put in."""
    tried, value = draw(coded_messages())
    data = build(tried.layout, value)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 8)))
        put_in = draw(st.binary(max_size=8) | st.sampled_from(EXTREMES))
        data = data[:start] + put_in + data[end:]
    return tried, data


def outcome(decode: Any, data: bytes) -> Any:
    try:
        return decode(data)
    except MalformedMessage:
        return MalformedMessage


def assert_same_answer(tried: Codec[Any], data: bytes) -> None:
    expected = outcome(lambda data: parse(tried.layout, data), data)
    for buffer in (data, memoryview(data)):
        # Values that aren't equal to themselves (NaN) are the same if they show the same.
        actual = outcome(tried.decode, buffer)
        assert actual == expected or comparable(actual) == comparable(expected)


def comparable(answer: Any) -> str:
    return repr(answer)


@pytest.mark.parametrize("path", MESSAGE_FILES, ids=lambda path: path.name.partition(".")[0])
def test_kafkas_own_bytes_are_read_and_written_by_compiled_code_and_by_construct(path: Path) -> None:
    problems = [
        f"line {number}: {problem}"
        for number, vector in read_vectors(path)
        for problem in check_vector(path.name, vector)
    ]
    assert problems == []


@given(coded_messages())
@settings(max_examples=400, deadline=None)
def test_what_is_written_is_read_again_and_construct_writes_the_same(coded: tuple[Codec[Any], Any]) -> None:
    tried, value = coded
    data = tried.encode(value)
    assert data == build(tried.layout, value)
    assert tried.decode(data) == (value, len(data)) == parse(tried.layout, data)
    assert tried.decode(b"##" + data + b"##", 2) == (value, len(data) + 2), "bytes before and after are left alone"


@given(coded_messages(), st.data())
@settings(max_examples=200, deadline=None)
def test_truncated_bytes_are_refused(coded: tuple[Codec[Any], Any], data: st.DataObject) -> None:
    tried, value = coded
    whole = tried.encode(value)
    if whole:
        cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
        assert outcome(tried.decode, cut) is MalformedMessage
        assert_same_answer(tried, cut)


@given(mutated_bytes())
@settings(max_examples=800, deadline=None)
def test_compiled_code_and_construct_give_the_same_answer_to_mutated_bytes(mutated: tuple[Codec[Any], bytes]) -> None:
    assert_same_answer(*mutated)


@given(st.sampled_from(ALL_CODECS), st.binary(max_size=60))
@settings(max_examples=400, deadline=None)
def test_compiled_code_and_construct_give_the_same_answer_to_any_bytes(tried: Codec[Any], data: bytes) -> None:
    assert_same_answer(tried, data)


@pytest.mark.parametrize("tried", ALL_CODECS, ids=lambda tried: tried.label)
def test_each_version_of_each_message_compiles_and_holds_its_defaults(tried: Codec[Any]) -> None:
    data = tried.encode(tried.cls())
    assert tried.decode(data) == (tried.cls(), len(data))
    assert data == build(tried.layout, tried.cls())


@pytest.mark.parametrize(
    ("cls", "version", "data"),
    [
        (MetadataRequest, 0, "7fffffff"),
        (MetadataRequest, 4, "7fffffff00"),
        (MetadataRequest, 4, "fffffffe00"),
        (MetadataRequest, 0, "ffffffff"),
        (MetadataRequest, 9, "ffffffff0f0000"),
        (MetadataRequest, 9, "8080808080010000"),
        (MetadataRequest, 9, "0204ff61610000000000"),
        (ApiVersionsRequest, 3, "000000"),
        (ApiVersionsRequest, 3, "0101ffffffff0f"),
        (ApiVersionsRequest, 3, "01010105ffffffff07"),
        (DescribeTopicPartitionsRequest, 0, "0100000001fe000000000000"),
        (ProduceRequest, 3, "ffff00010000000100000001000000000001000000007fffffff61"),
        (ProduceRequest, 3, "ffff0001000000010000000100000000000100000000fffffffe61"),
    ],
)
def test_hostile_bytes_are_refused_at_once(cls: type, version: int, data: str) -> None:
    tried: Codec[Any] = codec(cls, version)
    assert outcome(tried.decode, bytes.fromhex(data)) is MalformedMessage
    assert_same_answer(tried, bytes.fromhex(data))


def test_a_request_of_more_elements_than_any_client_sends_is_refused() -> None:
    tried = codec(MetadataRequest, 0)
    most, too_many = (
        struct.pack(">i", count) + b"\0\0" * count for count in (MAX_REQUEST_ELEMENTS, MAX_REQUEST_ELEMENTS + 1)
    )
    assert len(tried.decode(most)[0].topics or []) == MAX_REQUEST_ELEMENTS
    assert outcome(tried.decode, too_many) is MalformedMessage
    assert_same_answer(tried, too_many)


def test_tagged_fields_count_as_elements_of_a_request() -> None:
    tried = codec(MetadataRequest, 9)
    topics = write_uvarint(MAX_REQUEST_ELEMENTS + 1) + b"\1\0" * MAX_REQUEST_ELEMENTS
    assert outcome(tried.decode, topics + b"\0\0\0\0") is not MalformedMessage
    assert outcome(tried.decode, topics + b"\0\0\0\1\x09\0") is MalformedMessage
    too_many = write_uvarint(MAX_REQUEST_ELEMENTS + 1) + b"\x09\0" * (MAX_REQUEST_ELEMENTS + 1)
    assert outcome(tried.decode, b"\1\0\0\0" + too_many) is MalformedMessage
    assert_same_answer(tried, b"\1\0\0\0" + too_many)


def test_what_is_no_request_may_be_of_any_size() -> None:
    many = EveryType(counts=[1] * (MAX_REQUEST_ELEMENTS + 1))
    for version in (0, 1):
        assert codec(EveryType, version).decode(codec(EveryType, version).encode(many))[0] == many


def test_tagged_fields_may_come_in_any_order_and_the_last_of_two_counts_as_in_kafka() -> None:
    tried = codec(EveryType, 1)
    whole = tried.encode(EveryType())
    assert whole[-1:] == b"\0", "no tagged field is written for its default"
    number = b"\xc8\x01\x04" + struct.pack(">i", 5)
    other = b"\xc8\x01\x04" + struct.pack(">i", 6)
    names = b"\x00\x01\x01"
    unknown = b"\x09\x02##"
    data = whole[:-1] + b"\x04" + number + unknown + names + other
    assert tried.decode(data) == (EveryType(tagged_number=6, tagged_names=[]), len(data))
    assert_same_answer(tried, data)


def test_a_tagged_field_that_is_not_as_long_as_its_size_is_refused() -> None:
    tried = codec(EveryType, 1)
    for size in (3, 5):
        data = tried.encode(EveryType())[:-1] + b"\x01\xc8\x01" + bytes([size]) + bytes(5)
        assert outcome(tried.decode, data) is MalformedMessage
        assert_same_answer(tried, data)


def test_tagged_fields_are_written_by_ascending_tag_whatever_the_order_of_the_declaration() -> None:
    encoded = codec(EveryType, 1).encode(EveryType(tagged_point=Point(x=1), tagged_names=["a"], tagged_number=1))
    assert encoded.endswith(bytes.fromhex("030003020261030401020000c8010400000001"))


def test_records_are_read_as_a_view_of_the_buffer_and_all_else_is_copied() -> None:
    request = ProduceRequest(
        topic_data=[TopicProduceData(name="t", partition_data=[PartitionProduceData(records=b"ab")])]
    )
    for version in (3, 9):
        buffer = bytearray(codec(ProduceRequest, version).encode(request))
        decoded, _ = codec(ProduceRequest, version).decode(memoryview(buffer))
        records = decoded.topic_data[0].partition_data[0].records
        assert isinstance(records, memoryview)
        buffer[buffer.index(b"ab")] = ord("x")
        assert bytes(records) == b"xb"
        assert decoded.topic_data[0].name == "t"


class OpenFile:
    fd = 3

    def pin(self) -> None: ...

    def unpin(self) -> None: ...


def test_records_go_out_as_they_are_between_parts_of_joined_bytes() -> None:
    region = FileRegion(OpenFile(), 100, 50)
    view = memoryview(b"abc")
    partitions = [PartitionData(records=region), PartitionData(records=None), PartitionData(records=view)]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    for version in (4, 12):
        parts: list[Any] = [b"header"]
        codec(FetchResponse, version).encode_parts(response, parts)
        assert [type(part) for part in parts] == [
            bytes,
            bytes,
            FileRegion,
            bytes,
            memoryview,
            *[bytes] * (version == 12),
        ]
        assert parts[2] is region
        assert parts[4] is view


def test_a_message_that_cannot_be_written_leaves_the_parts_as_they_were() -> None:
    bad = PartitionData(partition_index=2**31)
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(records=b"abc"), bad])])
    parts: list[Any] = [b"header"]
    with pytest.raises(ValueOutOfRange, match=r"partitions\[1\].*partition_index"):
        codec(FetchResponse, 4).encode_parts(response, parts)
    assert parts == [b"header"]


@pytest.mark.parametrize(
    ("version", "value", "error", "names"),
    [
        (9, ProduceRequest(acks=2**15), ValueOutOfRange, "acks"),
        (9, ProduceRequest(acks=None), ValueOutOfRange, "acks"),  # type: ignore[arg-type]
        (9, ProduceRequest(transactional_id="\ud800"), ValueOutOfRange, "transactional_id"),
        (9, ProduceRequest(transactional_id="x" * 2**15), ValueOutOfRange, "transactional_id"),
        (3, ProduceRequest(transactional_id="x" * 2**15), ValueOutOfRange, "transactional_id"),
        (9, ProduceRequest(topic_data=None), ValueOutOfRange, "topic_data"),  # type: ignore[arg-type]
        (3, ProduceRequest(topic_data=[None]), ValueOutOfRange, r"topic_data\[0\]"),  # type: ignore[list-item]
        (13, ProduceRequest(topic_data=[TopicProduceData(topic_id=b"short")]), ValueOutOfRange, "topic_id"),
    ],
)
def test_a_value_that_does_not_fit_is_named(version: int, value: Any, error: type[Exception], names: str) -> None:
    for encode in (
        codec(ProduceRequest, version).encode,
        lambda value: build(codec(ProduceRequest, version).layout, value),
    ):
        with pytest.raises(error, match=names):
            encode(value)


def test_a_field_that_the_version_lacks_is_dropped_if_ignorable_and_refused_otherwise() -> None:
    topics = [MetadataRequestTopic(topic_id=bytes(15) + b"\1", name="t")]
    assert codec(MetadataRequest, 4).encode(MetadataRequest(topics=topics)) == codec(MetadataRequest, 4).encode(
        MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    )
    with pytest.raises(UnsupportedField, match="forgotten_topics_data"):
        codec(FetchRequest, 4).encode(FetchRequest(forgotten_topics_data=["anything"]))  # type: ignore[list-item]
    led = PartitionProduceResponse(current_leader=LeaderIdAndEpoch(leader_id=1))
    with pytest.raises(UnsupportedField, match="current_leader"):
        codec(ProduceResponse, 9).encode(ProduceResponse(responses=[TopicProduceResponse(partition_responses=[led])]))
    again = PartitionProduceResponse(current_leader=LeaderIdAndEpoch())
    codec(ProduceResponse, 9).encode(ProduceResponse(responses=[TopicProduceResponse(partition_responses=[again])]))


def test_a_nullable_struct_is_there_or_not() -> None:
    tried = codec(DescribeTopicPartitionsRequest, 0)
    for cursor, data in ((None, "01000007d0ff00"), (Cursor(topic_name="t"), "01000007d0010274000000000000")):
        request = DescribeTopicPartitionsRequest(cursor=cursor)
        assert tried.encode(request).hex() == data
        assert tried.decode(bytes.fromhex(data))[0] == request


@pytest.mark.parametrize(
    ("cls", "version", "data", "value"),
    [
        (MetadataRequest, 11, "8000010000", MetadataRequest(topics=None)),
        (MetadataRequest, 11, "8100010000", MetadataRequest(topics=[])),
        (ApiVersionsRequest, 3, "8100828080006100", ApiVersionsRequest(client_software_version="a")),
    ],
)
def test_a_length_of_more_bytes_than_it_needs_is_read_as_kafka_reads_it(
    cls: type, version: int, data: str, value: Any
) -> None:
    tried: Codec[Any] = codec(cls, version)
    assert tried.decode(bytes.fromhex(data))[0] == value
    assert_same_answer(tried, bytes.fromhex(data))


def test_lengths_of_several_bytes_are_read_and_written() -> None:
    for size in (126, 127, 128, 16382, 16383, 16384, 2**21):
        request = ProduceRequest(
            transactional_id="x" * min(size, 0x7FFF),
            topic_data=[TopicProduceData(partition_data=[PartitionProduceData(records=bytes(size))])],
        )
        data = codec(ProduceRequest, 9).encode(request)
        assert codec(ProduceRequest, 9).decode(data) == (request, len(data))
    many = CreateTopicsRequest(topics=[CreatableTopic(name=str(index)) for index in range(300)])
    data = codec(CreateTopicsRequest, 7).encode(many)
    assert codec(CreateTopicsRequest, 7).decode(data) == (many, len(data))


def test_a_codec_compiles_each_way_when_it_is_looked_up() -> None:
    fresh: Codec[ApiVersionsResponse] = Codec(ApiVersionsResponse, 3)
    assert "decode" not in vars(fresh)
    decode = fresh.decode
    assert fresh.decode is decode
    assert "encode_parts" not in vars(fresh)
    assert decode(fresh.encode(ApiVersionsResponse(error_code=35)))[0].error_code == 35


def test_there_is_one_codec_for_a_message_in_a_version() -> None:
    assert codec(ProduceRequest, 9) is codec(ProduceRequest, 9)
    assert codec(ProduceRequest, 9) is not codec(ProduceRequest, 10)


def test_an_encoding_error_is_an_unencodable_message() -> None:
    assert issubclass(UnsupportedField, UnencodableMessage)
    assert issubclass(ValueOutOfRange, UnencodableMessage)
    assert json.dumps(str(ValueOutOfRange("why"))) == '"why"'

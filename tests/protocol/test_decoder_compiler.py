import tracemalloc

import pytest
from construct import Construct, Struct

from walrusmq.protocol.decoder_compiler import compile_decoder
from walrusmq.protocol.errors import MalformedMessage
from walrusmq.protocol.layout import StructAdapter, layout
from walrusmq.protocol.messages.headers import ResponseHeader
from walrusmq.protocol.messages.metadata import MetadataRequest
from walrusmq.protocol.messages.produce import ProduceRequest, ProduceResponse


def test_adjacent_fields_of_fixed_width_are_read_by_one_call_with_the_length_that_follows() -> None:
    names = compile_decoder(layout(ProduceResponse, 7), "test").__code__.co_names
    assert "unpack_from_lhqqq" in names
    assert "unpack_from_hll" in compile_decoder(layout(ProduceRequest, 7), "test").__code__.co_names
    assert "unpack_from_hlB" in compile_decoder(layout(ProduceRequest, 9), "test").__code__.co_names


@pytest.mark.parametrize(("version", "count"), [(4, b"\x7f\xff\xff\xff"), (9, b"\xff\xff\xff\xff\x07")])
def test_a_count_that_cannot_be_allocates_nothing(version: int, count: bytes) -> None:
    decode = compile_decoder(layout(MetadataRequest, version), "test")
    tracemalloc.start()
    with pytest.raises(MalformedMessage, match=r"topics: length \d+, but 100 bytes are left"):
        decode(count + bytes(100))
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()


def test_an_error_names_the_message_and_the_field() -> None:
    decode = compile_decoder(layout(ProduceRequest, 9), "ProduceRequest v9")
    with pytest.raises(
        MalformedMessage, match=r"^ProduceRequest v9\.topic_data\.name: length 99, but 3 bytes are left$"
    ):
        decode(b"\0\0\1\0\0\0\0\2\x64abc")
    with pytest.raises(MalformedMessage, match=r"^ProduceRequest v9: the bytes end early$"):
        decode(b"\0\0")
    with pytest.raises(MalformedMessage, match=r"^ProduceRequest v9: 'utf-8' codec can't decode"):
        decode(b"\3\xff\xff")


def test_a_construct_that_kafka_has_no_use_for_is_refused_when_compiled() -> None:
    with pytest.raises(TypeError, match="no decoder can be made"):
        compile_decoder(StructAdapter(ResponseHeader, Struct("correlation_id" / Construct())), "test")

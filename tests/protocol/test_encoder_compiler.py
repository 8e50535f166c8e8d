from typing import Any

import pytest
from construct import Construct, Struct

from walrusmq.protocol.encoder_compiler import compile_encoder
from walrusmq.protocol.errors import ValueOutOfRange
from walrusmq.protocol.layout import StructAdapter, layout
from walrusmq.protocol.messages.api_versions import ApiVersionsRequest
from walrusmq.protocol.messages.headers import ResponseHeader
from walrusmq.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse


def test_adjacent_fields_of_fixed_width_are_written_by_one_call_with_what_follows_them() -> None:
    names = compile_encoder(layout(ProduceResponse, 9), "test").__code__.co_names
    assert "pack_lhqqqB" in names, "five fields and the count of the errors"
    assert "pack_lx" in names, "the throttle time and the end of the message"


def test_a_message_without_records_is_one_part_and_an_empty_one_none() -> None:
    parts: list[Any] = []
    responses = [
        TopicProduceResponse(name="t", partition_responses=[PartitionProduceResponse(index=n)]) for n in range(9)
    ]
    compile_encoder(layout(ProduceResponse, 9), "test")(ProduceResponse(responses=responses), parts)
    assert [type(part) for part in parts] == [bytes]
    compile_encoder(layout(ApiVersionsRequest, 0), "test")(ApiVersionsRequest(), parts)
    assert len(parts) == 1


def test_an_error_has_the_path_that_construct_knows() -> None:
    bad = ProduceResponse(
        responses=[TopicProduceResponse(partition_responses=[PartitionProduceResponse(error_code=-(2**15) - 1)])]
    )
    with pytest.raises(ValueOutOfRange, match=r"responses\[0\] -> partition_responses\[0\] -> error_code"):
        compile_encoder(layout(ProduceResponse, 9), "test")(bad, [])


def test_a_construct_that_kafka_has_no_use_for_is_refused_when_compiled() -> None:
    with pytest.raises(TypeError, match="no encoder can be made"):
        compile_encoder(StructAdapter(ResponseHeader, Struct("correlation_id" / Construct())), "test")

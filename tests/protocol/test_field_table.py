import pytest

from walrusmq.protocol.errors import UnsupportedVersion
from walrusmq.protocol.field_table import field_table, type_name
from walrusmq.protocol.messages.api_versions import ApiVersionsRequest
from walrusmq.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from walrusmq.protocol.messages.produce import ProduceRequest
from walrusmq.protocol.primitives import (
    Array,
    Bool,
    Bytes,
    Float64,
    Int64,
    Records,
    String,
    Uint16,
    Uuid,
    Uvarint,
    Varlong,
)


def test_the_fields_of_a_version_stand_in_columns_nested_ones_indented() -> None:
    assert field_table(ProduceRequest, 12).splitlines() == [
        "ProduceRequest version 12 (request, API key 0, flexible)",
        "field             type                            nullable  tag  default",
        "----------------  ------------------------------  --------  ---  -------",
        "transactional_id  compact string                  nullable       null",
        "acks              int16                                          0",
        "timeout_ms        int32                                          0",
        "topic_data        compact []TopicProduceData                     []",
        "  name            compact string                                 ''",
        "  partition_data  compact []PartitionProduceData                 []",
        "    index         int32                                          0",
        "    records       compact records                 nullable       null",
    ]


def test_a_nullable_struct_shows_its_fields_too() -> None:
    table = field_table(DescribeTopicPartitionsRequest, 0)
    assert "cursor                    Cursor                  nullable       null" in table
    assert "\n  partition_index         int32" in table


def test_a_version_without_fields_says_so() -> None:
    assert field_table(ApiVersionsRequest, 0).splitlines()[1:] == ["no fields"]


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnsupportedVersion):
        field_table(ProduceRequest, 14)


def test_types_have_kafkas_names() -> None:
    types = (Bool, Uint16, Int64, Float64, String, Bytes, Records, Uuid, Array(String), Uvarint, Varlong)
    assert " ".join(map(type_name, types)) == (
        "bool uint16 int64 float64 string bytes records uuid []string uvarint varlong"
    )
    assert type_name(Array(String).resolved(compact=True, nullable=True)) == "compact []string"

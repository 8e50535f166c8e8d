import pytest
from construct import Struct

from walrusmq.protocol.errors import MalformedMessage, UnsupportedField, UnsupportedVersion, ValueOutOfRange
from walrusmq.protocol.layout import Absent, TaggedFields, build, layout, parse
from walrusmq.protocol.messages.fetch import FetchRequest, FetchTopic, ReplicaState
from walrusmq.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def members(cls: type, version: int) -> dict[str, type]:
    return {member.name: type(member.subcon) for member in layout(cls, version).subcon.subcons}


def test_a_version_is_a_plain_construct_struct_of_its_fields() -> None:
    plain = layout(ProduceRequest, 3).subcon
    assert type(plain) is Struct
    assert [member.name for member in plain.subcons] == ["transactional_id", "acks", "timeout_ms", "topic_data"]
    container = plain.parse(bytes.fromhex("ffff0001000003e800000000"))
    assert (container.transactional_id, container.acks, container.timeout_ms) == (None, 1, 1000)


def test_a_field_is_absent_in_a_version_without_it_and_tagged_ones_stand_at_the_end() -> None:
    assert Absent not in members(TopicProduceData, 5).values() or members(ProduceRequest, 3)["acks"] is not Absent
    assert members(FetchRequest, 4)["session_id"] is Absent
    assert list(members(FetchRequest, 12).values())[-1] is TaggedFields
    assert TaggedFields not in members(FetchRequest, 11).values()


def test_construct_alone_reads_and_writes_messages() -> None:
    request = ProduceRequest(
        acks=-1, topic_data=[TopicProduceData(name="t", partition_data=[PartitionProduceData(records=b"abc")])]
    )
    for version in schema_versions(ProduceRequest):
        tried = layout(ProduceRequest, version)
        expected = request if version < 13 else without_name(request)
        assert parse(tried, build(tried, request)) == (expected, len(build(tried, request)))


def schema_versions(cls: type) -> range:
    return cls.SCHEMA.versions  # type: ignore[attr-defined,no-any-return]


def without_name(request: ProduceRequest) -> ProduceRequest:
    [topic] = request.topic_data
    return ProduceRequest(acks=request.acks, topic_data=[TopicProduceData(partition_data=topic.partition_data)])


def test_a_version_that_does_not_exist_is_named() -> None:
    with pytest.raises(UnsupportedVersion, match="ProduceRequest has no version 2"):
        layout(ProduceRequest, 2)


def test_a_value_that_the_version_cannot_carry_is_refused_unless_it_may_be_dropped() -> None:
    with pytest.raises(UnsupportedField, match="replica_state"):
        build(layout(FetchRequest, 14), FetchRequest(replica_state=ReplicaState(replica_id=3)))
    with pytest.raises(UnsupportedField, match="forgotten_topics_data"):
        build(layout(FetchRequest, 4), FetchRequest(forgotten_topics_data=[FetchTopic()]))  # type: ignore[list-item]
    assert build(layout(FetchRequest, 4), FetchRequest(session_id=3)) == build(layout(FetchRequest, 4), FetchRequest())


def test_an_error_says_where_it_is() -> None:
    request = ProduceRequest(
        topic_data=[TopicProduceData(name="t", partition_data=[PartitionProduceData(index=2**31)])]
    )
    with pytest.raises(ValueOutOfRange, match=r"topic_data\[0\].*partition_data\[0\].*index"):
        build(layout(ProduceRequest, 9), request)
    with pytest.raises(MalformedMessage, match="topic_data"):
        parse(layout(ProduceRequest, 9), bytes.fromhex("000001000003e805"))


def test_an_object_of_another_class_is_not_taken_for_the_message() -> None:
    with pytest.raises(ValueOutOfRange, match="FetchTopic instead of ProduceRequest"):
        build(layout(ProduceRequest, 9), FetchTopic())

from typing import Any

import pytest

from walrusmq.protocol.json_form import NotThatMessage, differences, field_at, from_json, to_json
from walrusmq.protocol.layout import build, layout
from walrusmq.protocol.messages.fetch import FetchRequest, ReplicaState
from walrusmq.protocol.messages.headers import RequestHeader
from walrusmq.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

REQUEST = ProduceRequest(
    acks=1,
    topic_data=[
        TopicProduceData(
            topic_id=b"\xff" * 16, partition_data=[PartitionProduceData(index=3, records=b"ab"), PartitionProduceData()]
        )
    ],
)
DOCUMENT: dict[str, Any] = {
    "transactionalId": None,
    "acks": 1,
    "timeoutMs": 0,
    "topicData": [
        {
            "topicId": "_____________________w",
            "partitionData": [{"index": 3, "records": "YWI="}, {"index": 0, "records": None}],
        }
    ],
}


def test_a_message_and_its_document_stand_for_each_other() -> None:
    assert to_json(layout(ProduceRequest, 13), REQUEST) == DOCUMENT
    assert from_json(layout(ProduceRequest, 13), DOCUMENT) == REQUEST


def test_a_tagged_field_is_in_the_document_only_where_it_differs_from_its_default() -> None:
    plain = to_json(layout(FetchRequest, 15), FetchRequest())
    assert "replicaState" not in plain
    assert from_json(layout(FetchRequest, 15), plain) == FetchRequest()
    state = FetchRequest(replica_state=ReplicaState(replica_id=3))
    assert to_json(layout(FetchRequest, 15), state)["replicaState"] == {"replicaId": 3, "replicaEpoch": -1}


def test_a_field_may_have_another_name_in_kafkas_descriptions() -> None:
    assert to_json(layout(RequestHeader, 1), RequestHeader(api_key=3))["requestApiKey"] == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"acks": "1"}, "acks: '1' is of the wrong type"),
        ({"acks": True}, "acks: True is of the wrong type"),
        ({"topicData": {}}, "topicData: {} is no list"),
        ({"topicData": [{"topicId": "AA"}]}, r"topicData\[0\].partitionData: missing"),
        ({"topicData": [{"topicId": "*", "partitionData": []}]}, r"topicData\[0\].topicId: .* is no base64"),
        ({"other": 1}, "ProduceRequest has no 'other'"),
    ],
)
def test_a_document_of_something_else_is_refused_with_the_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(NotThatMessage, match=message):
        from_json(layout(ProduceRequest, 13), {**DOCUMENT, **change})


def test_differences_have_the_path_of_their_place() -> None:
    expected = {"a": [{"b": 1, "c": 2}, {"b": 1}], "d": True, "e": "x"}
    actual = {"a": [{"b": 2, "x": 0}], "d": 1, "e": "x" * 500}
    assert list(differences(expected, expected)) == []
    assert list(differences(expected, actual)) == [
        "a: expected 2 elements, got 1",
        "a[0].b: expected 1, got 2",
        "a[0].c: expected 2, but it isn't there",
        "a[0].x: 0, but it shouldn't be there",
        "d: expected True, got 1",
        f"e: expected 'x', got '{'x' * 79}… (502 characters)",
    ]


def test_a_byte_belongs_to_a_field() -> None:
    tried = layout(ProduceRequest, 13)
    data = build(tried, REQUEST)
    assert field_at(tried, data, 0) == "transactionalId"
    assert field_at(tried, data, 2) == "acks"
    assert field_at(tried, data, data.index(b"ab")) == "topicData[0].partitionData[0].records"
    assert field_at(tried, data[:-1], len(data) - 1) == "(tagged fields)"
    assert field_at(tried, data, len(data)) == "the message as a whole"

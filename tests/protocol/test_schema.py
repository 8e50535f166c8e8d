import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from walrusmq.protocol.field_table import type_name
from walrusmq.protocol.messages import API_BY_KEY, MESSAGES_BY_NAME
from walrusmq.protocol.messages.fetch import PartitionData
from walrusmq.protocol.messages.produce import LeaderIdAndEpoch, PartitionProduceResponse, ProduceRequest
from walrusmq.protocol.primitives import ZERO_UUID, Array, Int32, Records, String
from walrusmq.protocol.schema import (
    NO_VERSIONS,
    Field,
    field,
    is_declared,
    message,
    parse_versions,
    schema_of,
    struct,
)

FACTS = json.loads(gzip.decompress((Path(__file__).parents[1] / "data" / "wire" / "facts.json.gz").read_bytes()))
FACTS_BY_NAME = {facts["name"]: facts for facts in FACTS["messages"]}
DECLARED = [
    *(cls for api in API_BY_KEY.values() for cls in (api.request, api.response)),
    *MESSAGES_BY_NAME.values(),
]

KAFKAS_NAMES = {"RequestedTopic": "TopicData", "RequestedPartition": "PartitionData"}
"""What Kafka calls the structs of DescribeQuorum's request: two of its response have the same names."""


@struct
class Leaf:
    """A struct whose default nobody could change without harm."""

    number: int = field(Int32, "0+", default=7)


@struct
class Branch:
    """A struct that holds a list, and so something that can be changed."""

    leaves: list[Leaf] = field(Array(Leaf), "0+")


@message(api_key=None, kind="data", versions="0-1")
class Tree:
    """A message of both."""

    leaf: Leaf = field(Leaf, "0+")
    branch: Branch = field(Branch, "0+")
    maybe: Leaf | None = field(Leaf, "0+", nullable="0+", default=None)


@pytest.mark.parametrize("cls", DECLARED, ids=lambda cls: cls.__name__)
def test_a_declaration_says_what_kafkas_own_description_says(cls: type) -> None:
    facts, schema = FACTS_BY_NAME[cls.__name__], schema_of(cls)
    assert (schema.kind, schema.api_key) == (facts["type"], facts.get("apiKey"))
    assert schema.versions == parse_versions(facts["validVersions"])
    assert schema.flexible == parse_versions(facts["flexibleVersions"])
    compare_fields(cls, facts["fields"], schema.versions)


def cut(versions: range, bounds: range) -> range:
    """The versions that count inside of bounds: a struct that several messages share has wider ones in some."""
    low, high = max(versions.start, bounds.start), min(versions.stop, bounds.stop)
    return range(low, high) if low < high else NO_VERSIONS


def compare_fields(cls: type, facts: list[dict[str, Any]], bounds: range) -> None:
    declared = schema_of(cls).fields
    # A few names in Kafka's descriptions begin with a small letter.
    assert [each.kafka_name for each in declared] == [fact["name"][0].upper() + fact["name"][1:] for fact in facts]
    for each, fact in zip(declared, facts, strict=True):
        where = f"{cls.__name__}.{each.name}"
        versions = cut(each.versions, bounds)
        assert versions == cut(parse_versions(fact["versions"]), bounds), where
        assert each.nullable == parse_versions(fact.get("nullableVersions", "none")), where
        assert (each.tag, each.tagged) == (fact.get("tag"), parse_versions(fact.get("taggedVersions", "none"))), where
        assert each.ignorable == fact.get("ignorable", False), where
        flexible = fact.get("flexibleVersions")
        assert each.flexible == (None if flexible is None else parse_versions(flexible)), where
        compare_type(each, fact, where, versions)


def compare_type(each: Field, fact: dict[str, Any], where: str, versions: range) -> None:
    assert each.default == expected_default(each, fact), where
    element = each.type.element if isinstance(each.type, Array) else each.type
    array = "[]" if isinstance(each.type, Array) else ""
    if is_declared(element):
        assert array + KAFKAS_NAMES.get(element.__name__, element.__name__) == fact["type"], where
        compare_fields(element, fact["fields"], versions)
    else:
        assert array + type_name(element) == fact["type"], where


def expected_default(each: Field, fact: dict[str, Any]) -> Any:
    if "default" in fact:
        return fact["default"]
    if is_declared(each.type):
        return each.type()
    plain = {"bool": False, "string": "", "uuid": ZERO_UUID, "records": None, "bytes": b""}
    return [] if fact["type"].startswith("[]") else plain.get(fact["type"], 0)


def test_the_unstable_version_of_an_api_is_declared_as_such() -> None:
    unstable = {name: facts for name, facts in FACTS_BY_NAME.items() if facts.get("latestVersionUnstable")}
    for cls in DECLARED:
        request = cls.__name__.replace("Response", "Request")
        schema = schema_of(cls)
        assert schema.unstable == (schema.versions[-1:] if request in unstable else NO_VERSIONS)


def test_versions_are_read_as_kafka_writes_them() -> None:
    assert 3 not in parse_versions("4+")
    assert 30000 in parse_versions("4+")
    assert list(parse_versions("2-4")) == [2, 3, 4]
    assert list(parse_versions("4")) == [4]
    assert not parse_versions("none")


def test_a_new_message_holds_the_defaults() -> None:
    request = ProduceRequest()
    assert (request.transactional_id, request.acks, request.topic_data) == (None, 0, [])
    response = PartitionProduceResponse(index=3)
    assert (response.index, response.log_append_time_ms, response.record_errors) == (3, -1, [])
    assert response.current_leader == LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)
    assert PartitionData().records is None


def test_each_message_has_its_own_lists() -> None:
    first, second = ProduceRequest(), ProduceRequest()
    first.topic_data.append(Any)
    assert second.topic_data == []


def test_null_may_be_given_where_the_default_is_a_list() -> None:
    assert PartitionData().aborted_transactions == []
    assert PartitionData(aborted_transactions=None).aborted_transactions is None


def test_messages_are_equal_when_their_fields_are() -> None:
    assert PartitionProduceResponse(index=3) == PartitionProduceResponse(index=3)
    assert PartitionProduceResponse(index=3) != PartitionProduceResponse(index=4)
    assert PartitionProduceResponse() != LeaderIdAndEpoch()
    with pytest.raises(TypeError):
        hash(PartitionProduceResponse())


def test_the_shared_default_of_a_struct_refuses_changes() -> None:
    response = PartitionProduceResponse()
    assert response.current_leader is PartitionProduceResponse().current_leader
    with pytest.raises(AttributeError, match="set a new one instead"):
        response.current_leader.leader_id = 5
    response.current_leader = LeaderIdAndEpoch(leader_id=5)
    assert response.current_leader.leader_id == 5
    assert PartitionProduceResponse().current_leader.leader_id == -1


def test_the_default_of_a_struct_that_holds_a_list_is_not_shared() -> None:
    first, second = Tree(), Tree()
    first.branch.leaves.append(Leaf(number=1))
    assert second.branch.leaves == []
    assert second.leaf.number == 7
    assert second.maybe is None


def test_what_is_no_field_can_neither_be_given_nor_set() -> None:
    with pytest.raises(TypeError, match="topics"):
        ProduceRequest(topics=[])  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        ProduceRequest().topics = []  # type: ignore[attr-defined]


def test_a_message_shows_its_fields_and_can_be_copied() -> None:
    leader = LeaderIdAndEpoch(leader_id=1)
    assert repr(leader) == "LeaderIdAndEpoch(leader_id=1, leader_epoch=-1)"
    assert copy.deepcopy(leader) == leader
    response = PartitionProduceResponse(index=3, record_errors=[])
    again = copy.deepcopy(response)
    assert again == response
    assert again.record_errors is not response.record_errors


def test_a_copy_of_a_shared_default_can_be_changed() -> None:
    leader = copy.copy(PartitionProduceResponse().current_leader)
    leader.leader_id = 5
    assert leader == LeaderIdAndEpoch(leader_id=5)


def test_a_list_cannot_be_given_as_a_default_since_all_messages_would_share_it() -> None:
    with pytest.raises(AssertionError, match="the default of every array"):
        field(Array(Int32), "0+", default=[])


def test_a_field_is_named_as_kafka_names_it() -> None:
    declared = field(String, "0+")
    declared.name = "base_offset"
    assert declared.kafka_name == "BaseOffset"
    assert field(Records, "0+", kafka_name="Other").kafka_name == "Other"

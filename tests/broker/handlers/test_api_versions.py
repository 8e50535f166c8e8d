"""ApiVersions: versions, features, and who is meant."""

from __future__ import annotations

import pytest
from support.handler_fakes import FakeContext, FakeNode, answer

from walrusmq.broker.dispatcher import HANDLER_MODULES
from walrusmq.broker.handlers.api_versions import api_versions, unsupported_version
from walrusmq.protocol.codec import codec
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

#: The ranges that Apache Kafka 4.4 prints.
KAFKA_RANGES = {
    0: (0, 13),
    1: (4, 18),
    2: (1, 11),
    3: (0, 13),
    8: (2, 10),
    9: (1, 10),
    10: (0, 6),
    11: (0, 9),
    12: (0, 4),
    13: (0, 5),
    14: (0, 5),
    15: (0, 6),
    16: (0, 5),
    18: (0, 5),
    19: (2, 7),
    20: (1, 6),
    21: (0, 2),
    22: (0, 5),
    23: (2, 4),
    29: (1, 3),
    30: (1, 3),
    31: (1, 3),
    32: (1, 4),
    33: (0, 2),
    35: (1, 5),
    37: (0, 3),
    42: (0, 3),
    44: (0, 1),
    46: (0, 0),
    47: (0, 0),
    48: (0, 1),
    50: (0, 0),
    55: (0, 2),
    60: (0, 2),
    61: (0, 0),
    74: (0, 1),
    75: (0, 0),
}


def hello(name: str = "test", version: str = "1.0", cluster: str | None = None, node: int = -1) -> ApiVersionsRequest:
    return ApiVersionsRequest(
        client_software_name=name, client_software_version=version, cluster_id=cluster, node_id=node
    )


@pytest.mark.parametrize("version", range(6))
def test_each_api_with_a_handler_has_kafkas_range(version: int) -> None:
    offered = answer(api_versions, hello(), FakeNode(), version)
    ranges = {api.api_key: (api.min_version, api.max_version) for api in offered.api_keys}
    assert ranges == {key: KAFKA_RANGES[key] for key in HANDLER_MODULES}
    assert [api.api_key for api in offered.api_keys] == sorted(ranges)
    assert offered.error_code == 0


def test_metadata_version_is_the_one_finalized_feature() -> None:
    node = FakeNode()
    offered = answer(api_versions, hello(), node, 4)
    [supported] = offered.supported_features
    [finalized] = offered.finalized_features
    assert (supported.name, supported.min_version, supported.max_version) == ("metadata.version", 7, 33)
    assert (finalized.name, finalized.min_version_level, finalized.max_version_level) == ("metadata.version", 33, 33)
    assert offered.finalized_features_epoch == node.image.applied_index


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("", "1"),
        ("x", ""),
        ("a b", "1"),
        ("-x", "1"),
        ("x-", "1"),
        ("x", "1/2"),
        ("ä", "1"),
        ("x_y", "1"),
        ("x", "1\n"),
    ],
)
def test_odd_software_names_are_refused(name: str, version: str) -> None:
    refused = answer(api_versions, hello(name, version), FakeNode(), 3)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert refused.api_keys == refused.supported_features == refused.finalized_features == []
    assert refused.finalized_features_epoch == -1


@pytest.mark.parametrize(("name", "version"), [("x.y-z1", "1.0-a"), ("x", "1"), ("x" * 300, "1")])
def test_ordinary_software_names_are_noted(name: str, version: str) -> None:
    context = FakeContext(FakeNode(), 3)
    api_versions(hello(name, version), context)  # type: ignore[arg-type]
    assert context.connection.software == f"{name} {version}"


def test_the_answer_is_encoded_once_for_a_version_until_the_image_moves_on() -> None:
    node = FakeNode()
    first = [api_versions(hello(), FakeContext(node, version)) for version in (3, 4)]  # type: ignore[arg-type]
    again = [api_versions(hello(), FakeContext(node, version)) for version in (3, 4)]  # type: ignore[arg-type]
    assert first[0] is again[0]
    assert first[1] is again[1]
    assert first[0] is not first[1]
    epoch = answer(api_versions, hello(), node, 3).finalized_features_epoch
    node.join(2)
    assert answer(api_versions, hello(), node, 3).finalized_features_epoch == epoch + 1


def test_software_is_not_asked_for_in_old_versions() -> None:
    assert answer(api_versions, ApiVersionsRequest(), FakeNode(), 2).error_code == 0


MINE = FakeNode().cluster_id


@pytest.mark.parametrize(
    ("cluster", "node", "expected"),
    [
        (None, -1, ErrorCode.NONE),
        (MINE, 1, ErrorCode.NONE),
        (MINE, 2, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("another", 1, ErrorCode.REBOOTSTRAP_REQUIRED),
        (MINE, -1, ErrorCode.INVALID_REQUEST),
        (None, 1, ErrorCode.INVALID_REQUEST),
        (None, -2, ErrorCode.INVALID_REQUEST),
        ("another", -1, ErrorCode.INVALID_REQUEST),
    ],
)
def test_who_means_another_cluster_or_node_is_told_to_look_again(
    cluster: str | None, node: int, expected: ErrorCode
) -> None:
    told = answer(api_versions, hello(cluster=cluster, node=node), FakeNode(), 5)
    assert told.error_code == expected
    assert bool(told.api_keys) == (expected is ErrorCode.NONE)


def test_nobody_is_expected_before_version_5() -> None:
    assert answer(api_versions, hello(), FakeNode(), 4).error_code == 0


def test_an_unknown_version_gets_one_range_in_the_oldest_form() -> None:
    response = unsupported_version()
    sent, _ = codec(ApiVersionsResponse, 0).decode(codec(ApiVersionsResponse, 0).encode(response))
    assert sent.error_code == ErrorCode.UNSUPPORTED_VERSION
    [own] = sent.api_keys
    assert (own.api_key, own.min_version, own.max_version) == (18, 0, 5)

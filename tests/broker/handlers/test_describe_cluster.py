"""DescribeCluster: nodes and endpoint types."""

from __future__ import annotations

import pytest
from support.handler_fakes import FakeNode, answer

from walrusmq.broker.handlers.describe_cluster import describe_cluster
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.describe_cluster import DescribeClusterRequest


@pytest.mark.parametrize("version", range(3))
def test_the_nodes_are_described_as_brokers(version: int) -> None:
    node = FakeNode()
    node.join(2, "rack", CLIENT=("two", 2000))
    told = answer(describe_cluster, DescribeClusterRequest(), node, version)
    assert (told.error_code, told.error_message, told.endpoint_type) == (0, None, 1)
    assert (told.cluster_id, told.controller_id) == (node.cluster_id, 1)
    assert told.cluster_authorized_operations == -0x8000_0000
    assert [(each.broker_id, each.host, each.port, each.rack, each.is_fenced) for each in told.brokers] == [
        (1, "10.0.0.1", 9092, None, False),
        (2, "two", 2000, "rack", False),
    ]


def test_operations_are_told_when_asked_for() -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True, include_fenced_brokers=True)
    assert answer(describe_cluster, request, FakeNode(), 2).cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_other_endpoint_types_are_refused(endpoint_type: int, code: ErrorCode, version: int) -> None:
    told = answer(describe_cluster, DescribeClusterRequest(endpoint_type=endpoint_type), FakeNode(), version)
    assert told.error_code == code
    assert told.error_message
    assert (told.endpoint_type, told.cluster_id, told.controller_id, told.brokers) == (1, "", -1, [])

"""DescribeCluster: the nodes of the cluster, for admin clients (KIP-700, KIP-919)."""

from __future__ import annotations

from walrusmq.broker.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED_FOR
from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.node_addresses import node_addresses
from walrusmq.protocol.errors import KafkaError, MismatchedEndpointType, UnsupportedEndpointType
from walrusmq.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS = 1
CONTROLLERS = 2


@handles(DescribeClusterRequest)
def describe_cluster(request: DescribeClusterRequest, context: Context) -> DescribeClusterResponse:
    """Describe the nodes as brokers; none of them serves clients as a controller, which Kafka's can."""
    try:
        _check_endpoint_type(request.endpoint_type)
    except KafkaError as error:
        return DescribeClusterResponse(error_code=error.code, error_message=str(error))
    return DescribeClusterResponse(
        cluster_id=context.node.cluster_id,
        controller_id=context.node.node_id,
        brokers=[
            DescribeClusterBroker(broker_id=address.node_id, host=address.host, port=address.port, rack=address.rack)
            for address in node_addresses(context)
        ],
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else NOT_ASKED_FOR,
    )


def _check_endpoint_type(endpoint_type: int) -> None:
    if endpoint_type == CONTROLLERS:
        raise MismatchedEndpointType("this address is for clients of brokers, and the request asks for controllers")
    if endpoint_type != BROKERS:
        raise UnsupportedEndpointType(f"endpoint type {endpoint_type} isn't known: brokers are {BROKERS}")

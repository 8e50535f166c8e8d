"""The APIs that WalrusMQ can read and write, by their keys; each family's messages stand in a module of their own."""

from __future__ import annotations

from typing import Any

from walrusmq.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from walrusmq.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from walrusmq.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from walrusmq.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from walrusmq.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from walrusmq.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from walrusmq.protocol.messages.fetch import FetchRequest, FetchResponse
from walrusmq.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from walrusmq.protocol.messages.headers import RequestHeader, ResponseHeader
from walrusmq.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from walrusmq.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from walrusmq.protocol.messages.metadata import MetadataRequest, MetadataResponse
from walrusmq.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from walrusmq.protocol.messages.produce import ProduceRequest, ProduceResponse
from walrusmq.protocol.schema import schema_of


class Api:
    """An API: its key and name, its messages, and its versions from ``min_version`` to ``max_version``.

    Versions up to ``max_version`` are stable; the messages may be readable in later ones too. Clients are told
    ``advertised_min_version``.
    """

    __slots__ = ("advertised_min_version", "key", "max_version", "min_version", "name", "request", "response")

    def __init__(self, request: type, response: type, advertised_min_version: int | None = None) -> None:
        schema = schema_of(request)
        assert schema.api_key is not None, f"{schema.name} has no api key"
        stable = [version for version in schema.versions if version not in schema.unstable]
        self.key: int = schema.api_key
        self.name: str = schema.name.removesuffix("Request")
        self.request: Any = request
        self.response: Any = response
        self.min_version: int = stable[0]
        self.max_version: int = stable[-1]
        self.advertised_min_version = self.min_version if advertised_min_version is None else advertised_min_version

    def __repr__(self) -> str:
        return f"<Api {self.key} {self.name} {self.min_version}-{self.max_version}>"


API_BY_KEY: dict[int, Api] = {
    api.key: api
    for api in (
        # Old librdkafka takes a broker without Produce 0 for one that can't compress: KAFKA-18659.
        Api(ProduceRequest, ProduceResponse, advertised_min_version=0),
        Api(FetchRequest, FetchResponse),
        Api(ListOffsetsRequest, ListOffsetsResponse),
        Api(MetadataRequest, MetadataResponse),
        Api(FindCoordinatorRequest, FindCoordinatorResponse),
        Api(ApiVersionsRequest, ApiVersionsResponse),
        Api(CreateTopicsRequest, CreateTopicsResponse),
        Api(DeleteTopicsRequest, DeleteTopicsResponse),
        Api(InitProducerIdRequest, InitProducerIdResponse),
        Api(OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse),
        Api(DescribeConfigsRequest, DescribeConfigsResponse),
        Api(DescribeClusterRequest, DescribeClusterResponse),
        Api(DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse),
    )
}

MESSAGES_BY_NAME: dict[str, type] = {cls.__name__: cls for cls in (RequestHeader, ResponseHeader)}
"""What is declared and is neither a request nor a response."""

"""DescribeConfigs: the configs of topics and of this node, each with its value and where it comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from walrusmq.broker.broker_configs import describe_all_nodes, describe_node, is_this_node
from walrusmq.broker.commands import ResourceType
from walrusmq.broker.config_changes import no_configs_of
from walrusmq.broker.config_rows import ConfigRow, select
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.topic_configs import describe
from walrusmq.broker.topics import missing_topic
from walrusmq.protocol.errors import ErrorCode, KafkaError
from walrusmq.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from walrusmq.broker.context import Context
    from walrusmq.broker.node import Node


@handles(DescribeConfigsRequest)
def describe_configs(request: DescribeConfigsRequest, context: Context) -> DescribeConfigsResponse:
    """Answer each resource by itself; one that can't be described doesn't keep the others back."""
    return DescribeConfigsResponse(results=[_result(resource, request, context.node) for resource in request.resources])


def _result(resource: DescribeConfigsResource, request: DescribeConfigsRequest, node: Node) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        error_message="", resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    try:
        rows = select(_rows(resource, node), resource.configuration_keys)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, str(error)
        return result
    result.error_code = ErrorCode.NONE
    result.configs = [_config(row, request.include_synonyms, request.include_documentation) for row in rows]
    return result


def _rows(resource: DescribeConfigsResource, node: Node) -> list[ConfigRow]:
    if resource.resource_type == ResourceType.TOPIC:
        return _topic_rows(resource.resource_name, node)
    if resource.resource_type == ResourceType.BROKER:
        return _node_rows(resource.resource_name, node)
    raise no_configs_of(resource.resource_type)


def _topic_rows(name: str, node: Node) -> list[ConfigRow]:
    topic = node.image.topics_by_name.get(name)
    if topic is None:
        raise missing_topic(name)
    return describe(topic.configs, node.settings)


def _node_rows(name: str, node: Node) -> list[ConfigRow]:
    """The node's own configs; the empty name asks for what was set for all nodes at run time."""
    if is_this_node(name, node.node_id):
        return describe_node(node)
    return describe_all_nodes(node.settings)


def _config(row: ConfigRow, include_synonyms: bool, include_documentation: bool) -> DescribeConfigsResourceResult:
    synonyms = [
        DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
        for synonym in (row.synonyms if include_synonyms else ())
    ]
    return DescribeConfigsResourceResult(
        name=row.name,
        value=row.value,
        read_only=row.is_read_only,
        config_source=row.source,
        is_sensitive=row.is_sensitive,
        synonyms=synonyms,
        config_type=row.type,
        documentation=row.documentation if include_documentation else None,
    )

"""Errors in answers of every shape are counted."""

from __future__ import annotations

from walrusmq.broker.error_codes import count_errors
from walrusmq.metrics.counters import Metrics
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from walrusmq.protocol.messages.describe_cluster import DescribeClusterResponse
from walrusmq.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


def counted(response: object) -> dict[tuple[int, int], int]:
    metrics = Metrics("0", {}, {})
    count_errors(response, 7, metrics)
    return metrics.request_errors


def test_an_answers_own_error_is_counted() -> None:
    assert counted(DescribeClusterResponse(error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)) == {(7, 115): 1}


def test_errors_are_counted_at_every_depth() -> None:
    partitions = [DescribeTopicPartitionsResponsePartition(error_code=code) for code in (5, 0, 5)]
    topics = [
        DescribeTopicPartitionsResponseTopic(error_code=3, name="a"),
        DescribeTopicPartitionsResponseTopic(name="b", partitions=partitions),
    ]
    response = DescribeTopicPartitionsResponse(topics=topics, next_cursor=Cursor())
    assert counted(response) == {(7, 3): 1, (7, 5): 2}


def test_an_answer_without_errors_counts_nothing() -> None:
    assert counted(DeleteTopicsResponse(responses=[DeletableTopicResult(name="a")])) == {}

"""Where a node's metrics come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import walrusmq
from walrusmq.broker.dispatcher import HANDLER_MODULES
from walrusmq.metrics import LoopLag, Metrics
from walrusmq.metrics.catalogue import (
    BUFFERED_BYTES,
    CONNECTIONS,
    FSYNC_SECONDS,
    FSYNCS,
    LOOP_LAG,
    LOOP_LAG_MAX,
    PARTITIONS,
    SEGMENTS,
    TOPICS,
)
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages import API_BY_KEY

if TYPE_CHECKING:
    from walrusmq.broker.node import Node


def node_metrics(node: Node) -> tuple[Metrics, LoopLag]:
    """The counters of a node, with a reader for each number that it holds elsewhere."""
    metrics = Metrics(
        walrusmq.__version__,
        {key: API_BY_KEY[key].name for key in HANDLER_MODULES},
        {int(code): code.name for code in ErrorCode},
    )
    lag = LoopLag()
    metrics.provide(BUFFERED_BYTES, lambda: node.listener.buffered_bytes + node.held_appends.held_bytes)
    metrics.provide(CONNECTIONS, lambda: len(node.listener.connections))
    metrics.provide(TOPICS, lambda: len(node.image.topics))
    metrics.provide(PARTITIONS, lambda: node.image.partition_count)
    metrics.provide(SEGMENTS, lambda: node.image.partition_count + node.image.sealed_segment_count)
    metrics.provide(FSYNCS, lambda: node.store.counters.syncs)
    metrics.provide(FSYNC_SECONDS, lambda: node.store.counters.sync_seconds)
    metrics.provide(LOOP_LAG, lambda: lag.last_seconds)
    metrics.provide(LOOP_LAG_MAX, lambda: lag.max_seconds)
    return metrics, lag

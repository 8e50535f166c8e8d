"""Produce requests with one batch, the common case: what they ask is kept for those that follow and ask the same."""

from __future__ import annotations

from typing import Any

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import Route, remembers
from walrusmq.broker.produce_repeats import RepeatedProduce
from walrusmq.protocol.messages.produce import ProduceRequest

#: From this version on topics have ids and no names (KIP-516).
FIRST_VERSION_WITH_IDS = 13
#: zstd is looked for in requests before this version, and refused (KIP-110): a case for the long way.
FIRST_VERSION_WITH_ZSTD = 7
LEGAL_ACKS = (-1, 0, 1)
#: Partitions for which a connection keeps what it asks; the requests for others are decoded each time.
MAX_REPEATS = 1024


@remembers(ProduceRequest)
def repeated_produce(
    request: ProduceRequest, frame: memoryview, context: Context, route: Route
) -> RepeatedProduce | None:
    """What serves this request and those that begin like it; None if it isn't of the kind."""
    version = context.api_version
    if len(request.topic_data) != 1 or version < FIRST_VERSION_WITH_ZSTD or request.acks not in LEGAL_ACKS:
        return None
    topic = request.topic_data[0]
    node = context.node
    table: Any = node.partitions_by_id if version >= FIRST_VERSION_WITH_IDS else node.partitions_by_name
    partitions = table.get(topic.topic_id if version >= FIRST_VERSION_WITH_IDS else topic.name)
    if partitions is None or len(topic.partition_data) != 1:
        return None
    data = topic.partition_data[0]
    partition = partitions.get(data.index)
    if partition is None or data.records is None or request.transactional_id is not None:
        return None
    key = partition, request.acks, request.timeout_ms
    repeated: RepeatedProduce | None = context.prepared.get(key)
    if repeated is None:
        if len(context.prepared) >= MAX_REPEATS:
            return None
        repeated = context.prepared[key] = RepeatedProduce(request, partition, context, route)
    return repeated if repeated.remember(frame, data.records) else None

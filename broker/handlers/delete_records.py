"""DeleteRecords: let partitions begin at a later offset (KIP-107)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from walrusmq.broker.commands import MoveLogStart
from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.partition_lookup import NO_EPOCH, led_partition
from walrusmq.broker.proposals import propose_each
from walrusmq.broker.topic_configs import is_only_compacted
from walrusmq.broker.topics import is_internal
from walrusmq.protocol.errors import InvalidTopic, KafkaError, OffsetOutOfRange, PolicyViolation
from walrusmq.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from walrusmq.segments.acknowledgements import settles
from walrusmq.segments.log_config import Durability

if TYPE_CHECKING:
    from walrusmq.broker.node import Node
    from walrusmq.segments.partition import Partition

#: Stands for the high watermark: all that consumers can see goes.
ALL = -1
NO_OFFSET = -1
#: Kafka waits for followers only, so there a timeout of 0 suffices; here the metadata log takes a moment.
MIN_TIMEOUT_MS = 1000


class _Move(NamedTuple):
    partition: Partition
    offset: int


@handles(DeleteRecordsRequest)
async def delete_records(request: DeleteRecordsRequest, context: Context) -> DeleteRecordsResponse:
    """Answer each partition by itself, once the metadata log has recorded where it begins."""
    node = context.node
    # of a partition that is given twice the last offset counts, as in Kafka
    wanted: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        offsets = wanted.setdefault(topic.name, {})
        offsets.update((each.partition_index, each.offset) for each in topic.partitions)
    results = {
        (name, index): DeleteRecordsPartitionResult(partition_index=index, low_watermark=NO_OFFSET)
        for name, offsets in wanted.items()
        for index in offsets
    }
    moves: dict[tuple[str, int], _Move] = {}
    for (name, index), result in results.items():
        try:
            moves[name, index] = _plan(node, name, index, wanted[name][index])
        except KafkaError as error:
            result.error_code = error.code
    timeout_ms = max(request.timeout_ms, MIN_TIMEOUT_MS)
    outcomes = await propose_each(partial(_move, node), list(moves.values()), timeout_ms)
    for key, outcome in zip(moves, outcomes, strict=True):
        if isinstance(outcome, KafkaError):
            results[key].error_code = outcome.code
        else:
            results[key].low_watermark = outcome
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(name=name, partitions=[results[name, index] for index in offsets])
            for name, offsets in wanted.items()
            if offsets
        ]
    )


def _plan(node: Node, name: str, index: int, offset: int) -> _Move:
    """Where a partition is to begin.

    Raises what `led_partition` raises, InvalidTopic, PolicyViolation or OffsetOutOfRange.
    """
    partition = led_partition(node, name, index, NO_EPOCH)
    if is_internal(name):
        raise InvalidTopic(f"records of {name} belong to the broker and can't be deleted")
    if is_only_compacted(node.image.topics_by_name[name].configs, node.settings):
        raise PolicyViolation(f"{name} has cleanup.policy compact: only what is outdated goes from it")
    if offset == ALL:
        offset = partition.high_watermark
    if not 0 <= offset <= partition.high_watermark:
        raise OffsetOutOfRange(f"{partition} has offsets up to {partition.high_watermark}: it can't begin at {offset}")
    return _Move(partition, offset)


async def _move(node: Node, move: _Move) -> int:
    """Let a partition begin at an offset, unless it begins later already; returns where it begins.

    Raises a KafkaError that a failed sync or the metadata log gives.
    """
    partition, offset = move
    if offset > partition.log_start_offset:
        await _make_durable(partition, offset)
        command = MoveLogStart(topic_id=partition.topic_id, partition=partition.index, log_start_offset=offset)
        await node.propose(command)
    return partition.log_start_offset


async def _make_durable(partition: Partition, offset: int) -> None:
    """Sync what is to be deleted: a log that loses its end by a failed sync mustn't end before its own start.

    What is then appended would get offsets that count as deleted. Without syncs there is none that could fail.
    """
    log = partition.log
    if offset <= log.synced_offset or partition.config.effective_durability is Durability.NEVER:
        return
    synced: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()
    partition.store.commit.request(log, partition.when_synced)
    partition.when_acknowledged(offset, settles(synced))
    error = await synced
    if error is not None:
        raise error

"""One partition on the node that leads it: appends to the open segment, acknowledgements, reads over the chain.

All calls are made on the event loop's thread, and nothing here awaits but `seal`.
"""

from __future__ import annotations

import errno
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from walrusmq.protocol.errors import (
    FencedLeaderEpoch,
    InvalidTimestamp,
    KafkaError,
    KafkaStorageError,
    MessageTooLarge,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from walrusmq.protocol.frames import FileRegion
from walrusmq.protocol.records.header import (
    LOG_APPEND_TIME,
    MAX_SEQUENCE,
    BatchHeader,
    check_batch,
    place_batch,
    set_create_time,
    set_log_append_time,
)
from walrusmq.segments.chain import Chain
from walrusmq.segments.commit import LogSync
from walrusmq.segments.facts import OpenSegment, SealedSegment
from walrusmq.segments.log_config import FOREVER, Durability, LogConfig, TimestampType
from walrusmq.segments.offset_index import MAX_RELATIVE_OFFSET
from walrusmq.segments.open_log import OpenLog
from walrusmq.segments.producers import ProducerBatch, Producers
from walrusmq.segments.reading import ReadEnds, cut_region
from walrusmq.segments.recovery import Recovery

if TYPE_CHECKING:
    from walrusmq.segments.store import SegmentStore

logger = logging.getLogger("walrusmq.segments")

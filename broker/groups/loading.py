"""Reading what a partition of ``__consumer_offsets`` holds, beside the loop's other work."""

from __future__ import annotations

import asyncio
import logging
from time import perf_counter
from typing import TYPE_CHECKING

from walrusmq.broker.groups.offset_records import OffsetRecord, UnknownRecord, committed_of, decode_record
from walrusmq.broker.groups.offsets import Offsets
from walrusmq.protocol.messages.group_records import GroupMetadataValue, OffsetCommitKey, OffsetCommitValue

if TYPE_CHECKING:
    from walrusmq.broker.groups.offsets_log import OffsetsLog
    from walrusmq.segments.partition import Partition

logger = logging.getLogger("walrusmq.groups")

#: How long records are unpacked before other work gets its turn.
TURN_S = 0.002
#: Records between two looks at the time.
RECORDS_PER_LOOK = 16


class StoredGroups:
    """The last value of each key in one partition."""

    def __init__(self) -> None:
        self.groups: dict[str, GroupMetadataValue] = {}
        self.offsets = Offsets()

    async def read(self, log: OffsetsLog, partition: Partition) -> None:
        """Take in what the partition has now. Raises KafkaStorageError; what had been read then stays."""
        turn_ends_at = perf_counter() + TURN_S
        async for batch in log.read(partition):
            for count, record in enumerate(batch.records):
                try:
                    self._take(decode_record(record))
                except UnknownRecord as error:
                    logger.warning("%s has at offset %d what isn't known here: %s", partition, record.offset, error)
                if count % RECORDS_PER_LOOK == 0 and perf_counter() > turn_ends_at:
                    await asyncio.sleep(0)
                    turn_ends_at = perf_counter() + TURN_S

    def _take(self, record: OffsetRecord) -> None:
        key, value = record
        if isinstance(key, OffsetCommitKey):
            place = key.topic, key.partition
            if isinstance(value, OffsetCommitValue):
                self.offsets.set(key.group, place, committed_of(value))
            else:
                self.offsets.remove(key.group, place)
        elif isinstance(value, GroupMetadataValue):
            self.groups[key.group] = value
        else:
            self.groups.pop(key.group, None)

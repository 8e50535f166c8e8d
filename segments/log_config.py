"""The settings of one partition's log, resolved from its topic's and the node's."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from walrusmq.protocol.records.compression import Codec

FOREVER = 2**63 - 1
"""Kafka's way to say: no limit."""


class Durability(Enum):
    """When an appended batch is acknowledged (setting `fsync`)."""

    BATCH = "batch"
    """After its fdatasync: what was acknowledged survives power loss."""
    INTERVAL = "interval"
    """After the write; files are synced each `fsync.interval.ms`."""
    NEVER = "never"
    """After the write; the system writes to the disk when it likes."""


class TimestampType(Enum):
    """Whose clock stamps a record (`message.timestamp.type`)."""

    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


@dataclass(slots=True)
class LogConfig:
    """Each attribute is the setting of the same name, as Kafka means it; the first is ours."""

    max_segment_entries: int = 1_000_000
    segment_bytes: int = 1 << 30
    segment_ms: int = 604_800_000
    max_message_bytes: int = 1_048_588
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    timestamp_before_max_ms: int = FOREVER
    timestamp_after_max_ms: int = 3_600_000
    durability: Durability = Durability.BATCH
    flush_messages: int = FOREVER
    """Unsynced entries at which a sync is due; the append that reaches it is acknowledged after the sync."""
    flush_ms: int = FOREVER
    """Age of the oldest unsynced entry at which a sync is due."""
    codec: Codec | None = None
    """What batches are compressed with, whatever the producer did (`compression.type`); None: as the producer did."""
    needs_keys: bool = False
    """Whether records without a key are refused (`cleanup.policy`)."""
    is_reserved: bool = False
    """Whether only the node itself appends, and producers are refused."""

    @property
    def looks_inside(self) -> bool:
        """Whether an append may need more than a look at a batch's header."""
        return self.codec is not None or self.needs_keys or self.is_reserved

    @property
    def effective_durability(self) -> Durability:
        """`flush.messages=1` asks for a sync of every batch, whatever `fsync` says."""
        return Durability.BATCH if self.flush_messages <= 1 else self.durability

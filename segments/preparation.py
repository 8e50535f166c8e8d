"""What is done with a producer's batch before it is appended, where its topic asks for more than a look at its header.

Records are recompressed with the topic's codec, and looked through for a key where a compacted log needs one. All of it
takes time in proportion to the batch, so it is done on a thread (see `prepared_appends`). The checks, their order and
their codes are Kafka's (4.4).
"""

from __future__ import annotations

from walrusmq.protocol.errors import InvalidRecord, InvalidTimestamp, KafkaError, MessageTooLarge
from walrusmq.protocol.records.batch import NO_TIMESTAMP, decode_batch
from walrusmq.protocol.records.header import check_batch, codec_in
from walrusmq.protocol.records.repacking import keyless, repacked, unpacked
from walrusmq.segments.log_config import LogConfig, TimestampType

NO_KEY = "no key, which a compacted topic needs"


class RecordsRefused(KafkaError):
    """Some of a batch's records, and so all of them, are refused."""

    def __init__(self, text: str, faults: dict[int, str]) -> None:
        super().__init__(text)
        self.faults = faults
        """What is wrong with a record, by its place in the batch."""


class RecordsWithoutKey(RecordsRefused, InvalidRecord):
    """A compacted log keeps the last value of each key, and some records have none."""


class RecordsOutOfTime(RecordsRefused, InvalidTimestamp):
    """The timestamps of some are too far from the broker's clock; others may lack a key besides."""


def needs_preparation(batch: memoryview, config: LogConfig) -> bool:
    """Whether a batch can't be appended as it came. Too few bytes for a batch can: they are refused there."""
    if config.needs_keys:
        return True
    return config.codec is not None and codec_in(batch) not in (None, config.codec)


def prepared(batch: memoryview, config: LogConfig, now_ms: int) -> memoryview:
    """The batch as it is to be appended.

    Raises MessageTooLarge, what `check_batch` raises, CodecMissing, InvalidRecord, RecordsWithoutKey, RecordsOutOfTime.
    """
    _check_size(batch, config)
    header = check_batch(batch)
    records = unpacked(batch)
    without_key = keyless(records, header.record_count) if config.needs_keys else []
    times = _Times(config, now_ms)
    if not (times.allow(header.base_timestamp) and times.allow(header.max_timestamp)):
        raise out_of_time(batch, config, now_ms)
    if without_key:
        raise RecordsWithoutKey(f"{len(without_key)} records have {NO_KEY}", dict.fromkeys(without_key, NO_KEY))
    if config.codec is None or config.codec == header.codec:
        return batch
    batch = memoryview(repacked(batch, records, config.codec))
    _check_size(batch, config)
    return batch


def out_of_time(batch: memoryview, config: LogConfig, now_ms: int) -> RecordsOutOfTime:
    """The error for a batch whose header has timestamps that the topic doesn't take, with what is wrong in it.

    Raises what `decode_batch` raises.
    """
    times = _Times(config, now_ms)
    faults = {}
    for index, record in enumerate(decode_batch(batch).records):
        if config.needs_keys and record.key is None:
            faults[index] = NO_KEY
        elif not times.allow(record.timestamp):
            faults[index] = f"timestamp {record.timestamp}, where {times} are taken"
    return RecordsOutOfTime(f"{len(faults)} records are refused, some for their timestamps", faults)


def _check_size(batch: memoryview, config: LogConfig) -> None:
    if len(batch) > config.max_message_bytes:
        raise MessageTooLarge(f"a batch of {len(batch)} bytes, where {config.max_message_bytes} are allowed")


class _Times:
    """The timestamps (ms) that producers may give."""

    def __init__(self, config: LogConfig, now_ms: int) -> None:
        self._any = config.timestamp_type is TimestampType.LOG_APPEND_TIME
        self._least = now_ms - config.timestamp_before_max_ms
        self._most = now_ms + config.timestamp_after_max_ms

    def __str__(self) -> str:
        return f"{self._least} to {self._most}"

    def allow(self, timestamp: int) -> bool:
        return self._any or timestamp == NO_TIMESTAMP or self._least <= timestamp <= self._most

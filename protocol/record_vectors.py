"""Test vectors of record batches: ``batch`` in hex, with the header's fields and ``records``, or a list ``batches``.

``valid: false`` must be refused, and so must message sets of magic 0 and 1, which Kafka stopped to take (KIP-724).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from walrusmq.protocol.errors import CorruptMessage, InvalidRecord
from walrusmq.protocol.json_form import differences
from walrusmq.protocol.records.batch import Producer, Record, RecordBatch, decode_batch, decode_batches, encode_batch
from walrusmq.protocol.records.compression import Codec
from walrusmq.protocol.records.header import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL
from walrusmq.protocol.records.legacy import CURRENT_MAGIC

REFUSALS = (CorruptMessage, InvalidRecord)


def check_record_batches(_: str, vector: dict[str, Any]) -> Iterator[str]:
    """Decode and encode again, or see that it is refused; yields what is wrong."""
    data = bytes.fromhex(vector["batch"])
    documents = vector.get("batches") or [vector]
    if not vector["valid"] or documents[0]["magic"] != CURRENT_MAGIC:
        yield from _check_refusal(data)
        return
    batches = list(decode_batches(data))
    if len(documents) != len(batches):
        yield f"batches: expected {len(documents)}, got {len(batches)}"
    for index, (document, batch) in enumerate(zip(documents, batches, strict=False)):
        path = f"batches[{index}]" if len(documents) > 1 else ""
        described = _describe(batch)
        yield from differences({name: document[name] for name in described}, described, path)
        yield from _check_encoding(batch, path)


def _check_refusal(data: bytes) -> Iterator[str]:
    try:
        decode_batch(data)
    except REFUSALS:
        return
    yield "taken, though it should be refused"


def _check_encoding(batch: RecordBatch, path: str) -> Iterator[str]:
    header = batch.header
    encoded = encode_batch(
        batch.records,
        codec=Codec(header.codec),
        producer=Producer(header.producer_id, header.producer_epoch, header.base_sequence),
        leader_epoch=header.partition_leader_epoch,
        flags=header.attributes & (TRANSACTIONAL | CONTROL | LOG_APPEND_TIME),
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        max_timestamp=header.max_timestamp,
        delete_horizon_ms=header.delete_horizon_ms,
    )
    # Compressors may differ, and log append time has no timestamps of the records' own to take the base from.
    free = {"crc", "sizeInBytes"} if header.codec else set()
    if header.has_log_append_time:
        free = {"crc", "sizeInBytes", "baseTimestamp"}
    expected, actual = _describe(batch), _describe(decode_batch(encoded))
    for name in free:
        expected[name] = actual[name]
    yield from (f"{difference} (encoded)" for difference in differences(expected, actual, path))


def _describe(batch: RecordBatch) -> dict[str, Any]:
    header = batch.header
    return {
        "magic": header.magic,
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "sizeInBytes": header.size_bytes,
        "compression": Codec(header.codec).name.lower(),
        "timestampType": "LogAppendTime" if header.has_log_append_time else "CreateTime",
        "maxTimestamp": header.max_timestamp,
        "crc": header.crc,
        "attributes": header.attributes,
        "partitionLeaderEpoch": header.partition_leader_epoch,
        "lastOffsetDelta": header.last_offset_delta,
        "baseTimestamp": header.base_timestamp,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "count": header.record_count,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "deleteHorizonMs": header.delete_horizon_ms,
        "records": [_describe_record(record) for record in batch.records],
    }


def _describe_record(record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _hex(record.key),
        "value": _hex(record.value),
        "headers": [[key, _hex(value)] for key, value in record.headers],
    }


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()

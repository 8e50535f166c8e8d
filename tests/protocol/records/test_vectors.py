"""The record batches that Kafka's own Java client made (tests/data/records), valid and not."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from walrusmq.protocol.errors import CorruptMessage, InvalidRecord
from walrusmq.protocol.records.batch import Producer, Record, RecordBatch, decode_batch, decode_batches, encode_batch
from walrusmq.protocol.records.compression import Codec
from walrusmq.protocol.records.header import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, check_batch
from walrusmq.protocol.records.legacy import entry_magics
from walrusmq.protocol.records.scan import DamagedLog, scan_headers, scan_verified

FILE = Path(__file__).parents[2] / "data" / "records" / "record-batches.jsonl.gz"
VECTORS = [json.loads(line) for line in gzip.decompress(FILE.read_bytes()).splitlines()]


def vectors(wanted: Any) -> pytest.MarkDecorator:
    rows = [row for row in VECTORS if wanted(row)]
    assert rows
    return pytest.mark.parametrize("row", rows, ids=[row["name"] for row in rows])


def is_legacy(row: dict[str, Any]) -> bool:
    return row["name"].startswith("legacy-")


def described(batch: RecordBatch) -> dict[str, Any]:
    """A decoded batch in the words of the vectors."""
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
        "records": [described_record(record) for record in batch.records],
    }


def described_record(record: Record) -> dict[str, Any]:
    def text(value: bytes | None) -> str | None:
        return None if value is None else value.hex()

    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": text(record.key),
        "value": text(record.value),
        "headers": [[key, text(value)] for key, value in record.headers],
    }


@vectors(lambda row: row["valid"] and not is_legacy(row))
def test_a_batch_of_the_java_client_decodes_to_what_it_put_in(row: dict[str, Any]) -> None:
    data = bytes.fromhex(row["batch"])
    expected = row.get("batches") or [
        {key: value for key, value in row.items() if key not in ("name", "valid", "batch")}
    ]
    decoded = list(decode_batches(data))
    assert [described(batch) for batch in decoded] == expected
    if len(decoded) == 1:
        assert described(decode_batch(data)) == expected[0]


@vectors(lambda row: row["valid"] and not is_legacy(row))
def test_a_batch_of_the_java_client_means_the_same_when_packed_again(row: dict[str, Any]) -> None:
    for batch in decode_batches(bytes.fromhex(row["batch"])):
        header = batch.header
        again = decode_batch(
            encode_batch(
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
        )
        free = {"crc", "sizeInBytes"} | ({"baseTimestamp"} if header.has_log_append_time else set())
        assert {k: v for k, v in described(again).items() if k not in free} == {
            k: v for k, v in described(batch).items() if k not in free
        }
        if header.codec == Codec.NONE and not header.has_log_append_time:
            assert again.header == header, "without a codec the bytes are the same"


@vectors(lambda row: row["valid"] and not is_legacy(row))
def test_both_scans_find_the_batches_of_the_java_client(row: dict[str, Any]) -> None:
    data = bytes.fromhex(row["batch"])
    for scan in (scan_headers, scan_verified):
        found = list(scan(lambda size, position: data[position : position + size], 0, len(data)))
        assert [header.base_offset for _, header in found] == [b["baseOffset"] for b in row.get("batches", [row])]


@vectors(lambda row: not row["valid"])
def test_a_batch_that_is_not_valid_is_refused(row: dict[str, Any]) -> None:
    data = bytes.fromhex(row["batch"])
    for refuse in (decode_batch, check_batch):
        with pytest.raises((CorruptMessage, InvalidRecord)):
            refuse(memoryview(data))
    with pytest.raises(DamagedLog):
        list(scan_verified(lambda size, position: data[position : position + size], 0, len(data)))


@vectors(is_legacy)
def test_an_old_message_set_is_recognised_by_its_magic_and_refused(row: dict[str, Any]) -> None:
    data = memoryview(bytes.fromhex(row["batch"]))
    entries = row.get("batches", [row])
    assert [magic for magic, _ in entry_magics(data)] == [entry["magic"] for entry in entries]
    for refuse in (decode_batch, check_batch, lambda data: list(decode_batches(data))):
        with pytest.raises(InvalidRecord, match=f"magic {entries[0]['magic']}"):
            refuse(data)

"""Batches for the tests, put together field by field with `struct` and the reference CRC, so that any can be wrong."""

import struct
import zlib
from collections.abc import Callable

import crc32c as reference
import pytest
from hypothesis import settings

settings.register_profile("without_deadline", deadline=None)
settings.load_profile("without_deadline")  # an example that takes long on a busy machine is no fault of the decoder

T0 = 1_700_000_000_000
ONE_RECORD = b"\x0e\x00\x00\x00\x01\x02x\x00"
BEFORE_CHECKSUM = ("base_offset", "batch_length", "partition_leader_epoch", "magic", "crc")
UNDER_CHECKSUM = (
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
)


def forged(body: bytes = ONE_RECORD, **fields: int) -> bytes:
    """A batch of one record (value x) in which any field of the header, or the records, can be something else."""
    header = dict.fromkeys(BEFORE_CHECKSUM + UNDER_CHECKSUM, -1) | {
        "base_offset": 0,
        "magic": 2,
        "attributes": 0,
        "base_timestamp": T0,
    }
    header |= {"max_timestamp": T0, "last_offset_delta": 0, "record_count": 1, "batch_length": 49 + len(body)} | fields
    content = struct.pack(">hiqqqhii", *(header[name] for name in UNDER_CHECKSUM)) + body
    header |= {"crc": reference.crc32c(content)} | fields
    return struct.pack(">qiibI", *(header[name] for name in BEFORE_CHECKSUM)) + content


def old_message(magic: int) -> bytes:
    """A message set of one message, key k and value v, in the format before batches."""
    timestamp = struct.pack(">q", T0) if magic else b""
    message = struct.pack(">bb", magic, 0) + timestamp + b"\x00\x00\x00\x01k\x00\x00\x00\x01v"
    message = struct.pack(">I", zlib.crc32(message)) + message
    return struct.pack(">qi", 0, len(message)) + message


@pytest.fixture
def forge() -> Callable[..., bytes]:
    return forged


@pytest.fixture
def old() -> Callable[[int], bytes]:
    return old_message

"""A produce request that begins like the one before is answered as if it had been decoded, whatever it holds."""

import asyncio
import struct
from pathlib import Path

import pytest
from support.embedded import Wire, batch_of, create_topic, produce, running_node

from walrusmq.protocol.codec import codec
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.frames import request_header_version
from walrusmq.protocol.messages.headers import RequestHeader
from walrusmq.protocol.messages.produce import ProduceRequest

PRODUCE = 0
INNER = batch_of(b"inner")


def start(version: int) -> bytes:
    """A request up to its batch's size."""
    header = RequestHeader(api_key=PRODUCE, api_version=version, correlation_id=1, client_id="c")
    encoded = codec(RequestHeader, request_header_version(PRODUCE, version)).encode(header)
    encoded += codec(ProduceRequest, version).encode(produce("t", b""))
    return encoded[:-4]  # four bytes of size, or one and no tagged fields three times


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


async def error_code(wire: Wire, body: bytes, version: int) -> int:
    wire.writer.write(framed(body))
    answer = await wire.receive(ProduceRequest(), version)
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


def test_bytes_behind_a_request_move_no_later_batch(tmp_path: Path) -> None:
    """The first request has four bytes too many, so that its size could be taken for the four that follow it."""

    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            size = struct.pack(">i", len(INNER))
            first = start(8) + size + size + bytes(len(INNER) - 4) + bytes(4)
            second = start(8) + size + size + INNER
            assert await error_code(wire, first, 8) == ErrorCode.CORRUPT_MESSAGE
            assert await error_code(wire, second, 8) == ErrorCode.CORRUPT_MESSAGE
            assert node.partitions_by_name["t"][0].log_end_offset == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("version", [9, 12])
def test_tagged_fields_behind_a_batch_move_no_later_batch(version: int, tmp_path: Path) -> None:
    """The first request ends in three zeros as nearly all do, but the first of them is a tagged field's."""

    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            ones = bytes([70])  # a compact size of 69 bytes, wherever one is read
            first = start(version) + ones * 70 + b"\x01\x07\x01\0\0\0"
            assert await error_code(wire, first, version) != 0
            second = start(version) + ones * 3 + bytes([len(INNER) + 1]) + INNER + bytes(3)
            wire.writer.write(framed(second))
            await wire.reader.read(1)  # an answer, or the end
            assert node.partitions_by_name["t"][0].log_end_offset == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("version", [7, 8, 9, 12])
def test_a_batch_of_any_size_is_appended_after_one_of_another(version: int, tmp_path: Path) -> None:
    """A compact size takes one byte, two or three; the bytes before it stay the same."""

    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            sizes = [1, 50, 60, 61, 16_300, 16_400, 3, 0, 70_000, 59]
            for offset, size in enumerate(sizes):
                wire.send(produce("t", batch_of(bytes(size))), version)
                answer = await wire.receive(ProduceRequest(), version)
                assert answer.responses[0].partition_responses[0].base_offset == offset
            assert node.partitions_by_name["t"][0].log_end_offset == len(sizes)
            (connection,) = node.listener.connections
            assert connection.repeated is not None

    asyncio.run(scenario())

"""A new idempotent producer whose first batch is lost, with others of its own behind it on the way."""

import asyncio
import errno
from pathlib import Path

import pytest
from support.crash_disk import CrashDisk
from support.embedded import Wire, batch_of, create_topic, produce, running_node
from support.reading import only_partition, read_all

from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.records.batch import Producer


@pytest.mark.parametrize("call", ["pwrite", "fdatasync"])
def test_what_was_sent_behind_a_lost_first_batch_waits_until_that_has_come_again(tmp_path: Path, call: str) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        async with running_node(tmp_path, files=disk) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            await wire.ask(produce("t", batch_of(b"other")), 9)
            disk.fail(call, errno.EIO, path=".log")
            requests = [produce("t", batch_of(b"%d" % n, producer=Producer(7, 0, n))) for n in range(3)]
            for request in requests:
                wire.send(request, 9)
            answers = [only_partition(await wire.receive(request, 9)).error_code for request in requests]
            assert answers[0] in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
            assert 0 not in answers
            again = [only_partition(await wire.ask(request, 9)).error_code for request in requests]
            assert again == [0, 0, 0]
            assert [value for _, value in await read_all(wire, "t")] == [b"other", b"0", b"1", b"2"]

    asyncio.run(scenario())

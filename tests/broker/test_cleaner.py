"""Compaction by a running node: what stays, what goes, and what goes wrong."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.chains import sealed_of
from support.clocks import MovedClock
from support.embedded import Wire, batch_of, create_topic, produce, running_node
from support.reading import only_partition, read_compacted
from support.waiting import until

from walrusmq.broker import compaction_rounds
from walrusmq.broker.commands import MoveLogStart, NamedValue, ResourceType, SetConfigs
from walrusmq.broker.node import Node
from walrusmq.broker.topic_configs import compaction
from walrusmq.metrics.catalogue import COMPACTION_FAILURES, COMPACTIONS
from walrusmq.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from walrusmq.protocol.records.batch import Producer, Record, encode_batch
from walrusmq.protocol.records.compression import Codec

RECORDS_MS = 1_700_000_000_000
QUICK = {"monitor_check_ms": 2, "log_cleaner_backoff_ms": 2, "log_cleaner_min_cleanable_ratio": 0}

BECOMES_TRIES = 1000
"""Ten seconds."""

Entry = tuple[str, str | None]


@asynccontextmanager
async def a_node(folder: Path, *, clock: Any = None, **given: Any) -> AsyncIterator[tuple[Node, Wire]]:
    settings = {**QUICK, **given}
    clock = clock or MovedClock(RECORDS_MS)
    async with running_node(folder, clock=clock, **settings) as node, await Wire.to(node) as wire:
        yield node, wire


def keyed(*entries: Entry, timestamp: int = RECORDS_MS, **how: Any) -> bytes:
    records = [
        Record(offset, timestamp, key.encode(), None if value is None else value.encode())
        for offset, (key, value) in enumerate(entries)
    ]
    return encode_batch(records, **how)


async def put(wire: Wire, *entries: Entry, topic: str = "t", **how: Any) -> int:
    part = only_partition(await wire.ask(produce(topic, keyed(*entries, **how)), 9))
    assert part.error_code == 0
    base_offset: int = part.base_offset
    return base_offset


async def seal(node: Node, topic: str = "t") -> None:
    """Have the open segment sealed, whatever is in it."""
    (partition,) = node.partitions_by_name[topic].values()
    await node.rollovers.begin(partition, "manual")


async def compacted(node: Node, rounds: int = 1) -> None:
    """Wait until so many rounds have ended well since the start."""
    await until(lambda: node.metrics.compactions >= rounds)


async def set_policy(node: Node, topic: str, policy: str) -> None:
    configs = [NamedValue(name="cleanup.policy", value=policy)]
    await node.propose(SetConfigs(resource_type=ResourceType.TOPIC, name=topic, configs=configs))


async def contents(wire: Wire, topic: str = "t", offset: int = 0) -> list[tuple[int, str, str | None]]:
    return [
        (record.offset, (record.key or b"").decode(), None if record.value is None else record.value.decode())
        for record in await read_compacted(wire, topic, offset=offset)
    ]


async def becomes(wire: Wire, expected: list[tuple[int, str, str | None]]) -> None:
    """Wait until the topic holds just that."""
    found = await contents(wire)
    for _ in range(BECOMES_TRIES):
        if found == expected:
            return
        await asyncio.sleep(0.01)
        found = await contents(wire)
    assert found == expected


async def offset_at(wire: Wire, timestamp: int) -> tuple[int, int]:
    """(offset, timestamp) that ListOffsets finds."""
    topics = [ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=timestamp)])]
    part = only_partition(await wire.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 7))
    return part.offset, part.timestamp


def forget_producers(folder: Path) -> None:
    """Have all be found in the logs by the next start, as after a crash."""
    for path in folder.rglob("*.producers"):
        path.unlink()
    (folder / "segments.clean").unlink()


def logs_in(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "topics").rglob("*.log"))


def test_the_last_value_of_each_key_stays_and_counts_stay_exact(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path) as (node, wire):
            await create_topic(wire, "t", cleanup_policy="compact")
            for number in range(30):
                await put(wire, (f"k{number % 3}", str(number)), (f"once-{number % 10}-{number // 10}", "x"))
                if number % 10 == 9:
                    before = sealed_of(node, "t")
                    await seal(node)
            await put(wire, ("k0", "open"))
            last = [sealed_of(node, "t")[-1]]
            counts = [(facts.first_offset, facts.end_offset) for facts in [*before, *last]]
            await until(lambda: all(facts.generation for facts in sealed_of(node, "t")))
            values = {key: value for _, key, value in await contents(wire)}
            assert values == {
                "k0": "open", "k1": "28", "k2": "29", **{f"once-{n}-{t}": "x" for n in range(10) for t in range(3)}
            }  # fmt: skip
            # k0's value from before stays until the one in the open segment is sealed
            assert [offset for offset, key, _ in await contents(wire) if key.startswith("k")] == [54, 56, 58, 60]
            assert [(facts.first_offset, facts.end_offset) for facts in sealed_of(node, "t")][-1:] == counts[-1:]
            node.image.check()
            found = await contents(wire)
        async with a_node(tmp_path) as (node, wire):
            assert await contents(wire) == found

    asyncio.run(scenario())


def test_a_reader_at_any_offset_finds_what_comes_next(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path) as (node, wire):
            await create_topic(wire, "t", cleanup_policy="compact")
            for number in range(40):
                await put(wire, (f"k{number % 4}", str(number)))
                if number % 8 == 7:
                    await seal(node)
            await until(lambda: [facts.generation > 0 for facts in sealed_of(node, "t")] == [True])
            everything = [(number, f"k{number % 4}", str(number)) for number in range(36, 40)]
            for offset in range(41):
                assert await contents(wire, offset=offset) == [each for each in everything if each[0] >= offset]

    asyncio.run(scenario())


def test_a_segment_of_which_nothing_is_left_leaves_the_chain(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path) as (node, wire):
            await create_topic(wire, "t", cleanup_policy="compact")
            for value in range(5):
                await put(wire, ("k", str(value)))
                await seal(node)
            await until(lambda: [facts.id for facts in sealed_of(node, "t")] == [5])
            assert node.image.sealed_segment_count == 1
            assert await contents(wire) == [(4, "k", "4")]
            assert await offset_at(wire, -2) == (0, -1), "the log begins where it began"
            await put(wire, ("k", "5"))
            await until(lambda: logs_in(tmp_path) == ["0000000005.log", "0000000006.log"])
            node.image.check()
        async with a_node(tmp_path) as (node, wire):
            assert await contents(wire) == [(4, "k", "4"), (5, "k", "5")]
            node.image.check()

    asyncio.run(scenario())


def test_a_tombstone_goes_when_its_time_is_over_and_not_before(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = MovedClock(RECORDS_MS)
        async with a_node(tmp_path, clock=clock) as (node, wire):
            await create_topic(wire, "t", cleanup_policy="compact", delete_retention_ms="1000")
            await put(wire, ("a", "1"), ("b", "1"))
            await put(wire, ("a", None))
            await seal(node)
            await compacted(node, 1)
            assert await contents(wire) == [(1, "b", "1"), (2, "a", None)]
            clock.ms += 999
            await put(wire, ("c", "1"))
            await seal(node)
            await compacted(node, 2)
            assert await contents(wire) == [(1, "b", "1"), (2, "a", None), (3, "c", "1")]
            clock.ms += 1
            await put(wire, ("d", "1"))
            await seal(node)
            await compacted(node, 3)
            assert await contents(wire) == [(1, "b", "1"), (3, "c", "1"), (4, "d", "1")]

    asyncio.run(scenario())


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.LZ4])
def test_times_and_their_largest_are_found_after_it(tmp_path: Path, codec: Codec) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path) as (node, wire):
            await create_topic(wire, "t", cleanup_policy="compact")
            await put(wire, ("a", "1"), timestamp=RECORDS_MS + 50, codec=codec)
            await put(wire, ("b", "1"), ("a", "2"), timestamp=RECORDS_MS + 10, codec=codec)
            await put(wire, ("c", "1"), timestamp=RECORDS_MS + 20, codec=codec)
            await seal(node)
            await compacted(node)
            assert [offset for offset, _, _ in await contents(wire)] == [1, 2, 3]
            assert await offset_at(wire, RECORDS_MS) == (1, RECORDS_MS + 10)
            assert await offset_at(wire, RECORDS_MS + 11) == (3, RECORDS_MS + 20)
            assert await offset_at(wire, RECORDS_MS + 21) == (-1, -1)
            assert await offset_at(wire, -3) == (3, RECORDS_MS + 20)

    asyncio.run(scenario())


def test_a_producer_is_still_known_by_its_sequence_after_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path) as (node, wire):
            await create_topic(wire, "t", cleanup_policy="compact")
            for sequence in range(3):
                await put(wire, ("k", str(sequence)), producer=Producer(7, 0, sequence))
            await seal(node)
            await put(wire, ("k", "by another"), producer=Producer(8, 0, 0))
            await seal(node)
            await becomes(wire, [(3, "k", "by another")])
        forget_producers(tmp_path)
        async with a_node(tmp_path) as (node, wire):
            assert await put(wire, ("k", "2"), producer=Producer(7, 0, 2)) == 2, "a repeat"
            assert await put(wire, ("k", "3"), producer=Producer(7, 0, 3)) == 4

    asyncio.run(scenario())


def test_what_is_young_stays_and_what_is_old_goes_though_little_is_new(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = MovedClock(RECORDS_MS)
        async with a_node(tmp_path, clock=clock, log_cleaner_min_cleanable_ratio=1) as (node, wire):
            await create_topic(
                wire, "t", cleanup_policy="compact", min_compaction_lag_ms="100", max_compaction_lag_ms="100000"
            )
            for value in range(2):
                await put(wire, ("k", str(value)))
                await seal(node)
            clock.ms += 100_000 - 1
            await asyncio.sleep(0.05)
            assert node.metrics.compactions == 0, "not all of the log's bytes can be more than all of them"
            await put(wire, ("k", "young"), timestamp=clock.ms)
            await seal(node)
            clock.ms += 1
            await compacted(node)
            assert await contents(wire) == [(1, "k", "1"), (2, "k", "young")]

    asyncio.run(scenario())


def test_a_log_with_more_keys_than_there_is_room_for_is_compacted_in_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction_rounds, "DEFAULT_MAX_KEYS", 4)

    async def scenario() -> None:
        async with a_node(tmp_path) as (node, wire):
            await create_topic(wire, "t", cleanup_policy="compact")
            for turn in range(3):
                for key in range(10):
                    await put(wire, (f"k{key}", str(turn)))
                await seal(node)
            await until(lambda: all(facts.first_offset == 20 for facts in sealed_of(node, "t")))
            assert await contents(wire) == [(20 + key, f"k{key}", "2") for key in range(10)]

    asyncio.run(scenario())


def test_a_partition_that_cannot_be_compacted_is_told_of_and_the_others_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path) as (node, wire):
            for topic in ("bad", "t"):
                await create_topic(wire, topic, cleanup_policy="delete")
                await put(wire, ("k", "1"), topic=topic)
                await put(wire, ("k", "2"), topic=topic)
                await seal(node, topic)
            (bad,) = node.partitions_by_name["bad"].values()
            path = Path(bad.log.folder.path) / "0000000001.log"
            os.truncate(path, path.stat().st_size - 1)
            for topic in ("bad", "t"):
                await set_policy(node, topic, "compact")
            await compacted(node)
            await until(lambda: node.metrics.compaction_failures > 0)
            assert await contents(wire) == [(1, "k", "2")]
            counted = dict(node.metrics.read())
            assert counted[COMPACTION_FAILURES] == {(): 1}
            assert counted[COMPACTIONS] == {(): 1}
        assert "bad-0 can't be compacted, the next try is in 60 s: 1 bytes are missing" in caplog.text
        assert "Traceback" not in caplog.text

    with caplog.at_level(logging.ERROR):
        asyncio.run(scenario())


def test_a_segment_that_retention_takes_away_meanwhile_is_no_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path, log_cleaner_backoff_ms=600_000) as (node, wire):
            topic_id = await create_topic(wire, "t", cleanup_policy="compact")
            for value in range(4):
                await put(wire, ("k", str(value)), ("k", str(value)), ("once", str(value)))
                await seal(node)
            rounds = compaction_rounds.CompactionRounds(node)
            (partition,) = node.partitions_by_name["t"].values()
            rules = compaction({"cleanup.policy": "compact"}, node.settings)
            assert rules is not None
            due = await rounds.due(partition, rules)
            assert due is not None
            await node.propose(MoveLogStart(topic_id=topic_id, partition=0, log_start_offset=6))
            await rounds.run(due)
            await rounds.stop()
            assert (await contents(wire, offset=6))[-1] == (11, "once", "3")
        assert not any(name.startswith("0000000001-") for name in logs_in(tmp_path))

    asyncio.run(scenario())


def test_a_reader_gets_to_the_end_though_nothing_is_left_and_nothing_came_since(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with a_node(tmp_path) as (node, wire):
            await create_topic(wire, "t", cleanup_policy="delete")
            assert only_partition(await wire.ask(produce("t", batch_of(b"no key")), 9)).error_code == 0
            await seal(node)
            await set_policy(node, "t", "compact")
            await compacted(node)
            assert await contents(wire) == []
            await put(wire, ("k", "1"))
            await seal(node)
            await until(lambda: [facts.id for facts in sealed_of(node, "t")] == [2])
            assert await contents(wire) == [(1, "k", "1")]

    asyncio.run(scenario())

"""The cluster image over restarts of its metadata log, as the original's probes tried them (shared/original.md)."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from support.image_commands import create, register, roll, topic_id
from support.image_log import started

from walrusmq.broker.commands import decode_command, encode_command
from walrusmq.broker.image import ClusterImage
from walrusmq.broker.image_check import check_image
from walrusmq.consensus.metadata_log import SNAPSHOT_EVERY_ENTRIES
from walrusmq.protocol.errors import KafkaError

PATIENCE_S = 60.0
MAX_THOUSAND_TOPICS_S = 1.0


def run(scenario: Awaitable[None]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(scenario, PATIENCE_S)

    asyncio.run(bounded())


def test_the_same_folder_starts_again_and_again(tmp_path: Path) -> None:
    """The original's third start exited, and its fourth came up empty."""

    async def scenario() -> None:
        metadata = await started(tmp_path / "metadata")
        await metadata.propose_all([register(), create(1), create(2)])
        await metadata.log.stop()
        for start in range(20):
            again = await started(tmp_path / "metadata")
            assert sorted(again.image.topics_by_name) == ["topic-1", "topic-2"]
            assert again.log.applied_index == 3 + start
            await again.propose_all([register()])
            await again.log.stop()

    run(scenario())


@pytest.mark.parametrize("count", [1000, 4000, 7000])
def test_any_number_of_topics_is_there_after_a_restart(tmp_path: Path, count: int) -> None:
    """At 7000 the original exited for good: its snapshot at 5000 entries was in memory only."""

    async def scenario() -> None:
        metadata = await started(tmp_path / "metadata")
        await metadata.propose_all([register()])
        for first in range(0, count, 1000):
            await metadata.propose_all([create(number) for number in range(first, first + 1000)])
        await metadata.log.stop()
        assert any((tmp_path / "metadata").glob("*.snapshot")) == (count > SNAPSHOT_EVERY_ENTRIES)
        again = await started(tmp_path / "metadata")
        assert again.image.snapshot() == metadata.image.snapshot()
        assert len(again.image.topics) == count
        await again.log.stop()

    run(scenario())


def test_5500_rollovers_of_one_entry_are_there_after_a_restart(tmp_path: Path) -> None:
    """The original exited for good here too, with 57 GB of reserved space."""

    async def scenario() -> None:
        metadata = await started(tmp_path / "metadata")
        await metadata.propose_all([register(), create(1)])
        planned = ClusterImage.restore(metadata.image.snapshot())
        commands = []
        for _ in range(5500):
            commands.append(roll(planned, entries=1))
            planned.apply(planned.applied_index + 1, commands[-1])
        for first in range(0, 5500, 500):
            await metadata.propose_all(commands[first : first + 500])
        await metadata.log.stop()
        again = await started(tmp_path / "metadata")
        again.image.check()
        assert again.image.snapshot() == metadata.image.snapshot() == planned.snapshot()
        assert again.image.topics[topic_id(1)].partitions[0].open.id == 5501
        await again.log.stop()
        size = sum(file.stat().st_size for file in (tmp_path / "metadata").iterdir())
        assert size < 4_000_000

    run(scenario())


def test_rollovers_proposed_at_once_by_many_writers_seal_each_segment_once(tmp_path: Path) -> None:
    """Each writer of the original that passed the limit proposed its own, and each was applied."""

    async def scenario() -> None:
        metadata = await started(tmp_path / "metadata")
        await metadata.propose_all([register(), create(1)])
        for segment_id in range(1, 31):
            payload = encode_command(roll(metadata.image, entries=100))
            answers = await asyncio.gather(*(metadata.log.propose(payload) for _ in range(32)), return_exceptions=True)
            assert sum(not isinstance(answer, KafkaError) for answer in answers) == 1
            assert metadata.image.topics[topic_id(1)].partitions[0].open.id == segment_id + 1
        await metadata.log.stop()
        again = await started(tmp_path / "metadata")
        sealed = again.image.topics[topic_id(1)].partitions[0].sealed
        assert [segment.end_offset - segment.first_offset for segment in sealed] == [100] * 30
        await again.log.stop()

    run(scenario())


def test_a_thousand_topics_proposed_at_once_take_less_than_a_second(tmp_path: Path) -> None:
    async def scenario() -> None:
        metadata = await started(tmp_path / "metadata")
        await metadata.propose_all([register()])
        before = time.perf_counter()
        await metadata.propose_all([create(number) for number in range(1000)])
        assert time.perf_counter() - before < MAX_THOUSAND_TOPICS_S
        await metadata.log.stop()

    run(scenario())


def test_the_recorded_history_gives_the_same_image_on_every_replay(tmp_path: Path) -> None:
    async def scenario() -> None:
        metadata = await started(tmp_path / "metadata")
        history: list[Any] = []
        metadata.image.subscribe(lambda index, command, result: history.append((index, command)))
        await metadata.propose_all([register(), create(1, 3), create(2)])
        for partition in (0, 1, 2, 0):
            await metadata.propose_all([roll(metadata.image, partition=partition)])
        await metadata.log.stop()
        by_hand = ClusterImage()
        for index, command in history:
            by_hand.apply(index, decode_command(encode_command(command)))
        again = await started(tmp_path / "metadata")
        assert by_hand.snapshot() == again.image.snapshot() == metadata.image.snapshot()
        await again.log.stop()

    run(scenario())


WRITER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from support.image_commands import create, register
from support.image_log import started

async def write():
    metadata = await started(Path(sys.argv[1]))
    await metadata.propose_all([register()])
    print("ready", flush=True)
    number = len(metadata.image.topics)
    while True:
        await metadata.propose_all([create(number + place) for place in range(3)])
        number += 3
        print(number, flush=True)

asyncio.run(write())
"""


def test_a_sigkill_at_any_moment_loses_no_answered_command(tmp_path: Path) -> None:
    tests = Path(__file__).parents[1]
    script = tmp_path / "writer.py"
    script.write_text(WRITER)
    chance = random.Random(1)
    answered = 0
    for _ in range(10):
        command = [sys.executable, str(script), str(tmp_path / "metadata"), str(tests)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            for _ in range(chance.randint(1, 40)):
                answered = int(process.stdout.readline())
            time.sleep(chance.random() * 0.005)
            process.send_signal(signal.SIGKILL)
            rest = process.stdout.read().splitlines()
        answered = int(rest[-1]) if rest and rest[-1].isdecimal() else answered
        assert_topics(tmp_path / "metadata", answered)


def assert_topics(folder: Path, answered: int) -> None:
    """Every answered topic is there, and at most the three of the proposals that were cut off besides."""

    async def scenario() -> None:
        metadata = await started(folder)
        check_image(metadata.image)
        names = [f"topic-{number}" for number in range(len(metadata.image.topics))]
        assert list(metadata.image.topics_by_name) == names
        assert answered <= len(names) <= answered + 3
        await metadata.log.stop()

    run(scenario())

"""What a node says of itself: whether it can serve, why not, and an address that will lead nowhere."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.crash_disk import CrashDisk
from support.embedded import Wire, batch_of, create_topic, produce, running_node, settings
from support.reading import only_partition
from support.waiting import until

from walrusmq.broker.image import ClusterImage
from walrusmq.broker.node import MAX_LOOPBACK_WARNINGS, MAX_REASONS, Node
from walrusmq.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest


def peer(host: str) -> Any:
    """A connection from there, to port 9092 of a machine that it knows as ``server``."""
    return SimpleNamespace(peer_host=host, peer=f"{host}:50000", local_host="server", local_port=9092)


def test_it_is_ready_from_the_end_of_its_start_to_the_begin_of_its_stop(tmp_path: Path) -> None:
    async def scenario() -> None:
        node = Node(settings(tmp_path))
        assert node.unready_reasons() == ["starting"]
        await node.start()
        assert node.unready_reasons() == []
        stop = asyncio.create_task(node.stop())
        await until(lambda: node.is_stopping)
        assert node.unready_reasons() == ["stopping"]
        await stop

    asyncio.run(scenario())


def test_reasons_stay_readable_however_many_partitions_cant_be_written(tmp_path: Path) -> None:
    async def scenario() -> None:
        disk = CrashDisk(tmp_path)
        async with running_node(tmp_path, files=disk) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t", 2 * MAX_REASONS)
            disk.room = 0
            for partition in range(2 * MAX_REASONS):
                assert (
                    only_partition(await wire.ask(produce("t", batch_of(b"x"), partition=partition), 9)).error_code
                    == 56
                )
            assert len(node.unready_reasons()) == MAX_REASONS

    asyncio.run(scenario())


def test_a_node_that_cant_follow_its_metadata_says_so_and_asks_to_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        apply = ClusterImage.apply_entry
        is_broken = False

        def may_break(image: ClusterImage, *entry: Any) -> Any:
            if is_broken:
                raise RuntimeError("a command from the future")
            return apply(image, *entry)

        monkeypatch.setattr(ClusterImage, "apply_entry", may_break)
        node = Node(settings(tmp_path))
        await node.start()
        assert not node.has_failed.is_set()
        is_broken = True
        async with await Wire.to(node) as wire:
            topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
            answer = await wire.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
            assert answer.topics[0].error_code != 0
        async with asyncio.timeout(5):
            await node.has_failed.wait()
        assert node.unready_reasons() == ["the metadata log can't be followed: a command from the future"]
        await node.stop()

    asyncio.run(scenario())


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "::ffff:127.0.0.1"])
def test_a_client_on_this_machine_may_be_told_a_loopback_address(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, host: str
) -> None:
    node = Node(settings(tmp_path, advertised_listener="localhost:9999"))
    assert node.advertised_address(peer(host)) == ("localhost", 9999)
    assert not caplog.records


def test_a_client_from_elsewhere_that_is_told_one_is_warned_of_once_and_not_without_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """C02: the warning names peer, address and setting."""
    node = Node(settings(tmp_path, advertised_listener="127.0.0.1:9999"))
    for _ in range(3):
        assert node.advertised_address(peer("192.0.2.7")) == ("127.0.0.1", 9999)
    (record,) = caplog.records
    assert all(part in record.getMessage() for part in ("192.0.2.7:50000", "127.0.0.1:9999", "advertised.listener"))
    for number in range(1000):
        node.advertised_address(peer(f"192.0.2.{number}"))
    assert len(caplog.records) == MAX_LOOPBACK_WARNINGS


def test_unset_each_client_is_told_the_address_by_which_it_came(tmp_path: Path) -> None:
    assert Node(settings(tmp_path)).advertised_address(peer("192.0.2.7")) == ("server", 9092)

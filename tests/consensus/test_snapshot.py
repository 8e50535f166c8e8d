"""Snapshots: the newest whole one is used, two are kept, damage is never taken for content."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.lossy_disk import LossyDisk, PowerLoss

from walrusmq.consensus.errors import MetadataDamaged, NewerFormat
from walrusmq.consensus.snapshot import NO_SNAPSHOT, Snapshot, SnapshotStore, decode_snapshot, encode_snapshot
from walrusmq.protocol.records.crc import crc32c

FOLDER = "/metadata"


def stored(disk: LossyDisk) -> list[str]:
    return sorted(name for name in disk.listdir(FOLDER) if name.endswith(".snapshot"))


def path(last_index: int) -> str:
    return f"{FOLDER}/{last_index:020d}.snapshot"


def test_a_new_folder_has_no_snapshot() -> None:
    assert SnapshotStore(FOLDER, LossyDisk()).load() is NO_SNAPSHOT


def test_the_newest_snapshot_is_used_and_two_are_kept() -> None:
    disk = LossyDisk()
    store = SnapshotStore(FOLDER, disk)
    needless = []
    for index in (5, 10, 15, 20):
        store.save(Snapshot(index, 1, b"%d" % index))
        needless.append(store.remove_old())
    assert needless == [0, 5, 10, 15]
    assert stored(disk) == [f"{index:020d}.snapshot" for index in (15, 20)]
    disk.crash()
    assert SnapshotStore(FOLDER, disk).load() == Snapshot(20, 1, b"20")


@given(st.binary(max_size=200), st.integers(1, 2**60), st.integers(1, 2**60))
def test_a_snapshot_is_read_as_it_was_written(data: bytes, index: int, term: int) -> None:
    snapshot = Snapshot(index, term, data)
    assert decode_snapshot(encode_snapshot(snapshot), "x") == snapshot


@given(st.data())
def test_any_damage_to_a_snapshot_is_noticed(data: st.DataObject) -> None:
    content = bytearray(encode_snapshot(Snapshot(3, 1, b"some state")))
    position = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        del content[position:]
    else:
        content[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(MetadataDamaged):
        decode_snapshot(bytes(content), "x")


def test_a_damaged_newest_snapshot_is_passed_over_with_an_error_line(caplog: pytest.LogCaptureFixture) -> None:
    disk = LossyDisk()
    store = SnapshotStore(FOLDER, disk)
    for index in (5, 10):
        store.save(Snapshot(index, 1, b"%d" % index))
    disk.names[path(10)].cached[-1] ^= 1
    again = SnapshotStore(FOLDER, disk)
    with caplog.at_level(logging.WARNING):
        assert again.load() == Snapshot(5, 1, b"5")
    assert len(caplog.records) == 1
    assert path(10) in caplog.text
    again.save(Snapshot(12, 1, b"12"))
    assert again.remove_old() == 5
    assert stored(disk) == [f"{index:020d}.snapshot" for index in (5, 12)]


def test_when_all_snapshots_are_damaged_the_folder_is_refused() -> None:
    disk = LossyDisk()
    store = SnapshotStore(FOLDER, disk)
    for index in (5, 10):
        store.save(Snapshot(index, 1, b"%d" % index))
        disk.names[path(index)].cached[-1] ^= 1
    with pytest.raises(MetadataDamaged, match=path(5)):
        SnapshotStore(FOLDER, disk).load()


def test_a_snapshot_under_another_name_is_refused() -> None:
    disk = LossyDisk()
    SnapshotStore(FOLDER, disk).save(Snapshot(5, 1, b"5"))
    disk.replace(path(5), path(50))
    with pytest.raises(MetadataDamaged, match="goes up to entry 5"):
        SnapshotStore(FOLDER, disk).load()


def test_a_newer_format_is_refused_even_if_an_older_snapshot_is_there() -> None:
    disk = LossyDisk()
    store = SnapshotStore(FOLDER, disk)
    for index in (5, 10):
        store.save(Snapshot(index, 1, b"%d" % index))
    content = disk.names[path(10)].cached
    content[8:10] = (3).to_bytes(2, "big")
    content[38:42] = crc32c(bytes(content[:38])).to_bytes(4, "big")
    with pytest.raises(NewerFormat, match=path(10)):
        SnapshotStore(FOLDER, disk).load()


@pytest.mark.parametrize("seed", range(20))
def test_a_crash_while_a_snapshot_is_saved_leaves_a_whole_one(seed: int) -> None:
    number = 0
    while True:
        disk = LossyDisk(seed)
        store = SnapshotStore(FOLDER, disk)
        for index in (5, 10):
            store.save(Snapshot(index, 1, b"%d" % index * 1000))
        calls = iter(range(number))

        def before_call(name: str, calls: object = calls) -> None:
            if next(calls, None) is None:  # type: ignore[call-overload]
                raise PowerLoss

        disk.before_call = before_call
        try:
            store.save(Snapshot(15, 1, b"15" * 1000))
            store.remove_old()
        except PowerLoss:
            disk.crash()
            assert SnapshotStore(FOLDER, disk).load().last_index in (10, 15)
            number += 1
            continue
        assert number >= 6, "every call was tried"
        return

"""The folder as a whole: a first start that is cut short anywhere, and parts that are missing."""

from __future__ import annotations

import pytest
from support.lossy_disk import LossyDisk, PowerLoss

from walrusmq.consensus.entry import Entry
from walrusmq.consensus.errors import MetadataDamaged
from walrusmq.consensus.group_storage import FIRST_TERM, GroupStorage
from walrusmq.consensus.log_file import file_name
from walrusmq.consensus.snapshot import NO_SNAPSHOT, Snapshot
from walrusmq.consensus.storage import FILE_NAME, HardState, save_hard_state

FOLDER = "/data/metadata"
HARD_STATE = f"{FOLDER}/{FILE_NAME}"
FIRST_LOG_FILE = f"{FOLDER}/{file_name(1)}"


def opened(disk: LossyDisk) -> GroupStorage:
    storage = GroupStorage(FOLDER, disk, log_file_bytes=200)
    storage.open()
    return storage


def test_a_new_folder_begins_with_term_one_and_nothing_in_it() -> None:
    found = GroupStorage(FOLDER, LossyDisk()).open()
    assert (found.hard_state, found.snapshot, found.entries) == (HardState(FIRST_TERM), NO_SNAPSHOT, [])


@pytest.mark.parametrize("ending", ["kill", "crash"])
@pytest.mark.parametrize("seed", range(10))
def test_a_first_start_that_is_cut_short_at_any_call_is_begun_again(seed: int, ending: str) -> None:
    number = 0
    while True:
        disk = LossyDisk(seed)
        calls = iter(range(number))

        def before_call(name: str, calls: object = calls) -> None:
            if next(calls, None) is None:  # type: ignore[call-overload]
                raise PowerLoss

        disk.before_call = before_call
        try:
            opened(disk)
        except PowerLoss:
            getattr(disk, ending)()
            storage = opened(disk)
            storage.log.append([Entry(1, 1, b"one")])
            disk.crash()
            assert GroupStorage(FOLDER, disk).open().entries == [Entry(1, 1, b"one")]
            number += 1
            continue
        assert number > 12, "every call was tried"
        return


def test_a_log_without_its_hard_state_is_refused() -> None:
    disk = LossyDisk()
    opened(disk).log.append([Entry(1, 1, b"one")])
    disk.unlink(HARD_STATE)
    with pytest.raises(MetadataDamaged, match=f"{HARD_STATE}: it is missing, though the log beside it has been used"):
        opened(disk)


def test_a_hard_state_without_its_log_is_refused() -> None:
    disk = LossyDisk()
    opened(disk)
    disk.unlink(FIRST_LOG_FILE)
    with pytest.raises(MetadataDamaged, match="entries from 1 on are missing"):
        opened(disk)


def test_a_hard_state_that_is_older_than_the_log_is_refused() -> None:
    disk = LossyDisk()
    opened(disk).log.append([Entry(1, 5, b"one")])
    with pytest.raises(MetadataDamaged, match="says term 1, and the log has entries of 5"):
        opened(disk)
    save_hard_state(FOLDER, disk, HardState(5))
    assert opened(disk).log.last_term == 5


def test_a_damaged_snapshot_is_made_up_for_by_the_older_one_and_the_log() -> None:
    disk = LossyDisk()
    storage = opened(disk)
    written = [Entry(index, 1, b"%d" % index * 20) for index in range(1, 31)]
    for entry in written:
        storage.log.append([entry])
        if entry.index % 10 == 0:
            storage.snapshots.save(Snapshot(entry.index, 1, b"state"))
            storage.log.purge(storage.snapshots.remove_old())
    assert FIRST_LOG_FILE not in disk.names
    disk.names[f"{FOLDER}/{30:020d}.snapshot"].cached[-1] ^= 1
    found = GroupStorage(FOLDER, disk).open()
    assert found.snapshot.last_index == 20
    assert found.entries == written[20:]


def test_nothing_stays_open_after_close_or_a_refusal() -> None:
    disk = LossyDisk()
    storage = opened(disk)
    storage.close()
    assert not disk.open_files
    disk.names[HARD_STATE].cached[0] ^= 1
    refused = GroupStorage(FOLDER, disk)
    with pytest.raises(MetadataDamaged):
        refused.open()
    refused.close()
    assert not disk.open_files

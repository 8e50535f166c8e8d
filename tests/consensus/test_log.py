"""The durable log: whatever the disk does, what was confirmed is found again, or the log refuses to open."""

from __future__ import annotations

import errno
import logging
import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.lossy_disk import LossyDisk, PowerLoss

from walrusmq.consensus.entry import Entry, encode_entries
from walrusmq.consensus.errors import EntriesRefused, EntriesUncertain, MetadataDamaged, NewerFormat
from walrusmq.consensus.log import DurableLog
from walrusmq.consensus.log_file import ENTRIES_START, MARK_POSITION, file_name
from walrusmq.protocol.records.crc import crc32c

FOLDER = "/metadata"
SMALL_FILE_BYTES = 400


def path(first_index: int) -> str:
    return f"{FOLDER}/{file_name(first_index)}"


def new_log(disk: LossyDisk, file_bytes: int = SMALL_FILE_BYTES) -> DurableLog:
    log = DurableLog(FOLDER, disk, file_bytes=file_bytes)
    log.create()
    return log


def reopen(disk: LossyDisk, after_index: int = 0) -> tuple[DurableLog, list[Entry]]:
    disk.sync_folder(FOLDER)
    log = DurableLog(FOLDER, disk, file_bytes=SMALL_FILE_BYTES)
    return log, log.open(after_index, 0)


def append(log: DurableLog, *payloads: bytes, term: int = 1) -> list[Entry]:
    entries = [Entry(log.last_index + 1 + place, term, payload) for place, payload in enumerate(payloads)]
    log.append(entries)
    return entries


def fail(disk: LossyDisk, call: str, code: int = errno.EIO) -> None:
    def before_call(name: str) -> None:
        if name == call:
            raise OSError(code, "injected")

    disk.before_call = before_call


def heal(disk: LossyDisk) -> None:
    disk.before_call = lambda name: None


def test_appended_entries_are_found_again_across_files() -> None:
    disk = LossyDisk()
    log = new_log(disk)
    written = [entry for number in range(50) for entry in append(log, b"%d" % number * 20)]
    assert sum(name.endswith(".log") for name in disk.listdir(FOLDER)) > 5
    disk.crash()
    again, found = reopen(disk)
    assert found == written
    assert (again.last_index, again.last_term) == (50, 1)


def test_all_entries_of_an_append_are_made_durable_by_one_sync() -> None:
    disk = LossyDisk()
    log = new_log(disk, file_bytes=1 << 20)
    calls: list[str] = []
    disk.before_call = calls.append
    append(log, *(b"entry" for _ in range(1000)))
    assert calls.count("fdatasync") == 1


def test_opening_gives_only_what_is_behind_the_snapshot() -> None:
    disk = LossyDisk()
    log = new_log(disk)
    written = [entry for number in range(50) for entry in append(log, b"%d" % number * 20)]
    _, found = reopen(disk, after_index=33)
    assert found == written[33:]


def test_files_that_hold_nothing_needed_are_removed_oldest_first() -> None:
    disk = LossyDisk()
    log = new_log(disk)
    for number in range(50):
        append(log, b"%d" % number * 20)
    log.purge(30)
    log.purge(30)
    _, found = reopen(disk, after_index=30)
    assert [entry.index for entry in found] == list(range(31, 51))
    names = sorted(disk.listdir(FOLDER))
    assert 1 < int(names[0].removesuffix(".log")) <= 31


def test_a_log_without_its_beginning_is_refused() -> None:
    disk = LossyDisk()
    log = new_log(disk)
    for number in range(50):
        append(log, b"%d" % number * 20)
    log.purge(30)
    with pytest.raises(MetadataDamaged, match="entries from 11 on are missing"):
        reopen(disk, after_index=10)


def test_a_log_without_any_file_is_refused() -> None:
    disk = LossyDisk()
    with pytest.raises(MetadataDamaged, match="entries from 8 on are missing"):
        reopen(disk, after_index=7)


def test_a_log_that_ends_before_the_snapshot_is_refused() -> None:
    disk = LossyDisk()
    append(new_log(disk), b"a")
    with pytest.raises(MetadataDamaged, match="ends with entry 1, before the snapshot's 2"):
        reopen(disk, after_index=2)


def test_a_file_missing_in_the_middle_is_refused_by_name() -> None:
    disk = LossyDisk()
    log = new_log(disk)
    for number in range(50):
        append(log, b"%d" % number * 20)
    second = sorted(disk.listdir(FOLDER))[1]
    del disk.names[f"{FOLDER}/{second}"]
    with pytest.raises(MetadataDamaged, match=path(1)):
        reopen(disk)


def test_a_torn_tail_is_cut_with_one_line_and_then_written_over(caplog: pytest.LogCaptureFixture) -> None:
    disk = LossyDisk()
    log = new_log(disk)
    written = append(log, b"one", b"two")
    disk.names[path(1)].write(encode_entries([Entry(3, 1, b"three")])[:-1], log._end)
    with caplog.at_level(logging.INFO):
        again, found = reopen(disk)
    assert found == written
    assert len(caplog.records) == 1
    assert "entry 3" in caplog.text
    assert path(1) in caplog.text
    written += append(again, b"3")
    disk.crash()
    assert reopen(disk)[1] == written


def test_opening_a_clean_log_syncs_and_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    disk = LossyDisk()
    append(new_log(disk), b"one")
    calls: list[str] = []
    disk.before_call = calls.append
    with caplog.at_level(logging.DEBUG):
        reopen(disk)
    assert not caplog.records
    assert not {"fdatasync", "pwrite", "ftruncate"} & set(calls)


def test_damage_below_the_synced_end_is_refused_with_file_entry_and_advice() -> None:
    disk = LossyDisk()
    log = new_log(disk)
    append(log, b"one")
    append(log, b"two")
    disk.names[path(1)].cached[ENTRIES_START + 30] ^= 1
    with pytest.raises(MetadataDamaged) as refusal:
        reopen(disk)
    assert path(1) in str(refusal.value)
    assert "entry 2 at byte" in str(refusal.value)
    assert "Restore the data folder from a backup" in str(refusal.value)


def test_a_file_cut_below_its_synced_end_is_refused() -> None:
    disk = LossyDisk()
    log = new_log(disk)
    append(log, b"one")
    append(log, b"two")
    del disk.names[path(1)].cached[ENTRIES_START + 28 :]
    with pytest.raises(MetadataDamaged, match="entry 2 at byte 92 is missing, and the file was synced up to"):
        reopen(disk)


def test_a_damaged_mark_alone_costs_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    disk = LossyDisk()
    written = append(new_log(disk), b"one")
    disk.names[path(1)].cached[MARK_POSITION] ^= 1
    with caplog.at_level(logging.WARNING):
        assert reopen(disk)[1] == written
    assert "mark" in caplog.text
    caplog.clear()
    reopen(disk)
    assert not caplog.records


def test_a_damaged_mark_beside_a_damaged_entry_is_refused() -> None:
    disk = LossyDisk()
    append(new_log(disk), b"one")
    cached = disk.names[path(1)].cached
    cached[MARK_POSITION] ^= 1
    cached[-1] ^= 1
    with pytest.raises(MetadataDamaged, match="and so is the mark"):
        reopen(disk)


def test_a_file_of_a_newer_format_is_refused_as_such() -> None:
    disk = LossyDisk()
    new_log(disk)
    cached = disk.names[path(1)].cached
    cached[8:10] = (2).to_bytes(2, "big")
    cached[26:30] = crc32c(bytes(cached[:26])).to_bytes(4, "big")
    with pytest.raises(NewerFormat, match="format version is 2, and this version of WalrusMQ reads up to 1"):
        reopen(disk)


def test_a_full_disk_refuses_for_certain_and_is_used_again_once_there_is_room() -> None:
    disk = LossyDisk()
    log = new_log(disk)
    written = append(log, b"one")
    disk.free_space = 10
    with pytest.raises(EntriesRefused) as refusal:
        append(log, b"refused")
    assert isinstance(refusal.value.__cause__, OSError)
    disk.free_space = None
    written += append(log, b"two")
    disk.crash()
    assert reopen(disk)[1] == written
    assert sorted(disk.listdir(FOLDER)) == [file_name(1)]


def test_after_a_failed_sync_the_log_goes_on_in_a_new_file() -> None:
    disk = LossyDisk()
    log = new_log(disk)
    written = append(log, b"one")
    fail(disk, "fdatasync")
    with pytest.raises(EntriesUncertain):
        append(log, b"uncertain")
    heal(disk)
    written += append(log, b"two")
    assert sorted(disk.listdir(FOLDER)) == [file_name(1), file_name(2)]
    disk.crash()
    assert reopen(disk)[1] == written


def test_entries_behind_a_failed_sync_are_written_anew_by_the_next_start() -> None:
    disk = LossyDisk(seed=3)
    log = new_log(disk)
    written = append(log, b"one")
    fail(disk, "fdatasync")
    with pytest.raises(EntriesUncertain):
        append(log, b"uncertain" * 100)
    disk.kill()
    _, found = reopen(disk)
    assert found[: len(written)] == written
    disk.crash()
    assert reopen(disk)[1] == found


def test_while_no_new_file_can_be_made_entries_are_refused_for_certain() -> None:
    disk = LossyDisk()
    log = new_log(disk)
    written = append(log, b"one")
    fail(disk, "fdatasync")
    with pytest.raises(EntriesUncertain):
        append(log, b"uncertain")
    for call in ("open", "replace", "sync_folder"):
        fail(disk, call)
        with pytest.raises(EntriesRefused):
            append(log, b"refused")
    heal(disk)
    written += append(log, b"two")
    disk.crash()
    assert reopen(disk)[1] == written


def test_a_write_that_can_be_neither_done_nor_undone_is_uncertain() -> None:
    disk = LossyDisk()
    log = new_log(disk)
    written = append(log, b"one")

    def before_call(name: str) -> None:
        if name in ("pwrite", "ftruncate"):
            raise OSError(errno.EIO, "injected")

    disk.before_call = before_call
    with pytest.raises(EntriesUncertain):
        append(log, b"uncertain")
    heal(disk)
    written += append(log, b"two")
    disk.crash()
    assert reopen(disk)[1] == written


def test_a_mark_that_cannot_be_written_fails_nobody() -> None:
    disk = LossyDisk()
    log = new_log(disk)
    calls: Iterator[int] = iter(range(100))

    def before_call(name: str) -> None:
        if name == "pwrite" and next(calls) == 1:
            raise OSError(errno.EIO, "injected")

    disk.before_call = before_call
    written = append(log, b"one")
    heal(disk)
    written += append(log, b"two")
    disk.crash()
    assert reopen(disk)[1] == written


class Run:
    """Appends of random sizes on a failing disk, with what each outcome allows to be found afterwards."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.disk = LossyDisk(seed)
        self.confirmed: list[Entry] = []
        self.uncertain: dict[int, set[bytes]] = {}
        self.counter = 0
        self.log = new_log(self.disk)

    def appends(self, count: int, fault_odds: float = 0.0, crash_odds: float = 0.0) -> None:
        def before_call(name: str) -> None:
            luck = self.chance.random()
            if luck < crash_odds:
                raise PowerLoss
            if luck < crash_odds + fault_odds:
                raise OSError(errno.EIO, "injected")

        self.disk.before_call = before_call
        for _ in range(count):
            entries = self._next_entries()
            try:
                self.log.append(entries)
            except EntriesRefused:
                continue
            except (EntriesUncertain, PowerLoss) as failure:
                for entry in entries:
                    self.uncertain.setdefault(entry.index, set()).add(entry.payload)
                if isinstance(failure, PowerLoss):
                    break
            else:
                self.confirmed += entries
                self.uncertain.clear()
        heal(self.disk)

    def _next_entries(self) -> list[Entry]:
        entries = []
        for place in range(self.chance.choice([1, 1, 1, 2, 5])):
            self.counter += 1
            payload = b"%d." % self.counter * self.chance.choice([1, 10, 200])
            entries.append(Entry(self.log.last_index + 1 + place, 1, payload))
        return entries

    def reopen(self) -> None:
        """Open what is left; assert that it is what was confirmed, and behind it nothing but what was uncertain."""
        self.log, found = reopen(self.disk)
        count = len(self.confirmed)
        assert found[:count] == self.confirmed
        for entry in found[count:]:
            assert entry.payload in self.uncertain.get(entry.index, set())
        self.confirmed = found
        self.uncertain.clear()


@pytest.mark.parametrize("seed", range(200))
def test_a_disk_that_fails_and_drops_unsynced_bytes_loses_nothing_confirmed(seed: int) -> None:
    run = Run(seed)
    for _ in range(6):
        run.appends(20, fault_odds=run.chance.choice([0.0, 0.02, 0.2]), crash_odds=run.chance.choice([0.0, 0.02]))
        if run.chance.random() < 0.7:
            run.disk.crash()
        else:
            run.disk.kill()
        run.reopen()


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.data())
def test_damage_anywhere_gives_all_that_was_confirmed_or_a_refusal(seed: int, data: st.DataObject) -> None:
    run = Run(seed)
    run.appends(12)
    run.disk.kill()
    names = sorted(name for name in run.disk.names if name.endswith(".log"))
    damage(run.disk.names[data.draw(st.sampled_from(names))].cached, data)
    try:
        run.reopen()
    except MetadataDamaged as refusal:
        assert ".log: " in str(refusal)  # noqa: PT017


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.data())
def test_a_tail_behind_the_synced_end_may_be_anything(seed: int, data: st.DataObject) -> None:
    run = Run(seed)
    run.appends(6)
    run.disk.kill()
    last = run.disk.names[max(name for name in run.disk.names if name.endswith(".log"))]
    entries = run._next_entries()
    tail = bytearray(encode_entries(entries))
    damage(tail, data)
    run.uncertain = {entry.index: {entry.payload} for entry in entries}
    last.write(tail or b"\0", len(last.cached))
    run.reopen()
    run.appends(2)
    run.disk.crash()
    run.reopen()


def damage(content: bytearray, data: st.DataObject) -> None:
    """Cut the content somewhere, or scramble a stretch of it."""
    start = data.draw(st.integers(0, len(content) - 1), label="start")
    if data.draw(st.booleans(), label="cut"):
        del content[start:]
        return
    scrambled = data.draw(st.binary(min_size=1, max_size=40), label="scrambled")
    content[start : start + len(scrambled)] = scrambled[: len(content) - start]

"""Files that are there whole or not at all, and what is built on them: hard state and snapshots."""

from __future__ import annotations

import errno
import os

import pytest
from support.lossy_disk import LossyDisk, PowerLoss

from walrusmq.consensus.durable_file import ASIDE_SUFFIX, read_file, remove_unfinished, write_all, write_durably

PATH = "/metadata/thing"


def stop_at_call(disk: LossyDisk, number: int) -> None:
    calls = iter(range(number))

    def before_call(name: str) -> None:
        if next(calls, None) is None:
            raise PowerLoss

    disk.before_call = before_call


@pytest.mark.parametrize("seed", range(10))
def test_a_crash_at_any_call_leaves_the_old_content_or_the_new(seed: int) -> None:
    old, new = b"old" * 1000, b"new" * 2000
    number = 0
    while True:
        disk = LossyDisk(seed)
        write_durably(disk, PATH, old)
        stop_at_call(disk, number)
        try:
            write_durably(disk, PATH, new)
        except PowerLoss:
            disk.crash()
            assert read_file(disk, PATH) in (old, new)
            number += 1
            continue
        disk.crash()
        assert read_file(disk, PATH) == new
        assert number >= 5, "every call was tried"
        return


def test_what_was_left_of_an_older_attempt_is_not_in_the_way() -> None:
    disk = LossyDisk()
    fd = disk.open(PATH + ASIDE_SUFFIX, create=True)
    disk.pwrite(fd, b"much longer than what follows", 0)
    write_durably(disk, PATH, b"new")
    assert read_file(disk, PATH) == b"new"


def test_a_start_removes_what_was_never_finished() -> None:
    disk = LossyDisk()
    write_durably(disk, PATH, b"kept")
    disk.open(PATH + ASIDE_SUFFIX, create=True)
    remove_unfinished(disk, "/metadata")
    assert disk.listdir("/metadata") == ["thing"]


def test_a_failed_write_leaves_neither_a_descriptor_nor_a_file_behind() -> None:
    disk = LossyDisk()
    disk.free_space = 2
    with pytest.raises(OSError, match="No space left"):
        write_durably(disk, PATH, b"new")
    assert not disk.open_files
    assert not disk.names


def test_a_write_that_makes_no_progress_is_an_error() -> None:
    class StuckDisk(LossyDisk):
        def pwrite(self, fd: int, data: bytes | bytearray | memoryview, position: int, /) -> int:
            return 0

    disk = StuckDisk()
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        write_all(disk, disk.open(PATH, create=True), b"x", 0)


def test_a_write_in_several_parts_is_finished() -> None:
    class SlowDisk(LossyDisk):
        def pwrite(self, fd: int, data: bytes | bytearray | memoryview, position: int, /) -> int:
            return super().pwrite(fd, data[:3], position)

    disk = SlowDisk()
    write_durably(disk, PATH, b"0123456789")
    assert read_file(disk, PATH) == b"0123456789"

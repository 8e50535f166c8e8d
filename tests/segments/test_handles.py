"""Open files, bounded, and pinned ones that stay."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from walrusmq.segments.files import OsFiles
from walrusmq.segments.handles import HandlePool, LogFile


class CountingFiles(OsFiles):
    """Knows which descriptors are open."""

    def __init__(self) -> None:
        self.open_now: set[int] = set()

    def open(self, path: str, /, *, create: bool = False) -> int:
        fd = super().open(path, create=create)
        self.open_now.add(fd)
        return fd

    def close(self, fd: int, /) -> None:  # type: ignore[override]
        self.open_now.remove(fd)
        OsFiles.close(fd)


@pytest.fixture
def files() -> CountingFiles:
    return CountingFiles()


def some_files(pool: HandlePool, folder: Path, count: int) -> list[LogFile]:
    return [LogFile(pool, str(folder / str(number))) for number in range(count)]


def test_no_more_than_the_limit_are_open(files: CountingFiles, tmp_path: Path) -> None:
    pool = HandlePool(files, 3)
    for file in some_files(pool, tmp_path, 10):
        file.open(create=True)
        assert len(files.open_now) <= 3
    assert len(pool) == 3


def test_a_file_that_is_open_is_not_opened_again(files: CountingFiles, tmp_path: Path) -> None:
    (file,) = some_files(HandlePool(files, 3), tmp_path, 1)
    assert file.open(create=True) is file.open()
    assert file.handle is file.open()


def test_what_is_used_stays_open_while_others_come_and_go(files: CountingFiles, tmp_path: Path) -> None:
    pool = HandlePool(files, 4)
    used, *others = some_files(pool, tmp_path, 40)
    handle = used.open(create=True)
    for file in others:
        used.open()
        file.open(create=True)
    assert used.handle is handle


def test_a_pinned_file_stays_open_until_its_last_pin_is_gone(files: CountingFiles, tmp_path: Path) -> None:
    pool = HandlePool(files, 1)
    first, second = some_files(pool, tmp_path, 2)
    handle = first.open(create=True)
    handle.pin()
    handle.pin()
    second.open(create=True)
    assert first.handle is None
    assert handle.fd in files.open_now
    handle.unpin()
    assert handle.fd in files.open_now
    handle.unpin()
    assert len(files.open_now) == 1


def test_an_unlinked_file_can_be_read_as_long_as_it_is_pinned(files: CountingFiles, tmp_path: Path) -> None:
    (file,) = some_files(HandlePool(files, 1), tmp_path, 1)
    handle = file.open(create=True)
    files.pwrite(handle.fd, b"still here", 0)
    handle.pin()
    files.unlink(file.path)
    file.close()
    assert files.pread(handle.fd, 100, 0) == b"still here"
    handle.unpin()
    assert not files.open_now


def test_a_file_reopens_after_it_was_closed(files: CountingFiles, tmp_path: Path) -> None:
    (file,) = some_files(HandlePool(files, 1), tmp_path, 1)
    file.open(create=True)
    file.close()
    assert not files.open_now
    assert file.open().fd in files.open_now


def test_a_closed_pool_leaves_nothing_open(files: CountingFiles, tmp_path: Path) -> None:
    pool = HandlePool(files, 8)
    for file in some_files(pool, tmp_path, 5):
        file.open(create=True)
    pool.close()
    assert not files.open_now
    assert len(pool) == 0


def test_a_handle_that_is_forgotten_with_its_pin_does_not_leak(files: CountingFiles, tmp_path: Path) -> None:
    (file,) = some_files(HandlePool(files, 1), tmp_path, 1)
    file.open(create=True).pin()
    file.close()
    gc.collect()
    assert not files.open_now


def test_a_file_that_cannot_be_opened_changes_nothing(files: CountingFiles, tmp_path: Path) -> None:
    pool = HandlePool(files, 1)
    with pytest.raises(FileNotFoundError):
        LogFile(pool, str(tmp_path / "missing")).open()
    assert len(pool) == 0

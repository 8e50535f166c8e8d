"""Small files: whole or not there."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.crash_disk import CrashDisk, PowerIsOff

from walrusmq.segments.files import Buffer, OsFiles
from walrusmq.segments.small_files import read_exactly, read_whole, unwrap, wrap, write_exactly, write_whole

KIND = b"test"


class PiecemealFiles(OsFiles):
    """A disk that reads and writes a few bytes a call."""

    def pread(self, fd: int, size: int, position: int, /) -> bytes:  # type: ignore[override]
        return OsFiles.pread(fd, min(size, 3), position)

    def pwrite(self, fd: int, data: Buffer, position: int, /) -> int:  # type: ignore[override]
        return OsFiles.pwrite(fd, memoryview(data)[:3], position)


@given(st.binary(max_size=200))
def test_what_is_wrapped_comes_back(payload: bytes) -> None:
    assert unwrap(KIND, 1, wrap(KIND, 1, payload)) == payload


@given(st.binary(max_size=60), st.data())
def test_whatever_is_changed_or_cut_is_noticed(payload: bytes, data: st.DataObject) -> None:
    whole = wrap(KIND, 1, payload)
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[at] ^= data.draw(st.integers(1, 255))
    found = unwrap(KIND, 1, changed)
    assert found is None or (found == payload and at in (6, 7)), "only the padding may change"
    assert unwrap(KIND, 1, whole[:at]) is None
    assert unwrap(KIND, 1, whole + b"x") is None


def test_another_kind_or_version_is_not_ours() -> None:
    assert unwrap(b"else", 1, wrap(KIND, 1, b"x")) is None
    assert unwrap(KIND, 2, wrap(KIND, 1, b"x")) is None


def test_a_file_is_written_and_read_whole(tmp_path: Path) -> None:
    path = str(tmp_path / "small")
    assert read_whole(OsFiles(), path) is None
    for content in (b"first and long", b"second"):
        write_whole(PiecemealFiles(), path, content)
        assert read_whole(PiecemealFiles(), path) == content
    assert [file.name for file in tmp_path.iterdir()] == ["small"]


def test_reading_ends_where_the_file_does(tmp_path: Path) -> None:
    path = tmp_path / "small"
    path.write_bytes(b"0123456789")
    files = PiecemealFiles()
    fd = files.open(str(path))
    assert read_exactly(files, fd, 100, 4) == b"456789"
    assert read_exactly(files, fd, 5, 1) == b"12345"
    assert read_exactly(files, fd, 5, 10) == b""
    files.close(fd)


def test_a_disk_without_room_leaves_the_old_file(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)
    path = str(tmp_path / "small")
    write_whole(disk, path, b"old")
    disk.room = 2
    with pytest.raises(OSError, match="No space left"):
        write_whole(disk, path, b"new and longer")
    assert read_whole(disk, path) == b"old"


def test_a_write_that_makes_no_progress_is_an_error(tmp_path: Path) -> None:
    class StuckFiles(OsFiles):
        def pwrite(self, fd: int, data: Buffer, position: int, /) -> int:  # type: ignore[override]
            return 0

    files = StuckFiles()
    fd = files.open(str(tmp_path / "a"), create=True)
    with pytest.raises(OSError, match="wrote 0 of 1"):
        write_exactly(files, fd, b"x", 0)
    files.close(fd)


@pytest.mark.parametrize("seed", range(20))
def test_after_a_crash_the_old_file_is_there_or_the_new(tmp_path: Path, seed: int) -> None:
    disk = CrashDisk(tmp_path, seed)
    path = str(tmp_path / "small")
    write_whole(disk, path, wrap(KIND, 1, b"old" * 500))
    disk.sync_folder(str(tmp_path))
    disk.power_off(after_calls=disk.chance.randint(1, 6))
    with contextlib.suppress(PowerIsOff):
        write_whole(disk, path, wrap(KIND, 1, b"new" * 900))
    disk.power_on()
    data = read_whole(disk, path)
    assert data is not None
    assert unwrap(KIND, 1, data) in (b"old" * 500, b"new" * 900)

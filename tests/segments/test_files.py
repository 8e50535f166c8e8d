"""The real disk, call by call."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from walrusmq.segments.files import OsFiles

files = OsFiles()


def test_a_file_is_made_only_when_asked_for(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    with pytest.raises(FileNotFoundError):
        files.open(path)
    fd = files.open(path, create=True)
    files.close(fd)
    assert files.exists(path)


def test_what_is_written_at_a_position_is_read_there(tmp_path: Path) -> None:
    fd = files.open(str(tmp_path / "a"), create=True)
    assert files.pwrite(fd, memoryview(b"walrus"), 10) == 6
    assert files.pread(fd, 100, 10) == b"walrus"
    assert files.pread(fd, 100, 16) == b""
    assert files.size(fd) == 16
    files.fdatasync(fd)
    files.ftruncate(fd, 12)
    assert files.pread(fd, 100, 10) == b"wa"
    files.close(fd)


def test_sizes_are_known_by_path(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert files.size_of(str(tmp_path / "a")) == 5
    assert files.size_of(str(tmp_path / "b")) is None


def test_a_rename_takes_the_place_of_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"new")
    (tmp_path / "b").write_bytes(b"old")
    files.replace(str(tmp_path / "a"), str(tmp_path / "b"))
    files.sync_folder(str(tmp_path))
    assert files.listdir(str(tmp_path)) == ["b"]
    assert (tmp_path / "b").read_bytes() == b"new"


def test_a_folder_that_is_there_is_made_without_an_error(tmp_path: Path) -> None:
    files.mkdir(str(tmp_path / "f"))
    files.mkdir(str(tmp_path / "f"))
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        files.mkdir(str(tmp_path / "file"))


def test_a_tree_goes_with_all_in_it_but_not_with_what_it_links_to(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "precious").touch()
    tree = tmp_path / "tree"
    (tree / "inner").mkdir(parents=True)
    (tree / "inner" / "file").touch()
    os.symlink(kept, tree / "link")
    files.remove_tree(str(tree))
    files.remove_tree(str(tree))
    assert not tree.exists()
    assert (kept / "precious").exists()


def test_free_room_is_a_number_of_bytes(tmp_path: Path) -> None:
    assert files.free_bytes(str(tmp_path)) > 0


def test_descriptors_are_not_inherited(tmp_path: Path) -> None:
    fd = files.open(str(tmp_path / "a"), create=True)
    assert not os.get_inheritable(fd)
    files.close(fd)

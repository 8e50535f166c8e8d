"""The data folder: one node at a time, whose it is, and what is said where it can't be used."""

from __future__ import annotations

import json
import os
import pwd
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from walrusmq.broker.data_folder import (
    DataFolder,
    DataFolderError,
    FolderFormatError,
    FolderInUse,
    ForeignFolder,
    Identity,
    IdentityMismatch,
    new_cluster_id,
)
from walrusmq.segments.files import OsFiles

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
OTHER_CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"

HOLD = """
import sys
from walrusmq.broker.data_folder import DataFolder
from walrusmq.segments.files import OsFiles
DataFolder(sys.argv[1], OsFiles()).open(None, None)
print("held", flush=True)
sys.stdin.read()
"""


class RecordingFiles(OsFiles):
    """The real disk, with the order of calls kept; ``fails`` names a call that raises."""

    def __init__(self, fails: str | None = None) -> None:
        self.calls: list[str] = []
        for name in ("open", "pwrite", "fdatasync", "replace", "sync_folder"):
            setattr(self, name, self._recorded(name, getattr(OsFiles, name), fails == name))

    def _recorded(self, name: str, function: Any, fails: bool) -> Any:
        bound = function.__get__(self) if name in ("open", "sync_folder") else function

        def call(*arguments: Any, **keywords: Any) -> Any:
            self.calls.append(name)
            if fails:
                raise OSError(28, "No space left on device")
            return bound(*arguments, **keywords)

        return call


def opened(path: Path, node_id: int | None = None, cluster_id: str | None = None) -> Identity:
    """Open and close a folder; whose it is."""
    folder = DataFolder(str(path), OsFiles())
    try:
        return folder.open(node_id, cluster_id)
    finally:
        folder.close()


def test_a_new_folder_is_made_and_belongs_to_node_1_of_a_new_cluster(tmp_path: Path) -> None:
    identity = opened(tmp_path / "a" / "b")
    assert identity.node_id == 1
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", identity.cluster_id)
    assert opened(tmp_path / "a" / "c").cluster_id != identity.cluster_id


def test_a_new_folder_takes_the_ids_that_are_given(tmp_path: Path) -> None:
    assert opened(tmp_path / "data", 7, CLUSTER_ID) == (7, CLUSTER_ID)


def test_stored_ids_are_adopted_when_none_is_given_or_the_same(tmp_path: Path) -> None:
    opened(tmp_path, 7, CLUSTER_ID)
    assert opened(tmp_path) == (7, CLUSTER_ID)
    assert opened(tmp_path, 7, CLUSTER_ID) == (7, CLUSTER_ID)


@pytest.mark.parametrize(
    ("given", "setting", "values"),
    [
        ((8, None), "node.id", ("7", "8")),
        ((None, OTHER_CLUSTER_ID), "cluster.id", (CLUSTER_ID, OTHER_CLUSTER_ID)),
    ],
)
def test_another_id_is_refused_with_both_values_and_both_ways_out(
    tmp_path: Path, given: tuple[int | None, str | None], setting: str, values: tuple[str, str]
) -> None:
    opened(tmp_path, 7, CLUSTER_ID)
    with pytest.raises(IdentityMismatch) as caught:
        opened(tmp_path, *given)
    message = str(caught.value)
    assert all(value in message for value in (*values, setting, str(tmp_path)))
    assert f"leave {setting} out" in message
    assert "another data.dir" in message
    assert opened(tmp_path) == (7, CLUSTER_ID)


def test_node_json_says_id_cluster_and_format(tmp_path: Path) -> None:
    opened(tmp_path, 7, CLUSTER_ID)
    stored = json.loads((tmp_path / "node.json").read_text())
    assert stored == {"format_version": 1, "node_id": 7, "cluster_id": CLUSTER_ID}


def test_node_json_is_synced_aside_before_it_gets_its_name(tmp_path: Path) -> None:
    files = RecordingFiles()
    folder = DataFolder(str(tmp_path / "data"), files)
    folder.open(None, None)
    folder.close()
    assert files.calls == ["open", "pwrite", "fdatasync", "replace", "sync_folder", "sync_folder"]
    assert not (tmp_path / "data" / "node.json.new").exists()


@pytest.mark.parametrize("call", ["open", "pwrite", "fdatasync", "replace"])
def test_a_disk_that_fails_while_node_json_is_written_leaves_a_folder_that_opens_next_time(
    tmp_path: Path, call: str
) -> None:
    folder = DataFolder(str(tmp_path), RecordingFiles(fails=call))
    with pytest.raises(DataFolderError, match="No space left on device"):
        folder.open(None, CLUSTER_ID)
    assert opened(tmp_path, 3).node_id == 3


@pytest.mark.parametrize("length", range(0, 60, 7))
def test_what_a_crash_left_of_a_node_json_that_never_got_its_name_is_written_over(tmp_path: Path, length: int) -> None:
    (tmp_path / "node.json.new").write_bytes(b"x" * length)
    assert opened(tmp_path, 3, CLUSTER_ID) == (3, CLUSTER_ID)
    assert opened(tmp_path) == (3, CLUSTER_ID)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "7", "{}", '{"format_version": 1}', '{"format_version": 1, "node_id": "1"}', "\xff"]
)
def test_a_damaged_node_json_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "node.json").write_text(content, encoding="latin-1")
    with pytest.raises(FolderFormatError, match=r"node\.json is damaged"):
        opened(tmp_path)


def test_a_newer_format_is_refused_whatever_else_it_holds(tmp_path: Path) -> None:
    (tmp_path / "node.json").write_text('{"format_version": 2, "id": "new"}')
    with pytest.raises(FolderFormatError, match="format 2, written by a newer WalrusMQ"):
        opened(tmp_path)


@pytest.mark.parametrize("name", ["metadata", "topics"])
def test_data_without_node_json_isnt_taken_for_a_new_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(FolderFormatError, match=r"no node\.json"):
        opened(tmp_path)


@pytest.mark.parametrize("name", ["lost+found", ".snapshot", "lock", "node.json.new"])
def test_a_folder_is_new_whatever_its_file_system_or_a_cut_start_left_there(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir() if name == "lost+found" else (tmp_path / name).write_text("")
    assert opened(tmp_path).node_id == 1


def test_a_folder_of_other_things_is_refused_with_the_way_out_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("")
    with pytest.raises(ForeignFolder, match=r"isn't empty \(it holds thesis\.txt\).*new or empty folder as data\.dir"):
        opened(tmp_path)
    assert os.listdir(tmp_path) == ["thesis.txt"]


def test_other_things_in_a_nodes_folder_dont_matter(tmp_path: Path) -> None:
    opened(tmp_path, 7)
    (tmp_path / "notes.txt").write_text("")
    assert opened(tmp_path).node_id == 7


def test_a_second_node_in_this_process_is_told_so(tmp_path: Path) -> None:
    first, second = DataFolder(str(tmp_path), OsFiles()), DataFolder(str(tmp_path), OsFiles())
    first.open(None, None)
    with pytest.raises(FolderInUse, match="in use by this very process"):
        second.open(None, None)
    first.close()
    second.open(None, None)
    second.close()


def test_a_second_process_is_told_pid_and_folder_until_the_first_is_gone(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(FolderInUse, match=f"{re.escape(str(tmp_path))} is in use by process {holder.pid}:"):
            opened(tmp_path)
        holder.kill()
        holder.wait(30)
    assert opened(tmp_path).node_id == 1


def test_closing_lets_go_of_every_descriptor_even_after_a_refusal(tmp_path: Path) -> None:
    opened(tmp_path, 7, CLUSTER_ID)
    before = os.listdir("/dev/fd")
    for _ in range(3):
        with pytest.raises(IdentityMismatch):
            opened(tmp_path, 8)
        opened(tmp_path)
    assert len(os.listdir("/dev/fd")) == len(before)


def test_a_path_that_is_a_file_is_a_plain_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataFolderError, match=r"file: it is a file, not a folder \(setting data\.dir"):
        opened(tmp_path / "file")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_isnt_writable_is_a_plain_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(DataFolderError, match="Permission denied"):
        opened(tmp_path)


def test_a_folder_that_cant_be_used_names_the_user_by_name(tmp_path: Path) -> None:
    with pytest.raises(DataFolderError, match=f"user {pwd.getpwuid(os.geteuid()).pw_name} must be able to write"):
        DataFolder(str(tmp_path), RecordingFiles(fails="pwrite")).open(None, None)


def test_a_relative_path_stays_the_same_folder_when_the_process_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = DataFolder("./data", OsFiles())
    assert folder.path == tmp_path / "data"


def test_cluster_ids_never_look_like_a_flag() -> None:
    assert not any(new_cluster_id().startswith("-") for _ in range(2000))

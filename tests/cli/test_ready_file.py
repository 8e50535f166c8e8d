"""The ready file: whole, this process's, and gone when the node is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from walrusmq.cli.ready_file import Readiness, ReadyFile

READINESS = Readiness(7, 1, "127.0.0.1:9092", None, "127.0.0.1:9094")


def test_it_holds_pid_node_and_addresses_as_json(tmp_path: Path) -> None:
    ReadyFile(str(tmp_path / "ready.json")).write(READINESS)
    assert json.loads((tmp_path / "ready.json").read_text()) == {
        "pid": 7,
        "node_id": 1,
        "listen": "127.0.0.1:9092",
        "internal_listen": None,
        "http_listen": "127.0.0.1:9094",
    }
    assert [path.name for path in tmp_path.iterdir()] == ["ready.json"]


def test_what_a_killed_process_left_is_removed_before_the_start(tmp_path: Path) -> None:
    (tmp_path / "ready.json").write_text("old")
    ReadyFile(str(tmp_path / "ready.json")).prepare()
    assert not (tmp_path / "ready.json").exists()
    ReadyFile(str(tmp_path / "ready.json")).prepare()


def test_it_is_removed_at_the_stop_unless_it_is_another_nodes_by_now(tmp_path: Path) -> None:
    first, second = ReadyFile(str(tmp_path / "ready.json")), ReadyFile(str(tmp_path / "ready.json"))
    first.write(READINESS)
    second.write(Readiness(8, 1, "127.0.0.1:9092", None, "127.0.0.1:9094"))
    first.remove()
    assert (tmp_path / "ready.json").exists()
    second.remove()
    assert not (tmp_path / "ready.json").exists()
    second.remove()


def test_a_folder_that_isnt_there_is_an_error_before_the_start_and_at_the_write(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=f"there is no folder {tmp_path / 'none'}"):
        ReadyFile(str(tmp_path / "none" / "ready.json")).prepare()
    with pytest.raises(OSError, match="No such file"):
        ReadyFile(str(tmp_path / "none" / "ready.json")).write(READINESS)

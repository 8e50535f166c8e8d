"""``walrusmq serve`` as a process: what it says, the files it leaves, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.broker_process import PATIENCE_S, BrokerProcess

from walrusmq import __version__

#: A node whose start, stop or both are not as they should be, in place of the real one.
STAND_IN = """
import asyncio, sys, types
from walrusmq.cli import main

class Node:
    node_id, listen_address, http_address, internal_address = 1, ("127.0.0.1", 1), ("127.0.0.1", 2), None
    def __init__(self, settings):
        self.has_failed = asyncio.Event()
        self.settings = settings
    async def start(self):
        print("starting", flush=True)
        {start}
    async def stop(self):
        print("stopping", flush=True)
        {stop}

sys.modules["walrusmq.broker.node"] = types.ModuleType("walrusmq.broker.node")
sys.modules["walrusmq.broker.node"].Node = Node
sys.exit(main(["serve", *sys.argv[1:]]))
"""
NEVER_RETURNS = "await asyncio.Event().wait()"


def stand_in(*flags: str, start: str = "", stop: str = "", folder: Path | None = None) -> subprocess.Popen[str]:
    code = STAND_IN.format(start=start, stop=stop)
    return subprocess.Popen(
        [sys.executable, "-c", code, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
    )


def wait_for_line(process: subprocess.Popen[str], word: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if word in line:
            return line
    raise AssertionError(f"no line with {word!r}")


def end_of(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = process.communicate(timeout=PATIENCE_S)
    return process.returncode, errors


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path)
    yield broker
    if broker.is_up:
        broker.kill()


def refused(broker: BrokerProcess) -> str:
    """Start a broker that won't: the one line that it says."""
    broker.launch()
    assert broker.wait_ended() == 1
    assert broker.log_text().count("\n") == 1, broker.log_text()
    assert broker.log_text().startswith("walrusmq serve: ")
    return broker.log_text()


def test_one_line_says_version_address_folder_node_and_metrics(broker: BrokerProcess) -> None:
    broker.start()
    assert broker.log_text() == (
        f"walrusmq {__version__} ready on {broker.bootstrap} "
        f"(data in {broker.data}, node 1, metrics on http://{broker.http}/metrics)\n"
    )


def test_it_listens_where_the_ready_file_says(broker: BrokerProcess) -> None:
    broker.start()
    assert set(json.loads((broker.folder / "ready.json").read_text())) == {
        "pid",
        "node_id",
        "listen",
        "internal_listen",
        "http_listen",
    }
    for address in (broker.bootstrap, broker.http):
        host, port = address.split(":")
        assert int(port) > 0
        socket.create_connection((host, int(port)), PATIENCE_S).close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order_with_code_0_and_without_its_ready_file(
    broker: BrokerProcess, number: signal.Signals
) -> None:
    broker.start()
    os.kill(broker.pid, number)
    assert broker.wait_ended() == 0
    assert not (broker.folder / "ready.json").exists()
    assert [line.split("message=")[1] for line in broker.log_text().splitlines()[1:]] == ["stopping", "stopped"]


def test_a_ready_file_that_a_kill_left_is_gone_until_the_next_node_serves(broker: BrokerProcess) -> None:
    broker.start()
    broker.kill()
    assert (broker.folder / "ready.json").exists()
    with socket.create_server(("127.0.0.1", 0)) as holder:
        other = BrokerProcess(broker.folder, {"listen": f"127.0.0.1:{holder.getsockname()[1]}"})
        other.launch()
        assert other.wait_ended() == 1
    assert not (broker.folder / "ready.json").exists()


@pytest.mark.parametrize("name", ["listen", "http.listen"])
def test_a_taken_port_is_named_with_its_holder(tmp_path: Path, name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        address = f"127.0.0.1:{holder.getsockname()[1]}"
        told = refused(BrokerProcess(tmp_path, {name: address}))
    assert f"can't listen on {address} (setting {name}): the port is taken" in told
    if sys.platform == "linux":
        assert f"by process {os.getpid()} (" in told


def test_a_data_folder_that_another_process_has_is_named_with_its_pid(broker: BrokerProcess, tmp_path: Path) -> None:
    broker.start()
    told = refused(BrokerProcess(tmp_path / "second", {"data.dir": str(broker.data)}))
    assert f"{broker.data} is in use by process {broker.pid}" in told


def test_another_node_id_is_refused_with_both_values(broker: BrokerProcess, tmp_path: Path) -> None:
    broker.start()
    assert broker.stop() == 0
    told = refused(BrokerProcess(tmp_path / "second", {"data.dir": str(broker.data), "node.id": 8}))
    assert "belongs to node.id 1, but node.id is set to 8" in told


def test_a_data_folder_that_cant_be_made_is_a_plain_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "Not a directory" in refused(BrokerProcess(tmp_path, {"data.dir": str(tmp_path / "file" / "data")}))


def test_a_ready_file_that_cant_be_written_stops_the_node_again(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    process = stand_in("--ready-file", "run/ready.json", start="import os; os.rmdir('run')", folder=tmp_path)
    wait_for_line(process, "stopping")
    code, errors = end_of(process)
    assert code == 1
    assert errors.startswith(f"walrusmq serve: can't write the ready file {tmp_path}/run/ready.json")


def test_a_ready_file_in_a_folder_that_isnt_there_is_told_before_the_start(tmp_path: Path) -> None:
    process = stand_in("--ready-file", str(tmp_path / "none" / "ready.json"))
    out, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (1, "")
    assert errors == (
        f"walrusmq serve: can't write the ready file {tmp_path}/none/ready.json (setting ready.file): "
        f"there is no folder {tmp_path}/none\n"
    )


def test_a_relative_data_folder_is_told_as_where_it_really_is(tmp_path: Path) -> None:
    process = stand_in(folder=tmp_path)
    assert f"(data in {tmp_path}/walrus-data, " in wait_for_line(process, "ready on")
    process.send_signal(signal.SIGTERM)
    assert end_of(process)[0] == 0


def test_a_signal_during_the_start_ends_it_with_code_0() -> None:
    process = stand_in(start=NEVER_RETURNS)
    wait_for_line(process, "starting")
    process.send_signal(signal.SIGTERM)
    assert end_of(process) == (0, "")


def test_a_second_signal_ends_it_at_once() -> None:
    process = stand_in(stop=NEVER_RETURNS)
    wait_for_line(process, "ready on")
    process.send_signal(signal.SIGTERM)
    wait_for_line(process, "stopping")
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    assert end_of(process)[0] == 128 + signal.SIGTERM
    assert time.monotonic() - began < 5


def test_time_limits_inside_the_stop_arent_taken_for_the_signal() -> None:
    stop = "\n".join(
        (
            "try:",
            "            async with asyncio.timeout(0.01): await asyncio.Event().wait()",
            "        except TimeoutError: print('timed out', flush=True)",
        )
    )
    process = stand_in(stop=stop)
    wait_for_line(process, "ready on")
    process.send_signal(signal.SIGTERM)
    wait_for_line(process, "timed out")
    assert end_of(process)[0] == 0


@pytest.mark.parametrize(
    ("start", "told"),
    [
        ("raise ValueError('the metadata is damaged')", "walrusmq serve: can't start: the metadata is damaged\n"),
        ("raise OSError(5, 'Input/output error')", "walrusmq serve: can't start: [Errno 5] Input/output error\n"),
    ],
)
def test_whatever_keeps_a_node_from_starting_is_one_line(start: str, told: str) -> None:
    flags = ("--listen", "0", "--http-listen", "0")
    assert end_of(stand_in(*flags, start=start)) == (1, told)


def test_the_debug_level_also_shows_where_a_start_failed() -> None:
    code, errors = end_of(stand_in("--log-level", "debug", "--listen", "0", start="raise ValueError('odd')"))
    assert code == 1
    assert "traceback=" in errors


def test_a_stop_that_fails_ends_with_code_1_and_says_so() -> None:
    process = stand_in(stop="raise OSError(5, 'Input/output error')")
    wait_for_line(process, "ready on")
    process.send_signal(signal.SIGTERM)
    code, errors = end_of(process)
    assert code == 1
    assert "the stop failed" in errors
    assert "Input/output error" in errors


def test_it_may_open_as_many_files_as_the_system_allows() -> None:
    show = "import resource; print('limits', *resource.getrlimit(resource.RLIMIT_NOFILE), flush=True)"
    process = stand_in(start=show)
    soft_limit, hard_limit = wait_for_line(process, "limits").split()[1:]
    process.kill()
    process.wait(PATIENCE_S)
    assert soft_limit == hard_limit or int(soft_limit) >= 10_240

"""The address that clients are told to come back to.

A client from elsewhere is played in a network namespace of its own, in which the loopback device has a further address.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.broker_process import BrokerProcess, StartBroker
from support.raw_client import RawClient

from walrusmq.protocol.messages.metadata import MetadataRequest

#: Of the block that documentation may use: no real machine has it.
ELSEWHERE = "192.0.2.1"
TESTS = Path(__file__).parents[1]

#: Starts a broker on all addresses, asks it twice from elsewhere, prints what it told and its log.
PROGRAM = f"""
import json, sys
from pathlib import Path
sys.path.insert(0, {str(TESTS)!r})
from support.broker_process import BrokerProcess
from support.raw_client import RawClient
from walrusmq.protocol.messages.metadata import MetadataRequest
settings = json.loads(sys.argv[2])
broker = BrokerProcess(Path(sys.argv[1]), {{"listen": "0.0.0.0:0", **settings}}).start()
port = broker.bootstrap.rsplit(":", 1)[1]
told = []
for _ in range(2):
    with RawClient("{ELSEWHERE}:" + port) as client:
        (node,) = client.ask(MetadataRequest(topics=[]), 8).brokers
        told.append(f"{{node.host}}:{{node.port}}")
broker.stop()
print(json.dumps([told, port, broker.log_text()]))
"""


def told_elsewhere(folder: Path, **settings: str) -> tuple[list[str], str, str]:
    """What two clients from elsewhere are told, the broker's port, and its log."""
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("needs ip and unshare")
    inside = f'ip link set lo up && ip addr add {ELSEWHERE}/32 dev lo && exec "$@"'
    names = {name.replace("_", "."): value for name, value in settings.items()}
    python = [sys.executable, "-c", PROGRAM, str(folder), json.dumps(names)]
    if subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode:
        pytest.skip("may not make a network namespace here")
    done = subprocess.run(
        ["unshare", "-rn", "sh", "-c", inside, "sh", *python], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    told, port, log = json.loads(done.stdout)
    return told, port, log


def told_here(broker: BrokerProcess) -> str:
    with RawClient(broker.bootstrap) as client:
        (node,) = client.ask(MetadataRequest(topics=[]), 8).brokers
    return f"{node.host}:{node.port}"


def test_unset_a_client_is_told_the_address_by_which_it_came(broker: BrokerProcess) -> None:
    assert told_here(broker) == broker.bootstrap


def test_unset_a_client_from_elsewhere_is_told_the_address_by_which_it_came(tmp_path: Path) -> None:
    told, port, log = told_elsewhere(tmp_path)
    assert told == [f"{ELSEWHERE}:{port}"] * 2
    assert "advertised.listener" not in log


def test_a_set_address_is_told_to_everybody(start_broker: StartBroker) -> None:
    broker = start_broker({"advertised.listener": "kafka.example:9999"})
    assert told_here(broker) == "kafka.example:9999"


def test_a_loopback_address_told_to_a_client_from_elsewhere_is_warned_of_once(tmp_path: Path) -> None:
    told, _, log = told_elsewhere(tmp_path, advertised_listener="localhost:9092")
    assert told == ["localhost:9092"] * 2
    (line,) = [line for line in log.splitlines() if "advertised.listener" in line]
    assert ELSEWHERE in line
    assert "localhost:9092" in line

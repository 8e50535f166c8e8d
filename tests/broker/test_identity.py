"""Whose data folder it is, through ``walrusmq serve`` (C29): adopted when nothing is said, never mistaken."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.broker_process import BrokerProcess
from support.embedded import batch_of, fetch, produce
from support.raw_client import RawClient
from support.reading import found_in, only_partition

from walrusmq.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

NODE_ID = 7
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"
OTHER_CLUSTER_ID = "BBBBBBBBBBBBBBBBBBBBBB"

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A stopped broker's folder, of node 7 in a cluster with a name, with one record in ``t``."""
    broker = BrokerProcess(tmp_path / "first", {"node.id": NODE_ID, "cluster.id": CLUSTER_ID}).start()
    with RawClient(broker.bootstrap) as client:
        topic = MetadataRequestTopic(name="t")
        client.ask(MetadataRequest(topics=[topic], allow_auto_topic_creation=True), 9)
        part = only_partition(client.ask(produce("t", batch_of(b"kept")), 9))
        assert part.error_code == 0
    assert broker.stop() == 0
    return broker.data


def identity(broker: BrokerProcess) -> tuple[int, str]:
    with RawClient(broker.bootstrap) as client:
        answer = client.ask(MetadataRequest(topics=[]), 9)
        assert found_in(only_partition(client.ask(fetch("t", 0), 12))) == [(0, b"kept")]
        return answer.brokers[0].node_id, answer.cluster_id


@pytest.mark.parametrize("given", [{}, {"node.id": NODE_ID}, {"cluster.id": CLUSTER_ID}])
def test_a_start_that_says_less_or_the_same_goes_on_as_before(
    folder: Path, tmp_path: Path, given: dict[str, object]
) -> None:
    broker = BrokerProcess(tmp_path / "next", {"data.dir": folder, **given}).start()
    assert identity(broker) == (NODE_ID, CLUSTER_ID)
    assert broker.stop() == 0


@pytest.mark.parametrize(
    ("setting", "stored", "given"), [("node.id", NODE_ID, 8), ("cluster.id", CLUSTER_ID, OTHER_CLUSTER_ID)]
)
def test_another_id_stops_the_start_with_both_values_and_the_ways_out_and_harms_nothing(
    folder: Path, tmp_path: Path, setting: str, stored: object, given: object
) -> None:
    broker = BrokerProcess(tmp_path / "other", {"data.dir": folder, setting: given})
    broker.launch()
    assert broker.wait_ended() == 1
    (line,) = broker.log_text().splitlines()
    assert f"{folder} belongs to {setting} {stored}, but {setting} is set to {given}" in line
    assert f"leave {setting} out" in line
    assert "give it another data.dir" in line
    again = BrokerProcess(tmp_path / "again", {"data.dir": folder}).start()
    assert identity(again) == (NODE_ID, CLUSTER_ID)
    assert again.stop() == 0


def test_a_new_folder_gets_an_id_of_its_own_that_stays(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    found = set()
    for _ in range(2):
        broker.start()
        with RawClient(broker.bootstrap) as client:
            answer = client.ask(MetadataRequest(topics=[]), 9)
        found.add((answer.brokers[0].node_id, answer.cluster_id))
        assert broker.stop() == 0
    ((node_id, cluster_id),) = found
    assert (node_id, len(cluster_id)) == (1, 22)

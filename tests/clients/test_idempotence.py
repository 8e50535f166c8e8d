"""Idempotent producers, on the wire: duplicates are stored once, gaps refused, ids never given twice."""

from __future__ import annotations

import pytest
from support.broker_process import BrokerProcess, StartBroker
from support.confluent import end_offset
from support.raw_client import RawClient, produce_request
from support.topics import make_topic

from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.init_producer_id import InitProducerIdRequest
from walrusmq.protocol.messages.produce import PartitionProduceResponse
from walrusmq.protocol.records.batch import Producer, Record, encode_batch

PRODUCE_VERSION = 9


def new_producer_id(client: RawClient) -> int:
    answer = client.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000), 4)
    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    return int(answer.producer_id)


def send(client: RawClient, topic: str, producer_id: int, sequence: int, count: int = 3) -> PartitionProduceResponse:
    """Produce one batch of ``count`` records from ``sequence`` on."""
    records = [Record(offset, 1_700_000_000_000, None, b"%d" % (sequence + offset)) for offset in range(count)]
    batch = encode_batch(records, producer=Producer(producer_id, 0, sequence))
    answer = client.ask(produce_request(topic, batch), PRODUCE_VERSION)
    result = answer.responses[0].partition_responses[0]
    assert isinstance(result, PartitionProduceResponse)
    return result


def test_a_duplicate_is_stored_once_and_answered_with_its_first_offset(broker: BrokerProcess, topic: str) -> None:
    with RawClient(broker.bootstrap) as client:
        producer_id = new_producer_id(client)
        first = send(client, topic, producer_id, 0)
        second = send(client, topic, producer_id, 3)
        again = send(client, topic, producer_id, 0)
    assert [(each.error_code, each.base_offset) for each in (first, second, again)] == [(0, 0), (0, 3), (0, 0)]
    assert end_offset(broker.bootstrap, topic) == 6


def test_a_gap_in_the_sequence_is_refused(broker: BrokerProcess, topic: str) -> None:
    with RawClient(broker.bootstrap) as client:
        producer_id = new_producer_id(client)
        assert send(client, topic, producer_id, 0).error_code == 0
        assert send(client, topic, producer_id, 4).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert end_offset(broker.bootstrap, topic) == 3


def test_a_producer_that_the_partition_does_not_know_may_start_anywhere(broker: BrokerProcess, topic: str) -> None:
    with RawClient(broker.bootstrap) as client:
        assert send(client, topic, new_producer_id(client), 1000).error_code == 0


def test_a_duplicate_is_known_after_rollovers(broker: BrokerProcess, topic: str) -> None:
    with RawClient(broker.bootstrap) as client:
        producer_id, other = new_producer_id(client), new_producer_id(client)
        first = send(client, topic, producer_id, 0)
        for number in range(10):
            assert send(client, topic, other, 100 * number, 100).error_code == 0
        again = send(client, topic, producer_id, 0)
    assert (again.error_code, again.base_offset) == (0, first.base_offset)
    assert end_offset(broker.bootstrap, topic) == 1003


@pytest.mark.parametrize("way_down", ["kill", "stop"])
def test_sequences_are_known_and_ids_stay_taken_after_a_restart(start_broker: StartBroker, way_down: str) -> None:
    broker = start_broker()
    topic = make_topic(broker)
    with RawClient(broker.bootstrap) as client:
        producer_id = new_producer_id(client)
        first = send(client, topic, producer_id, 0)
    getattr(broker, way_down)()
    broker.start()
    with RawClient(broker.bootstrap) as client:
        again = send(client, topic, producer_id, 0)
        assert (again.error_code, again.base_offset) == (0, first.base_offset)
        assert send(client, topic, producer_id, 9).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert send(client, topic, producer_id, 3).error_code == 0
        assert new_producer_id(client) > producer_id
    assert end_offset(broker.bootstrap, topic) == 6

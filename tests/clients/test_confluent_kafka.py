"""confluent-kafka (librdkafka): every codec, every acks, across rollovers."""

from __future__ import annotations

import pytest
from support.broker_process import BrokerProcess
from support.confluent import consume, produce
from support.samples import Sample, check_same, samples

RECORDS = 2000


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "snappy", "zstd"])
@pytest.mark.usefixtures("rolls_over")
def test_what_an_idempotent_producer_sends_with_any_codec_comes_back(
    broker: BrokerProcess, topic: str, codec: str
) -> None:
    sent = samples(RECORDS)
    offsets = produce(broker.bootstrap, topic, sent, compression_type=codec, enable_idempotence=True)
    assert offsets == list(range(RECORDS))
    check_same(consume(broker.bootstrap, topic, RECORDS), sent)


@pytest.mark.parametrize("acks", ["0", "1", "all"])
@pytest.mark.usefixtures("rolls_over")
def test_what_is_sent_with_any_acks_comes_back(broker: BrokerProcess, topic: str, acks: str) -> None:
    sent = samples(RECORDS)
    offsets = produce(broker.bootstrap, topic, sent, acks=acks)
    if acks != "0":
        assert offsets == list(range(RECORDS))
    check_same(consume(broker.bootstrap, topic, RECORDS), sent)


@pytest.mark.parametrize("first_offset", [1, 99, 100, 1555, 1999])
def test_reading_may_start_at_any_offset(broker: BrokerProcess, topic: str, first_offset: int) -> None:
    sent = samples(RECORDS, large=0)
    produce(broker.bootstrap, topic, sent, compression_type="lz4")
    received = consume(broker.bootstrap, topic, RECORDS - first_offset, first_offset)
    check_same(received, sent[first_offset:], first_offset)


def test_a_consumer_that_waits_at_the_end_gets_what_comes(broker: BrokerProcess, topic: str) -> None:
    sent = samples(300, large=1)
    produce(broker.bootstrap, topic, sent)
    produce(broker.bootstrap, topic, sent)
    check_same(consume(broker.bootstrap, topic, 600), [*sent, *sent])


def test_records_without_key_and_value_are_records_too(broker: BrokerProcess, topic: str) -> None:
    sent = [
        Sample(None, None),
        Sample(None, b""),
        Sample(b"", None),
        Sample(b"", b""),
        Sample(None, None, (("h", None),)),
    ]
    assert produce(broker.bootstrap, topic, sent) == list(range(len(sent)))
    check_same(consume(broker.bootstrap, topic, len(sent)), sent)

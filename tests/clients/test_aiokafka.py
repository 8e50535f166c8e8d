"""aiokafka: each codec and acks, across rollovers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from support.broker_process import BrokerProcess
from support.confluent import consume as confluent_consume
from support.samples import Received, Sample, check_same, samples

RECORDS = 1000
TIMEOUT_S = 60.0
#: Small batches, so that the records are dozens of appends.
SMALL_BATCHES = {"max_batch_size": 2000, "max_request_size": 1_000_000}


async def produce(bootstrap: str, topic: str, records: Sequence[Sample], **config: Any) -> list[int | None]:
    """Send ``records`` to partition 0; the offset that each was acknowledged with (None under acks=0)."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, **SMALL_BATCHES, **config) as producer:
        pending = [
            await producer.send(topic, record.value, record.key, partition=0, headers=list(record.headers))
            for record in records
        ]
        return [metadata and metadata.offset for metadata in await asyncio.gather(*pending)]


async def consume(bootstrap: str, topic: str, count: int) -> list[Received]:
    received: list[Received] = []
    partition = TopicPartition(topic, 0)
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        while len(received) < count:
            for record in (await consumer.getmany(timeout_ms=1000)).get(partition, ()):
                received.append(Received(record.offset, Sample(record.key, record.value, tuple(record.headers))))
    return received


def round_trip(broker: BrokerProcess, topic: str, sent: Sequence[Sample], **config: Any) -> list[Received]:
    async def scenario() -> list[Received]:
        async with asyncio.timeout(TIMEOUT_S):
            assert await produce(broker.bootstrap, topic, sent, **config) == list(range(len(sent)))
            return await consume(broker.bootstrap, topic, len(sent))

    return asyncio.run(scenario())


@pytest.mark.parametrize("codec", [None, "gzip", "lz4", "snappy", "zstd"])
@pytest.mark.usefixtures("rolls_over")
def test_what_is_sent_with_any_codec_comes_back(broker: BrokerProcess, topic: str, codec: str | None) -> None:
    sent = samples(RECORDS)
    check_same(round_trip(broker, topic, sent, compression_type=codec), sent)


@pytest.mark.parametrize("config", [{"acks": 1}, {"acks": "all"}, {"enable_idempotence": True}], ids=str)
@pytest.mark.usefixtures("rolls_over")
def test_what_is_acknowledged_in_any_way_comes_back(broker: BrokerProcess, topic: str, config: dict[str, Any]) -> None:
    sent = samples(RECORDS)
    check_same(round_trip(broker, topic, sent, **config), sent)


@pytest.mark.usefixtures("rolls_over")
def test_what_is_sent_without_acknowledgement_comes_back(broker: BrokerProcess, topic: str) -> None:
    sent = samples(RECORDS)

    async def send() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await produce(broker.bootstrap, topic, sent, acks=0)

    asyncio.run(send())
    check_same(confluent_consume(broker.bootstrap, topic, RECORDS), sent)

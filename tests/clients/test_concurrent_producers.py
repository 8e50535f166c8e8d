"""What was acknowledged is what can be read, under many writers and while segments roll all the time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from support.broker_process import StartBroker
from support.confluent import consume, end_offset, produce
from support.samples import Sample
from support.stored_segments import check_chain
from support.topics import SEGMENT_ENTRIES, make_topic

PRODUCERS = 32
RECORDS_EACH = 300

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_32_producers_over_tiny_segments_lose_and_double_nothing(start_broker: StartBroker) -> None:
    broker = start_broker()
    topic = make_topic(broker)

    def write(producer: int) -> list[int]:
        records = [Sample(b"%d" % producer, b"%d-%d" % (producer, number)) for number in range(RECORDS_EACH)]
        return produce(broker.bootstrap, topic, records, acks="all", batch_num_messages=1 + producer)

    with ThreadPoolExecutor(PRODUCERS) as pool:
        acknowledged = list(pool.map(write, range(PRODUCERS)))

    total = PRODUCERS * RECORDS_EACH
    assert sorted(offset for offsets in acknowledged for offset in offsets) == list(range(total))
    assert end_offset(broker.bootstrap, topic) == total
    by_offset = {each.offset: each.record for each in consume(broker.bootstrap, topic, total)}
    for producer, offsets in enumerate(acknowledged):
        assert offsets == sorted(offsets)
        values = [by_offset[offset].value for offset in offsets]
        assert values == [b"%d-%d" % (producer, number) for number in range(RECORDS_EACH)]
    rollovers = broker.metric("walrus_segment_rollovers_total")
    assert broker.stop() == 0
    segments = check_chain(broker.data, topic, total)
    assert segments == rollovers + 1
    assert segments >= total / (2 * SEGMENT_ENTRIES + PRODUCERS)

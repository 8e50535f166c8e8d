"""Topics whose segments are so small that they roll often."""

from __future__ import annotations

import itertools

from confluent_kafka.admin import AdminClient, NewTopic
from support.broker_process import PATIENCE_S, BrokerProcess

SEGMENT_ENTRIES = 100

_numbers = itertools.count(1)


def make_topic(broker: BrokerProcess, partitions: int = 1, **configs: str) -> str:
    """A new topic with segments of 100 entries; ``configs`` are topic configs, with underscores for dots."""
    name = f"topic-{next(_numbers)}"
    config = {"walrus.segment.entries": str(SEGMENT_ENTRIES)}
    config |= {key.replace("_", "."): value for key, value in configs.items()}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    futures = admin.create_topics([NewTopic(name, partitions, 1, config=config)], request_timeout=PATIENCE_S)
    futures[name].result(PATIENCE_S)
    return name

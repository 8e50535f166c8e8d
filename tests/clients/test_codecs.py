"""A broker passes on what clients compressed, whether or not it could unpack it itself."""

from __future__ import annotations

import sys

import pytest
from support.broker_process import StartBroker
from support.confluent import consume, produce
from support.samples import check_same, samples
from support.topics import make_topic

RECORDS = 300
#: ``walrusmq`` as it is installed without the extra ``codecs``: nothing that knows snappy and zstd can be imported.
WITHOUT_CODECS = """
import sys
sys.modules.update(dict.fromkeys(("cramjam", "snappy", "zstandard")))
from walrusmq.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_broker_without_the_extra_codecs_passes_every_codec(start_broker: StartBroker, codec: str) -> None:
    broker = start_broker(command=[sys.executable, "-c", WITHOUT_CODECS])
    topic = make_topic(broker)
    sent = samples(RECORDS)
    produce(broker.bootstrap, topic, sent, compression_type=codec)
    broker.kill()
    broker.start()
    check_same(consume(broker.bootstrap, topic, RECORDS), sent)

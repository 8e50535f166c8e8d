"""kcat, the command that people try first."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from support.broker_process import BrokerProcess
from support.confluent import consume
from support.samples import Received, Sample, check_same

RECORDS = 1000
TIMEOUT_S = 60.0
KCAT = shutil.which("kcat")

pytestmark = pytest.mark.skipif(KCAT is None, reason="needs kcat (Debian and Homebrew have it under that name)")


def kcat(broker: BrokerProcess, *arguments: str, stdin: bytes = b"") -> bytes:
    assert KCAT is not None
    done = subprocess.run(
        [KCAT, "-b", broker.bootstrap, *arguments], input=stdin, capture_output=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def read_back(broker: BrokerProcess, topic: str) -> list[Received]:
    """The whole partition, by ``kcat -C``."""
    output = kcat(broker, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q", "-f", "%o\t%K\t%k\t%S\t%s\n")
    received = []
    for line in output.splitlines():
        offset, key_size, key, value_size, value = line.split(b"\t")
        record = Sample(key if int(key_size) >= 0 else None, value if int(value_size) >= 0 else None)
        received.append(Received(int(offset), record))
    return received


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "snappy", "zstd"])
@pytest.mark.usefixtures("rolls_over")
def test_lines_sent_with_any_codec_come_back(broker: BrokerProcess, topic: str, codec: str) -> None:
    sent = [Sample(b"key-%d" % number, b"value-%d" % number) for number in range(RECORDS)]
    lines = b"".join(b"%b:%b\n" % (record.key, record.value) for record in sent)
    settings = [f"-Xcompression.codec={codec}", "-Xbatch.num.messages=25", "-Xacks=all"]
    kcat(broker, "-P", "-t", topic, "-p", "0", "-K:", *settings, stdin=lines)
    check_same(read_back(broker, topic), sent)
    check_same(consume(broker.bootstrap, topic, RECORDS), sent)


def test_null_values_and_headers_go_through(broker: BrokerProcess, topic: str) -> None:
    kcat(broker, "-P", "-t", topic, "-p", "0", "-K:", "-Z", "-H", "colour=blue", stdin=b"gone:\nhere:now\n")
    headers = (("colour", b"blue"),)
    check_same(consume(broker.bootstrap, topic, 2), [Sample(b"gone", None, headers), Sample(b"here", b"now", headers)])
    assert [each.record.value for each in read_back(broker, topic)] == [None, b"now"]


def test_the_listing_names_the_broker_and_the_topic(broker: BrokerProcess, topic: str) -> None:
    listing = kcat(broker, "-L", "-t", topic).decode()
    assert f"broker 1 at {broker.bootstrap}" in listing
    assert f'topic "{topic}" with 1 partitions' in listing

"""Clients from years ago, each in an environment of its own, still produce, consume in groups, and list (C25)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from support.broker_process import BrokerProcess
from support.confluent import consume
from support.samples import Received, Sample

INSTALL_TIMEOUT_S = 240
RUN_TIMEOUT_S = 90
RECORDS = 1000
SENT = [Sample(b"%d" % number, b"value-%d" % number) for number in range(RECORDS)]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

#: Produces, reads back in a group printing ``offset value`` lines, commits, then prints the committed offset, all
#: groups and all topics. Arguments: address, topic (the name of the group, too), count.
KAFKA_PYTHON = """
import sys
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
bootstrap, topic, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", batch_size=500, compression_type="gzip")
for number in range(count):
    producer.send(topic, b"value-%d" % number, b"%d" % number, partition=0)
producer.flush(60)
consumer = KafkaConsumer(
    topic, bootstrap_servers=bootstrap, group_id=topic, auto_offset_reset="earliest", consumer_timeout_ms=20000,
    enable_auto_commit=False,
)
for _ in range(count):
    record = next(consumer)
    print(record.offset, record.value.decode())
consumer.commit()
print(consumer.committed(TopicPartition(topic, 0)))
consumer.close()
admin = KafkaAdminClient(bootstrap_servers=bootstrap)
print(*[name for name, _ in admin.list_consumer_groups()])
print(*admin.list_topics())
"""

#: The same; its group starts at a committed offset, since librdkafka 1.6 asks for the earliest in version 0 of
#: ListOffsets, which went with Kafka 4.0. And it tries again to list the groups: that client does it, with any broker,
#: on connections that it has only begun to open.
LIBRDKAFKA = """
import sys, time
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
bootstrap, topic, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
settings = {"bootstrap.servers": bootstrap}
producer = Producer(dict(settings, **{"acks": "all", "batch.num.messages": 25, "compression.type": "lz4"}))
for number in range(count):
    producer.produce(topic, b"value-%d" % number, b"%d" % number, partition=0)
assert producer.flush(60) == 0
consumer = Consumer(dict(settings, **{"group.id": topic, "enable.auto.commit": False}))
consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
consumer.subscribe([topic])
for _ in range(count):
    record = consumer.poll(20)
    assert record is not None and record.error() is None, record and record.error()
    print(record.offset(), record.value().decode())
consumer.commit(asynchronous=False)
print(consumer.committed([TopicPartition(topic, 0)], timeout=20)[0].offset)
consumer.close()
admin = AdminClient(settings)
for tries in range(20, -1, -1):
    try:
        groups = admin.list_groups(timeout=20)
        break
    except KafkaException:
        if not tries:
            raise
        time.sleep(0.2)
print(*[group.id for group in groups])
print(*admin.list_topics(timeout=20).topics)
"""


def working_python(*versions: str) -> str | None:
    """An interpreter of one of ``versions``, on the path or among pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in versions:
        candidates = [shutil.which(f"python{version}"), *map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))]
        for candidate in filter(None, candidates):
            if subprocess.run([candidate, "-c", "import venv"], capture_output=True, check=False).returncode == 0:
                return candidate
    return None


def old_environment(folder: Path, python: str, requirement: str) -> str:
    """The interpreter of a new environment with ``requirement``; skips where that can't be installed."""
    if python == sys.executable:
        venv.create(folder, with_pip=False)
    else:
        subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=INSTALL_TIMEOUT_S)
    interpreter = str(folder / "bin" / "python")
    installer = [sys.executable, "-m", "pip", "--python", interpreter, "install", "--quiet", "--only-binary=:all:"]
    if python != sys.executable:  # today's pip can't work on an interpreter that old, its own can
        subprocess.run([interpreter, "-m", "ensurepip"], check=True, capture_output=True, timeout=INSTALL_TIMEOUT_S)
        installer = [interpreter, "-m", "pip", "install", "--quiet", "--only-binary=:all:"]
    done = subprocess.run([*installer, requirement], capture_output=True, timeout=INSTALL_TIMEOUT_S, check=False)
    if done.returncode:
        pytest.skip(f"{requirement} has no build for {python}: {done.stderr.decode().splitlines()[-1]}")
    return interpreter


def check_client(interpreter: str, program: str, broker: BrokerProcess, topic: str) -> None:
    command = [interpreter, "-c", program, broker.bootstrap, topic, str(RECORDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    *records, committed, groups, topics = done.stdout.splitlines()
    assert records == [f"{number} value-{number}" for number in range(RECORDS)]
    assert committed == str(RECORDS)
    assert topic in groups.split()
    assert topic in topics.split()
    assert consume(broker.bootstrap, topic, RECORDS) == [Received(*each) for each in enumerate(SENT)]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="kafka-python 2.0.2 can't be imported on Python 3.12 and later")
@pytest.mark.usefixtures("rolls_over")
def test_kafka_python_of_2020(broker: BrokerProcess, topic: str, tmp_path: Path) -> None:
    interpreter = old_environment(tmp_path / "venv", sys.executable, "kafka-python==2.0.2")
    check_client(interpreter, KAFKA_PYTHON, broker, topic)


@pytest.mark.usefixtures("rolls_over")
def test_librdkafka_of_2021(broker: BrokerProcess, topic: str, tmp_path: Path) -> None:
    python = working_python("3.8", "3.9", "3.7")
    if python is None:
        pytest.skip("confluent-kafka 1.6 has builds for Python 3.9 and older only, and none is here")
    interpreter = old_environment(tmp_path / "venv", python, "confluent-kafka==1.6.1")
    check_client(interpreter, LIBRDKAFKA, broker, topic)


@pytest.mark.usefixtures("rolls_over")
def test_the_oldest_librdkafka_for_this_python(broker: BrokerProcess, topic: str, tmp_path: Path) -> None:
    interpreter = old_environment(tmp_path / "venv", sys.executable, "confluent-kafka<=2.6")
    check_client(interpreter, LIBRDKAFKA, broker, topic)

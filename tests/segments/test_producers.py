"""Idempotent producers: the verdicts that Kafka 4.4 gave on the wire, and a model of them under random traffic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from walrusmq.protocol.errors import InvalidProducerEpoch, KafkaError, OutOfOrderSequenceNumber
from walrusmq.protocol.records.batch import Producer, Record, encode_batch
from walrusmq.protocol.records.header import MAX_SEQUENCE, parse_header
from walrusmq.segments import producers as producers_module
from walrusmq.segments.producers import (
    REMEMBERED_BATCHES,
    ProducerBatch,
    Producers,
    decode_snapshot,
    encode_snapshot,
)

NOW_MS = 1_000_000
DAY_MS = 86_400_000


class Log:
    """Appends as a partition does: check, then record."""

    def __init__(self) -> None:
        self.producers = Producers(DAY_MS)
        self.end_offset = 0

    def append(self, sequence: int, entries: int = 1, *, id: int = 7, epoch: int = 0, now_ms: int = NOW_MS) -> int:
        """The base offset that the producer is told."""
        last = (sequence + entries - 1) & MAX_SEQUENCE
        original = self.producers.check(id, epoch, sequence, last, now_ms)
        if original is not None:
            return original.base_offset
        base_offset, self.end_offset = self.end_offset, self.end_offset + entries
        self.producers.record(id, epoch, ProducerBatch(sequence, last, base_offset, self.end_offset, 5), now_ms)
        return base_offset


def test_the_scenario_that_was_asked_of_kafka() -> None:
    log = Log()
    assert [log.append(*batch) for batch in [(0, 2), (0, 2), (2, 1), (3, 3), (2, 1), (0, 2)]] == [0, 0, 2, 3, 2, 0]
    for refused in [(9, 1), (4, 3), (3, 2)]:
        with pytest.raises(OutOfOrderSequenceNumber):
            log.append(*refused)
    assert [log.append(sequence) for sequence in range(6, 12)] == [6, 7, 8, 9, 10, 11]
    with pytest.raises(OutOfOrderSequenceNumber):
        log.append(0, 2)
    assert log.append(7) == 7


def test_a_new_epoch_begins_at_zero_and_ends_the_old_one() -> None:
    log = Log()
    log.append(0, epoch=1)
    with pytest.raises(InvalidProducerEpoch):
        log.append(1, epoch=0)
    with pytest.raises(OutOfOrderSequenceNumber):
        log.append(1, epoch=2)
    assert log.append(0, epoch=2) == 1
    assert log.append(0, epoch=2) == 1
    with pytest.raises(InvalidProducerEpoch):
        log.append(0, epoch=1)


def test_an_unknown_producer_may_start_anywhere() -> None:
    log = Log()
    assert log.append(5, epoch=3) == 0
    assert log.append(6, epoch=3) == 1


def test_after_the_largest_sequence_number_comes_zero() -> None:
    log = Log()
    assert [log.append(MAX_SEQUENCE - 1), log.append(MAX_SEQUENCE, 2), log.append(MAX_SEQUENCE, 2)] == [0, 1, 1]
    assert log.append(1) == 3
    with pytest.raises(OutOfOrderSequenceNumber):
        log.append(5)


def test_a_producer_that_was_idle_too_long_is_forgotten() -> None:
    log = Log()
    log.append(0)
    with pytest.raises(OutOfOrderSequenceNumber):
        log.append(9, now_ms=NOW_MS + DAY_MS - 1)
    assert log.append(9, now_ms=NOW_MS + DAY_MS) == 1
    assert log.producers.snapshot(NOW_MS + 3 * DAY_MS) == []


def test_the_producers_idle_longest_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producers_module, "MAX_PRODUCERS", 100)
    monkeypatch.setattr(producers_module, "FORGOTTEN_AT_ONCE", 10)
    log = Log()
    for number in range(100):
        log.append(0, id=number, now_ms=NOW_MS + number)
    log.append(1, id=0, now_ms=NOW_MS + 500)
    log.append(0, id=100, now_ms=NOW_MS + 501)
    assert len(log.producers) == 91
    with pytest.raises(OutOfOrderSequenceNumber):
        log.append(9, id=0, now_ms=NOW_MS + 502)
    assert log.append(9, id=1, now_ms=NOW_MS + 502) == 102


def test_a_scan_of_the_log_finds_the_same_state() -> None:
    log = Log()
    scanned = Producers(DAY_MS)
    for sequence, entries, epoch in [(0, 2, 0), (2, 1, 0), (0, 4, 1)]:
        base_offset = log.append(sequence, entries, epoch=epoch)
        records = [Record(base_offset + delta, 5, None, b"x") for delta in range(entries)]
        scanned.observe(parse_header(encode_batch(records, producer=Producer(7, epoch, sequence))), NOW_MS)
    scanned.observe(parse_header(encode_batch([Record(9, 5, None, b"nobody's")])), NOW_MS)
    assert scanned.snapshot(NOW_MS) == log.producers.snapshot(NOW_MS)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(-3, 3), st.integers(1, 3)),
        max_size=60,
    ),
    st.sampled_from([0, 1000, MAX_SEQUENCE - 3]),
)
def test_verdicts_are_those_of_a_model(traffic: list[tuple[int, int, int, int]], start: int) -> None:
    """Each step: a producer, an epoch, how far its sequence is from the expected one, how many entries."""
    log = Log()
    accepted: dict[int, list[tuple[int, int, int, int]]] = {}  # by producer: (epoch, sequence, entries, base offset)
    for id, epoch, skew, entries in traffic:
        known = accepted.setdefault(id, [])
        last_epoch = known[-1][0] if known else -1
        of_epoch = [batch for batch in known if batch[0] == last_epoch]
        following = (of_epoch[-1][1] + of_epoch[-1][2]) & MAX_SEQUENCE if known else start
        sequence = max(0, skew) if epoch > last_epoch >= 0 else (following + skew) & MAX_SEQUENCE
        repeated = [b[3] for b in of_epoch[-REMEMBERED_BATCHES:] if b[:3] == (epoch, sequence, entries)]
        expected: int | type[KafkaError] = log.end_offset
        if repeated:
            expected = repeated[0]
        elif known and epoch < last_epoch:
            expected = InvalidProducerEpoch
        elif known and sequence != (following if epoch == last_epoch else 0):
            expected = OutOfOrderSequenceNumber
        if isinstance(expected, int):
            assert log.append(sequence, entries, id=id, epoch=epoch) == expected
            if not repeated:
                known.append((epoch, sequence, entries, expected))
        else:
            with pytest.raises(expected):
                log.append(sequence, entries, id=id, epoch=epoch)
        log.producers.restore(decode_snapshot(encode_snapshot(log.producers.snapshot(NOW_MS))))

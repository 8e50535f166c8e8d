"""The compaction of batches, held against a plain model of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from walrusmq.protocol.records.batch import Producer, Record, decode_batch, encode_batch
from walrusmq.protocol.records.compression import Codec
from walrusmq.protocol.records.keys import batch_keys
from walrusmq.segments.compaction import CompactionRules, NewestOffsets, compacted

NOW_MS = 1_000_000
RETENTION_MS = 500

KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])
VALUES = st.none() | st.binary(max_size=4)
BATCHES = st.lists(st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=5), min_size=1, max_size=12)


def batches_of(logs: list[list[tuple[bytes | None, bytes | None]]], codec: Codec = Codec.NONE) -> list[bytes]:
    """A batch for each list of keys and values, by producer 7, at offsets that follow on each other."""
    batches, offset = [], 0
    for entries in logs:
        records = [Record(offset + at, 10 + offset + at, key, value) for at, (key, value) in enumerate(entries)]
        batches.append(encode_batch(records, codec=codec, producer=Producer(7, 0, offset), leader_epoch=3))
        offset += len(entries)
    return batches


def rules(now_ms: int = NOW_MS, **producer_ends: int) -> CompactionRules:
    return CompactionRules(now_ms, RETENTION_MS, {int(name[1:]): end for name, end in producer_ends.items()})


def noted(batches: list[bytes], newest: NewestOffsets | None = None) -> NewestOffsets:
    newest = newest or NewestOffsets()
    for batch in batches:
        header = decode_batch(batch).header
        if not newest.has_room_for(header):
            break
        newest.note(header, batch_keys(batch))
    newest.settle()
    return newest


def compact(
    batches: list[bytes], newest: NewestOffsets | None = None, by: CompactionRules | None = None
) -> list[bytes]:
    last_offset = decode_batch(batches[-1]).header.last_offset
    kept = list(compacted(batches, newest or noted(batches), by or rules(), last_offset))
    assert all(each.header == decode_batch(each.data).header for each in kept)
    assert all((each.data in batches) == each.is_as_it_was for each in kept)
    return [bytes(each.data) for each in kept]


def records_of(batches: list[bytes]) -> list[Record]:
    return [record for batch in batches for record in decode_batch(batch).records]


@given(BATCHES, st.sampled_from([Codec.NONE, Codec.GZIP]))
def test_the_last_value_of_each_key_stays_as_it_was_and_nothing_else(
    logs: list[list[tuple[bytes | None, bytes | None]]], codec: Codec
) -> None:
    batches = batches_of(logs, codec)
    newest = {record.key: record for record in records_of(batches)}
    assert records_of(compact(batches)) == sorted(newest.values(), key=lambda record: record.offset)


@given(BATCHES, st.integers(1, 4))
def test_with_little_memory_several_rounds_lose_no_last_value(
    logs: list[list[tuple[bytes | None, bytes | None]]], max_keys: int
) -> None:
    batches = batches_of(logs)
    newest = noted(batches, NewestOffsets(max_keys))
    kept = records_of(compact(batches, newest))
    before = records_of(batches)
    assert {record.key: record for record in kept} == {record.key: record for record in before}
    assert [record for record in kept if record.offset >= newest.end_offset] == [
        record for record in before if record.offset >= newest.end_offset
    ]


@given(BATCHES, BATCHES)
def test_what_was_compacted_before_is_only_held_against_what_came_since(
    before: list[list[tuple[bytes | None, bytes | None]]], since: list[list[tuple[bytes | None, bytes | None]]]
) -> None:
    batches = batches_of(before + since)
    once = compact(batches[: len(before)])
    new = batches[len(before) :]
    assert records_of(compact(once + new, noted(new))) == records_of(compact(batches))


@given(BATCHES)
def test_batches_keep_their_place_and_producer_and_compacting_again_changes_nothing(
    logs: list[list[tuple[bytes | None, bytes | None]]],
) -> None:
    batches = batches_of(logs)
    headers = {decode_batch(batch).header.base_offset: decode_batch(batch).header for batch in batches}
    once = compact(batches)
    for batch in once:
        header = decode_batch(batch).header
        before = headers[header.base_offset]
        assert header.last_offset == before.last_offset
        assert header.partition_leader_epoch == before.partition_leader_epoch
        assert (header.producer_id, header.producer_epoch) == (before.producer_id, before.producer_epoch)
        assert (header.base_sequence, header.last_sequence) == (before.base_sequence, before.last_sequence)
    assert decode_batch(once[-1]).header.last_offset == decode_batch(batches[-1]).header.last_offset
    assert compact(once) == once


def test_a_tombstone_goes_once_its_time_is_over() -> None:
    batches = batches_of([[(b"a", b"1"), (b"b", b"2")], [(b"a", None)], [(b"c", b"3")]])
    once = compact(batches)
    assert [(record.offset, record.value) for record in records_of(once)] == [(1, b"2"), (2, None), (3, b"3")]
    assert decode_batch(once[1]).header.delete_horizon_ms == NOW_MS + RETENTION_MS
    assert records_of(once)[1].timestamp == 12, "its own time is no other for that"
    assert compact(once, by=rules(NOW_MS + RETENTION_MS - 1)) == once
    assert [record.offset for record in records_of(compact(once, by=rules(NOW_MS + RETENTION_MS)))] == [1, 3]


def test_a_tombstone_takes_its_key_with_it_while_it_waits() -> None:
    once = compact(batches_of([[(b"a", b"1")], [(b"a", None)]]))
    assert [(record.offset, record.value) for record in records_of(once)] == [(1, None)]


def test_the_last_batch_of_a_producer_stays_empty() -> None:
    batches = batches_of([[(b"a", b"1")], [(b"a", b"2")], [(b"a", b"3")]])
    kept = [decode_batch(batch) for batch in compact(batches, by=rules(p7=1))]
    assert [(batch.header.base_offset, len(batch.records)) for batch in kept] == [(1, 0), (2, 1)]
    assert kept[0].header.base_sequence == 1
    assert kept[0].header.max_timestamp == 11


def test_the_last_batch_of_a_segment_stays_where_a_later_segment_has_its_key() -> None:
    first, second = batches_of([[(b"a", b"1")], [(b"a", b"2")]])
    newest = noted([first, second])
    (empty,) = compact([first], newest)
    assert decode_batch(empty).header.last_offset == 0
    assert decode_batch(empty).records == []


def test_a_record_without_a_key_goes() -> None:
    assert [record.offset for record in records_of(compact(batches_of([[(None, b"1"), (b"a", b"2")]])))] == [1]

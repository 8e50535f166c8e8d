from typing import Any

import pytest

from walrusmq.broker.held_appends import HeldAppends
from walrusmq.protocol.errors import KafkaStorageError, NotLeaderOrFollower, UnknownTopicOrPartition

PARTITION: Any = "t-0"


def test_what_is_held_comes_out_in_its_order_when_the_next_segment_opens() -> None:
    held, seen = HeldAppends(), []
    source = bytearray(b"one")
    held.add(PARTITION, memoryview(source), lambda error, batch: seen.append((error, bytes(batch))))
    source[:] = b"xxx"
    held.add(PARTITION, memoryview(b"two"), lambda error, batch: seen.append((error, bytes(batch))))
    assert held.held_bytes == 6
    held.release(PARTITION, None)
    assert seen == [(None, b"one"), (None, b"two")]
    assert held.held_bytes == 0


def test_all_that_is_held_gets_the_error_when_there_is_no_next_segment() -> None:
    held, seen = HeldAppends(), []
    held.add(PARTITION, memoryview(b"one"), lambda error, batch: seen.append(error))
    held.release(PARTITION, UnknownTopicOrPartition("gone"))
    assert [type(error) for error in seen] == [UnknownTopicOrPartition]


def test_what_is_held_again_while_being_released_stays_for_the_segment_after() -> None:
    held, seen = HeldAppends(), []

    def again(error: Any, batch: memoryview) -> None:
        held.add(PARTITION, batch, lambda error, batch: seen.append(bytes(batch)))

    held.add(PARTITION, memoryview(b"one"), again)
    held.release(PARTITION, None)
    assert seen == []
    held.release(PARTITION, None)
    assert seen == [b"one"]


def test_past_the_limit_producers_are_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("walrusmq.broker.held_appends.MAX_HELD_BYTES_PER_PARTITION", 5)
    held = HeldAppends()
    held.add(PARTITION, memoryview(b"one"), lambda error, batch: None)
    with pytest.raises(NotLeaderOrFollower):
        held.add(PARTITION, memoryview(b"two"), lambda error, batch: None)


@pytest.mark.parametrize("limit", ["MAX_HELD_BATCHES_PER_PARTITION", "MAX_HELD_BATCHES"])
def test_small_batches_are_limited_by_their_number(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"walrusmq.broker.held_appends.{limit}", 2)
    held = HeldAppends()
    for _ in range(2):
        held.add(PARTITION, memoryview(b"one"), lambda error, batch: None)
    with pytest.raises(NotLeaderOrFollower):
        held.add(PARTITION, memoryview(b"two"), lambda error, batch: None)
    held.release(PARTITION, None)
    assert held.held_batches == 0
    held.add(PARTITION, memoryview(b"two"), lambda error, batch: None)


def test_a_disk_that_lets_no_segment_be_opened_refuses_what_waits_and_what_comes_until_one_is() -> None:
    held, seen = HeldAppends(), []
    held.add(PARTITION, memoryview(b"one"), lambda error, batch: seen.append(error))
    held.refuse(PARTITION, "no room")
    assert [(type(error), str(error)) for error in seen] == [(KafkaStorageError, "no room")]
    assert held.held_bytes == 0
    with pytest.raises(KafkaStorageError, match="no room"):
        held.add(PARTITION, memoryview(b"two"), lambda error, batch: None)
    held.add("another", memoryview(b"three"), lambda error, batch: None)  # type: ignore[arg-type]
    held.release(PARTITION, None)
    held.add(PARTITION, memoryview(b"four"), lambda error, batch: seen.append(bytes(batch)))
    held.release(PARTITION, None)
    assert seen[1:] == [b"four"]

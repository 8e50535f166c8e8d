"""Who waits for a batch to be on disk."""

from __future__ import annotations

from functools import partial

from walrusmq.protocol.errors import KafkaError, KafkaStorageError
from walrusmq.segments.acknowledgements import Acknowledgements


def test_callbacks_run_in_order_up_to_what_is_synced() -> None:
    waiting = Acknowledgements()
    called: list[tuple[int, KafkaError | None]] = []
    waiting.release(100)
    for end_offset in (3, 5, 5, 9):
        waiting.add(end_offset, lambda error, end=end_offset: called.append((end, error)))  # type: ignore[misc]
    waiting.release(2)
    assert called == []
    waiting.release(5)
    assert called == [(3, None), (5, None), (5, None)]
    assert len(waiting) == 1


def test_after_a_failure_all_have_its_error_and_nobody_waits() -> None:
    waiting = Acknowledgements()
    errors: list[KafkaError | None] = []
    waiting.add(3, errors.append)
    waiting.add(5, errors.append)
    error = KafkaStorageError("broken")
    waiting.fail(error)
    waiting.fail(error)
    waiting.release(10)
    assert errors == [error, error]
    assert len(waiting) == 0


def test_a_callback_may_wait_for_more() -> None:
    waiting = Acknowledgements()
    called: list[int] = []

    def again(number: int, error: KafkaError | None) -> None:
        called.append(number)
        if number < 3:
            waiting.add(number + 1, partial(again, number + 1))

    waiting.add(1, partial(again, 1))
    waiting.release(2)
    assert called == [1, 2]
    waiting.release(3)
    assert called == [1, 2, 3]

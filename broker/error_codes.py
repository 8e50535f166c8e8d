"""Counting the errors that go out in answers, whatever the shape of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from walrusmq.metrics.counters import Metrics


def count_errors(response: Any, api_key: int, metrics: Metrics) -> None:
    """Walk an answer's structures and count each error code that isn't 0. For answers that aren't on the hot path."""
    slots = getattr(type(response), "__slots__", ())
    for name in slots:
        value = getattr(response, name)
        if type(value) is list:
            if value and hasattr(type(value[0]), "__slots__"):
                for element in value:
                    count_errors(element, api_key, metrics)
        elif name == "error_code" and value:
            metrics.count_error(api_key, int(value))

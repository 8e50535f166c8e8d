"""Counting the errors that go out in answers, whatever the shape of the answer."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from walrusmq.protocol.primitives import Array
from walrusmq.protocol.schema import Schema, is_declared, schema_of

if TYPE_CHECKING:
    from walrusmq.metrics.counters import Metrics

ERROR_CODE = "error_code"


class Places(NamedTuple):
    """Where a class of answers, or a struct inside of one, holds error codes."""

    has_own: bool
    lists: tuple[tuple[str, Places], ...]
    """The fields that are lists of structs which hold some, or whose own lists do."""


def count_errors(response: Any, api_key: int, metrics: Metrics) -> None:
    """Count each error code of an answer that isn't 0. For answers that aren't on the hot path."""
    _count(response, _places(schema_of(type(response))), api_key, metrics)


def _count(structure: Any, places: Places, api_key: int, metrics: Metrics) -> None:
    if places.has_own and structure.error_code:
        metrics.count_error(api_key, int(structure.error_code))
    for name, inner in places.lists:
        for element in getattr(structure, name) or ():
            _count(element, inner, api_key, metrics)


@cache
def _places(schema: Schema) -> Places:
    """Looked for once in a class: an answer may have as many structs as there are partitions."""
    lists = [
        (field.name, _places(schema_of(field.type.element)))
        for field in schema.fields
        if isinstance(field.type, Array) and is_declared(field.type.element)
    ]
    return Places(
        has_own=any(field.name == ERROR_CODE for field in schema.fields),
        lists=tuple((name, inner) for name, inner in lists if inner.has_own or inner.lists),
    )

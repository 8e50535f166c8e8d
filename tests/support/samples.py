"""Records of every shape that a client may send, and the check that they come back as they went."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]
#: Near the default limit of the clients themselves (librdkafka's is 1,000,000 bytes a message).
LARGE_VALUE_BYTES = 900_000


class Sample(NamedTuple):
    """One record as a client hands it in."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Received(NamedTuple):
    """One record as a client hands it out."""

    offset: int
    record: Sample


def samples(count: int, *, large: int = 2) -> list[Sample]:
    """``count`` records: keys or values null, empty and full, some headers, ``large`` values of 900 KB among them.

    None has neither key nor value, which some clients refuse to send.
    """
    records = [_sample(number) for number in range(count)]
    for index in range(large):
        place = (index + 1) * count // (large + 1)
        records[place] = Sample(b"large", bytes([index + 65]) * LARGE_VALUE_BYTES)
    return records


def _sample(number: int) -> Sample:
    key = (None, b"", b"key-%d" % number)[number % 3]
    value = (b"value-%d" % number, b"", None if key is not None else b"v", b"\x00\xff" * 50)[number % 4]
    headers: Headers = (("a", b"%d" % number), ("b", b""), ("a", b"again")) if number % 5 == 0 else ()
    return Sample(key, value, headers)


def check_same(received: Iterable[Received], sent: Sequence[Sample], first_offset: int = 0) -> None:
    """Every record of ``sent``, once, in order, at consecutive offsets, byte for byte."""
    received = list(received)
    assert [each.offset for each in received] == list(range(first_offset, first_offset + len(sent)))
    for each, record in zip(received, sent, strict=True):
        assert each.record == record, f"at offset {each.offset}"

"""What a compacted topic must hold: of each key at least the last value that was acknowledged or read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from walrusmq.protocol.records.batch import Record

Content = tuple[bytes | None, bytes | None]


class CompactedModel:
    """Records are told apart by key, value and timestamp, which a test makes different for each."""

    def __init__(self) -> None:
        self._sent: set[tuple[bytes | None, bytes | None, int]] = set()
        self._safe: dict[int, Content] = {}
        """By offset: what was acknowledged, or read at any time."""

    def sent(self, record: Record) -> None:
        """It may be there from now on."""
        self._sent.add((record.key, record.value, record.timestamp))

    def acknowledged(self, base_offset: int, records: Sequence[Record]) -> None:
        """These are safe, one after the other from an offset on."""
        for offset, record in enumerate(records, base_offset):
            self._safe[offset] = record.key, record.value

    def check(self, found: Iterable[Record]) -> None:
        """Hold what a reader finds from the beginning on to it; what was read is safe from now on."""
        offsets: list[int] = []
        newest: dict[bytes | None, int] = {}
        for record in found:
            offsets.append(record.offset)
            newest[record.key] = record.offset
            assert (record.key, record.value, record.timestamp) in self._sent, f"never sent: {record}"
            content = record.key, record.value
            assert self._safe.setdefault(record.offset, content) == content, f"offset {record.offset} holds another"
        assert offsets == sorted(set(offsets)), "offsets grow"
        for key, offset in self.newest().items():
            if self._safe[offset][1] is None and key not in newest:
                continue  # its time is over
            assert newest.get(key, -1) >= offset, f"the last value of {key!r}, at {offset}, is lost"

    def newest(self) -> dict[bytes | None, int]:
        """The offset of each key's last safe record."""
        return {key: offset for offset, (key, _) in sorted(self._safe.items())}

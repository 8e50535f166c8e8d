"""Trusted points: a place in an open segment's log up to which nothing needs to be looked at again after a crash.

One stands in the segment's `.checkpoint`, written from time to time once the log is synced up to it. At a clean stop
those of all partitions go into one file, the clean marker: the next start takes it away before anything is written, and
scans nothing of the partitions that it names.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from walrusmq.segments.files import Files
from walrusmq.segments.partition_folder import CHECKPOINT, TOPIC_ID_BYTES, PartitionFolder
from walrusmq.segments.small_files import read_whole, unwrap, wrap, write_whole

CHECKPOINT_INTERVAL_BYTES = 32 << 20
"""Log that a recovery may have to scan: a twentieth of a second, or half of one on a slow disk."""

MARKER_FILE = "segments.clean"
_VERSION = 1
_CHECKPOINT_KIND = b"WQcp"
_MARKER_KIND = b"WQcl"
_POINT = Struct("<QqqQqqQ")
_PARTITION = Struct(f"<{TOPIC_ID_BYTES}sI")


@dataclass(frozen=True, slots=True)
class TrustedPoint:
    """A batch boundary of an open segment, and what a scan from the start would have found out up to there.

    `producers` is an encoded snapshot of the producers at that point. Times are in ms; -1 stands for none.
    """

    segment_id: int
    first_offset: int
    end_offset: int
    position: int
    max_timestamp: int
    started_ms: int
    producers: bytes

    def encode(self) -> bytes:
        return (
            _POINT.pack(
                self.segment_id,
                self.first_offset,
                self.end_offset,
                self.position,
                self.max_timestamp,
                self.started_ms,
                len(self.producers),
            )
            + self.producers
        )


def _decode(data: bytes, at: int) -> tuple[TrustedPoint, int]:
    """The point that begins at `at`, and where it ends. The data passed the checksum of its file."""
    segment_id, first_offset, end_offset, position, max_timestamp, started_ms, size = _POINT.unpack_from(data, at)
    at += _POINT.size
    producers = data[at : at + size]
    return TrustedPoint(segment_id, first_offset, end_offset, position, max_timestamp, started_ms, producers), at + size


def read_checkpoint(files: Files, folder: PartitionFolder, segment_id: int, first_offset: int) -> TrustedPoint | None:
    """The segment's last checkpoint; None where there is none that checks out. Raises OSError."""
    data = read_whole(files, folder.file(segment_id, CHECKPOINT))
    payload = unwrap(_CHECKPOINT_KIND, _VERSION, data) if data else None
    if payload is None:
        return None
    point, _ = _decode(payload, 0)
    return point if (point.segment_id, point.first_offset) == (segment_id, first_offset) else None


def write_checkpoint(files: Files, folder: PartitionFolder, point: TrustedPoint) -> None:
    """Replace the segment's checkpoint. The log must be synced up to `point`. Raises OSError."""
    path = folder.file(point.segment_id, CHECKPOINT)
    write_whole(files, path, wrap(_CHECKPOINT_KIND, _VERSION, point.encode()))


Points = dict[tuple[bytes, int], TrustedPoint]
"""The exact ends of partitions by (topic id, partition)."""


def take_marker(files: Files, folder: str) -> Points:
    """What the last stop left, if it was clean; after that there is no marker any more. Raises OSError."""
    path = f"{folder}/{MARKER_FILE}"
    data = read_whole(files, path)
    if data is None:
        return {}
    files.unlink(path)
    files.sync_folder(folder)
    payload = unwrap(_MARKER_KIND, _VERSION, data)
    points: Points = {}
    at = 0
    while payload is not None and at < len(payload):
        topic_id, index = _PARTITION.unpack_from(payload, at)
        points[topic_id, index], at = _decode(payload, at + _PARTITION.size)
    return points


def leave_marker(files: Files, folder: str, points: Points) -> None:
    """Say that the stop was clean: what `points` name is synced, and nothing is written after this. Raises OSError."""
    payload = b"".join(_PARTITION.pack(*key) + point.encode() for key, point in points.items())
    write_whole(files, f"{folder}/{MARKER_FILE}", wrap(_MARKER_KIND, _VERSION, payload))
    files.sync_folder(folder)

"""The `.producers` file of a segment: what the partition remembered of producers at the segment's first offset.

With it a segment's files suffice by themselves. Where it is missing or doesn't check out, it is made again from the
segments before.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from struct import Struct

from walrusmq.protocol.records.scan import DamagedLog, scan_headers
from walrusmq.segments.facts import SealedSegment
from walrusmq.segments.files import Files
from walrusmq.segments.open_log import OpenLog
from walrusmq.segments.partition_folder import LOG, PRODUCERS, PartitionFolder
from walrusmq.segments.producers import Producers, Snapshot, decode_snapshot, encode_snapshot
from walrusmq.segments.small_files import read_whole, unwrap, wrap, write_whole

_KIND = b"WQpr"
_VERSION = 1
_FIRST_OFFSET = Struct("<q")

logger = logging.getLogger("walrusmq.segments")


def write_producers(
    files: Files, folder: PartitionFolder, segment_id: int, first_offset: int, snapshot: Snapshot
) -> None:
    """Put the state at the segment's first offset beside it. Raises OSError."""
    payload = _FIRST_OFFSET.pack(first_offset) + encode_snapshot(snapshot)
    write_whole(files, folder.file(segment_id, PRODUCERS), wrap(_KIND, _VERSION, payload))


def save_producers(files: Files, log: OpenLog, snapshot: Snapshot) -> None:
    """Write the state at the open segment's first offset, or keep it until that can be done."""
    try:
        write_producers(files, log.folder, log.facts.id, log.facts.first_offset, snapshot)
        files.sync_folder(log.folder.path)
        log.unwritten_producers = None
    except OSError as error:
        logger.warning("%s: what producers sent before couldn't be written: %s", log.file.path, error)
        log.unwritten_producers = snapshot


def remove_segments(files: Files, log: OpenLog, segments: Sequence[SealedSegment]) -> None:
    """Remove sealed segments that lie before the open one. Raises OSError."""
    if log.unwritten_producers is not None:
        save_producers(files, log, log.unwritten_producers)
    log.folder.remove_segments((facts.id, facts.generation) for facts in segments)


def read_producers(files: Files, folder: PartitionFolder, segment_id: int, first_offset: int) -> Snapshot | None:
    """The state at the segment's first offset; None where there is no file that checks out. Raises OSError."""
    data = read_whole(files, folder.file(segment_id, PRODUCERS))
    payload = unwrap(_KIND, _VERSION, data) if data else None
    if payload is None or _FIRST_OFFSET.unpack_from(payload) != (first_offset,):
        return None
    return decode_snapshot(payload[_FIRST_OFFSET.size :])


def load_producers(
    files: Files, log: OpenLog, sealed: Sequence[SealedSegment], producers: Producers, now_ms: int
) -> bool:
    """Fill `producers` with the state at the open segment's first offset; whether that took a scan of `sealed`.

    `sealed` is the chain before it. Raises OSError.
    """
    folder, segment = log.folder, log.facts
    snapshot = read_producers(files, folder, segment.id, segment.first_offset)
    begin = len(sealed)
    while snapshot is None and begin > 0:
        begin -= 1
        snapshot = read_producers(files, folder, sealed[begin].id, sealed[begin].first_offset)
    producers.restore(snapshot or [])
    for facts in sealed[begin:]:
        _observe(files, folder, facts, producers, now_ms)
    if begin == len(sealed):
        return False
    save_producers(files, log, producers.snapshot(now_ms))
    return True


def _observe(files: Files, folder: PartitionFolder, facts: SealedSegment, producers: Producers, now_ms: int) -> None:
    if not facts.size_bytes:
        return
    path = folder.file(facts.id, LOG, facts.generation)
    try:
        fd = files.open(path)
    except FileNotFoundError:
        logger.error("%s is missing: sequence numbers in it are forgotten", path)
        return
    try:
        for _, header in scan_headers(partial(files.pread, fd), 0, min(files.size(fd), facts.size_bytes)):
            producers.observe(header, now_ms)
    except DamagedLog as damage:
        logger.error("%s is damaged, sequence numbers behind that are forgotten: %s", path, damage)
    finally:
        files.close(fd)

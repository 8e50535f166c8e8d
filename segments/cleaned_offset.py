"""How far a partition has been compacted: a small file beside its segments. Without it all of them count as new."""

from __future__ import annotations

from struct import Struct

from walrusmq.segments.files import Files
from walrusmq.segments.partition_folder import PartitionFolder
from walrusmq.segments.small_files import read_whole, unwrap, wrap, write_whole

CLEANED_FILE = "cleaned"
_KIND = b"WQcc"
_VERSION = 1
_OFFSET = Struct("<q")


def read_cleaned_offset(files: Files, folder: PartitionFolder) -> int:
    """The offset before which all has been compacted; 0 where no file says so. Raises OSError."""
    data = read_whole(files, f"{folder.path}/{CLEANED_FILE}")
    payload = unwrap(_KIND, _VERSION, data) if data else None
    return 0 if payload is None else int(_OFFSET.unpack(payload)[0])


def write_cleaned_offset(files: Files, folder: PartitionFolder, offset: int) -> None:
    """Note that all before an offset has been compacted. Raises OSError."""
    write_whole(files, f"{folder.path}/{CLEANED_FILE}", wrap(_KIND, _VERSION, _OFFSET.pack(offset)))

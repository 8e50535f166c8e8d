"""The values of ``compression.type``: what a broker compresses batches with."""

from __future__ import annotations

from walrusmq.broker.setting_types import Choice
from walrusmq.protocol.records.compression import Codec, CodecMissing

AS_PRODUCED = "producer"
#: The codec for each value; None: whatever the producer took.
CODECS: dict[str, Codec | None] = {
    "uncompressed": Codec.NONE,
    "zstd": Codec.ZSTD,
    "lz4": Codec.LZ4,
    "snappy": Codec.SNAPPY,
    "gzip": Codec.GZIP,
    AS_PRODUCED: None,
}
COMPRESSION_TYPE = Choice(*CODECS)
#: Those that need the extra ``codecs``, and its library.
OF_EXTRA = frozenset((Codec.ZSTD, Codec.SNAPPY))
LIBRARY = "cramjam"


def missing_codec(value: str) -> CodecMissing | None:
    """What is missing for batches to be compressed so; None: nothing.

    A value that was taken once stays, though its library may have gone since: appends then say what is missing.
    """
    codec = CODECS[COMPRESSION_TYPE.parse(value)]
    if codec not in OF_EXTRA:
        return None
    from importlib.util import find_spec

    return CodecMissing(codec) if find_spec(LIBRARY) is None else None

"""Ids for new topics (KIP-516): random, and easy to handle in Kafka's tools."""

from __future__ import annotations

import os

ID_BYTES = 16
#: The first six bits of an id whose text, in URL-safe base64, begins with a dash: command lines take it for a flag.
DASH_BITS = 0b111110


def new_topic_id() -> bytes:
    """A random UUID (version 4), which is none of those that Kafka reserves."""
    while True:
        value = bytearray(os.urandom(ID_BYTES))
        value[6] = value[6] & 0x0F | 0x40
        value[8] = value[8] & 0x3F | 0x80
        if value[0] >> 2 != DASH_BITS:
            return bytes(value)

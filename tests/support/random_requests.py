"""Requests that make sense to a broker here and there: any API, any version, fields filled by chance.

Names, ids and batches are mostly such that a request gets beyond the first check; numbers are often extreme.
"""

from __future__ import annotations

import random
import struct
from typing import Any

from support.embedded import batch_of

from walrusmq.broker.dispatcher import HANDLER_MODULES
from walrusmq.protocol.codec import codec
from walrusmq.protocol.frames import request_header_version
from walrusmq.protocol.messages import API_BY_KEY
from walrusmq.protocol.messages.headers import RequestHeader
from walrusmq.protocol.primitives import Array, Bool, Bytes, Int8, Int16, Int32, Int64, Records, String, Uuid
from walrusmq.protocol.records.batch import Producer
from walrusmq.protocol.schema import Field, is_declared, schema_of

DELETE_TOPICS = 20
ROUTES = [
    (key, version)
    for key in sorted(HANDLER_MODULES)
    for version in range(API_BY_KEY[key].min_version, API_BY_KEY[key].max_version + 1)
]
"""Every API and version that is served."""

_NUMBER_BITS = {Int8: 8, Int16: 16, Int32: 32, Int64: 64}
_KEPT = "t"
_NAMES = [_KEPT, _KEPT, _KEPT, "u", "unknown", "", ".", "a/b", "é", "x" * 249, "x" * 250]
_CONFIGS = ["retention.ms", "max.message.bytes", "cleanup.policy", "no.such.config"]
_VALUES = ["1000", "-1", "delete", "compact", "", "1e9"]


class RandomRequests:
    """Makes frames from a seed. ``topic_id`` is that of the topic ``t``, which the broker has and shall keep."""

    def __init__(self, topic_id: bytes) -> None:
        self._topic_id = topic_id
        self._chance = random.Random()
        self._deletes = False

    def frame(self, key: int, version: int, seed: int) -> bytes:
        """A whole frame that any broker can decode."""
        self._chance = chance = random.Random(seed)
        self._deletes = key == DELETE_TOPICS
        header = RequestHeader(
            api_key=key,
            api_version=version,
            correlation_id=chance.randrange(1 << 31),
            client_id=chance.choice([None, "", "fuzz", "f" * 300]),
        )
        body = codec(RequestHeader, request_header_version(key, version)).encode(header)
        body += codec(API_BY_KEY[key].request, version).encode(self._structure(API_BY_KEY[key].request, version))
        return struct.pack(">i", len(body)) + body

    def _structure(self, cls: type, version: int) -> Any:
        given = {
            each.name: self._value(each, version)
            for each in schema_of(cls).fields
            if version in each.versions and not (each.tag is not None and self._chance.random() < 0.5)
        }
        return cls(**given)

    def _value(self, each: Field, version: int) -> Any:
        if version in each.nullable and self._chance.random() < 0.15:
            return None
        if isinstance(each.type, Array):
            return [self._element(each, each.type.element, version) for _ in range(self._chance.choice([0, 1, 1, 2]))]
        return self._element(each, each.type, version)

    def _element(self, each: Field, kind: Any, version: int) -> Any:
        if is_declared(kind):
            return self._structure(kind, version)
        chance = self._chance
        if kind is Bool:
            return chance.random() < 0.5
        if kind is String:
            return self._text(each.name)
        if kind is Uuid:
            known = bytes(16) if self._deletes else self._topic_id
            return chance.choice([known, known, bytes(16), chance.randbytes(16)])
        if kind is Records:
            return self._records()
        if kind is Bytes:
            return chance.randbytes(chance.randrange(20))
        return self._number(each.name, _NUMBER_BITS[kind])

    def _text(self, name: str) -> str:
        if "config" in name or name == "configuration_keys":
            return self._chance.choice(_CONFIGS)
        text = self._chance.choice(_VALUES if name == "value" else _NAMES)
        return "u" if text == _KEPT and self._deletes else text

    def _number(self, name: str, bits: int) -> int:
        chance = self._chance
        if name == "max_wait_ms":
            return chance.choice([-1, 0, 1, 20])
        if name == "num_partitions":
            return chance.choice([-1, 0, 1, 2, 2**31 - 1])
        if name == "partition_max_bytes":
            return chance.choice([-1, 0, 1, 1 << 20])
        extremes = [-(1 << bits - 1), (1 << bits - 1) - 1]
        return chance.choice([0, 0, 0, 1, 1, -1, -1, 2, 3, -2, -3, *extremes, chance.randrange(1 << bits - 1)])

    def _records(self) -> bytes:
        chance = self._chance
        values = [chance.randbytes(chance.randrange(200)) for _ in range(chance.randrange(1, 4))]
        producer = Producer(chance.choice([-1, 1, 2]), 0, chance.randrange(5))
        batch = bytearray(batch_of(*values) if producer.id < 0 else batch_of(*values, producer=producer))
        match chance.choice(["good", "good", "changed", "cut", "two", "none"]):
            case "changed":
                batch[chance.randrange(len(batch))] ^= 1 << chance.randrange(8)
            case "cut":
                del batch[chance.randrange(len(batch)) :]
            case "two":
                batch *= 2
            case "none":
                batch.clear()
        return bytes(batch)

"""What the members of a consumer group say that they want: the one protocol whose bytes the broker looks into."""

from __future__ import annotations

import struct

from walrusmq.protocol.codec import codec
from walrusmq.protocol.errors import MalformedMessage
from walrusmq.protocol.messages.consumer_protocol import ConsumerProtocolSubscription

CONSUMER_PROTOCOL_TYPE = "consumer"
NEWEST_SUBSCRIPTION_VERSION = 3


def topics_of(metadata: bytes) -> list[str] | None:
    """The topics in a member's subscription; None if it isn't one, which a client is free to do."""
    if len(metadata) < 2:
        return None
    (version,) = struct.unpack_from(">h", metadata)
    if version < 0:
        return None
    try:
        # later versions only add fields at the end
        decode = codec(ConsumerProtocolSubscription, min(version, NEWEST_SUBSCRIPTION_VERSION)).decode
        subscription, _ = decode(memoryview(metadata), 2)
    except MalformedMessage:
        return None
    topics: list[str] = subscription.topics
    return topics

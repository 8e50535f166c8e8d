"""DeleteTopics: delete topics by name or, from version 6, by id (KIP-4, KIP-516)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Int16, Int32, String, Uuid
from walrusmq.protocol.schema import field, message, struct


@struct
class DeleteTopicState:
    """A topic by name or by id, never both (KIP-516)."""

    name: str | None = field(String, "6+", nullable="6+", default=None)
    topic_id: bytes = field(Uuid, "6+")


@message(api_key=20, kind="request", versions="1-6", flexible="4+")
class DeleteTopicsRequest:
    """Delete topics: names up to version 5, names or ids from version 6 on."""

    topics: list[DeleteTopicState] = field(Array(DeleteTopicState), "6+")
    topic_names: list[str] = field(Array(String), "0-5", ignorable=True)
    timeout_ms: int = field(Int32, "0+")


@struct
class DeletableTopicResult:
    """What became of one topic."""

    name: str | None = field(String, "0+", nullable="6+")
    topic_id: bytes = field(Uuid, "6+", ignorable=True)
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "5+", nullable="5+", default=None, ignorable=True)


@message(api_key=20, kind="response", versions="1-6", flexible="4+")
class DeleteTopicsResponse:
    """The outcome for each topic."""

    throttle_time_ms: int = field(Int32, "1+", ignorable=True)
    responses: list[DeletableTopicResult] = field(Array(DeletableTopicResult), "0+")

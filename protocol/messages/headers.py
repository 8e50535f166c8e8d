"""What stands before the body in every frame (KIP-482 brought the flexible forms)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Int16, Int32, String
from walrusmq.protocol.schema import field, message


@message(api_key=None, kind="header", versions="1-2", flexible="2+")
class RequestHeader:
    """Which API in which version; ``client_id`` is never compact, so that a broker can read it in any version."""

    api_key: int = field(Int16, "0+", kafka_name="RequestApiKey")
    api_version: int = field(Int16, "0+", kafka_name="RequestApiVersion")
    correlation_id: int = field(Int32, "0+")
    client_id: str | None = field(String, "1+", nullable="1+", flexible="none")


@message(api_key=None, kind="header", versions="0-1", flexible="1+")
class ResponseHeader:
    """Which request this is the response to; they come in the order of the requests on a connection."""

    correlation_id: int = field(Int32, "0+")

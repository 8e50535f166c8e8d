"""What a handler is told about the request besides its content."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from walrusmq.broker.connection import Connection
    from walrusmq.broker.node import Node


@dataclass(slots=True)
class Context:
    """One per connection and API version, as long as requests of that version follow each other."""

    node: Node
    connection: Connection
    api_version: int
    client_id: str | None
    prepared: dict[Any, Any] = field(default_factory=dict)
    """What a handler keeps for the next request of this connection in this version; bounded by the handler."""

"""What a handler is told about the request besides its content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from walrusmq.broker.connection import Connection
    from walrusmq.broker.node import Node


@dataclass(slots=True)
class Context:
    """One per connection and API version: handlers read it, nobody changes it."""

    node: Node
    connection: Connection
    api_version: int
    client_id: str | None

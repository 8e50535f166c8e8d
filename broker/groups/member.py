"""A member of a group."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

Protocols = list[tuple[str, bytes]]
"""Names and metadata of the assignment protocols that a member can do, the one it likes best first."""


class GroupState(Enum):
    """Where a group is in its life; the values are Kafka's names."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(slots=True)
class Member:
    """A client in a group, until it leaves or its session ends."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    deadline_ms: int
    """When the session ends, unless the member is heard of before."""
    is_new: bool = True
    """It has never been answered a JoinGroup, and so can't send heartbeats."""
    assignment: bytes = b""
    protocol_type: str | None = None
    """What it joined with; the first member's is the group's."""

    def metadata(self, protocol: str | None) -> bytes:
        """What the member says about a protocol; empty if it can't do it."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

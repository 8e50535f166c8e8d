"""What a node allows its groups."""

from __future__ import annotations

from dataclasses import dataclass

#: Member ids that were handed out and not used yet (KIP-394); each is forgotten after its session timeout.
MAX_PENDING_MEMBERS = 10_000
#: How long a new member may wait for its first rebalance to end: it can't heartbeat meanwhile. Kafka's value.
NEW_MEMBER_PATIENCE_MS = 5 * 60 * 1000


@dataclass(slots=True, frozen=True)
class GroupLimits:
    """The settings ``group.min.session.timeout.ms``, ``group.max.session.timeout.ms`` and so on."""

    min_session_ms: int = 6_000
    max_session_ms: int = 1_800_000
    initial_delay_ms: int = 0
    max_size: int = 2_147_483_647

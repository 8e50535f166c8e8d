"""FindCoordinator: which node coordinates a group or a transactional id."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Int8, Int16, Int32, String
from walrusmq.protocol.schema import field, message, struct


@message(api_key=10, kind="request", versions="0-6", flexible="3+")
class FindCoordinatorRequest:
    """Ask for a coordinator; ``key_type`` is 0 group, 1 transaction, 2 share; a list from version 4 on (KIP-699)."""

    key: str = field(String, "0-3")
    key_type: int = field(Int8, "1+")
    coordinator_keys: list[str] = field(Array(String), "4+")


@struct
class Coordinator:
    """The coordinator of one key."""

    key: str = field(String, "4+")
    node_id: int = field(Int32, "4+")
    host: str = field(String, "4+")
    port: int = field(Int32, "4+")
    error_code: int = field(Int16, "4+")
    error_message: str | None = field(String, "4+", nullable="4+", ignorable=True)


@message(api_key=10, kind="response", versions="0-6", flexible="3+")
class FindCoordinatorResponse:
    """One coordinator up to version 3, a list from version 4 on."""

    throttle_time_ms: int = field(Int32, "1+", ignorable=True)
    error_code: int = field(Int16, "0-3")
    error_message: str | None = field(String, "1-3", nullable="1-3", ignorable=True)
    node_id: int = field(Int32, "0-3")
    host: str = field(String, "0-3")
    port: int = field(Int32, "0-3")
    coordinators: list[Coordinator] = field(Array(Coordinator), "4+")

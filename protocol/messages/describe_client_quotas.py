"""DescribeClientQuotas: the quotas of users, clients and addresses (KIP-546)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Bool, Float64, Int8, Int16, Int32, String
from walrusmq.protocol.schema import field, message, struct


@struct
class ComponentData:
    """A filter on one type of entity; ``match_type`` is 0 the exact name, 1 the default, 2 any named one."""

    entity_type: str = field(String, "0+")
    match_type: int = field(Int8, "0+")
    match: str | None = field(String, "0+", nullable="0+")


@message(api_key=48, kind="request", versions="0-1", flexible="1+")
class DescribeClientQuotasRequest:
    """Ask for quotas; ``strict`` leaves out those that have a type without a filter."""

    components: list[ComponentData] = field(Array(ComponentData), "0+")
    strict: bool = field(Bool, "0+")


@struct
class EntityData:
    """A part of whom a quota is for: a user, client id or address; null is the default."""

    entity_type: str = field(String, "0+")
    entity_name: str | None = field(String, "0+", nullable="0+")


@struct
class ValueData:
    """A quota and its limit."""

    key: str = field(String, "0+")
    value: float = field(Float64, "0+")


@struct
class EntryData:
    """The quotas of one combination of entities."""

    entity: list[EntityData] = field(Array(EntityData), "0+")
    values: list[ValueData] = field(Array(ValueData), "0+")


@message(api_key=48, kind="response", versions="0-1", flexible="1+")
class DescribeClientQuotasResponse:
    """The quotas that match, null with an error."""

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+")
    entries: list[EntryData] | None = field(Array(EntryData), "0+", nullable="0+")

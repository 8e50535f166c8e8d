"""DescribeClientQuotas: there are no quotas, so every filter that makes sense finds none (KIP-546)."""

from __future__ import annotations

from enum import IntEnum

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.protocol.errors import InvalidRequest, KafkaError, UnsupportedVersion
from walrusmq.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

IP = "ip"
ENTITY_TYPES = frozenset(("user", "client-id", IP))


class MatchType(IntEnum):
    """What a filter wants of an entity's name."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


@handles(DescribeClientQuotasRequest)
def describe_client_quotas(request: DescribeClientQuotasRequest, context: Context) -> DescribeClientQuotasResponse:
    """Refuse what Kafka refuses; else there is nothing to tell."""
    try:
        _check(request.components)
    except KafkaError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=str(error), entries=None)
    return DescribeClientQuotasResponse(error_message="", entries=[])


def _check(components: list[ComponentData]) -> None:
    """Raise InvalidRequest or UnsupportedVersion for the first fault, in Kafka's order."""
    seen: set[str] = set()
    for component in components:
        kind = component.entity_type
        if not kind:
            raise InvalidRequest("the type of an entity can't be empty")
        if kind in seen:
            raise InvalidRequest(f"entity type {kind} can't be in a filter more than once")
        if kind not in ENTITY_TYPES:
            raise UnsupportedVersion(f"there are no entities of type {kind}")
        _check_match(component)
        seen.add(kind)
    if IP in seen and len(seen) > 1:
        raise InvalidRequest("quotas are by ip or by user and client-id, so a filter can't have both")


def _check_match(component: ComponentData) -> None:
    if component.match_type not in MatchType.__members__.values():
        raise InvalidRequest(f"there is no match type {component.match_type}")
    if component.match_type == MatchType.EXACT:
        if component.match is None:
            raise InvalidRequest("an exact match needs a name to match")
    elif component.match is not None:
        raise InvalidRequest(f"match type {component.match_type} takes no name, and {component.match!r} is given")

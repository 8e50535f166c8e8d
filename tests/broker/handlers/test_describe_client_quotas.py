"""DescribeClientQuotas: no quotas, and filters that make no sense."""

from __future__ import annotations

from typing import Any

import pytest
from support.handler_fakes import FakeNode, answer

from walrusmq.broker.handlers.describe_client_quotas import describe_client_quotas
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest

Filter = tuple[str, int, str | None]
EXACT, DEFAULT, SPECIFIED = 0, 1, 2


def describe(*filters: Filter, version: int = 1, strict: bool = False) -> Any:
    parts = [ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in filters]
    request = DescribeClientQuotasRequest(components=parts, strict=strict)
    return answer(describe_client_quotas, request, FakeNode(), version)


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    "filters",
    [
        [],
        [("user", EXACT, "a")],
        [("user", SPECIFIED, None), ("client-id", DEFAULT, None)],
        [("ip", EXACT, "no address")],
        [("user", EXACT, "")],
    ],
)
def test_filters_that_make_sense_find_nothing(filters: list[Filter], version: int) -> None:
    response = describe(*filters, version=version, strict=True)
    assert (response.error_code, response.error_message, response.entries) == (0, "", [])


@pytest.mark.parametrize(
    ("filters", "code"),
    [
        ([("foo", EXACT, "a")], ErrorCode.UNSUPPORTED_VERSION),
        ([("user", EXACT, "a"), ("user", EXACT, "b")], ErrorCode.INVALID_REQUEST),
        ([("", EXACT, "a")], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, "x")], ErrorCode.INVALID_REQUEST),
        ([("user", SPECIFIED, "x")], ErrorCode.INVALID_REQUEST),
        ([("user", 9, None)], ErrorCode.INVALID_REQUEST),
        ([("ip", EXACT, "1.2.3.4"), ("user", EXACT, "a")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_filters_that_make_no_sense_are_refused_as_kafka_refuses_them(filters: list[Filter], code: ErrorCode) -> None:
    response = describe(*filters)
    assert (response.error_code, response.entries) == (code, None)
    assert response.error_message

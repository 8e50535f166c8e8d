"""The ACL requests: there is no authorizer, and each says so."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.embedded import Wire, running_node
from support.handler_fakes import FakeNode, answer

from walrusmq.broker.handlers.acls import create_acls, delete_acls, describe_acls
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from walrusmq.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from walrusmq.protocol.messages.describe_acls import DescribeAclsRequest

ANY = 1
VERSIONS = pytest.mark.parametrize("version", [1, 2, 3])


@VERSIONS
def test_describing_rules_says_that_security_is_disabled(version: int) -> None:
    request = DescribeAclsRequest(
        resource_type_filter=ANY,
        resource_name_filter=None,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    response = answer(describe_acls, request, FakeNode(), version)
    assert response.error_code == ErrorCode.SECURITY_DISABLED
    assert response.error_message == "No Authorizer is configured on the broker"
    assert response.resources == []


@VERSIONS
def test_each_rule_to_create_is_refused(version: int) -> None:
    rule = AclCreation(resource_type=2, resource_name="t", principal="User:a", host="*", operation=3, permission_type=3)
    response = answer(create_acls, CreateAclsRequest(creations=[rule, rule]), FakeNode(), version)
    refusal = (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    assert [(result.error_code, result.error_message) for result in response.results] == [refusal, refusal]


@VERSIONS
def test_each_filter_to_delete_by_is_refused(version: int) -> None:
    wanted = DeleteAclsFilter(
        resource_type_filter=ANY,
        resource_name_filter=None,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )
    response = answer(delete_acls, DeleteAclsRequest(filters=[wanted, wanted]), FakeNode(), version)
    refusal = (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.", 0)
    answered = [(each.error_code, each.error_message, len(each.matching_acls)) for each in response.filter_results]
    assert answered == [refusal, refusal]


def test_no_rules_and_no_filters_are_no_error() -> None:
    assert answer(create_acls, CreateAclsRequest(), FakeNode(), 3).results == []
    assert answer(delete_acls, DeleteAclsRequest(), FakeNode(), 3).filter_results == []


FILTER = {
    "resource_type_filter": ANY,
    "resource_name_filter": None,
    "principal_filter": None,
    "host_filter": None,
    "operation": ANY,
    "permission_type": ANY,
}
RULE = {
    "resource_type": 2,
    "resource_name": "t",
    "principal": "User:a",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}


def with_unknown(field: str) -> list[Any]:
    """A request of each kind that has the field, with 0 in it once."""
    requests: list[Any] = []
    if hasattr(DescribeAclsRequest(**FILTER), field):
        requests.append(DescribeAclsRequest(**{**FILTER, field: 0}))
        requests.append(
            DeleteAclsRequest(filters=[DeleteAclsFilter(**FILTER), DeleteAclsFilter(**{**FILTER, field: 0})])
        )
    if hasattr(AclCreation(**RULE), field):
        requests.append(CreateAclsRequest(creations=[AclCreation(**RULE), AclCreation(**{**RULE, field: 0})]))
    return requests


@VERSIONS
@pytest.mark.parametrize(
    "field",
    [
        "resource_type_filter",
        "pattern_type_filter",
        "resource_type",
        "resource_pattern_type",
        "operation",
        "permission_type",
    ],
)
def test_a_type_or_operation_that_is_unknown_closes_the_connection(tmp_path: Path, field: str, version: int) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            requests = with_unknown(field)
            assert requests
            for request in requests:
                async with await Wire.to(node) as wire:
                    wire.send(request, version)
                    assert await wire.is_closed_by_peer()

    asyncio.run(scenario())

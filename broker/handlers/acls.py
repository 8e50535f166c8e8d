"""DescribeAcls, CreateAcls and DeleteAcls as Kafka without an authorizer answers them: there are no rules to manage."""

from __future__ import annotations

from typing import Any

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import NO_ANSWER, handles
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from walrusmq.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from walrusmq.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

#: Kafka's own words, which consoles show.
NO_AUTHORIZER = "No Authorizer is configured."
NOTHING_TO_DESCRIBE = "No Authorizer is configured on the broker"
#: What no client may say of types and operations: it stands for what a newer one knows.
UNKNOWN = 0


@handles(DescribeAclsRequest)
def describe_acls(request: DescribeAclsRequest, context: Context) -> Any:
    """Answer that security is disabled, whatever is asked for."""
    if _is_unknown_filter(request):
        return _refuse(context)
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NOTHING_TO_DESCRIBE)


@handles(CreateAclsRequest)
def create_acls(request: CreateAclsRequest, context: Context) -> Any:
    """Refuse each rule."""
    if any(map(_is_unknown_rule, request.creations)):
        return _refuse(context)
    return CreateAclsResponse(
        results=[
            AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
            for _ in request.creations
        ]
    )


@handles(DeleteAclsRequest)
def delete_acls(request: DeleteAclsRequest, context: Context) -> Any:
    """Refuse each filter."""
    if any(map(_is_unknown_filter, request.filters)):
        return _refuse(context)
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
            for _ in request.filters
        ]
    )


def _is_unknown_filter(wanted: DescribeAclsRequest | DeleteAclsFilter) -> bool:
    return UNKNOWN in (
        wanted.resource_type_filter,
        wanted.pattern_type_filter,
        wanted.operation,
        wanted.permission_type,
    )


def _is_unknown_rule(rule: AclCreation) -> bool:
    return UNKNOWN in (rule.resource_type, rule.resource_pattern_type, rule.operation, rule.permission_type)


def _refuse(context: Context) -> object:
    """Close the connection, as Kafka does for what it can't read."""
    context.connection.refuse(f"an ACL request with a type or an operation that is unknown ({UNKNOWN})")
    return NO_ANSWER

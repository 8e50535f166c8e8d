"""DescribeAcls, CreateAcls and DeleteAcls as Kafka without an authorizer answers them: there are no rules to manage."""

from __future__ import annotations

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from walrusmq.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
from walrusmq.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

#: Kafka's own words, which consoles show.
NO_AUTHORIZER = "No Authorizer is configured."
NOTHING_TO_DESCRIBE = "No Authorizer is configured on the broker"


@handles(DescribeAclsRequest)
def describe_acls(request: DescribeAclsRequest, context: Context) -> DescribeAclsResponse:
    """Answer that security is disabled, whatever is asked for."""
    return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=NOTHING_TO_DESCRIBE)


@handles(CreateAclsRequest)
def create_acls(request: CreateAclsRequest, context: Context) -> CreateAclsResponse:
    """Refuse each rule."""
    return CreateAclsResponse(
        results=[
            AclCreationResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
            for _ in request.creations
        ]
    )


@handles(DeleteAclsRequest)
def delete_acls(request: DeleteAclsRequest, context: Context) -> DeleteAclsResponse:
    """Refuse each filter."""
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER)
            for _ in request.filters
        ]
    )

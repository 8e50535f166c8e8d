"""DescribeUserScramCredentials: nobody has any, and each user who is asked for is unknown (KIP-554)."""

from __future__ import annotations

from collections import Counter

from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


@handles(DescribeUserScramCredentialsRequest)
def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, context: Context
) -> DescribeUserScramCredentialsResponse:
    """No users, or null, means all who have credentials: none."""
    counts = Counter(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(
        error_message="", results=[_unknown(name, count) for name, count in counts.items()]
    )


def _unknown(name: str, count: int) -> DescribeUserScramCredentialsResult:
    if count > 1:
        code, message = ErrorCode.DUPLICATE_RESOURCE, f"the request names user {name} {count} times"
    else:
        code, message = ErrorCode.RESOURCE_NOT_FOUND, f"user {name} has no SCRAM credentials"
    return DescribeUserScramCredentialsResult(user=name, error_code=code, error_message=message)

"""DescribeUserScramCredentials: which SCRAM credentials users have (KIP-554)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Int8, Int16, Int32, String
from walrusmq.protocol.schema import field, message, struct


@struct
class UserName:
    """A user."""

    name: str = field(String, "0+")


@message(api_key=50, kind="request", versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest:
    """Ask about users; null or an empty list means all of them."""

    users: list[UserName] | None = field(Array(UserName), "0+", nullable="0+")


@struct
class CredentialInfo:
    """A credential without its secret; ``mechanism`` is 1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""

    mechanism: int = field(Int8, "0+")
    iterations: int = field(Int32, "0+")


@struct
class DescribeUserScramCredentialsResult:
    """The credentials of one user."""

    user: str = field(String, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+")
    credential_infos: list[CredentialInfo] = field(Array(CredentialInfo), "0+")


@message(api_key=50, kind="response", versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse:
    """The credentials by user."""

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "0+")
    error_message: str | None = field(String, "0+", nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = field(Array(DescribeUserScramCredentialsResult), "0+")

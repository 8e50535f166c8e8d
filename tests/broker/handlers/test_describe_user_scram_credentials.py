"""DescribeUserScramCredentials: nobody has any."""

from __future__ import annotations

from typing import Any

import pytest
from support.handler_fakes import FakeNode, answer

from walrusmq.broker.handlers.describe_user_scram_credentials import describe_user_scram_credentials
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest, UserName


def describe(names: list[str] | None) -> Any:
    users = None if names is None else [UserName(name=name) for name in names]
    return answer(describe_user_scram_credentials, DescribeUserScramCredentialsRequest(users=users), FakeNode(), 0)


@pytest.mark.parametrize("names", [None, []])
def test_all_users_are_none(names: list[str] | None) -> None:
    response = describe(names)
    assert (response.error_code, response.error_message, response.results) == (0, "", [])


def test_each_user_is_unknown_and_one_who_is_named_twice_is_refused_once() -> None:
    response = describe(["a", "b", "a", ""])
    assert response.error_code == 0
    assert [(each.user, each.error_code, each.credential_infos) for each in response.results] == [
        ("a", ErrorCode.DUPLICATE_RESOURCE, []),
        ("b", ErrorCode.RESOURCE_NOT_FOUND, []),
        ("", ErrorCode.RESOURCE_NOT_FOUND, []),
    ]
    assert all(each.error_message for each in response.results)

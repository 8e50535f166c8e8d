"""ListConfigResources: the topics and nodes, by type."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from support.handler_fakes import FakeNode

from walrusmq.broker.commands import CreateTopic, NewPartition
from walrusmq.broker.handlers.list_config_resources import list_config_resources
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

TOPIC, NODE, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


def ask(types: list[int], version: int = 1) -> ListConfigResourcesResponse:
    node = FakeNode()
    node.apply(CreateTopic(topic_id=bytes(15) + b"t", name="t", partitions=[NewPartition(assigned=[1])]))
    context: Any = SimpleNamespace(node=node, api_version=version)
    return list_config_resources(ListConfigResourcesRequest(resource_types=types), context)


@pytest.mark.parametrize(
    ("types", "listed"),
    [
        ([], [(NODE, "1"), (TOPIC, "t")]),
        ([TOPIC], [(TOPIC, "t")]),
        ([TOPIC, TOPIC], [(TOPIC, "t")]),
        ([NODE, TOPIC], [(NODE, "1"), (TOPIC, "t")]),
        ([LOGGER], []),
        ([METRICS], []),
        ([GROUP], []),
    ],
)
def test_the_resources_of_the_types_that_are_asked_for_are_listed(
    types: list[int], listed: list[tuple[int, str]]
) -> None:
    answer = ask(types)
    assert answer.error_code == 0
    assert [(each.resource_type, each.resource_name) for each in answer.config_resources] == listed


@pytest.mark.parametrize("types", [[0], [99], [TOPIC, 99]])
def test_a_type_that_isnt_known_is_refused(types: list[int]) -> None:
    answer = ask(types)
    assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])


def test_version_0_asks_for_client_metrics_subscriptions_and_there_are_none() -> None:
    answer = ask([], version=0)
    assert (answer.error_code, answer.config_resources) == (0, [])

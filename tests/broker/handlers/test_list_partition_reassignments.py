"""ListPartitionReassignments: nothing moves."""

from __future__ import annotations

import pytest
from support.handler_fakes import FakeNode, answer

from walrusmq.broker.handlers.list_partition_reassignments import list_partition_reassignments
from walrusmq.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)


@pytest.mark.parametrize("topics", [None, [], [ListPartitionReassignmentsTopics(name="none", partition_indexes=[9])]])
def test_no_partition_moves_whatever_is_asked_for(topics: list[ListPartitionReassignmentsTopics] | None) -> None:
    request = ListPartitionReassignmentsRequest(topics=topics, timeout_ms=0)
    response = answer(list_partition_reassignments, request, FakeNode(), 0)
    assert (response.error_code, response.error_message, response.topics) == (0, None, [])

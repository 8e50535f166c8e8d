"""AlterConfigs and IncrementalAlterConfigs: change configs of topics and nodes (KIP-133, KIP-339, KIP-226)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from walrusmq.broker.config_changes import Change, ConfigPlanner, Operation, Wish, check_change_total
from walrusmq.broker.context import Context
from walrusmq.broker.dispatcher import handles
from walrusmq.broker.proposals import propose_each
from walrusmq.protocol.errors import ErrorCode, InvalidRequest, KafkaError, PolicyViolation
from walrusmq.protocol.messages import alter_configs as whole
from walrusmq.protocol.messages import incremental_alter_configs as single

if TYPE_CHECKING:
    from walrusmq.broker.node import Node

#: How long the metadata log may take: these requests name no time of their own.
PROPOSAL_TIMEOUT_MS = 30_000


@handles(single.IncrementalAlterConfigsRequest)
async def incremental_alter_configs(
    request: single.IncrementalAlterConfigsRequest, context: Context
) -> single.IncrementalAlterConfigsResponse:
    """Make single changes. Each resource is answered by itself: of its changes all are made, or none."""
    wishes = [
        Wish(
            resource.resource_type,
            resource.resource_name,
            [Change(config.name, config.config_operation, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]
    answers = _answers(wishes, await _alter(wishes, request.validate_only, context.node))
    return single.IncrementalAlterConfigsResponse(
        responses=[single.AlterConfigsResourceResponse(**answer) for answer in answers]
    )


@handles(whole.AlterConfigsRequest)
async def alter_configs(request: whole.AlterConfigsRequest, context: Context) -> whole.AlterConfigsResponse:
    """Replace all that was set on each resource by what is given."""
    wishes = [
        Wish(
            resource.resource_type,
            resource.resource_name,
            [Change(config.name, Operation.SET, config.value) for config in resource.configs],
            is_whole=True,
        )
        for resource in request.resources
    ]
    answers = _answers(wishes, await _alter(wishes, request.validate_only, context.node))
    return whole.AlterConfigsResponse(responses=[whole.AlterConfigsResourceResponse(**answer) for answer in answers])


def _answers(wishes: Sequence[Wish], outcomes: Sequence[KafkaError | None]) -> Iterator[dict[str, Any]]:
    """The fields of each resource's answer, which both requests give."""
    for wish, error in zip(wishes, outcomes, strict=True):
        yield {
            "error_code": ErrorCode.NONE if error is None else error.code,
            "error_message": None if error is None else str(error),
            "resource_type": wish.resource_type,
            "resource_name": wish.resource_name,
        }


async def _alter(wishes: Sequence[Wish], validate_only: bool, node: Node) -> list[KafkaError | None]:
    """What became of each wish: None if it came true, or with ``validate_only`` would."""
    try:
        check_change_total(wishes)
    except PolicyViolation as refusal:
        return [refusal] * len(wishes)
    planner = ConfigPlanner(node.image, node.settings, node.node_id)
    counts = Counter((wish.resource_type, wish.resource_name) for wish in wishes)
    outcomes: list[KafkaError | None] = [None] * len(wishes)
    wanted: dict[int, Wish] = {}
    for place, wish in enumerate(wishes):
        if counts[wish.resource_type, wish.resource_name] > 1:
            outcomes[place] = InvalidRequest(f"the request has resource {wish.resource_name!r} more than once")
        elif validate_only:
            outcomes[place] = _fault(planner, wish)
        else:
            wanted[place] = wish
    results = await propose_each(partial(_make_true, node, planner), list(wanted.values()), PROPOSAL_TIMEOUT_MS)
    for place, result in zip(wanted, results, strict=True):
        outcomes[place] = result
    return outcomes


def _fault(planner: ConfigPlanner, wish: Wish) -> KafkaError | None:
    try:
        planner.plan(wish)
    except KafkaError as error:
        return error
    return None


async def _make_true(node: Node, planner: ConfigPlanner, wish: Wish) -> None:
    """Make the changes to what stands there once those that came before are made. Raises a KafkaError."""
    async with node.config_locks.of(wish.resource_type, wish.resource_name):
        command = planner.plan(wish)
        if command.configs:
            await node.propose(command)

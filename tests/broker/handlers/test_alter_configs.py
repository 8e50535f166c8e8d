"""AlterConfigs and IncrementalAlterConfigs against a node: changes take effect, are shown, and last."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.clocks import MovedClock
from support.embedded import Wire, batch_of, create_topic, produce, running_node
from support.handler_fakes import FakeContext, FakeNode
from support.reading import only_partition

from walrusmq.broker.commands import CreateTopic, NewPartition
from walrusmq.broker.config_changes import Operation
from walrusmq.broker.handlers import alter_configs
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages import alter_configs as whole
from walrusmq.protocol.messages import incremental_alter_configs as single
from walrusmq.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from walrusmq.protocol.records.batch import Producer

TOPIC, NODE = 2, 4
TOPIC_SOURCE, NODE_SOURCE, ALL_NODES_SOURCE, DEFAULT_SOURCE = 1, 2, 3, 5
Shown = list[tuple[str | None, int]]


def change(kind: int, name: str, **values: str | None) -> single.AlterConfigsResource:
    """Set these configs, with underscores for dots; None deletes."""
    configs = [
        single.AlterableConfig(
            name=key.replace("_", "."),
            config_operation=Operation.DELETE if value is None else Operation.SET,
            value=value,
        )
        for key, value in values.items()
    ]
    return single.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


async def alter(wire: Wire, *resources: single.AlterConfigsResource, **options: Any) -> list[int]:
    request = single.IncrementalAlterConfigsRequest(resources=list(resources), **options)
    answer = await wire.ask(request, 1)
    for response in answer.responses:
        assert (response.error_message is None) is (response.error_code == 0)
    return [response.error_code for response in answer.responses]


async def append_word(wire: Wire, kind: int, name: str, config: str, word: str) -> int:
    """Append one word to a list."""
    config_change = single.AlterableConfig(name=config, config_operation=Operation.APPEND, value=word)
    resource = single.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config_change])
    (code,) = await alter(wire, resource)
    return code


async def replace(wire: Wire, kind: int, name: str, **values: str | None) -> int:
    configs = [whole.AlterableConfig(name=key.replace("_", "."), value=value) for key, value in values.items()]
    resource = whole.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    (response,) = (await wire.ask(whole.AlterConfigsRequest(resources=[resource]), 2)).responses
    assert (response.resource_type, response.resource_name) == (kind, name)
    code: int = response.error_code
    return code


async def shown(wire: Wire, kind: int, name: str, config: str) -> tuple[str | None, int, Shown]:
    """A config's value, its source and its synonyms' values and sources."""
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=[config])
    answer = await wire.ask(DescribeConfigsRequest(resources=[resource], include_synonyms=True), 4)
    (row,) = answer.results[0].configs
    return row.value, row.config_source, [(synonym.value, synonym.source) for synonym in row.synonyms]


async def put(wire: Wire, size_bytes: int) -> int:
    request = produce("t", batch_of(b"x" * size_bytes))
    code: int = only_partition(await wire.ask(request, 9)).error_code
    return code


def test_a_topics_change_takes_effect_at_once_and_outlasts_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            assert await alter(wire, change(TOPIC, "t", max_message_bytes="1000")) == [0]
            assert await put(wire, 2000) == ErrorCode.MESSAGE_TOO_LARGE
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            assert (await shown(wire, TOPIC, "t", "max.message.bytes"))[:2] == ("1000", TOPIC_SOURCE)
            assert await put(wire, 2000) == ErrorCode.MESSAGE_TOO_LARGE
            assert await alter(wire, change(TOPIC, "t", max_message_bytes=None)) == [0]
            assert await put(wire, 2000) == 0

    asyncio.run(scenario())


def test_a_nodes_change_reaches_topics_without_a_value_of_their_own_and_outlasts_a_restart(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            await create_topic(wire, "own", max_message_bytes="5000")
            assert await alter(wire, change(NODE, "1", message_max_bytes="1000")) == [0]
            assert await put(wire, 2000) == ErrorCode.MESSAGE_TOO_LARGE
            assert node.led.by_name["own"][0].config.max_message_bytes == 5000
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            assert await put(wire, 2000) == ErrorCode.MESSAGE_TOO_LARGE
            levels: Shown = [("1000", NODE_SOURCE), ("1048588", DEFAULT_SOURCE)]
            assert await shown(wire, NODE, "1", "message.max.bytes") == ("1000", NODE_SOURCE, levels)
            assert await shown(wire, TOPIC, "t", "max.message.bytes") == ("1000", NODE_SOURCE, levels)

    asyncio.run(scenario())


def test_a_nodes_own_value_wins_over_that_of_all_nodes_and_both_over_what_it_was_started_with(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, log_retention_ms="1000") as node, await Wire.to(node) as wire:
            everywhere = change(NODE, "", log_retention_ms="2000")
            assert await alter(wire, everywhere, change(NODE, "1", log_retention_ms="3000")) == [0, 0]
            assert node.settings.log_retention_ms == 3000
            levels: Shown = [("3000", 2), ("2000", 3), ("1000", 4), ("604800000", 5)]
            assert await shown(wire, NODE, "1", "log.retention.ms") == ("3000", NODE_SOURCE, levels)
            assert await shown(wire, NODE, "", "log.retention.ms") == ("2000", ALL_NODES_SOURCE, [("2000", 3)])
            assert await alter(wire, change(NODE, "1", log_retention_ms=None)) == [0]
            assert node.settings.log_retention_ms == 2000
            assert await alter(wire, change(NODE, "", log_retention_ms=None)) == [0]
            assert node.settings.log_retention_ms == 1000

    asyncio.run(scenario())


def test_the_settings_that_a_node_was_given_arent_changed_with_its_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            assert await alter(wire, change(NODE, "1", max_connections="7", log_roll_ms="9")) == [0]
            assert node.listener.limits.connections == 7
            assert node.settings.value_at_start("max.connections") == 10_000

    asyncio.run(scenario())


def test_of_one_resources_changes_all_are_made_or_none_and_resources_dont_hold_each_other_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            await create_topic(wire, "u")
            codes = await alter(
                wire,
                change(TOPIC, "t", segment_ms="7000", retention_ms="x"),
                change(TOPIC, "none", segment_ms="7000"),
                change(TOPIC, "u", segment_ms="7000"),
            )
            assert codes == [ErrorCode.INVALID_CONFIG, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0]
            assert node.image.topics_by_name["t"].configs == {}
            assert node.image.topics_by_name["u"].configs == {"segment.ms": "7000"}

    asyncio.run(scenario())


def test_a_resource_that_is_named_twice_is_refused_both_times(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            one = change(TOPIC, "t", segment_ms="7000")
            assert await alter(wire, one, one) == [ErrorCode.INVALID_REQUEST] * 2
            assert node.image.topics_by_name["t"].configs == {}

    asyncio.run(scenario())


def test_validate_only_says_what_would_happen_and_changes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")
            index = node.image.applied_index
            good, bad = change(TOPIC, "t", segment_ms="7000"), change(NODE, "", log_roll_ms="x")
            assert await alter(wire, good, bad, validate_only=True) == [0, ErrorCode.INVALID_REQUEST]
            assert node.image.applied_index == index

    asyncio.run(scenario())


def test_the_old_form_replaces_all_that_was_set(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t", retention_ms="5000", segment_ms="6000")
            assert await replace(wire, TOPIC, "t", segment_ms="7000", flush_ms="8") == 0
            assert node.image.topics_by_name["t"].configs == {"segment.ms": "7000", "flush.ms": "8"}
            assert await replace(wire, TOPIC, "t", segment_ms="x") == ErrorCode.INVALID_CONFIG
            assert await replace(wire, TOPIC, "t", segment_ms=None) == ErrorCode.INVALID_REQUEST
            assert await replace(wire, TOPIC, "t") == 0
            assert node.image.topics_by_name["t"].configs == {}
            assert await replace(wire, NODE, "", log_roll_ms="7000") == 0
            assert await replace(wire, NODE, "") == 0
            assert node.image.node_configs == {}

    asyncio.run(scenario())


@pytest.mark.parametrize(("kind", "name", "config"), [(TOPIC, "t", "cleanup.policy"), (NODE, "", "log.cleanup.policy")])
def test_of_words_that_are_appended_at_the_same_time_none_is_lost(
    tmp_path: Path, kind: int, name: str, config: str
) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node, await Wire.to(node) as one, await Wire.to(node) as other:
            await create_topic(one, "t")
            for _ in range(20):
                assert await alter(one, change(kind, name, **{config.replace(".", "_"): ""})) == [0]
                both = append_word(one, kind, name, config, "compact"), append_word(other, kind, name, config, "delete")
                assert await asyncio.gather(*both) == [0, 0]
                value, _, _ = await shown(one, kind, name, config)
                assert value is not None
                assert set(value.split(",")) == {"compact", "delete"}

    asyncio.run(scenario())


def test_a_change_whose_client_was_told_of_a_timeout_comes_before_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may still take effect, so what is planned after it must see it."""
    monkeypatch.setattr(alter_configs, "PROPOSAL_TIMEOUT_MS", 10)

    async def scenario() -> None:
        node = FakeNode()
        topic = CreateTopic(topic_id=b"t" * 16, name="t", partitions=[NewPartition(assigned=[1])])
        node.apply(topic)
        node.hold = asyncio.Event()

        def append(word: str) -> single.IncrementalAlterConfigsRequest:
            config_change = single.AlterableConfig(name="cleanup.policy", config_operation=Operation.APPEND, value=word)
            resource = single.AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=[config_change])
            return single.IncrementalAlterConfigsRequest(resources=[resource])

        context: Any = FakeContext(node, 1)
        late = await alter_configs.incremental_alter_configs(append("compact"), context)
        assert late.responses[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        monkeypatch.setattr(alter_configs, "PROPOSAL_TIMEOUT_MS", 30_000)
        following = asyncio.ensure_future(alter_configs.incremental_alter_configs(append("delete"), context))
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(node.proposed) == 1, "the second isn't planned yet"
        node.hold.set()
        assert (await following).responses[0].error_code == 0
        assert node.image.topics_by_name["t"].configs == {"cleanup.policy": "delete,compact"}
        assert len(node.proposed) == 2

    asyncio.run(scenario())


def test_how_long_producers_are_remembered_can_be_changed(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = MovedClock()
        async with running_node(tmp_path, clock=clock) as node, await Wire.to(node) as wire:
            await create_topic(wire, "t")

            async def send(sequence: int) -> int:
                request = produce("t", batch_of(b"x", producer=Producer(7, 0, sequence)))
                code: int = only_partition(await wire.ask(request, 9)).error_code
                return code

            assert await send(0) == 0
            clock.ms += 5000
            assert await send(9) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            assert await alter(wire, change(NODE, "", producer_id_expiration_ms="4000")) == [0]
            assert await send(9) == 0, "the producer is forgotten, and may begin anywhere"
            await create_topic(wire, "u")
            assert node.led.by_name["u"][0].producers.expiration_ms == 4000
        async with running_node(tmp_path, clock=clock) as node:
            assert node.led.by_name["t"][0].producers.expiration_ms == 4000

    asyncio.run(scenario())

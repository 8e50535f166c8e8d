"""DescribeConfigs: topics and this node, as Kafka's tools expect them, and nothing that isn't true."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from walrusmq.broker.handlers.describe_configs import describe_configs
from walrusmq.broker.settings import SETTINGS, Settings
from walrusmq.broker.topic_configs import TOPIC_CONFIGS
from walrusmq.protocol.errors import ErrorCode
from walrusmq.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)

TOPIC, NODE = 2, 4
TOPIC_SOURCE, START_SOURCE, DEFAULT_SOURCE = 1, 4, 5
BOOLEAN, STRING, INT, LONG, LIST = 1, 2, 3, 5, 7

Configs = dict[str, DescribeConfigsResourceResult]
#: Those of our settings that Kafka 4.4's DescribeConfigs doesn't call read-only.
CHANGEABLE_IN_KAFKA = frozenset(
    (
        "compression.type",
        "log.cleaner.backoff.ms",
        "log.cleaner.delete.retention.ms",
        "log.cleaner.max.compaction.lag.ms",
        "log.cleaner.min.cleanable.ratio",
        "log.cleaner.min.compaction.lag.ms",
        "log.cleanup.policy",
        "log.flush.interval.messages",
        "log.flush.interval.ms",
        "log.message.timestamp.after.max.ms",
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.type",
        "log.retention.bytes",
        "log.retention.ms",
        "log.roll.ms",
        "log.segment.bytes",
        "max.connections",
        "max.connections.per.ip",
        "message.max.bytes",
        "producer.id.expiration.ms",
    )
)


class Asker:
    """A node's worth of settings and topics, to be asked as a client would."""

    def __init__(self, **given: str) -> None:
        settings = Settings.load({name.replace("_", "."): text for name, text in given.items()})
        topics = {
            "plain": SimpleNamespace(configs={}),
            "own": SimpleNamespace(configs={"retention.ms": "5000", "max.message.bytes": " +3000"}),
        }
        node = SimpleNamespace(
            settings=settings,
            image=SimpleNamespace(topics_by_name=topics),
            node_id=7,
            cluster_id="MkU3OEVBNTcwNTJENDM2Qg",
        )
        self._context: Any = SimpleNamespace(node=node)

    def ask_all(self, *resources: DescribeConfigsResource, **options: bool) -> list[DescribeConfigsResult]:
        return describe_configs(DescribeConfigsRequest(resources=list(resources), **options), self._context).results

    def ask(
        self, kind: int, name: str, keys: list[str] | None = None, **options: bool
    ) -> tuple[DescribeConfigsResult, Configs]:
        resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        (result,) = self.ask_all(resource, **options)
        assert (result.resource_type, result.resource_name) == (kind, name)
        configs = {config.name: config for config in result.configs}
        assert len(configs) == len(result.configs)
        return result, configs


def test_all_configs_of_a_topic_are_described() -> None:
    result, configs = Asker().ask(TOPIC, "plain")
    assert (result.error_code, result.error_message) == (ErrorCode.NONE, "")
    assert set(configs) == set(TOPIC_CONFIGS)
    assert {config.config_source for config in configs.values()} == {DEFAULT_SOURCE}
    assert not any(config.is_sensitive or config.read_only for config in configs.values())
    assert not any(config.synonyms or config.documentation for config in configs.values())


@pytest.mark.parametrize(
    ("name", "value", "config_type"),
    [
        ("cleanup.policy", "delete", LIST),
        ("compression.type", "producer", STRING),
        ("flush.messages", "9223372036854775807", LONG),
        ("flush.ms", "9223372036854775807", LONG),
        ("max.message.bytes", "1048588", INT),
        ("message.timestamp.after.max.ms", "3600000", LONG),
        ("message.timestamp.before.max.ms", "9223372036854775807", LONG),
        ("message.timestamp.type", "CreateTime", STRING),
        ("min.insync.replicas", "1", INT),
        ("retention.bytes", "-1", LONG),
        ("retention.ms", "604800000", LONG),
        ("segment.bytes", "1073741824", INT),
        ("segment.ms", "604800000", LONG),
    ],
)
def test_a_topics_defaults_and_types_are_kafkas(name: str, value: str, config_type: int) -> None:
    config = Asker().ask(TOPIC, "plain")[1][name]
    assert (config.value, config.config_type) == (value, config_type)


def test_a_topics_own_value_comes_first_and_is_shown_as_it_is_read() -> None:
    config = Asker(message_max_bytes="2000").ask(TOPIC, "own", include_synonyms=True)[1]["max.message.bytes"]
    assert (config.value, config.config_source) == ("3000", TOPIC_SOURCE)
    assert [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms] == [
        ("max.message.bytes", "3000", TOPIC_SOURCE),
        ("message.max.bytes", "2000", START_SOURCE),
        ("message.max.bytes", "1048588", DEFAULT_SOURCE),
    ]


def test_what_the_node_was_started_with_shows_in_topics_that_say_nothing() -> None:
    config = Asker(log_retention_ms="60000").ask(TOPIC, "plain")[1]["retention.ms"]
    assert (config.value, config.config_source) == ("60000", START_SOURCE)


def test_documentation_comes_when_asked_for() -> None:
    for kind, name in ((TOPIC, "plain"), (NODE, "7")):
        configs = Asker().ask(kind, name, include_documentation=True)[1]
        assert all(config.documentation for config in configs.values())


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["retention.ms", "cleanup.policy"], {"retention.ms", "cleanup.policy"}),
        (["retention.ms", "retention.ms"], {"retention.ms"}),
        (["no.such.key"], set()),
        ([], set(TOPIC_CONFIGS)),
    ],
)
def test_keys_choose_configs_and_no_keys_mean_all(keys: list[str], expected: set[str]) -> None:
    result, configs = Asker().ask(TOPIC, "plain", keys)
    assert result.error_code == ErrorCode.NONE
    assert set(configs) == expected


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NODE, "8", ErrorCode.INVALID_REQUEST),
        (NODE, "-1", ErrorCode.INVALID_REQUEST),
        (NODE, "abc", ErrorCode.INVALID_REQUEST),
        (NODE, " 7", ErrorCode.INVALID_REQUEST),
        (8, "7", ErrorCode.INVALID_REQUEST),
        (16, "x", ErrorCode.INVALID_REQUEST),
        (32, "g", ErrorCode.INVALID_REQUEST),
        (0, "x", ErrorCode.INVALID_REQUEST),
        (77, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cant_be_described_gets_kafkas_code_and_a_reason(kind: int, name: str, code: ErrorCode) -> None:
    result, configs = Asker().ask(kind, name)
    assert result.error_code == code
    assert result.error_message
    assert not configs


def test_one_resource_that_cant_be_described_doesnt_keep_the_others_back() -> None:
    resources = [DescribeConfigsResource(resource_type=TOPIC, resource_name=name) for name in ("none", "plain")]
    results = Asker().ask_all(*resources)
    assert [result.error_code for result in results] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]
    assert Asker().ask_all() == []


@pytest.mark.parametrize("name", ["7", "07", "+7", "\u0667"])
def test_the_node_is_named_by_its_id(name: str) -> None:
    assert Asker().ask(NODE, name)[1]["node.id"].value == "7"


def test_nothing_is_set_for_the_whole_cluster() -> None:
    result, configs = Asker().ask(NODE, "")
    assert (result.error_code, configs) == (ErrorCode.NONE, {})


@pytest.mark.parametrize(
    ("name", "value", "config_type"),
    [
        ("auto.create.topics.enable", "true", BOOLEAN),
        ("broker.id", "7", INT),
        ("compression.type", "producer", STRING),
        ("connections.max.idle.ms", "600000", LONG),
        ("default.replication.factor", "1", INT),
        ("delete.topic.enable", "true", BOOLEAN),
        ("fetch.max.bytes", "57671680", INT),
        ("log.cleanup.policy", "delete", LIST),
        ("log.flush.interval.messages", "9223372036854775807", LONG),
        ("log.message.timestamp.type", "CreateTime", STRING),
        ("log.retention.bytes", "-1", LONG),
        ("log.retention.hours", "168", INT),
        ("log.retention.ms", "604800000", LONG),
        ("max.incremental.fetch.session.cache.slots", "1000", INT),
        ("message.max.bytes", "1048588", INT),
        ("min.insync.replicas", "1", INT),
        ("num.partitions", "1", INT),
        ("producer.id.expiration.ms", "86400000", INT),
        ("unclean.leader.election.enable", "false", BOOLEAN),
    ],
)
def test_what_clients_read_from_a_broker_is_there_under_kafkas_name(name: str, value: str, config_type: int) -> None:
    config = Asker().ask(NODE, "7")[1][name]
    assert (config.value, config.config_type, config.config_source) == (value, config_type, DEFAULT_SOURCE)


def test_every_setting_is_described_and_those_that_cant_be_changed_while_the_node_runs_are_read_only() -> None:
    configs = Asker().ask(NODE, "7")[1]
    assert set(SETTINGS) <= set(configs)
    changeable = {name for name, setting in SETTINGS.items() if setting.is_changeable}
    assert {name for name, config in configs.items() if not config.read_only} == changeable


def test_what_can_be_changed_while_the_node_runs_is_what_kafka_lets_one_change() -> None:
    kafkas = {name for name, setting in SETTINGS.items() if setting.is_kafkas}
    configs = Asker().ask(NODE, "7")[1]
    assert {name for name in kafkas if not configs[name].read_only} == kafkas & CHANGEABLE_IN_KAFKA


def test_a_setting_shows_its_value_and_the_default_behind_it() -> None:
    config = Asker(num_partitions="3").ask(NODE, "7", ["num.partitions"], include_synonyms=True)[1]["num.partitions"]
    assert (config.value, config.config_source) == ("3", START_SOURCE)
    assert [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms] == [
        ("num.partitions", "3", START_SOURCE),
        ("num.partitions", "1", DEFAULT_SOURCE),
    ]


def test_settings_that_were_left_open_show_what_the_node_took() -> None:
    configs = Asker().ask(NODE, "7")[1]
    assert configs["node.id"].value == "7"
    assert configs["cluster.id"].value == "MkU3OEVBNTcwNTJENDM2Qg"
    assert configs["max.open.files"].value == str(Settings().max_open_files)
    assert configs["broker.rack"].value is None


@pytest.mark.parametrize(("age_ms", "hours"), [("3600000", "1"), ("-1", "-1"), ("0", "0"), ("5000", None)])
def test_retention_in_hours_is_shown_where_it_is_true(age_ms: str, hours: str | None) -> None:
    configs = Asker(log_retention_ms=age_ms).ask(NODE, "7")[1]
    shown = configs.get("log.retention.hours")
    assert (shown.value if shown else None) == hours
    assert shown is None or shown.config_source == START_SOURCE


@pytest.mark.parametrize(("age_ms", "hours"), [("7200000", "2"), ("7200001", None)])
def test_the_roll_time_in_hours_is_shown_where_it_is_true(age_ms: str, hours: str | None) -> None:
    shown = Asker(log_roll_ms=age_ms).ask(NODE, "7")[1].get("log.roll.hours")
    assert (shown.value if shown else None) == hours

"""Topic settings: Kafka's ranges, only what has an effect, and the way they become a log's settings."""

from __future__ import annotations

import pytest

from walrusmq.broker.compression_types import CODECS
from walrusmq.broker.config_rows import ConfigSource, Synonym
from walrusmq.broker.settings import Settings
from walrusmq.broker.topic_configs import (
    SHORTEST_SEGMENT_MS,
    TOPIC_CONFIGS,
    UNSUPPORTED,
    Compaction,
    Retention,
    compaction,
    describe,
    inherited_text,
    is_only_compacted,
    log_config,
    retention,
    validate,
)
from walrusmq.protocol.errors import ErrorCode, InvalidConfig
from walrusmq.protocol.records.compression import Codec
from walrusmq.segments.log_config import FOREVER, Durability, LogConfig, TimestampType

MAX_INT64 = str(2**63 - 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", "delete"),
        ("cleanup.policy", "delete,delete"),
        ("cleanup.policy", "compact"),
        ("cleanup.policy", "compact, delete"),
        ("cleanup.policy", ""),
        ("cleanup.policy", " "),
        ("delete.retention.ms", "0"),
        ("max.compaction.lag.ms", "1"),
        ("min.cleanable.dirty.ratio", "0"),
        ("min.cleanable.dirty.ratio", "1.0"),
        ("min.cleanable.dirty.ratio", ".5"),
        ("min.cleanable.dirty.ratio", "1e-3"),
        ("min.compaction.lag.ms", MAX_INT64),
        ("compression.type", "producer"),
        ("flush.messages", "1"),
        ("flush.messages", MAX_INT64),
        ("flush.ms", "0"),
        ("max.message.bytes", "0"),
        ("max.message.bytes", "2147483647"),
        ("message.timestamp.before.max.ms", "0"),
        ("message.timestamp.after.max.ms", MAX_INT64),
        ("message.timestamp.type", "LogAppendTime"),
        ("min.insync.replicas", "1"),
        ("retention.bytes", "-1"),
        ("retention.bytes", "-5"),
        ("retention.ms", "-1"),
        ("retention.ms", " 5 "),
        ("retention.ms", "+05"),
        ("segment.bytes", "1048576"),
        ("segment.bytes", "2147483647"),
        ("segment.ms", "1"),
        ("walrus.segment.entries", "1"),
    ],
)
def test_a_value_that_kafka_takes_and_that_works_here_is_taken(name: str, value: str) -> None:
    validate(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cleanup.policy", "DELETE"),
        ("cleanup.policy", "delete,"),
        ("cleanup.policy", ","),
        ("compression.type", "rar"),
        ("delete.retention.ms", "-1"),
        ("max.compaction.lag.ms", "0"),
        ("min.cleanable.dirty.ratio", "1.01"),
        ("min.cleanable.dirty.ratio", "-0.1"),
        ("min.cleanable.dirty.ratio", "nan"),
        ("min.cleanable.dirty.ratio", ""),
        ("flush.messages", "0"),
        ("flush.ms", "-1"),
        ("max.message.bytes", "-5"),
        ("max.message.bytes", "2147483648"),
        ("message.timestamp.type", "createtime"),
        ("min.insync.replicas", "0"),
        ("retention.ms", ""),
        ("retention.ms", "abc"),
        ("retention.ms", "-2"),
        ("retention.ms", "1_000"),
        ("retention.ms", "99999999999999999999"),
        ("segment.bytes", "1048575"),
        ("segment.ms", "0"),
        ("walrus.segment.entries", "0"),
    ],
)
def test_a_wrong_value_is_refused_with_name_value_and_what_is_allowed(name: str, value: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        validate(name, value)
    assert name in str(caught.value)
    assert repr(value) in str(caught.value)
    assert TOPIC_CONFIGS[name].type.allowed in str(caught.value)
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_a_null_value_is_refused() -> None:
    with pytest.raises(InvalidConfig, match=r"retention\.ms has no value"):
        validate("retention.ms", None)


def test_a_value_that_kafka_takes_but_that_has_no_effect_here_is_refused_with_the_reason() -> None:
    with pytest.raises(InvalidConfig, match="one replica"):
        validate("min.insync.replicas", "2")


@pytest.mark.parametrize("name", ["compression.type", "message.timestamp.type", "cleanup.policy", "retention.ms"])
def test_blanks_round_a_value_are_no_part_of_it(name: str) -> None:
    """As in Kafka, which cuts them off before it looks."""
    value = inherited_text(name, Settings.load())
    validate(name, f" {value} ")
    assert log_config({name: f" {value} "}, Settings.load()) == log_config({name: value}, Settings.load())


@pytest.mark.parametrize(("value", "codec"), CODECS.items())
def test_batches_get_the_codec_that_the_topic_names(value: str, codec: Codec | None) -> None:
    assert log_config({"compression.type": value}, Settings.load()).codec is codec


def test_keys_are_needed_where_the_cleanup_policy_compacts() -> None:
    for policy, are_needed in (("delete", False), ("compact", True), ("delete,compact", True)):
        assert log_config({"cleanup.policy": policy}, Settings.load()).needs_keys is are_needed


@pytest.mark.parametrize("name", sorted(UNSUPPORTED))
def test_a_setting_of_kafkas_without_effect_here_is_refused_by_name(name: str) -> None:
    assert name not in TOPIC_CONFIGS
    with pytest.raises(InvalidConfig, match=f"Kafka's topic setting {name} has no effect"):
        validate(name, "1")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("retention", "did you mean retention.ms?"),
        ("message.max.bytes", "did you mean max.message.bytes?"),
        ("log.roll.ms", "did you mean segment.ms?"),
        ("max.segment.entries", "did you mean walrus.segment.entries?"),
        ("", "known are cleanup.policy"),
        ("zzz", "known are cleanup.policy"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, advice: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        validate(name, "1")
    assert advice in str(caught.value)


def test_without_any_config_a_log_has_kafkas_defaults_and_syncs_each_batch() -> None:
    assert log_config({}, Settings.load()) == LogConfig()
    assert log_config({}, Settings.load()).durability is Durability.BATCH


def test_a_log_takes_the_topics_values_else_the_nodes() -> None:
    settings = Settings.load(
        {
            "message.max.bytes": "2000",
            "max.segment.entries": "50",
            "log.segment.bytes": "2097152",
            "log.roll.ms": "7000",
            "log.message.timestamp.type": "LogAppendTime",
            "log.message.timestamp.before.max.ms": "10",
            "log.message.timestamp.after.max.ms": "11",
        }
    )
    assert log_config({"max.message.bytes": "3000", "message.timestamp.after.max.ms": "12"}, settings) == LogConfig(
        max_segment_entries=50,
        segment_bytes=2097152,
        segment_ms=7000,
        max_message_bytes=3000,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        timestamp_before_max_ms=10,
        timestamp_after_max_ms=12,
    )


@pytest.mark.parametrize(
    ("topic", "node", "durability", "flush_messages", "flush_ms"),
    [
        ({}, {}, Durability.BATCH, FOREVER, FOREVER),
        ({}, {"fsync": "never"}, Durability.NEVER, FOREVER, FOREVER),
        ({}, {"fsync": "interval"}, Durability.INTERVAL, FOREVER, FOREVER),
        ({}, {"log.flush.interval.messages": "1"}, Durability.BATCH, 1, FOREVER),
        ({}, {"log.flush.interval.messages": "100"}, Durability.NEVER, 100, FOREVER),
        ({}, {"log.flush.interval.ms": "100"}, Durability.NEVER, FOREVER, 100),
        ({}, {"log.flush.interval.ms": "100", "fsync": "interval"}, Durability.INTERVAL, FOREVER, 100),
        ({"flush.messages": "1"}, {"fsync": "never"}, Durability.BATCH, 1, FOREVER),
        ({"flush.messages": "100"}, {}, Durability.NEVER, 100, FOREVER),
        ({"flush.messages": "100"}, {"fsync": "batch"}, Durability.NEVER, 100, FOREVER),
        ({"flush.messages": MAX_INT64}, {"fsync": "batch"}, Durability.NEVER, FOREVER, FOREVER),
        ({"flush.ms": "50"}, {}, Durability.NEVER, FOREVER, 50),
        ({"flush.ms": "50"}, {"log.flush.interval.messages": "7"}, Durability.NEVER, 7, 50),
        ({"flush.ms": "50"}, {"log.flush.interval.messages": "1"}, Durability.BATCH, 1, 50),
    ],
)
def test_what_was_said_wins_over_what_is_only_a_default_and_the_topic_over_the_node(
    topic: dict[str, str], node: dict[str, str], durability: Durability, flush_messages: int, flush_ms: int
) -> None:
    config = log_config(topic, Settings.load(node))
    assert (config.durability, config.flush_messages, config.flush_ms) == (durability, flush_messages, flush_ms)


def test_retention_is_the_topics_else_the_nodes() -> None:
    assert retention({}, Settings.load()) == Retention(604_800_000, -1)
    assert retention({"retention.ms": "-1", "retention.bytes": "5"}, Settings.load()) == Retention(-1, 5)
    assert retention({"retention.ms": "7"}, Settings.load({"log.retention.bytes": "6"})) == Retention(7, 6)


def test_a_description_lists_every_config_with_a_documentation_of_its_own() -> None:
    rows = describe({}, Settings.load())
    assert [row.name for row in rows] == sorted(TOPIC_CONFIGS)
    assert len({row.documentation for row in rows}) == len(rows)
    assert all(row.source is ConfigSource.DEFAULT and not row.is_read_only for row in rows)


def test_a_description_says_where_a_value_comes_from_and_what_would_stand_in_for_it() -> None:
    settings = Settings.load({"message.max.bytes": "2000"})
    (row,) = (row for row in describe({"max.message.bytes": " 3000"}, settings) if row.name == "max.message.bytes")
    assert (row.value, row.source) == ("3000", ConfigSource.TOPIC)
    assert row.synonyms == (
        Synonym("max.message.bytes", "3000", ConfigSource.TOPIC),
        Synonym("message.max.bytes", "2000", ConfigSource.NODE_AT_START),
        Synonym("message.max.bytes", "1048588", ConfigSource.DEFAULT),
    )


def test_what_kafka_leaves_unset_on_a_broker_is_no_synonym_unless_somebody_set_it() -> None:
    (row,) = (row for row in describe({}, Settings.load()) if row.name == "retention.ms")
    assert (row.value, row.source, row.synonyms) == ("604800000", ConfigSource.DEFAULT, ())
    (row,) = (row for row in describe({}, Settings.load({"log.retention.ms": "5"})) if row.name == "retention.ms")
    assert row.synonyms == (Synonym("log.retention.ms", "5", ConfigSource.NODE_AT_START),)


@pytest.mark.parametrize(
    ("configs", "segment_bytes", "segment_ms"),
    [
        ({}, 1 << 30, 604_800_000),
        ({"retention.bytes": "5000"}, 5000, 604_800_000),
        ({"retention.bytes": "0"}, 1, 604_800_000),
        ({"retention.ms": "60000"}, 1 << 30, 60_000),
        ({"retention.ms": "1"}, 1 << 30, SHORTEST_SEGMENT_MS),
        ({"retention.ms": "-1", "segment.ms": "70"}, 1 << 30, 70),
        ({"cleanup.policy": "compact", "retention.bytes": "5000", "retention.ms": "60000"}, 1 << 30, 604_800_000),
        ({"cleanup.policy": "compact", "max.compaction.lag.ms": "50000"}, 1 << 30, 50_000),
        ({"max.compaction.lag.ms": "50000"}, 1 << 30, 604_800_000),
        ({"cleanup.policy": "compact,delete", "retention.ms": "7000", "max.compaction.lag.ms": "5"}, 1 << 30, 1000),
    ],
)
def test_an_open_segment_is_sealed_in_time_for_retention_and_compaction(
    configs: dict[str, str], segment_bytes: int, segment_ms: int
) -> None:
    config = log_config(configs, Settings.load())
    assert (config.segment_bytes, config.segment_ms) == (segment_bytes, segment_ms)


def test_a_log_that_is_only_compacted_loses_nothing_by_age_or_size() -> None:
    configs = {"cleanup.policy": "compact", "retention.ms": "1", "retention.bytes": "1"}
    assert retention(configs, Settings.load()) == (-1, -1)
    assert compaction(configs, Settings.load()) == Compaction(0, 2**63 - 1, 0.5, 86_400_000)
    assert compaction({"cleanup.policy": "delete"}, Settings.load()) is None


def test_a_topic_without_a_cleanup_policy_keeps_all() -> None:
    configs = {"cleanup.policy": "", "retention.ms": "1", "retention.bytes": "1"}
    assert retention(configs, Settings.load()) == Retention(-1, -1)
    assert compaction(configs, Settings.load()) is None
    assert {row.name: row.value for row in describe(configs, Settings.load())}["cleanup.policy"] == ""


@pytest.mark.parametrize(
    ("policy", "is_only_so"), [("compact", True), ("compact,delete", False), ("delete", False), ("", False)]
)
def test_a_topic_is_only_compacted_by_its_own_policy_or_by_the_nodes(policy: str, is_only_so: bool) -> None:
    assert is_only_compacted({"cleanup.policy": policy}, Settings.load()) is is_only_so
    assert is_only_compacted({}, Settings.load({"log.cleanup.policy": policy})) is is_only_so

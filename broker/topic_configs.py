"""The settings that a topic may have, what each means, and what they make of a topic's log.

Kafka has more of them. Those that have no effect here are refused by name: a setting is never silently ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from walrusmq.broker.compression_types import CODECS, COMPRESSION_TYPE, missing_codec
from walrusmq.broker.config_rows import ConfigRow, ConfigSource, Synonym, node_synonyms
from walrusmq.broker.setting_types import MAX_INT64, Boolean, Choice, Integer, Share, ValueType, WordList
from walrusmq.broker.settings import SETTINGS, Settings
from walrusmq.protocol.errors import InvalidConfig
from walrusmq.segments.log_config import Durability, LogConfig, TimestampType

#: ``flush.messages`` at this value means: sync before each acknowledgement.
SYNC_EACH_BATCH = 1


class AlwaysFalse(Boolean):
    """A switch of Kafka's that is off here."""

    def __init__(self, because: str) -> None:
        self.allowed = f"false ({because})"

    def parse(self, text: str) -> bool:
        if super().parse(text):
            raise ValueError(text)
        return False


class TopicConfig(NamedTuple):
    """A row of the table. ``node_config`` is what holds where the topic says nothing."""

    name: str
    type: ValueType
    node_config: str
    documentation: str


TOPIC_CONFIGS: dict[str, TopicConfig] = {
    row.name: row
    for row in (
        TopicConfig(
            "cleanup.policy",
            WordList("compact", "delete"),
            "log.cleanup.policy",
            "What becomes of old segments. delete: they are removed when retention.ms or retention.bytes says so; "
            "compact: of each key only the last value stays.",
        ),
        TopicConfig(
            "compression.type",
            COMPRESSION_TYPE,
            "compression.type",
            "Codec that batches are stored and sent in, whatever the producer took; snappy and zstd need the extra "
            "`codecs`. uncompressed: none; producer: batches stay as the producer compressed them.",
        ),
        TopicConfig(
            "delete.retention.ms",
            Integer(0, MAX_INT64),
            "log.cleaner.delete.retention.ms",
            "Milliseconds that a key without a value stays in a compacted log after its first compaction, "
            "for readers that have yet to learn that it is gone.",
        ),
        TopicConfig(
            "flush.messages",
            Integer(1, MAX_INT64),
            "log.flush.interval.messages",
            "Sync the log whenever it has gained so many records. 1: every acknowledged batch is on disk. "
            "Set on a topic, this or flush.ms takes the place of the node's fsync.",
        ),
        TopicConfig(
            "flush.ms",
            Integer(0, MAX_INT64),
            "log.flush.interval.ms",
            "Sync the log once its oldest unsynced record has waited so many milliseconds. "
            "Set on a topic, this or flush.messages takes the place of the node's fsync.",
        ),
        TopicConfig(
            "max.compaction.lag.ms",
            Integer(1, MAX_INT64),
            "log.cleaner.max.compaction.lag.ms",
            "Milliseconds after which a record of a compacted log is compacted, however little of the log is new.",
        ),
        TopicConfig(
            "max.message.bytes",
            Integer(0),
            "message.max.bytes",
            "Largest record batch that is accepted, in bytes as sent, that is after compression.",
        ),
        TopicConfig(
            "message.timestamp.after.max.ms",
            Integer(0, MAX_INT64),
            "log.message.timestamp.after.max.ms",
            "How many milliseconds a record's timestamp may be ahead of the node's clock; "
            "without effect where message.timestamp.type is LogAppendTime.",
        ),
        TopicConfig(
            "message.timestamp.before.max.ms",
            Integer(0, MAX_INT64),
            "log.message.timestamp.before.max.ms",
            "How many milliseconds a record's timestamp may be behind the node's clock; "
            "without effect where message.timestamp.type is LogAppendTime.",
        ),
        TopicConfig(
            "message.timestamp.type",
            Choice("CreateTime", "LogAppendTime"),
            "log.message.timestamp.type",
            "CreateTime keeps the timestamps that producers give; LogAppendTime sets the time of arrival.",
        ),
        TopicConfig(
            "min.cleanable.dirty.ratio",
            Share(),
            "log.cleaner.min.cleanable.ratio",
            "Share of a compacted log's bytes that must be new since the last compaction for the next one.",
        ),
        TopicConfig(
            "min.compaction.lag.ms",
            Integer(0, MAX_INT64),
            "log.cleaner.min.compaction.lag.ms",
            "Milliseconds for which a record of a compacted log stays for certain.",
        ),
        TopicConfig(
            "min.insync.replicas",
            Integer(1, 1, because="more would have no effect while each partition has one replica"),
            "min.insync.replicas",
            "Replicas that must have a batch before acks=all is answered.",
        ),
        TopicConfig(
            "retention.bytes",
            Integer(-MAX_INT64 - 1, MAX_INT64),
            "log.retention.bytes",
            "Size in bytes above which a partition loses its oldest sealed segments. -1: it may grow without limit.",
        ),
        TopicConfig(
            "retention.ms",
            Integer(-1, MAX_INT64),
            "log.retention.ms",
            "Milliseconds after its newest record at which a sealed segment is removed. -1: never.",
        ),
        TopicConfig(
            "segment.bytes",
            Integer(1 << 20),
            "log.segment.bytes",
            "Size in bytes at which a segment is sealed and the next one opened.",
        ),
        TopicConfig(
            "segment.ms",
            Integer(1, MAX_INT64),
            "log.roll.ms",
            "Milliseconds after which a segment that isn't empty is sealed and the next one opened.",
        ),
        TopicConfig(
            "unclean.leader.election.enable",
            AlwaysFalse(because="a replica that may lack acknowledged records never becomes leader"),
            "unclean.leader.election.enable",
            "Whether a partition may lose acknowledged records rather than wait for a node that has them.",
        ),
        TopicConfig(
            "walrus.segment.entries",
            Integer(1, MAX_INT64),
            "max.segment.entries",
            "Entries at which a segment is sealed and the next one opened.",
        ),
    )
}

#: Kafka 4.4's other topic settings, which have no effect here and are refused.
UNSUPPORTED = frozenset(
    (
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.zstd.level",
        "errors.deadletterqueue.group.enable",
        "file.delete.delay.ms",
        "follower.replication.throttled.replicas",
        "index.interval.bytes",
        "leader.replication.throttled.replicas",
        "local.retention.bytes",
        "local.retention.ms",
        "max.decompressed.message.bytes",
        "preallocate",
        "remote.copy.lag.bytes",
        "remote.copy.lag.ms",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
        "segment.index.bytes",
        "segment.jitter.ms",
    )
)

#: Kafka leaves these unset on the node (``log.retention.hours`` and the like hold), and so lists no default for them.
_UNSET_IN_KAFKA = frozenset(("flush.ms", "retention.ms", "segment.ms"))


#: A segment isn't sealed at a lower age because of a short retention: else each batch would get a segment of its own.
SHORTEST_SEGMENT_MS = 1000

DELETE, COMPACT = "delete", "compact"


class Retention(NamedTuple):
    """When sealed segments go: so old, or beyond so many bytes of partition. Negative: no such limit."""

    retention_ms: int
    retention_bytes: int


class Compaction(NamedTuple):
    """How a log is compacted. Times are in ms."""

    min_lag_ms: int
    """Younger records stay."""
    max_lag_ms: int
    """Older ones are compacted, whatever `min_dirty_share` says."""
    min_dirty_share: float
    """The part of the log's bytes that must be new since the last time."""
    delete_retention_ms: int
    """How long a key without a value stays."""


def validate(name: str, value: str | None) -> None:
    """Raise ``InvalidConfig`` unless a topic may have this setting with this value."""
    config = TOPIC_CONFIGS.get(name)
    if config is None:
        raise InvalidConfig(_unknown(name))
    if value is None:
        raise InvalidConfig(f"topic setting {name} has no value (null)")
    try:
        config.type.parse(value)
    except ValueError:
        raise InvalidConfig(f"topic setting {name} is {value!r}, but must be {config.type.allowed}") from None
    if config.type is COMPRESSION_TYPE and (missing := missing_codec(value)) is not None:
        raise InvalidConfig(f"topic setting {name} is {value!r}: {missing}")


def check_together(configs: Mapping[str, str], settings: Settings) -> None:
    """Raise ``InvalidConfig`` if a topic's configs (each valid by itself) contradict each other or the node's."""
    least, most = _value("min.compaction.lag.ms", configs, settings), _value("max.compaction.lag.ms", configs, settings)
    if least > most:
        raise InvalidConfig(f"min.compaction.lag.ms ({least}) is larger than max.compaction.lag.ms ({most})")


def log_config(configs: Mapping[str, str], settings: Settings) -> LogConfig:
    """How a topic with these configs (all valid) keeps its log on a node with these settings."""
    return LogConfig(
        max_segment_entries=_value("walrus.segment.entries", configs, settings),
        segment_bytes=_segment_bytes(configs, settings),
        segment_ms=_segment_ms(configs, settings),
        max_message_bytes=_value("max.message.bytes", configs, settings),
        timestamp_type=TimestampType(_value("message.timestamp.type", configs, settings)),
        timestamp_before_max_ms=_value("message.timestamp.before.max.ms", configs, settings),
        timestamp_after_max_ms=_value("message.timestamp.after.max.ms", configs, settings),
        durability=durability(configs, settings),
        flush_messages=_value("flush.messages", configs, settings),
        flush_ms=_value("flush.ms", configs, settings),
        codec=CODECS[_value("compression.type", configs, settings)],
        needs_keys=COMPACT in _value("cleanup.policy", configs, settings),
    )


def durability(configs: Mapping[str, str], settings: Settings) -> Durability:
    """When a topic's batches are synced, apart from its flush counts and times.

    What was said wins over what is only a default, the topic over the node: Kafka's flush settings mean that nothing
    but they causes a sync, and ``flush.messages=1`` that every acknowledged batch is on disk.
    """
    if "flush.messages" in configs or "flush.ms" in configs:
        return _kafka_durability(_value("flush.messages", configs, settings))
    if settings.is_given("fsync"):
        return Durability(settings.fsync)
    if settings.is_given("log.flush.interval.messages") or settings.is_given("log.flush.interval.ms"):
        return _kafka_durability(settings.log_flush_interval_messages)
    return Durability(settings.fsync)


def _segment_bytes(configs: Mapping[str, str], settings: Settings) -> int:
    """Only sealed segments are removed, so none may grow larger than the partition is to be."""
    size_bytes: int = _value("segment.bytes", configs, settings)
    _, retention_bytes = retention(configs, settings)
    return size_bytes if retention_bytes < 0 else max(min(size_bytes, retention_bytes), 1)


def _segment_ms(configs: Mapping[str, str], settings: Settings) -> int:
    """Only sealed segments are removed or compacted, so none may stay open for longer than its records may wait."""
    age_ms: int = _value("segment.ms", configs, settings)
    retention_ms, _ = retention(configs, settings)
    if retention_ms >= 0:
        age_ms = min(age_ms, max(retention_ms, SHORTEST_SEGMENT_MS))
    rules = compaction(configs, settings)
    if rules is not None:
        age_ms = min(age_ms, max(rules.max_lag_ms, SHORTEST_SEGMENT_MS))
    return age_ms


def retention(configs: Mapping[str, str], settings: Settings) -> Retention:
    """When a topic with these configs loses its old segments: never, unless its ``cleanup.policy`` says delete."""
    if DELETE not in _value("cleanup.policy", configs, settings):
        return Retention(-1, -1)
    return Retention(_value("retention.ms", configs, settings), _value("retention.bytes", configs, settings))


def compaction(configs: Mapping[str, str], settings: Settings) -> Compaction | None:
    """How a topic with these configs is compacted; None where its ``cleanup.policy`` doesn't say compact."""
    if COMPACT not in _value("cleanup.policy", configs, settings):
        return None
    return Compaction(
        min_lag_ms=_value("min.compaction.lag.ms", configs, settings),
        max_lag_ms=_value("max.compaction.lag.ms", configs, settings),
        min_dirty_share=_value("min.cleanable.dirty.ratio", configs, settings),
        delete_retention_ms=_value("delete.retention.ms", configs, settings),
    )


def is_only_compacted(configs: Mapping[str, str], settings: Settings) -> bool:
    """Whether a topic with these configs loses nothing but what later records with the same key replace."""
    policy = _value("cleanup.policy", configs, settings)
    return COMPACT in policy and DELETE not in policy


def inherited_text(name: str, settings: Settings) -> str:
    """The value of a topic's config where the topic says nothing."""
    value = node_synonyms(TOPIC_CONFIGS[name].node_config, settings)[0].value
    assert value is not None
    return value


def describe(configs: Mapping[str, str], settings: Settings) -> list[ConfigRow]:
    """All of a topic's configs, by name, with where their values come from."""
    return [_row(config, configs.get(config.name), settings) for config in TOPIC_CONFIGS.values()]


def _row(config: TopicConfig, own: str | None, settings: Settings) -> ConfigRow:
    inherited = node_synonyms(config.node_config, settings)
    value, source = inherited[0].value, inherited[0].source
    if config.name in _UNSET_IN_KAFKA:
        inherited = tuple(synonym for synonym in inherited if synonym.source is not ConfigSource.DEFAULT)
    if own is not None:
        value, source = config.type.render(config.type.parse(own)), ConfigSource.TOPIC
        inherited = (Synonym(config.name, value, source), *inherited)
    return ConfigRow(
        config.name, value, source, inherited, config.type.config_type, config.documentation, is_read_only=False
    )


def _value(name: str, configs: Mapping[str, str], settings: Settings) -> Any:
    config = TOPIC_CONFIGS[name]
    own = configs.get(name)
    return settings.value(config.node_config) if own is None else config.type.parse(own)


def _kafka_durability(flush_messages: int) -> Durability:
    return Durability.BATCH if flush_messages == SYNC_EACH_BATCH else Durability.NEVER


def _unknown(name: str) -> str:
    if name in UNSUPPORTED:
        return f"Kafka's topic setting {name} has no effect in WalrusMQ, so it is not accepted"
    import difflib

    known = list(TOPIC_CONFIGS)
    nearest = difflib.get_close_matches(name, known, n=1)
    if not nearest and name in SETTINGS:
        nearest = [config.name for config in TOPIC_CONFIGS.values() if config.node_config == name]
    advice = f"did you mean {nearest[0]}?" if nearest else f"known are {', '.join(known)}"
    return f"there is no topic setting {name!r}: {advice}"

"""One config as DescribeConfigs and CreateTopics show it: value, source, synonyms, type, documentation."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from walrusmq.broker.setting_names import Source
from walrusmq.broker.setting_types import ConfigType
from walrusmq.broker.settings import SETTINGS, Settings


class ConfigSource(IntEnum):
    """Which level a value comes from, in Kafka's numbers (KIP-226)."""

    TOPIC = 1
    NODE_AT_RUN_TIME = 2
    CLUSTER_AT_RUN_TIME = 3
    NODE_AT_START = 4
    DEFAULT = 5


class Synonym(NamedTuple):
    """A value that was, or would be next, in line for a config."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigRow(NamedTuple):
    """A config with its value in force; ``synonyms`` begin with that value and go on to what would stand in for it."""

    name: str
    value: str | None
    source: ConfigSource
    synonyms: tuple[Synonym, ...]
    type: ConfigType
    documentation: str
    is_read_only: bool
    is_sensitive: bool = False


class FixedConfig(NamedTuple):
    """A node config of Kafka's that has one value here, which clients and consoles read."""

    name: str
    type: ConfigType
    value: str
    documentation: str


#: What Kafka lets one set, and what is always so here.
FIXED: dict[str, FixedConfig] = {
    fixed.name: fixed
    for fixed in (
        FixedConfig("delete.topic.enable", ConfigType.BOOLEAN, "true", "Topics can be deleted."),
        FixedConfig("min.insync.replicas", ConfigType.INT, "1", "Replicas that must have a write; there is one."),
        FixedConfig(
            "unclean.leader.election.enable",
            ConfigType.BOOLEAN,
            "false",
            "A replica that may lack acknowledged records never becomes leader.",
        ),
    )
}


def node_synonyms(name: str, settings: Settings) -> tuple[Synonym, ...]:
    """The values of a node config, the one in force first; none if it is unset."""
    fixed = FIXED.get(name)
    if fixed is not None:
        return (Synonym(name, fixed.value, ConfigSource.DEFAULT),)
    setting = SETTINGS[name]
    levels: list[Synonym] = []
    for changed, source in (
        (settings.for_this_node, ConfigSource.NODE_AT_RUN_TIME),
        (settings.for_all_nodes, ConfigSource.CLUSTER_AT_RUN_TIME),
    ):
        if name in changed:
            levels.append(Synonym(name, setting.render(changed[name]), source))
    if settings.source_at_start(name) is not Source.DEFAULT:
        levels.append(Synonym(name, setting.render(settings.value_at_start(name)), ConfigSource.NODE_AT_START))
    if setting.default is not None:
        levels.append(Synonym(name, setting.render(setting.default), ConfigSource.DEFAULT))
    return tuple(levels)


def select(rows: Iterable[ConfigRow], names: list[str] | None) -> list[ConfigRow]:
    """The rows with these names, each once; all of them if no names are given, as in Kafka."""
    if not names:
        return list(rows)
    wanted = frozenset(names)
    return [row for row in rows if row.name in wanted]

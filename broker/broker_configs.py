"""A node's configs as DescribeConfigs shows them: its settings, and what is fixed here but settable in Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

from walrusmq.broker.config_rows import FIXED, ConfigRow, ConfigSource, Synonym, node_synonyms
from walrusmq.broker.setting_types import ConfigType
from walrusmq.broker.settings import SETTINGS, Setting, Settings, Source

if TYPE_CHECKING:
    from walrusmq.broker.node import Node

_MS_PER_HOUR = 3_600_000


def describe_node(node: Node) -> list[ConfigRow]:
    """All configs of a node by name. None can be changed while it runs, so all are read-only."""
    known = {
        "node.id": str(node.node_id),
        "cluster.id": node.cluster_id,
        "max.open.files": str(node.settings.max_open_files),
    }
    rows = [_setting_row(setting, node.settings, known.get(name)) for name, setting in SETTINGS.items()]
    rows += [_fixed_row(name, node.settings) for name in FIXED]
    rows.append(
        _told_row(
            "broker.id", known["node.id"], node.settings.source("node.id"), ConfigType.INT, "The same as node.id."
        )
    )
    rows += _in_hours(node.settings, "log.retention.hours", "log.retention.ms")
    rows += _in_hours(node.settings, "log.roll.hours", "log.roll.ms")
    return sorted(rows)


def _setting_row(setting: Setting, settings: Settings, known: str | None) -> ConfigRow:
    """``known``: the value that the node took where the setting leaves it open."""
    synonyms = node_synonyms(setting.name, settings)
    value = synonyms[0].value if synonyms else known
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    return ConfigRow(
        setting.name, value, source, synonyms, setting.type.config_type, setting.meaning, is_read_only=True
    )


def _fixed_row(name: str, settings: Settings) -> ConfigRow:
    fixed = FIXED[name]
    synonyms = node_synonyms(name, settings)
    return ConfigRow(
        name, fixed.value, ConfigSource.DEFAULT, synonyms, fixed.type, fixed.documentation, is_read_only=True
    )


def _in_hours(settings: Settings, hours_name: str, ms_name: str) -> list[ConfigRow]:
    """A time under the name in hours that consoles read; none if it isn't a whole number of them."""
    age_ms: int = settings.value(ms_name)
    if age_ms > 0 and age_ms % _MS_PER_HOUR:
        return []
    hours = str(age_ms // _MS_PER_HOUR if age_ms > 0 else age_ms)
    return [_told_row(hours_name, hours, settings.source(ms_name), ConfigType.INT, f"{ms_name} in hours.")]


def _told_row(name: str, value: str, source: Source, config_type: ConfigType, documentation: str) -> ConfigRow:
    """A config under Kafka's name whose value another setting gives."""
    level = ConfigSource.DEFAULT if source is Source.DEFAULT else ConfigSource.NODE_AT_START
    return ConfigRow(name, value, level, (Synonym(name, value, level),), config_type, documentation, is_read_only=True)

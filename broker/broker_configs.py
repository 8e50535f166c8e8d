"""A node's configs as DescribeConfigs shows them: its settings, and what is fixed here but settable in Kafka."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from walrusmq.broker.config_rows import FIXED, ConfigRow, ConfigSource, Synonym, node_synonyms
from walrusmq.broker.setting_names import Setting, Source
from walrusmq.broker.setting_types import ConfigType
from walrusmq.broker.settings import SETTINGS, Settings
from walrusmq.protocol.errors import InvalidRequest

if TYPE_CHECKING:
    from walrusmq.broker.node import Node

_MS_PER_HOUR = 3_600_000
_LEVELS = {
    Source.DEFAULT: ConfigSource.DEFAULT,
    Source.ALL_NODES: ConfigSource.CLUSTER_AT_RUN_TIME,
    Source.THIS_NODE: ConfigSource.NODE_AT_RUN_TIME,
}


def describe_node(node: Node) -> list[ConfigRow]:
    """All configs of a node by name; those that can't be changed while it runs are read-only."""
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


def describe_all_nodes(settings: Settings) -> list[ConfigRow]:
    """What was set for all nodes at run time, by name."""
    rows = []
    for name, value in settings.for_all_nodes.items():
        setting = SETTINGS[name]
        synonym = Synonym(name, setting.render(value), ConfigSource.CLUSTER_AT_RUN_TIME)
        rows.append(_row(setting, synonym.value, synonym.source, (synonym,)))
    return sorted(rows)


def is_this_node(name: str, node_id: int) -> bool:
    """Whether a broker resource of this name is this node, or all nodes (the empty name).

    Raises InvalidRequest for another node's, which must be asked itself, and for what is no id.
    """
    if name == "":
        return False
    if not re.fullmatch(r"[+-]?\d{1,10}", name):
        raise InvalidRequest(f"a broker is named by its id, a whole number, not {name!r}")
    if int(name) != node_id:
        raise InvalidRequest(f"this is broker {node_id}; broker {name} must be asked itself")
    return True


def _setting_row(setting: Setting, settings: Settings, known: str | None) -> ConfigRow:
    """``known``: the value that the node took where the setting leaves it open."""
    synonyms = node_synonyms(setting.name, settings)
    value = synonyms[0].value if synonyms else known
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
    return _row(setting, value, source, synonyms)


def _row(setting: Setting, value: str | None, source: ConfigSource, synonyms: tuple[Synonym, ...]) -> ConfigRow:
    return ConfigRow(
        setting.name,
        value,
        source,
        synonyms,
        setting.type.config_type,
        setting.meaning,
        is_read_only=not setting.is_changeable,
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
    level = _LEVELS.get(source, ConfigSource.NODE_AT_START)
    return ConfigRow(name, value, level, (Synonym(name, value, level),), config_type, documentation, is_read_only=True)

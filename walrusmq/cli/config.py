"""``walrusmq config``: each setting, its value, and where the value came from."""

from __future__ import annotations

import json
from collections.abc import Sequence

from walrusmq.broker.process_tuning import raise_file_limit
from walrusmq.broker.settings import SETTINGS, Settings
from walrusmq.cli.setting_flags import SettingsParser

UNSET = "(unset)"


def run(arguments: Sequence[str]) -> int:
    """Show what ``walrusmq serve`` would take with the same flags, environment and file."""
    raise_file_limit()  # as serve does: the default of max.open.files follows from it
    parser = SettingsParser("config", "Show each setting, its value, and where the value came from.")
    parser.add_argument("--json", action="store_true", help="as JSON, with defaults, allowed values and meanings")
    options, settings = parser.parse(arguments)
    print(_as_json(settings) if options.json else _as_table(settings))
    return 0


def _as_table(settings: Settings) -> str:
    rows = [(name, settings.text(name) or UNSET, settings.origin(name)) for name in SETTINGS]
    name_width, value_width = (max(len(row[column]) for row in rows) for column in (0, 1))
    return "\n".join(f"{name:<{name_width}}  {value:<{value_width}}  {origin}" for name, value, origin in rows)


def _as_json(settings: Settings) -> str:
    described = {
        name: {
            "value": settings.text(name),
            "source": settings.source(name).value,
            "origin": settings.origin(name),
            "default": setting.render(setting.default),
            "allowed": setting.type.allowed,
            "meaning": setting.meaning,
            "kafka": setting.is_kafkas,
            "flag": setting.flag,
            "variable": setting.variable,
        }
        for name, setting in SETTINGS.items()
    }
    return json.dumps(described, indent=2)

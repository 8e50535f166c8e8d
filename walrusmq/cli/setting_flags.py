"""A flag for each setting, for the commands that take settings."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import NoReturn

from walrusmq.broker.setting_names import CONFIG_VARIABLE, Setting, SettingError, Source, unknown_setting
from walrusmq.broker.setting_types import AddressText, Boolean, Choice, Integer, ValueType
from walrusmq.broker.settings import SETTINGS, Settings
from walrusmq.cli import FAILED, MISUSED

EPILOG = f"""Each setting x.y.z is the flag --x-y-z, the variable WALRUS_X_Y_Z or the key x.y.z in a TOML file
(named by --config or {CONFIG_VARIABLE}). A flag wins over the environment, and that over the file. Sizes are bytes,
durations milliseconds. (K): a setting of Kafka's, with Kafka's meaning."""

HELP_COLUMNS = 100
#: What stands for a value that is text, by what is allowed.
PLACEHOLDERS = {"a folder": "FOLDER", "a file": "FILE"}


class SettingsParser(argparse.ArgumentParser):
    """Parses a command's options and the settings' flags."""

    def __init__(self, command: str, description: str) -> None:
        super().__init__(
            prog=f"walrusmq {command}",
            usage=f"walrusmq {command} [--config FILE] [--SETTING VALUE]...",
            description=description,
            epilog=EPILOG,
            formatter_class=_formatter,
            allow_abbrev=False,
        )
        self.add_argument("--config", metavar="FILE", help="TOML file of settings")
        settings = self.add_argument_group("settings")
        for setting in SETTINGS.values():
            settings.add_argument(
                setting.flag, dest=setting.name, metavar=_placeholder(setting.type), help=_help(setting)
            )

    def parse(self, arguments: Sequence[str]) -> tuple[argparse.Namespace, Settings]:
        """The command's own options, and the settings from flags, environment and file.

        Leaves the process with one line and code 2 if the words can't be understood, 1 if a setting can't be taken.
        """
        options, rest = self.parse_known_args(arguments)
        if rest and rest[0].startswith("--"):
            name = rest[0][2:].partition("=")[0].replace("-", ".")
            self.error(str(unknown_setting(name, Source.FLAG, SETTINGS)))
        if rest:
            self.error(f"what is {rest[0]!r}? Each setting is a flag and its value: --listen 127.0.0.1:9092")
        values = vars(options)
        given = {name: values[name] for name in SETTINGS if values[name] is not None}
        try:
            return options, Settings.load(given, os.environ, options.config)
        except SettingError as error:
            self.exit(FAILED, f"{self.prog}: {error}\n")

    def error(self, message: str) -> NoReturn:
        """One line, instead of one after all the flags."""
        self.exit(MISUSED, f"{self.prog}: {message} (`{self.prog} --help` lists all)\n")


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Of a fixed width: argparse makes one for each flag, and to ask each time how wide the screen is takes longest."""
    return argparse.HelpFormatter(prog, width=HELP_COLUMNS)


def _placeholder(value_type: ValueType) -> str:
    match value_type:
        case Integer():
            return "N"
        case Boolean():
            return "true|false"
        case Choice():
            return "|".join(value_type.words)
        case AddressText():
            return "HOST:PORT"
    return PLACEHOLDERS.get(value_type.allowed, "TEXT")


def _help(setting: Setting) -> str:
    mark = " (K)" if setting.is_kafkas else ""
    default = "" if setting.default is None else f" Default: {setting.render(setting.default)}."
    return f"{setting.meaning}{default}{mark}".replace("%", "%%")

"""How settings are named and found: a setting's spellings, the variables that are ours, and what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from walrusmq.broker.setting_types import ValueType

#: Variables with this prefix are ours: an unknown one is a spelling mistake and stops the start.
ENVIRONMENT_PREFIX = "WALRUS_"
#: What people take the prefix to be, from the command's name.
MISTAKEN_PREFIX = "WALRUSMQ_"
#: How alike a name after it must be to a setting's (0 to 1) to stop the start: others' variables may begin so too.
MISTAKEN_LIKENESS = 0.8
#: Names the settings file; no setting itself, since a file can't name itself.
CONFIG_VARIABLE = "WALRUS_CONFIG"
#: What other programs call a setting, Kafka first, where the spelling doesn't lead to ours.
OTHER_NAMES = {
    "advertised.listeners": "advertised.listener",
    "broker.id": "node.id",
    "host": "listen",
    "listeners": "listen",
    "log.dir": "data.dir",
    "log.dirs": "data.dir",
    "log.retention.hours": "log.retention.ms",
    "log.retention.minutes": "log.retention.ms",
    "log.roll.hours": "log.roll.ms",
    "port": "listen",
}


class SettingError(Exception):
    """A setting that can't be taken; the message names setting, value, what is allowed and the nearest known name."""


class UnknownSetting(SettingError):
    """There is no setting of this name."""


class Source(Enum):
    """Where a value came from; a later one wins over an earlier one."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    FLAG = "flag"
    ALL_NODES = "set for all nodes at run time"
    THIS_NODE = "set for this node at run time"


class Setting(NamedTuple):
    """A row of the table. ``default`` None: unset, and ``meaning`` says what then happens.

    ``is_changeable``: whether clients can change it while the node runs.
    """

    name: str
    type: ValueType
    default: Any
    meaning: str
    is_kafkas: bool
    is_changeable: bool = False

    @property
    def flag(self) -> str:
        return "--" + self.name.replace(".", "-")

    @property
    def variable(self) -> str:
        return ENVIRONMENT_PREFIX + self.name.replace(".", "_").upper()

    @property
    def attribute(self) -> str:
        return self.name.replace(".", "_")

    def render(self, value: object) -> str | None:
        """The value as text, None if it is unset."""
        return None if value is None else self.type.render(value)


def named(environ: Mapping[str, str], known: Mapping[str, Setting]) -> Iterable[tuple[str, str]]:
    """Those variables that are settings, by dotted name. Raises UnknownSetting for one that looks like a mistake."""
    for variable, text in environ.items():
        if variable.startswith(MISTAKEN_PREFIX):
            _refuse_mistaken_prefix(variable, text, known)
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable == CONFIG_VARIABLE:
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("_", ".")
        if name in known or not _is_service_link(variable, text):
            yield name, text


def _refuse_mistaken_prefix(variable: str, text: str, known: Mapping[str, Setting]) -> None:
    """What looks like a setting must not be passed over in silence, whatever comes before its name."""
    name = variable.removeprefix(MISTAKEN_PREFIX).lower().replace("_", ".")
    if ENVIRONMENT_PREFIX + name.upper() == CONFIG_VARIABLE:
        meant: str | None = CONFIG_VARIABLE
    elif name not in known and _is_service_link(variable, text):
        meant = None
    else:
        nearest = _nearest(name, known, MISTAKEN_LIKENESS)
        meant = known[nearest].variable if nearest else None
    if meant:
        raise UnknownSetting(f"the environment has {variable}, which isn't read: did you mean {meant}?")


def _is_service_link(variable: str, text: str) -> bool:
    """Whether Kubernetes or an old Docker set it: they tell containers of a service named walrus or walrusmq."""
    import re

    if re.search(r"_SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]+)?$|_PORT_[0-9]+_(TCP|UDP)(_(PROTO|PORT|ADDR))?$", variable):
        return True
    return variable.endswith("_PORT") and text.startswith(("tcp://", "udp://"))


def origin_in_words(name: str, source: Source, file: str | None) -> str:
    """The source in words, with the flag, variable or file that said so."""
    dashes = name.replace(".", "-")
    match source:
        case Source.DEFAULT:
            return "default"
        case Source.FILE:
            return f"file {file}"
        case Source.ENVIRONMENT:
            return f"environment {ENVIRONMENT_PREFIX}{dashes.replace('-', '_').upper()}"
        case Source.FLAG:
            return f"flag --{dashes}"
        case Source.ALL_NODES | Source.THIS_NODE:
            return str(source.value)


def unknown_setting(name: str, source: Source, known: Mapping[str, Setting], file: str | None = None) -> UnknownSetting:
    """The error for a name that isn't a setting's, with the nearest that is, spelt as where the name was found."""
    from walrusmq.broker.unsupported_settings import UNSUPPORTED_SETTINGS

    where = origin_in_words(name, source, file)
    if name in UNSUPPORTED_SETTINGS and name not in OTHER_NAMES:
        return UnknownSetting(f"Kafka's setting {name} has no effect in WalrusMQ, so it is not accepted ({where})")
    nearest = _nearest(name, known)
    advice = f"did you mean {_spelling(known[nearest], source)}?" if nearest else "`walrusmq config` lists all settings"
    return UnknownSetting(f"there is no setting {name!r} ({where}): {advice}")


def _nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The setting that was probably meant: by what others call it, else by spelling."""
    import difflib

    if name in OTHER_NAMES:
        return OTHER_NAMES[name]
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=likeness)), None)


def _spelling(setting: Setting, source: Source) -> str:
    match source:
        case Source.FLAG:
            return setting.flag
        case Source.ENVIRONMENT:
            return setting.variable
    return setting.name

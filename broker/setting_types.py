"""The kinds of value that a setting or a topic config may have: text in, a checked value out, and back."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple, Protocol

MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1


class ConfigType(IntEnum):
    """Kafka's number for a kind of value in DescribeConfigs (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


class ValueType(Protocol):
    """One kind of value."""

    @property
    def config_type(self) -> ConfigType:
        """What DescribeConfigs calls this kind."""
        ...

    @property
    def allowed(self) -> str:
        """What may be written, as the end of the sentence "must be …"."""
        ...

    def parse(self, text: str) -> object:
        """The value; ``ValueError`` if the text isn't one that is allowed."""
        ...

    def render(self, value: object) -> str:
        """The text that ``parse`` would read as this value."""
        ...


class Integer:
    """A whole number in decimal digits between two bounds, both included; sizes are bytes, durations milliseconds."""

    def __init__(self, least: int, most: int = MAX_INT32, because: str | None = None) -> None:
        self.least = least
        self.most = most
        self.config_type = ConfigType.INT if most <= MAX_INT32 else ConfigType.LONG
        self._because = because

    @property
    def allowed(self) -> str:
        if self.most == self.least:
            return _with_reason(str(self.least), self._because)
        if self.most == MAX_INT64:
            return "a whole number" if self.least < -1 else f"a whole number of at least {self.least}"
        return f"a whole number from {self.least} to {self.most}"

    def parse(self, text: str) -> int:
        # int() would also take "1_000" and digits of other scripts, which Kafka's own tools don't all read.
        if not re.fullmatch(r"[+-]?[0-9]{1,20}", text.strip()):
            raise ValueError(text)
        value = int(text)
        if not self.least <= value <= self.most:
            raise ValueError(text)
        return value

    def render(self, value: object) -> str:
        return str(value)


class Share:
    """A part of a whole: a decimal number from 0 to 1."""

    config_type = ConfigType.DOUBLE
    allowed = "a number from 0 to 1"

    def parse(self, text: str) -> float:
        # float() would also take "nan" and "1_0"
        if not re.fullmatch(r"[+-]?[0-9]{0,20}\.?[0-9]{0,20}(?:[eE][+-]?[0-9]{1,3})?", text.strip()):
            raise ValueError(text)
        value = float(text)
        if not 0 <= value <= 1:
            raise ValueError(text)
        return value

    def render(self, value: object) -> str:
        return str(value)


class Boolean:
    """``true`` or ``false``, in any case, as Kafka reads it."""

    config_type = ConfigType.BOOLEAN
    allowed = "true or false"

    def parse(self, text: str) -> bool:
        match text.strip().lower():
            case "true":
                return True
            case "false":
                return False
        raise ValueError(text)

    def render(self, value: object) -> str:
        return "true" if value else "false"


class Choice:
    """One of a few words."""

    config_type = ConfigType.STRING

    def __init__(self, *words: str, because: str | None = None) -> None:
        self.allowed = _with_reason(_either(words), because)
        self.words = words

    def parse(self, text: str) -> str:
        word = text.strip()
        if word not in self.words:
            raise ValueError(text)
        return word

    def render(self, value: object) -> str:
        return str(value)


class WordList:
    """Any of a few words, or none, with commas between them."""

    config_type = ConfigType.LIST

    def __init__(self, *words: str) -> None:
        self.allowed = f"{_either(words)}, several of them with commas between, or nothing"
        self.words = words

    def parse(self, text: str) -> tuple[str, ...]:
        words = tuple(dict.fromkeys(word.strip() for word in text.split(","))) if text.strip() else ()
        if not set(words) <= set(self.words):
            raise ValueError(text)
        return words

    def render(self, value: object) -> str:
        assert isinstance(value, tuple)
        return ",".join(value)


class Text:
    """Any text that isn't blank; ``pattern``, if given, must match all of it."""

    config_type = ConfigType.STRING

    def __init__(self, allowed: str = "some text", pattern: str = r".*\S.*") -> None:
        self.allowed = allowed
        self._pattern = pattern

    def parse(self, text: str) -> str:
        if not re.fullmatch(self._pattern, text, re.DOTALL):
            raise ValueError(text)
        return text

    def render(self, value: object) -> str:
        return str(value)


class Address(NamedTuple):
    """A host name or IP address, and a TCP port; an IPv6 host stands here without its brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class AddressText:
    """``host:port``, the host in brackets if it is IPv6; a port alone if there is a host to fall back on."""

    config_type = ConfigType.STRING

    def __init__(self, *, least_port: int = 0, bare_port_host: str | None = None) -> None:
        self._least_port = least_port
        self._bare_port_host = bare_port_host

    @property
    def allowed(self) -> str:
        bare = f", or a port alone (on {self._bare_port_host})" if self._bare_port_host else ""
        any_port = "; port 0 takes a free one" if self._least_port == 0 else ""
        return f"host:port, or [IPv6]:port{bare}{any_port}"

    def parse(self, text: str) -> Address:
        host, separator, port = text.strip().rpartition(":")
        if not separator and self._bare_port_host:
            host = self._bare_port_host
        elif host.startswith("[") and host.endswith("]") and ":" in host:
            host = host[1:-1]
        elif not re.fullmatch(r"[A-Za-z0-9._-]+", host):
            raise ValueError(text)
        if not re.fullmatch(r"[0-9]{1,5}", port) or not self._least_port <= int(port) <= 65535:
            raise ValueError(text)
        return Address(host, int(port))

    def render(self, value: object) -> str:
        return str(value)


def _either(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _with_reason(allowed: str, because: str | None) -> str:
    return f"{allowed} ({because})" if because else allowed

"""A message, its fields, and their versions: the declarations that every codec is derived from.

    @message(api_key=0, kind="request", versions="3-13", flexible="9+")
    class ProduceRequest:
        transactional_id: str | None = field(String, "3+", nullable="3+", default=None)
        acks: int = field(Int16, "0+")

The decorated class has slots, keyword arguments with defaults, equality and a repr. What costs time to make is
made when it is first used, since a start declares about a hundred classes and uses a few of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, dataclass_transform

from walrusmq.protocol.primitives import ZERO_UUID, Array, Bool, Bytes, Float64, Records, String, Uuid

T = TypeVar("T")

MAX_VERSION = 0x7FFF
NO_VERSIONS = range(0)
MISSING: Any = object()

_PLAIN_DEFAULTS: dict[Any, Any] = {Bool: False, Float64: 0.0, String: "", Bytes: b"", Uuid: ZERO_UUID, Records: None}


@cache
def parse_versions(text: str) -> range:
    """Read ``"3+"``, ``"0-7"``, ``"4"`` or ``"none"`` as the range of the versions."""
    if text == "none":
        return NO_VERSIONS
    if text.endswith("+"):
        return range(int(text[:-1]), MAX_VERSION + 1)
    low, _, high = text.partition("-")
    return range(int(low), int(high or low) + 1)


class Field:
    """One field of a declaration.

    ``type`` is a construct object or a struct's class; ``nullable``, ``tagged`` and ``versions`` are ranges of
    versions; ``flexible`` overrides the message's. A field that is ``ignorable`` is dropped in a version without it;
    another one must then hold its default.
    """

    __slots__ = (
        "declared_default",
        "declared_kafka_name",
        "flexible",
        "ignorable",
        "name",
        "nullable",
        "tag",
        "tagged",
        "type",
        "versions",
    )

    def __init__(self, type: Any, versions: range, nullable: range, tag: int | None, tagged: range, default: Any,
                 ignorable: bool, flexible: range | None, kafka_name: str | None) -> None:  # fmt: skip
        self.name = ""
        self.type = type
        self.versions = versions
        self.nullable = nullable
        self.tag = tag
        self.tagged = tagged
        self.declared_default = default
        self.ignorable = ignorable
        self.flexible = flexible
        self.declared_kafka_name = kafka_name

    @property
    def kafka_name(self) -> str:
        """The name in Kafka's own descriptions: ``TopicData`` for ``topic_data``."""
        return self.declared_kafka_name or "".join(word[0].upper() + word[1:] for word in self.name.split("_"))

    @property
    def default(self) -> Any:
        """The value that a new message holds, and that a tagged field isn't written for; not to be changed."""
        if self.declared_default is not MISSING:
            return self.declared_default
        if is_declared(self.type):
            return schema_of(self.type).default
        return [] if isinstance(self.type, Array) else _PLAIN_DEFAULTS.get(self.type, 0)

    def make_default(self) -> Any:
        """The default for one message: a fresh one where it can be changed."""
        if self.is_shared:
            return self.default
        return [] if isinstance(self.type, Array) else self.type()

    @property
    def is_shared(self) -> bool:
        """Whether all messages may hold the same default: not if it is a list or holds one, since those can change."""
        if self.declared_default is not MISSING:
            return True
        if is_declared(self.type):
            return all(inner.is_shared for inner in schema_of(self.type).fields)
        return not isinstance(self.type, Array)


def field(type: Any, versions: str, *, nullable: str = "none", tag: int | None = None, tagged: str | None = None,
          default: Any = MISSING, ignorable: bool = False, flexible: str | None = None,
          kafka_name: str | None = None) -> Any:  # fmt: skip
    """Declare a field; ``tagged`` is ``versions`` where a tag is given and nothing else is said.

    Without a default it is Kafka's: 0, false, "", an empty list, the zero UUID, a struct of defaults, even where null
    is allowed; but null for records.
    """
    assert not isinstance(default, list), "an empty list is the default of every array, a fresh one for each message"
    present = parse_versions(versions)
    tagged_versions = parse_versions(tagged or ("none" if tag is None else versions))
    flexible_versions = None if flexible is None else parse_versions(flexible)
    return Field(type, present, parse_versions(nullable), tag, tagged_versions, default, ignorable, flexible_versions,
                 kafka_name)  # fmt: skip


def _refuse_change(self: Structure, name: str, value: Any) -> None:
    raise AttributeError(f"{name}: this {self.SCHEMA.name} is the default that messages share; set a new one instead")


_FROZEN: dict[str, Any] = {
    "__slots__": (),
    "__setattr__": _refuse_change,
    "__copy__": lambda self: self.SCHEMA.cls(),
    "__deepcopy__": lambda self, memo: self,
}


class Schema:
    """What a declaration says of a message (or a struct inside of one), found by ``schema_of`` its class."""

    __slots__ = ("_default", "api_key", "cls", "fields", "flexible", "kind", "unstable", "versions")

    def __init__(self, kind: str, api_key: int | None, versions: range, flexible: range, unstable: range) -> None:
        self.kind = kind
        self.api_key = api_key
        self.versions = versions
        self.flexible = flexible
        self.unstable = unstable
        self.fields: tuple[Field, ...] = ()
        self.cls: Any = None
        self._default: Any = None

    @property
    def name(self) -> str:
        """The name of the class, which is Kafka's."""
        name: str = self.cls.__name__
        return name

    @property
    def default(self) -> Any:
        """A struct of defaults that refuses changes, so that all messages can hold the same one."""
        if self._default is None:
            self._default = object.__new__(type(self.name, (self.cls,), _FROZEN))
            for each in self.fields:
                object.__setattr__(self._default, each.name, each.default)
        return self._default


class Structure:
    """What all declared classes share; their slots are their fields."""

    __slots__ = ()
    SCHEMA: Schema

    def __init__(self, **values: Any) -> None:
        cls = self.SCHEMA.cls
        cls.__init__ = _make_init(self.SCHEMA)
        cls.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        cls = self.SCHEMA.cls
        if not isinstance(other, cls):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in cls.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.SCHEMA.cls.__slots__)
        return f"{self.SCHEMA.name}({values})"


@dataclass_transform(kw_only_default=True)
def struct(cls: type[T]) -> type[T]:
    """Declare a struct that stands inside of a message, and takes its versions from there."""
    return _declare(cls, Schema("struct", None, range(MAX_VERSION + 1), NO_VERSIONS, NO_VERSIONS))


@dataclass_transform(kw_only_default=True)
def message(*, api_key: int | None, kind: str, versions: str, flexible: str = "none",
            unstable: str = "none") -> Callable[[type[T]], type[T]]:  # fmt: skip
    """Declare a message: ``kind`` is "request", "response", "header", "data", "coordinator-key" or "-value".

    ``versions`` are those that can be read and written, ``flexible`` those with compact types and tagged fields,
    ``unstable`` those of them that aren't offered to clients.
    """
    schema = Schema(kind, api_key, parse_versions(versions), parse_versions(flexible), parse_versions(unstable))
    return lambda cls: _declare(cls, schema)


def _declare(cls: type[T], schema: Schema) -> type[T]:
    """Make the class anew, with its fields as slots."""
    namespace = {name: value for name, value in cls.__dict__.items() if name not in ("__dict__", "__weakref__")}
    fields = [(name, value) for name, value in namespace.items() if type(value) is Field]
    for name, value in fields:
        value.name = name
        del namespace[name]
    schema.fields = tuple(value for _, value in fields)
    namespace["__slots__"] = tuple(name for name, _ in fields)
    namespace["SCHEMA"] = schema
    schema.cls = type(cls.__name__, (Structure,), namespace)
    declared: type[T] = schema.cls
    return declared


def _make_init(schema: Schema) -> Any:
    """The constructor of a class as Python would have it written: keyword arguments, each with its default."""
    namespace: dict[str, Any] = {"MISSING": MISSING}
    parameters, body = ["self", "*"], ["pass"]
    for each in schema.fields:
        name = each.name
        if each.is_shared:
            namespace[f"default_{name}"] = each.default
            parameters.append(f"{name}=default_{name}")
            body.append(f"self.{name} = {name}")
        else:
            fresh = "[]" if isinstance(each.type, Array) else f"make_{name}()"
            namespace[f"make_{name}"] = each.type
            parameters.append(f"{name}=MISSING")
            body.append(f"self.{name} = {fresh} if {name} is MISSING else {name}")
    if len(parameters) == 2:
        parameters.pop()
    exec(f"def __init__({', '.join(parameters)}):\n    " + "\n    ".join(body), namespace)
    return namespace["__init__"]


def schema_of(cls: type) -> Schema:
    """The schema of a declared class."""
    schema: Schema = cls.SCHEMA  # type: ignore[attr-defined]
    return schema


def is_declared(type_: Any) -> bool:
    """Whether a field's type is a struct's class, and not a construct object."""
    return isinstance(type_, type) and issubclass(type_, Structure)

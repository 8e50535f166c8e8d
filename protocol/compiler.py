"""What the compilers of decoders and encoders share: source in the making, and runs that one ``struct`` call serves.

Compiled code does the same as the construct that it is made from, some forty times faster: adjacent fields of fixed
width are one call of a precompiled ``struct.Struct``, together with the length or count that follows them; objects are
made without their constructor; nothing is called that can stand in line.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from construct import FormatField

from walrusmq.protocol.layout import Absent, StructAdapter, TaggedFields
from walrusmq.protocol.primitives import ZERO_UUID, OrNull, Prefixed, UnsignedVarint, UuidBytes

UUID_FORMAT = f"{len(ZERO_UUID)}s"


class Source:
    """Lines of Python with their indentation, and the objects that they name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.namespace: dict[str, Any] = {}
        self._depth = 0
        self._names: dict[str, int] = {}

    def line(self, text: str) -> None:
        """Add a line at the present depth."""
        self.lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Add ``head`` and indent what is added meanwhile."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def fresh(self, hint: str) -> str:
        """A variable that no other code uses."""
        self._names[hint] = self._names.get(hint, 0) + 1
        return f"{hint}{self._names[hint]}"

    def constant(self, hint: str, value: Any) -> str:
        """A name for an object: the literal where one is short, a fresh global otherwise."""
        if value is None or type(value) in (bool, int) or value in ("", b"", []):
            return repr(value)
        for name, known in self.namespace.items():
            if known is value:
                return name
        name = hint if hint not in self.namespace else self.fresh(hint + "_")
        self.namespace[name] = value
        return name

    def struct_method(self, method: str, format: str) -> str:
        """A name for ``pack`` or ``unpack_from`` of a precompiled big-endian struct."""
        name = f"{method}_{format}".replace("?", "bool")
        if name not in self.namespace:
            self.namespace[name] = getattr(struct.Struct(">" + format), method)
        return name

    def function(self, name: str, label: str) -> Callable[..., Any]:
        """Run the source, and give the function of that name."""
        exec(compile("\n".join(self.lines), f"<{label}>", "exec"), self.namespace)
        function: Callable[..., Any] = self.namespace[name]
        return function


class Run:
    """Adjacent things of fixed width that wait for one ``struct`` call: format characters, and an expression each."""

    def __init__(self) -> None:
        self.format = ""
        self.items: list[str] = []

    def add(self, format: str, item: str | None = None) -> None:
        """Add one thing; a pad byte has no item."""
        self.format += format
        if item is not None:
            self.items.append(item)

    def take(self) -> tuple[str, list[str]]:
        """What has gathered; the run is empty afterwards."""
        taken = self.format, self.items
        self.format, self.items = "", []
        return taken


def format_character(construct: FormatField) -> str:
    """The struct character of a number."""
    endianity, character = construct.fmtstr
    assert endianity == ">", f"{construct.fmtstr} isn't big-endian"
    return str(character)


def least_bytes(construct: Any) -> int:
    """How many bytes a construct takes at the least."""
    match construct:
        case FormatField():
            return int(construct.length)
        case UuidBytes():
            return len(ZERO_UUID)
        case Prefixed(compact=False):
            return int(construct.plain_length.length)
        case StructAdapter():
            return sum(least_bytes(member.subcon) for member in construct.subcon.subcons)
        case Absent():
            return 0
        case Prefixed() | OrNull() | TaggedFields() | UnsignedVarint():
            return 1
    raise TypeError(f"no code can be made for {construct!r}")

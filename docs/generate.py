"""Write those parts of the pages that are facts of the code: ``python docs/generate.py`` (``--check`` only compares).

A generated part stands between ``<!-- generated: NAME -->`` and ``<!-- end -->``; the rest is written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from walrusmq.broker.dispatcher import HANDLER_MODULES
from walrusmq.broker.setting_names import Setting
from walrusmq.broker.settings import SETTINGS
from walrusmq.broker.topic_configs import TOPIC_CONFIGS, UNSUPPORTED
from walrusmq.broker.unsupported_settings import UNSUPPORTED_SETTINGS
from walrusmq.metrics.catalogue import CATALOGUE
from walrusmq.protocol.messages import API_BY_KEY

DOCS = Path(__file__).parent
BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A markdown table; bars in cells are escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def apis() -> str:
    """Each API that is advertised, with its versions."""
    offered = [API_BY_KEY[key] for key in sorted(HANDLER_MODULES)]
    return table(
        ("key", "API", "versions"),
        ((str(api.key), api.name, f"{api.advertised_min_version} to {api.max_version}") for api in offered),
    )


def topic_configs() -> str:
    """Each topic setting that has an effect."""
    return table(
        ("setting", "allowed", "where the topic says nothing", "meaning"),
        (
            (f"`{config.name}`", config.type.allowed, f"`{config.node_config}`", config.documentation)
            for config in TOPIC_CONFIGS.values()
        ),
    )


def refused_topic_configs() -> str:
    """The names of Kafka's topic settings that are refused."""
    return ", ".join(f"`{name}`" for name in sorted(UNSUPPORTED)) + "\n"


def refused_settings() -> str:
    """The names of Kafka's broker settings that are refused."""
    return ", ".join(f"`{name}`" for name in sorted(UNSUPPORTED_SETTINGS)) + "\n"


def settings() -> str:
    """Each setting of a node."""

    def row(setting: Setting) -> tuple[str, ...]:
        default = setting.render(setting.default)
        return (
            f"`{setting.name}`",
            "unset" if default is None else f"`{default}`",
            setting.type.allowed,
            "yes" if setting.is_kafkas else "",
            "yes" if setting.is_changeable else "",
            setting.meaning,
        )

    return table(("setting", "default", "allowed", "Kafka's", "at run time", "meaning"), map(row, SETTINGS.values()))


def metrics() -> str:
    """Each metric of the catalogue."""
    return table(
        ("metric", "kind", "labels", "meaning"),
        ((f"`{each.name}`", each.kind.value, ", ".join(each.labels), each.help) for each in CATALOGUE),
    )


GENERATORS: dict[str, Callable[[], str]] = {
    function.__name__: function
    for function in (apis, topic_configs, refused_topic_configs, refused_settings, settings, metrics)
}


def renewed(page: str) -> str:
    """The page with each generated part as the code has it now. KeyError for a part that nothing generates."""
    return BLOCK.sub(lambda block: f"{block[1]}\n{GENERATORS[block[2]]()}\n{block[3]}", page)


def stale(folder: Path = DOCS) -> dict[Path, str]:
    """The pages that the code has outgrown, with their new text."""
    pages = {path: path.read_text() for path in sorted(folder.glob("*.md"))}
    return {path: new for path, text in pages.items() if (new := renewed(text)) != text}


def main(arguments: Sequence[str]) -> int:
    pages = stale()
    for path, text in pages.items():
        if "--check" in arguments:
            print(f"{path.name} is not what the code says: run python docs/generate.py", file=sys.stderr)
        else:
            path.write_text(text)
    return 1 if pages and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

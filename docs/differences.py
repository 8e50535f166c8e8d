"""Hold compatibility.md to a comparison with Apache Kafka: ``python docs/differences.py OUTPUT``.

OUTPUT is what a differential tester printed, a line for each difference: ``DIFF API versions | scenario: step | path |
A: … | B: …``, B being ours. Those that no row of the page accounts for are printed, and make the status 1.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from walrusmq.broker.topic_configs import UNSUPPORTED
from walrusmq.broker.unsupported_settings import UNSUPPORTED_SETTINGS

PAGE = Path(__file__).parent / "compatibility.md"

ABSENT_BROKER_SETTINGS = "|".join(map(re.escape, sorted(UNSUPPORTED_SETTINGS)))
ABSENT_SETTINGS = "|".join(map(re.escape, sorted(UNSUPPORTED)))
#: By the first cell of a row of the page: the lines that it accounts for.
ACCOUNTED_FOR: dict[str, str] = {
    "topic settings without effect": rf"configs\[({ABSENT_SETTINGS})\] .* B: \"<absent>\"",
    "`walrus.segment.entries`": r"configs\[walrus\.segment\.entries\] \| A: \"<absent>\"",
    "sources of settings, for brokers too": (
        r"configs\[(retention\.ms|segment\.bytes|min\.insync\.replicas|log\.retention\.hours|num\.partitions)\]"
        r"\.(configSource|synonyms)"
    ),
    "DescribeConfigs of a broker": rf"configs\[({ABSENT_BROKER_SETTINGS})\] .* B: \"<absent>\"",
    "settings of a broker that can be changed at run time": (
        r"configs\[(min\.insync\.replicas|unclean\.leader\.election\.enable)\]\.readOnly \| A: false \| B: true$"
    ),
    "transactions": (
        r"^DIFF InitProducerId .* init_producer_id: (transactional|again: next epoch|timeout 900000|own id and epoch"
        r"|the epoch before|an old epoch|an epoch ahead|another's id|an id without an epoch|id and epoch, never seen)"
    ),
    "Produce: contents": r"produce_bad_batches: what is stored \| \S+\.maxTimestamp ",
    "Metadata: creation on demand": r"^DIFF Metadata .*\.errorCode \| A: 3 \| B: (0|17)$",
}


def unaccounted(lines: Iterable[str]) -> list[str]:
    """The differences among the lines that no row accounts for."""
    found = [line.rstrip("\n") for line in lines if line.startswith("DIFF ")]
    return [line for line in found if not any(re.search(pattern, line) for pattern in ACCOUNTED_FOR.values())]


def missing_rows(page: str) -> list[str]:
    """The rows that are named here, but don't stand on the page."""
    first_cells = {line.split(" | ")[0].removeprefix("| ") for line in page.splitlines() if line.startswith("| ")}
    return [row for row in ACCOUNTED_FOR if row not in first_cells]


def main(arguments: Sequence[str]) -> int:
    lines = [line for path in arguments for line in Path(path).read_text().splitlines()]
    new = unaccounted(lines)
    for line in new:
        print(line)
    print(f"{sum(line.startswith('DIFF ') for line in lines)} differences, {len(new)} of them without a row")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

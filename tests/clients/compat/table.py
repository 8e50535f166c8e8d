"""The table of clients and features in compatibility.md, measured: ``PYTHONPATH=tests python -m clients.compat.table``.

Runs each client's program against a broker of the installed ``walrusmq`` and prints the table. The status is 1 when
something is worse than the page says. ``--write`` puts the table into the page. What can't run here keeps its row.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from clients.compat.programs import CLIENTS, NotHere, Outcome, Verdict, Workshop, measured
from clients.compat.scenarios import FEATURES
from support.broker_process import BrokerProcess

PAGE = Path(__file__).parents[3] / "docs" / "compatibility.md"
BLOCK = re.compile(r"(<!-- measured: clients -->\n).*?(<!-- end -->)", re.DOTALL)
#: Programs that run at once: they mostly wait.
PROGRAMS_AT_ONCE = 3


@dataclass(slots=True)
class Row:
    """A client's version, and a verdict and a remark by feature."""

    version: str
    verdicts: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)

    def add(self, feature: str, outcome: Outcome) -> None:
        self.verdicts[feature] = outcome.verdict.value
        if outcome.remark:
            self.remarks[feature] = outcome.remark


Table = dict[str, Row]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def documented(page: str) -> Table:
    """The table that stands in a page."""
    block = BLOCK.search(page)
    assert block, "the page has no place for the table"
    table: Table = {}
    header: list[str] = []
    for line in block[0].splitlines():
        if line.startswith("| client"):
            header = cells(line)
        elif line.startswith("| ") and header and not line.startswith("| ---"):
            name, version, *verdicts = cells(line)
            table[name] = Row(version, dict(zip(header[2:], verdicts, strict=True)))
        elif remark := re.fullmatch(r"- (.+), (\w+): (.+)", line):
            table[remark[1]].remarks[remark[2]] = remark[3]
    return table


def rendered(table: Table) -> str:
    """The table as it stands in the page, with the remarks below."""
    lines = [["client", "version", *FEATURES], ["---"] * (2 + len(FEATURES))]
    lines += [[name, row.version, *(row.verdicts[feature] for feature in FEATURES)] for name, row in table.items()]
    remarks = [
        f"- {name}, {feature}: {row.remarks[feature]}\n"
        for feature in FEATURES
        for name, row in table.items()
        if feature in row.remarks
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n" + "".join(remarks)


def renewed(page: str, table: Table) -> str:
    """The page with the table in its place."""
    return BLOCK.sub(lambda block: f"{block[1]}\n{rendered(table)}\n{block[2]}", page)


def worse(before: Table, now: Table) -> list[str]:
    """What passed before and doesn't now, in words."""
    return [
        f"{name}, {feature}: {row.verdicts[feature]} ({row.remarks.get(feature, 'no remark')})"
        for name, row in now.items()
        for feature in FEATURES
        if row.verdicts[feature] != Verdict.PASS.value
        and name in before
        and before[name].verdicts.get(feature) == Verdict.PASS.value
    ]


def measure_all(bootstrap: str, workshop: Workshop) -> tuple[Table, dict[str, str]]:
    """The table of the clients that run here, and why the others don't."""
    commands: dict[str, list[str]] = {}
    absent: dict[str, str] = {}
    for client in CLIENTS.values():
        try:
            commands[client.name] = workshop.command(client)
        except NotHere as reason:
            absent[client.name] = str(reason)
    with ThreadPoolExecutor(PROGRAMS_AT_ONCE) as pool:
        running = {
            (name, feature): pool.submit(measured, command, bootstrap, feature)
            for name, command in commands.items()
            for feature in FEATURES
        }
    table = {name: Row(CLIENTS[name].version()) for name in commands}
    for (name, feature), outcome in running.items():
        table[name].add(feature, outcome.result())
    return table, absent


def with_absent_rows(table: Table, before: Table) -> Table:
    """All rows in the order of the clients; those that weren't measured as they were."""
    return {name: row for name in CLIENTS if (row := table.get(name) or before.get(name)) is not None}


def main(arguments: Sequence[str]) -> int:
    page = PAGE.read_text()
    before = documented(page)
    with tempfile.TemporaryDirectory() as folder:
        broker = BrokerProcess(Path(folder) / "broker").start()
        try:
            table, absent = measure_all(broker.bootstrap, Workshop(Path(folder)))
        finally:
            broker.stop()
    print(rendered(with_absent_rows(table, before)), end="")
    for name, reason in absent.items():
        print(f"not run here, its row is as it was: {name}: {reason}")
    if "--write" in arguments:
        PAGE.write_text(renewed(page, with_absent_rows(table, before)))
        return 0
    fallen = worse(before, table)
    for each in fallen:
        print(f"worse than {PAGE.name} says: {each}", file=sys.stderr)
    return 1 if fallen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What applications do with Kafka, with each client: every cell of the table in compatibility.md (C25 among them)."""

from __future__ import annotations

import pytest
from clients.compat.programs import CLIENTS, NotHere, Outcome, Verdict, Workshop, measured
from clients.compat.scenarios import FEATURES
from clients.compat.table import PAGE, Row, Table, documented, renewed, with_absent_rows, worse
from support.broker_process import BrokerProcess

#: The first run of a toolchain's clients fetches and compiles them.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(800)]


@pytest.fixture(scope="module")
def page() -> Table:
    return documented(PAGE.read_text())


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_has_what_the_page_says(
    broker: BrokerProcess, workshop: Workshop, page: Table, name: str, feature: str
) -> None:
    try:
        command = workshop.command(CLIENTS[name])
    except NotHere as reason:
        pytest.skip(str(reason))
    outcome = measured(command, broker.bootstrap, feature)
    assert outcome.verdict.value == page[name].verdicts[feature], outcome.remark


def a_row(verdict: Verdict) -> Row:
    row = Row("1.0")
    for feature in FEATURES:
        row.add(feature, Outcome(verdict, ""))
    return row


def test_a_table_is_read_as_it_was_written() -> None:
    table = {"one": a_row(Verdict.PASS), "other": a_row(Verdict.MISSING)}
    table["other"].add("groups", Outcome(Verdict.NOT_IN_CLIENT, "it has no groups, and says so"))
    assert documented(renewed("# Page\n<!-- measured: clients -->\n<!-- end -->\nmore\n", table)) == table


@pytest.mark.parametrize("verdict", [Verdict.MISSING, Verdict.NOT_IN_CLIENT])
def test_only_what_passed_before_can_be_worse(verdict: Verdict) -> None:
    now = {"one": a_row(Verdict.PASS)}
    now["one"].add("lag", Outcome(verdict, "a lag of 3"))
    assert worse({"one": a_row(Verdict.PASS)}, now) == [f"one, lag: {verdict.value} (a lag of 3)"]
    assert worse({"one": a_row(Verdict.MISSING)}, now) == []
    assert worse({}, now) == []


def test_a_client_that_is_not_run_keeps_its_row() -> None:
    kept, measured_now = a_row(Verdict.MISSING), a_row(Verdict.PASS)
    table = with_absent_rows({"kcat": measured_now}, {"kcat": a_row(Verdict.MISSING), "kafkajs": kept})
    assert table == {"kcat": measured_now, "kafkajs": kept}

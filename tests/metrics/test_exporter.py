"""A page that Prometheus' own parsers read."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families

from walrusmq.metrics import Metrics
from walrusmq.metrics.catalogue import CATALOGUE, Kind
from walrusmq.metrics.exporter import Exporter

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


@pytest.fixture
def metrics() -> Metrics:
    """Metrics with a value for every name of the catalogue."""
    metrics = Metrics("1.2.3", {0: "Produce"}, {6: "NOT_LEADER_OR_FOLLOWER"})
    metrics.requests[0] += 5
    metrics.count_error(0, 6)
    metrics.count_refusal("limit")
    metrics.count_rollover("entries")
    for metric in metrics.missing():
        metrics.provide(metric, lambda: 3)
    return metrics


def text_samples(page: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    }


def test_every_metric_of_the_catalogue_is_on_the_page(metrics: Metrics) -> None:
    page, content_type = Exporter(metrics).render("")
    assert content_type.startswith("text/plain")
    assert {metric.name for metric in CATALOGUE} <= {name for name, _ in text_samples(page)}


def test_values_and_labels_come_through(metrics: Metrics) -> None:
    samples = text_samples(Exporter(metrics).render("")[0])
    assert samples["walrus_requests_total", (("api", "Produce"),)] == 5
    assert samples["walrus_topics", ()] == 3
    assert samples["walrus_request_errors_total", (("api", "Produce"), ("error", "NOT_LEADER_OR_FOLLOWER"))] == 1


def test_openmetrics_is_given_to_those_who_accept_it(metrics: Metrics) -> None:
    page, content_type = Exporter(metrics).render(OPENMETRICS)
    assert content_type.startswith("application/openmetrics-text")
    families = {family.name: family for family in openmetrics_parser.text_string_to_metric_families(page.decode())}
    for metric in CATALOGUE:
        family = families[metric.name.removesuffix("_total").removesuffix("_info")]
        assert family.type == {Kind.COUNTER: "counter", Kind.GAUGE: "gauge", Kind.INFO: "info"}[metric.kind]


def test_each_render_shows_the_numbers_of_that_moment(metrics: Metrics) -> None:
    exporter = Exporter(metrics)
    exporter.render("")
    metrics.requests[0] += 1
    assert text_samples(exporter.render("")[0])["walrus_requests_total", (("api", "Produce"),)] == 6


def test_two_nodes_in_a_process_keep_their_numbers_apart(metrics: Metrics) -> None:
    other = Metrics("1.2.3", {0: "Produce"}, {})
    pages = [Exporter(each).render("")[0] for each in (metrics, other)]
    key = ("walrus_requests_total", (("api", "Produce"),))
    assert [text_samples(page)[key] for page in pages] == [5, 0]

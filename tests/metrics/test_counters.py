"""What is counted is what is read."""

from __future__ import annotations

import subprocess
import sys

import pytest

from walrusmq.metrics import Metrics
from walrusmq.metrics.catalogue import (
    BUILD_INFO,
    BYTES_RECEIVED,
    CATALOGUE,
    CONNECTIONS_REFUSED,
    REQUEST_ERRORS,
    REQUESTS,
    ROLLOVERS,
    TOPICS,
    Metric,
)
from walrusmq.metrics.counters import LabelValues


@pytest.fixture
def metrics() -> Metrics:
    return Metrics("1.2.3", {0: "Produce", 1: "Fetch"}, {6: "NOT_LEADER_OR_FOLLOWER"})


def values(metrics: Metrics, wanted: Metric) -> dict[LabelValues, float]:
    return dict(metrics.read())[wanted]


def test_requests_are_counted_in_place_and_known_apis_start_at_zero(metrics: Metrics) -> None:
    metrics.requests[0] += 1
    metrics.requests[0] += 1
    assert values(metrics, REQUESTS) == {("Produce",): 2, ("Fetch",): 0}


def test_errors_are_counted_by_api_and_name(metrics: Metrics) -> None:
    metrics.count_error(0, 6)
    metrics.count_error(0, 6)
    metrics.count_error(1, 6)
    assert values(metrics, REQUEST_ERRORS) == {
        ("Produce", "NOT_LEADER_OR_FOLLOWER"): 2,
        ("Fetch", "NOT_LEADER_OR_FOLLOWER"): 1,
    }


def test_an_error_without_a_name_shows_its_number(metrics: Metrics) -> None:
    metrics.count_error(7, 999)
    assert values(metrics, REQUEST_ERRORS) == {("7", "999"): 1}


def test_plain_counters_and_reasons_are_read_back(metrics: Metrics) -> None:
    metrics.bytes_received += 61
    metrics.count_refusal("limit")
    metrics.count_rollover("entries")
    metrics.count_rollover("entries")
    assert values(metrics, BYTES_RECEIVED) == {(): 61}
    assert values(metrics, CONNECTIONS_REFUSED) == {("limit",): 1}
    assert values(metrics, ROLLOVERS) == {("entries",): 2}


def test_the_version_is_a_label(metrics: Metrics) -> None:
    ((version, _python),) = values(metrics, BUILD_INFO)
    assert version == "1.2.3"


def test_a_provided_gauge_is_asked_anew_at_each_read(metrics: Metrics) -> None:
    topics = ["a"]
    metrics.provide(TOPICS, lambda: len(topics))
    assert values(metrics, TOPICS) == {(): 1}
    topics.append("b")
    assert values(metrics, TOPICS) == {(): 2}


def test_a_second_source_for_a_metric_is_refused(metrics: Metrics) -> None:
    metrics.provide(TOPICS, lambda: 1)
    with pytest.raises(ValueError, match="walrus_topics"):
        metrics.provide(TOPICS, lambda: 2)


def test_what_nobody_provides_is_missing_and_left_out(metrics: Metrics) -> None:
    assert TOPICS in metrics.missing()
    assert TOPICS not in dict(metrics.read())
    metrics.provide(TOPICS, lambda: 1)
    assert TOPICS not in metrics.missing()


def test_metrics_are_read_in_the_order_of_the_catalogue(metrics: Metrics) -> None:
    for metric in metrics.missing():
        metrics.provide(metric, lambda: 0)
    assert tuple(metric for metric, _ in metrics.read()) == CATALOGUE


def test_counting_needs_no_prometheus_client() -> None:
    program = "import walrusmq.metrics, sys; sys.exit('prometheus_client' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

"""The catalogue keeps Prometheus' rules for names."""

from __future__ import annotations

import re

import pytest

from walrusmq.metrics.catalogue import CATALOGUE, Kind, Metric

SUFFIX_BY_KIND = {Kind.COUNTER: "_total", Kind.INFO: "_info"}


@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda metric: metric.name)
def test_a_name_has_the_prefix_and_the_suffix_of_its_kind(metric: Metric) -> None:
    assert re.fullmatch(r"walrus(_[a-z]+)+", metric.name)
    for kind, suffix in SUFFIX_BY_KIND.items():
        assert metric.name.endswith(suffix) == (metric.kind is kind)


@pytest.mark.parametrize("metric", CATALOGUE, ids=lambda metric: metric.name)
def test_a_help_text_is_a_sentence(metric: Metric) -> None:
    assert metric.help[0].isupper()
    assert metric.help.endswith(".")


def test_no_two_families_share_a_name_once_openmetrics_has_cut_the_suffix() -> None:
    families = [metric.name.removesuffix("_total").removesuffix("_info") for metric in CATALOGUE]
    assert len(set(families)) == len(families)


def test_every_metric_of_the_module_stands_in_the_catalogue() -> None:
    from walrusmq.metrics import catalogue

    declared = {value.name for value in vars(catalogue).values() if isinstance(value, Metric)}
    assert declared == {metric.name for metric in CATALOGUE}

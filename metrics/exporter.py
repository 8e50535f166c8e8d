"""Prometheus' text from a node's metrics.

Importing this module imports prometheus_client, which takes longer than the rest of a start: wait for the first scrape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from walrusmq.metrics.catalogue import Kind, Metric
from walrusmq.metrics.counters import LabelValues, Metrics


class Exporter(Collector):
    """Renders one node's metrics, from a registry of its own: several nodes in a process don't mix."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def render(self, accept: str) -> tuple[bytes, str]:
        """The page and its content type, in the format that the ``Accept`` header ``accept`` ('' for none) asks for."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    def describe(self) -> Iterable[Family]:
        """Nothing: a registry asks this at the registration, when the node's numbers needn't exist yet."""
        return ()

    def collect(self) -> Iterable[Family]:
        """Ask every source for its numbers."""
        return [family(metric, values) for metric, values in self._metrics.read()]


def family(metric: Metric, values: Mapping[LabelValues, float]) -> Family:
    """``values`` by label values, as prometheus_client's kind of object."""
    match metric.kind:
        case Kind.INFO:
            info = InfoMetricFamily(metric.name.removesuffix("_info"), metric.help)
            for label_values in values:
                info.add_metric([], dict(zip(metric.labels, label_values, strict=True)))
            return info
        case Kind.COUNTER:
            counter = CounterMetricFamily(metric.name, metric.help, labels=metric.labels)
            for label_values, value in values.items():
                counter.add_metric(label_values, value)
            return counter
        case Kind.GAUGE:
            gauge = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
            for label_values, value in values.items():
                gauge.add_metric(label_values, value)
            return gauge

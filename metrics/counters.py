"""The numbers behind the metrics of one node.

The hot path counts in plain integers (a bound ``inc()`` of prometheus_client costs as much as several of them); whoever
holds other numbers gives a callable that is asked at each scrape. Nothing here imports prometheus_client: that waits
for the first scrape.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping

from walrusmq.metrics.catalogue import (
    BUILD_INFO,
    BYTES_APPENDED,
    BYTES_RECEIVED,
    BYTES_SENT,
    CATALOGUE,
    COMPACTION_FAILURES,
    COMPACTIONS,
    CONNECTIONS_OPENED,
    CONNECTIONS_REFUSED,
    ENTRIES_APPENDED,
    REQUEST_ERRORS,
    REQUESTS,
    ROLLOVERS,
    Metric,
)

LabelValues = tuple[str, ...]
Reading = float | Mapping[LabelValues, float]
"""The value of a metric without labels, or one value for each combination of its labels' values."""


class Metrics:
    """Counters of one node, to be added to in place: ``metrics.bytes_sent += n``, ``metrics.requests[api_key] += 1``.

    All attributes belong to the event loop's thread.
    """

    __slots__ = (
        "_api_names",
        "_error_names",
        "_readers",
        "_version",
        "bytes_appended",
        "bytes_received",
        "bytes_sent",
        "compaction_failures",
        "compactions",
        "connections_opened",
        "connections_refused",
        "entries_appended",
        "request_errors",
        "requests",
        "rollovers",
    )

    def __init__(self, version: str, api_names: Mapping[int, str], error_names: Mapping[int, str]) -> None:
        """``version`` is WalrusMQ's; ``api_names`` has every API key to be counted, ``error_names`` has error codes."""
        self._version = version
        self._api_names = api_names
        self._error_names = error_names
        self.requests: dict[int, int] = dict.fromkeys(api_names, 0)
        """Requests by API key; every known key is there from the start."""
        self.request_errors: dict[tuple[int, int], int] = {}
        """Errors by (API key, error code); use ``count_error``."""
        self.bytes_received = 0
        self.bytes_sent = 0
        self.connections_opened = 0
        self.connections_refused: dict[str, int] = {}
        """Refused connections by reason; use ``count_refusal``."""
        self.entries_appended = 0
        self.bytes_appended = 0
        self.compactions = 0
        self.compaction_failures = 0
        self.rollovers: dict[str, int] = {}
        """Rollovers by reason; use ``count_rollover``."""
        self._readers: dict[Metric, Callable[[], Reading]] = {
            BUILD_INFO: self._build_info,
            REQUESTS: self._requests_by_api,
            REQUEST_ERRORS: self._errors_by_api,
            BYTES_RECEIVED: lambda: self.bytes_received,
            BYTES_SENT: lambda: self.bytes_sent,
            CONNECTIONS_OPENED: lambda: self.connections_opened,
            CONNECTIONS_REFUSED: lambda: by_one_label(self.connections_refused),
            ENTRIES_APPENDED: lambda: self.entries_appended,
            BYTES_APPENDED: lambda: self.bytes_appended,
            COMPACTIONS: lambda: self.compactions,
            COMPACTION_FAILURES: lambda: self.compaction_failures,
            ROLLOVERS: lambda: by_one_label(self.rollovers),
        }

    def count_error(self, api_key: int, error_code: int) -> None:
        """Count one error code that goes out in an answer."""
        key = (api_key, error_code)
        self.request_errors[key] = self.request_errors.get(key, 0) + 1

    def count_refusal(self, reason: str) -> None:
        """Count one connection that was closed for ``reason``, a word from a fixed set."""
        self.connections_refused[reason] = self.connections_refused.get(reason, 0) + 1

    def count_rollover(self, reason: str) -> None:
        """Count one segment that this node sealed for ``reason`` (design: entries, bytes, age, ...)."""
        self.rollovers[reason] = self.rollovers.get(reason, 0) + 1

    def provide(self, metric: Metric, reader: Callable[[], Reading]) -> None:
        """Have ``reader`` asked for ``metric`` at each scrape, on the event loop's thread.

        It returns a number, or for a metric with labels a mapping from the labels' values to numbers. A metric has one
        source only: ValueError for a second one.
        """
        if metric in self._readers:
            raise ValueError(f"{metric.name} already has a source")
        self._readers[metric] = reader

    def missing(self) -> tuple[Metric, ...]:
        """The metrics of the catalogue that nothing provides yet: a scrape leaves them out."""
        return tuple(metric for metric in CATALOGUE if metric not in self._readers)

    def read(self) -> Iterator[tuple[Metric, dict[LabelValues, float]]]:
        """Each provided metric in the catalogue's order, with its values by label values (``()`` where it has none)."""
        for metric in CATALOGUE:
            reader = self._readers.get(metric)
            if reader is None:
                continue
            reading = reader()
            yield metric, dict(reading) if isinstance(reading, Mapping) else {(): reading}

    def _build_info(self) -> Reading:
        return {(self._version, ".".join(map(str, sys.version_info[:3]))): 1}

    def _requests_by_api(self) -> Reading:
        return {(self._api_names[key],): count for key, count in self.requests.items()}

    def _errors_by_api(self) -> Reading:
        return {
            (self._api_names.get(key, str(key)), self._error_names.get(code, str(code))): count
            for (key, code), count in self.request_errors.items()
        }


def by_one_label(counts: Mapping[str, float]) -> dict[LabelValues, float]:
    """Counts by the value of a metric's only label, as ``Metrics.provide`` wants them."""
    return {(value,): count for value, count in counts.items()}

"""Every metric of a node, named once: its exposed name, kind, meaning and labels.

Names follow Prometheus' page "Metric and label naming": one prefix, base units (seconds, bytes), ``_total`` on
counters, ``_info`` on facts, labels whose values are few and whose sum makes sense. No label carries a client's or a
connection's name: those have no bound. Two names must differ by more than ``_total``, which OpenMetrics takes off a
family's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """How a value behaves over time, in Prometheus' terms."""

    COUNTER = "counter"
    GAUGE = "gauge"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of the catalogue. ``name`` is the name that a scrape shows."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()


BUILD_INFO = Metric(
    "walrus_build_info", Kind.INFO, "The running version; the value is always 1.", ("version", "python")
)

REQUESTS = Metric("walrus_requests_total", Kind.COUNTER, "Requests taken up by a handler, by API.", ("api",))
REQUEST_ERRORS = Metric(
    "walrus_request_errors_total",
    Kind.COUNTER,
    "Error codes put into answers, by API and error name.",
    ("api", "error"),
)
BYTES_RECEIVED = Metric("walrus_bytes_received_total", Kind.COUNTER, "Bytes read from clients' connections.")
BYTES_SENT = Metric("walrus_bytes_sent_total", Kind.COUNTER, "Bytes handed to clients' connections.")
BUFFERED_BYTES = Metric(
    "walrus_buffered_bytes", Kind.GAUGE, "Bytes held for clients: requests in the making and answers not yet sent."
)

CONNECTIONS = Metric("walrus_connections", Kind.GAUGE, "Clients' connections that are open now.")
CONNECTIONS_OPENED = Metric(
    "walrus_connections_accepted_total", Kind.COUNTER, "Clients' connections accepted since the start."
)
CONNECTIONS_REFUSED = Metric(
    "walrus_connections_refused_total",
    Kind.COUNTER,
    "Connections closed because of a limit or of what they sent.",
    ("reason",),
)

TOPICS = Metric("walrus_topics", Kind.GAUGE, "Topics in the cluster image.")
PARTITIONS = Metric("walrus_partitions", Kind.GAUGE, "Partitions in the cluster image.")
SEGMENTS = Metric("walrus_segments", Kind.GAUGE, "Segments in the cluster image, open and sealed.")
ROLLOVERS = Metric(
    "walrus_segment_rollovers_total", Kind.COUNTER, "Segments sealed by this node, by reason.", ("reason",)
)

ENTRIES_APPENDED = Metric(
    "walrus_entries_appended_total", Kind.COUNTER, "Entries (records) appended to this node's segments."
)
BYTES_APPENDED = Metric(
    "walrus_bytes_appended_total", Kind.COUNTER, "Bytes of batches appended to this node's segments."
)
FSYNCS = Metric("walrus_fsyncs_total", Kind.COUNTER, "Calls that made appended batches durable (fdatasync).")
FSYNC_SECONDS = Metric("walrus_fsync_seconds_total", Kind.COUNTER, "Time spent in those calls.")

COMPACTIONS = Metric(
    "walrus_compactions_total", Kind.COUNTER, "Rounds in which this node compacted a partition's sealed segments."
)
COMPACTION_FAILURES = Metric(
    "walrus_compaction_failures_total", Kind.COUNTER, "Rounds that failed; the partition is tried again a minute later."
)

LOOP_LAG = Metric("walrus_event_loop_lag_seconds", Kind.GAUGE, "How late the event loop ran its last timer.")
LOOP_LAG_MAX = Metric(
    "walrus_event_loop_lag_max_seconds",
    Kind.GAUGE,
    "The latest that the event loop ran a timer in the past one to two minutes.",
)

CATALOGUE: tuple[Metric, ...] = (
    BUILD_INFO,
    REQUESTS,
    REQUEST_ERRORS,
    BYTES_RECEIVED,
    BYTES_SENT,
    BUFFERED_BYTES,
    CONNECTIONS,
    CONNECTIONS_OPENED,
    CONNECTIONS_REFUSED,
    TOPICS,
    PARTITIONS,
    SEGMENTS,
    ROLLOVERS,
    ENTRIES_APPENDED,
    BYTES_APPENDED,
    FSYNCS,
    FSYNC_SECONDS,
    COMPACTIONS,
    COMPACTION_FAILURES,
    LOOP_LAG,
    LOOP_LAG_MAX,
)
"""What a scrape shows, in this order."""

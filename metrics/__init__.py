"""Every metric of a node, named once, and the exporter for Prometheus. Imports nothing of the house."""

from walrusmq.metrics.counters import Metrics as Metrics
from walrusmq.metrics.loop_lag import LoopLag as LoopLag

"""Measures any Kafka-compatible broker: ``python -m benchmarks --help``."""

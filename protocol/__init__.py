"""Kafka's wire: frames, primitive types, message declarations, record batches, error codes."""

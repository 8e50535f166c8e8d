"""WalrusMQ: a Kafka-compatible broker that you can ``pip install``."""

__version__ = "0.1.0"

"""DescribeLogDirs: how much of each disk the partitions take (KIP-113, KIP-827)."""

from __future__ import annotations

from walrusmq.protocol.primitives import Array, Bool, Int16, Int32, Int64, String
from walrusmq.protocol.schema import field, message, struct


@struct
class DescribableLogDirTopic:
    """The partitions of one topic to ask about."""

    topic: str = field(String, "0+")
    partitions: list[int] = field(Array(Int32), "0+")


@message(api_key=35, kind="request", versions="1-5", flexible="2+")
class DescribeLogDirsRequest:
    """Ask about partitions; null means all of them."""

    topics: list[DescribableLogDirTopic] | None = field(Array(DescribableLogDirTopic), "0+", nullable="0+")


@struct
class DescribeLogDirsPartition:
    """The size of one partition in a directory, and how far it is behind its high watermark."""

    partition_index: int = field(Int32, "0+")
    partition_size: int = field(Int64, "0+")
    offset_lag: int = field(Int64, "0+")
    is_future_key: bool = field(Bool, "0+")


@struct
class DescribeLogDirsTopic:
    """The partitions of one topic in a directory."""

    name: str = field(String, "0+")
    partitions: list[DescribeLogDirsPartition] = field(Array(DescribeLogDirsPartition), "0+")


@struct
class DescribeLogDirsResult:
    """A directory: what it holds, and the size and the free space of its disk, -1 where unknown."""

    error_code: int = field(Int16, "0+")
    log_dir: str = field(String, "0+")
    topics: list[DescribeLogDirsTopic] = field(Array(DescribeLogDirsTopic), "0+")
    total_bytes: int = field(Int64, "4+", default=-1, ignorable=True)
    usable_bytes: int = field(Int64, "4+", default=-1, ignorable=True)
    is_cordoned: bool = field(Bool, "5+", ignorable=True)


@message(api_key=35, kind="response", versions="1-5", flexible="2+")
class DescribeLogDirsResponse:
    """The directories of the node."""

    throttle_time_ms: int = field(Int32, "0+")
    error_code: int = field(Int16, "3+", ignorable=True)
    results: list[DescribeLogDirsResult] = field(Array(DescribeLogDirsResult), "0+")

"""Commands for tests of the cluster image, with what doesn't matter filled in."""

from __future__ import annotations

from typing import Any

from walrusmq.broker.commands import (
    CommandListener,
    CompactSegment,
    CreateTopic,
    NamedValue,
    NewPartition,
    RegisterNode,
    RolloverReason,
    RolloverSegment,
)
from walrusmq.broker.image import ClusterImage


def topic_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def register(node_id: int = 1, **values: Any) -> RegisterNode:
    listeners = [CommandListener(name="CLIENT", host="127.0.0.1", port=9092)]
    return RegisterNode(**{"node_id": node_id, "listeners": listeners, "software_version": "0.1.0", **values})


def create(number: int = 1, partitions: int = 1, assigned: tuple[int, ...] = (1,), **configs: str) -> CreateTopic:
    return CreateTopic(
        topic_id=topic_id(number),
        name=f"topic-{number}",
        partitions=[NewPartition(assigned=list(assigned)) for _ in range(partitions)],
        configs=[NamedValue(name=name.replace("_", "."), value=value) for name, value in configs.items()],
    )


def roll(
    image: ClusterImage, number: int = 1, partition: int = 0, entries: int = 100, **values: Any
) -> RolloverSegment:
    """The command that seals the open segment with so many entries, by its leader, which stays."""
    opened = image.topics[topic_id(number)].partitions[partition].open
    facts: dict[str, Any] = {
        "topic_id": topic_id(number),
        "partition": partition,
        "segment_id": opened.id,
        "leader": opened.leader,
        "leader_incarnation": image.nodes[opened.leader].incarnation,
        "first_offset": opened.first_offset,
        "end_offset": opened.first_offset + entries,
        "size_bytes": entries * 10,
        "max_timestamp": 1_000 + opened.id,
        "max_timestamp_offset": opened.first_offset,
        "members": list(opened.members),
        "reason": RolloverReason.ENTRIES,
        "next_leader": opened.leader,
        "next_members": list(opened.members),
    }
    return RolloverSegment(**{**facts, **values})


def compact(segment_id: int, number: int = 1, partition: int = 0, **values: Any) -> CompactSegment:
    """The command that gives a sealed segment its next generation."""
    facts: dict[str, Any] = {
        "topic_id": topic_id(number),
        "partition": partition,
        "segment_id": segment_id,
        "generation": 1,
        "size_bytes": 70,
        "max_timestamp": 5,
        "max_timestamp_offset": 6,
    }
    return CompactSegment(**{**facts, **values})


class Applied:
    """An image, and commands applied to it one after the other."""

    def __init__(self, *commands: Any) -> None:
        self.image = ClusterImage()
        for command in commands:
            self.apply(command)

    def apply(self, command: Any) -> Any:
        return self.image.apply(self.image.applied_index + 1, command)

"""The chain of segments that a node's image has of a partition, held against what can be read and the files."""

from __future__ import annotations

from pathlib import Path

from support.reading import Found
from support.stored_segments import written
from support.waiting import until

from walrusmq.broker.node import Node
from walrusmq.segments.facts import SealedSegment

Chain = list[tuple[int, int, int, int, int]]
"""Id, first offset, end offset, bytes and leader epoch of each sealed segment."""


async def no_rollover(node: Node) -> None:
    """Return once no rollover is under way. Raises TimeoutError."""
    await until(lambda: not node.rollovers._running)


def sealed_of(node: Node, topic: str, partition: int = 0) -> list[SealedSegment]:
    return node.image.topics_by_name[topic].partitions[partition].sealed


def chain_of(node: Node, topic: str, partition: int = 0) -> Chain:
    """The sealed segments, comparable across restarts."""
    return [
        (facts.id, facts.first_offset, facts.end_offset, facts.size_bytes, facts.leader_epoch)
        for facts in sealed_of(node, topic, partition)
    ]


def check_chain(node: Node, topic: str, found: Found, partition: int = 0) -> int:
    """Hold the chain to ``found``, all that can be read, and to the files; returns the number of sealed segments.

    Ids count up from 1, each segment begins where the one before ends, counts and bytes are exact.
    """
    node.image.check()
    topic_image = node.image.topics_by_name[topic]
    image = topic_image.partitions[partition]
    folder = Path(node.store.folder, "topics", f"{topic_image.id.hex()}-{partition}")
    offsets = [offset for offset, _ in found]
    end_offset = 0
    for position, facts in enumerate(image.sealed):
        assert facts.id == position + 1
        assert facts.first_offset == end_offset
        end_offset = facts.end_offset
        readable = sum(facts.first_offset <= offset < facts.end_offset for offset in offsets)
        assert readable == facts.end_offset - facts.first_offset, f"segment {facts.id} says more or less than is there"
        assert written(folder / f"{facts.id:010}.log") == (facts.first_offset, facts.end_offset, facts.size_bytes)
    assert (image.open.id, image.open.first_offset) == (len(image.sealed) + 1, end_offset)
    return len(image.sealed)

"""The committed offsets of groups, and which of them have expired. Decides, never does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from walrusmq.protocol.primitives import ZERO_UUID

NO_EPOCH = -1
NO_EXPIRY_MS = -1

TopicPartition = tuple[str, int]


class CommittedOffset(NamedTuple):
    """How far a group has come in one partition."""

    offset: int
    leader_epoch: int = NO_EPOCH
    metadata: str = ""
    commit_ms: int = -1
    expire_ms: int = NO_EXPIRY_MS
    """When it expires, if the client said so (OffsetCommit up to version 4); else the node's retention decides."""
    topic_id: bytes = ZERO_UUID
    """The topic that it was committed for, among all that may have the name one after the other; zeros: unknown."""


OffsetsByTopic = Mapping[str, Mapping[int, CommittedOffset]]
"""The offsets of one group, by topic and partition."""


class Offsets:
    """The offsets of every group that has some, by topic and partition."""

    __slots__ = ("_by_group",)

    def __init__(self) -> None:
        self._by_group: dict[str, dict[str, dict[int, CommittedOffset]]] = {}

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._by_group

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_group)

    def of(self, group_id: str) -> OffsetsByTopic:
        """The offsets of a group, to be read; empty if it has none."""
        return self._by_group.get(group_id, {})

    def set(self, group_id: str, key: TopicPartition, committed: CommittedOffset) -> None:
        """A commit has been stored."""
        topic, partition = key
        self._by_group.setdefault(group_id, {}).setdefault(topic, {})[partition] = committed

    def remove(self, group_id: str, key: TopicPartition) -> None:
        """A removal has been stored; one of nothing is none."""
        topic, partition = key
        topics = self._by_group.get(group_id, {})
        partitions = topics.get(topic, {})
        partitions.pop(partition, None)
        if not partitions:
            topics.pop(topic, None)
        if not topics:
            self._by_group.pop(group_id, None)

    def remove_stale(self, group_id: str, topic: str, is_stale: Callable[[str, CommittedOffset], bool]) -> list[int]:
        """Forget a group's stale offsets of a topic; returns their partitions."""
        held = self.of(group_id).get(topic, {})
        stale = [partition for partition, committed in held.items() if is_stale(topic, committed)]
        for partition in stale:
            self.remove(group_id, (topic, partition))
        return stale

    def clear(self) -> None:
        """Forget all."""
        self._by_group.clear()


def expired(
    offsets: OffsetsByTopic, *, empty_since_ms: int | None, subscribed: set[str], retention_ms: int, now_ms: int
) -> list[TopicPartition]:
    """The partitions whose offsets are to go (KIP-211).

    ``empty_since_ms`` is when a group that had members lost the last one, None where the commits themselves count.
    What a client gave an end of its own expires then. Nothing expires of a topic that members are subscribed to.
    """
    return [
        (topic, partition)
        for topic, partitions in offsets.items()
        if topic not in subscribed
        for partition, committed in partitions.items()
        if now_ms >= _end_ms(committed, empty_since_ms, retention_ms)
    ]


def _end_ms(committed: CommittedOffset, empty_since_ms: int | None, retention_ms: int) -> int:
    if committed.expire_ms != NO_EXPIRY_MS:
        return committed.expire_ms
    return (committed.commit_ms if empty_since_ms is None else empty_since_ms) + retention_ms

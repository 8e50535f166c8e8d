"""The committed offsets of groups, and which of them have expired. Decides, never does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

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


class Offsets:
    """The offsets of every group that has some, by topic and partition."""

    __slots__ = ("_by_group",)

    def __init__(self) -> None:
        self._by_group: dict[str, dict[TopicPartition, CommittedOffset]] = {}

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._by_group

    def of(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        """The offsets of a group, to be read; empty if it has none."""
        return self._by_group.get(group_id, {})

    def set(self, group_id: str, key: TopicPartition, committed: CommittedOffset) -> None:
        """A commit has been stored."""
        self._by_group.setdefault(group_id, {})[key] = committed

    def remove(self, group_id: str, key: TopicPartition) -> None:
        """A removal has been stored; one of nothing is none."""
        offsets = self._by_group.get(group_id)
        if offsets is not None:
            offsets.pop(key, None)
            if not offsets:
                del self._by_group[group_id]


def expired(
    offsets: Iterable[tuple[TopicPartition, CommittedOffset]],
    *,
    empty_since_ms: int | None,
    subscribed: set[str],
    retention_ms: int,
    now_ms: int,
) -> list[TopicPartition]:
    """The partitions whose offsets are to go (KIP-211).

    ``empty_since_ms`` is when a group that had members lost the last one, None where commits themselves count.
    What a client gave an end of its own expires then. Nothing expires of a topic that members are subscribed to.
    """
    return [
        key
        for key, committed in offsets
        if key[0] not in subscribed and now_ms >= _end_ms(committed, empty_since_ms, retention_ms)
    ]


def _end_ms(committed: CommittedOffset, empty_since_ms: int | None, retention_ms: int) -> int:
    if committed.expire_ms != NO_EXPIRY_MS:
        return committed.expire_ms
    since_ms = committed.commit_ms if empty_since_ms is None else max(empty_since_ms, committed.commit_ms)
    return since_ms + retention_ms

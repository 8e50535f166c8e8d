"""Fetch sessions (KIP-227): a client names its partitions once and then only what changed."""

from __future__ import annotations

import random
from collections import OrderedDict
from dataclasses import dataclass

from walrusmq.broker.topics import MAX_NAME_LENGTH
from walrusmq.protocol.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch

FINAL_EPOCH = -1
INITIAL_EPOCH = 0
MAX_EPOCH = 2**31 - 1
NO_SESSION = 0
#: A session that was not used for so long makes room for a new one.
EVICT_AFTER_S = 120.0
#: Partitions in all sessions together: a larger fetch works, without a session.
MAX_CACHED_PARTITIONS = 500_000

TopicKey = str | bytes
"""A topic's name (Fetch up to 12) or id (from 13)."""
PartitionKey = tuple[TopicKey, int]


@dataclass(slots=True)
class WantedPartition:
    """What a client wants of one partition, and what it was last told of it."""

    topic: TopicKey
    index: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int
    last_fetched_epoch: int
    told_high_watermark: int = -1
    told_log_start_offset: int = -1


@dataclass(slots=True)
class Session:
    """One client's partitions, in the order in which they are served."""

    id: int
    next_epoch: int
    uses_topic_ids: bool
    partitions: OrderedDict[PartitionKey, WantedPartition]
    last_used_s: float


def has_illegal_name(wanted: list[WantedPartition]) -> bool:
    """Whether a topic's name is longer than any topic's: a session would keep up to 32 KB of it."""
    return any(len(each.topic) > MAX_NAME_LENGTH for each in wanted)


class FetchSessions:
    """All sessions of a node, bounded in number and partitions."""

    __slots__ = ("_max_sessions", "_partitions", "_random", "_sessions")

    def __init__(self, max_sessions: int) -> None:
        self._max_sessions = max_sessions
        self._sessions: OrderedDict[int, Session] = OrderedDict()
        self._partitions = 0
        self._random = random.Random()

    def __len__(self) -> int:
        return len(self._sessions)

    def create(self, wanted: list[WantedPartition], uses_topic_ids: bool, now_s: float) -> Session | None:
        """A session for these partitions; None when there is no room for one."""
        if has_illegal_name(wanted) or not self._make_room(len(wanted), now_s):
            return None
        session_id = self._random.randint(1, MAX_EPOCH)
        while session_id in self._sessions:
            session_id = self._random.randint(1, MAX_EPOCH)
        partitions = OrderedDict(((w.topic, w.index), w) for w in wanted)
        session = Session(session_id, 1, uses_topic_ids, partitions, now_s)
        self._sessions[session_id] = session
        self._partitions += len(partitions)
        return session

    def advance(
        self,
        session_id: int,
        epoch: int,
        changed: list[WantedPartition],
        forgotten: list[PartitionKey],
        uses_topic_ids: bool,
        now_s: float,
    ) -> Session | None:
        """Take an incremental request; returns None if it left the session without partitions, which ends it.

        Raises FetchSessionIdNotFound, InvalidFetchSessionEpoch, FetchSessionTopicIdError.
        """
        session = self._sessions.get(session_id)
        if session is None:
            raise FetchSessionIdNotFound(f"there is no fetch session {session_id}")
        if epoch != session.next_epoch:
            raise InvalidFetchSessionEpoch(
                f"fetch session {session_id} expects epoch {session.next_epoch}, not {epoch}"
            )
        if uses_topic_ids != session.uses_topic_ids:
            raise FetchSessionTopicIdError(f"fetch session {session_id} names topics the other way")
        self._change(session, changed, forgotten)
        if self._partitions > MAX_CACHED_PARTITIONS or has_illegal_name(changed):
            self.close(session_id)  # the client is to begin anew, with a full fetch
            raise FetchSessionIdNotFound(f"fetch session {session_id} has grown too large")
        if not session.partitions:
            self.close(session_id)
            return None
        session.next_epoch = 1 if epoch == MAX_EPOCH else epoch + 1
        session.last_used_s = now_s
        self._sessions.move_to_end(session_id)
        return session

    def close(self, session_id: int) -> None:
        """End a session; one that isn't there is no error."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partitions -= len(session.partitions)

    def _change(self, session: Session, changed: list[WantedPartition], forgotten: list[PartitionKey]) -> None:
        partitions = session.partitions
        before = len(partitions)
        for wanted in changed:
            known = partitions.get((wanted.topic, wanted.index))
            if known is None:
                partitions[wanted.topic, wanted.index] = wanted
            else:
                known.fetch_offset = wanted.fetch_offset
                known.max_bytes = wanted.max_bytes
                known.current_leader_epoch = wanted.current_leader_epoch
                known.last_fetched_epoch = wanted.last_fetched_epoch
        for key in forgotten:
            partitions.pop(key, None)
        self._partitions += len(partitions) - before

    def _make_room(self, partitions: int, now_s: float) -> bool:
        while self._sessions and (
            len(self._sessions) >= self._max_sessions or self._partitions + partitions > MAX_CACHED_PARTITIONS
        ):
            oldest = next(iter(self._sessions.values()))
            if now_s - oldest.last_used_s < EVICT_AFTER_S:
                return False
            self.close(oldest.id)
        return self._max_sessions > 0 and partitions <= MAX_CACHED_PARTITIONS

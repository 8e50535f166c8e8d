import pytest

from walrusmq.broker.fetch_sessions import EVICT_AFTER_S, MAX_EPOCH, FetchSessions, WantedPartition
from walrusmq.protocol.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch


def wanted(index: int, offset: int = 0, topic: str = "t") -> WantedPartition:
    return WantedPartition(topic, index, offset, 1 << 20, -1, -1)


def test_a_session_keeps_the_partitions_that_it_began_with() -> None:
    sessions = FetchSessions(10)
    session = sessions.create([wanted(0), wanted(1)], False, 0.0)
    assert session is not None
    assert session.id > 0
    again = sessions.advance(session.id, 1, [], [], False, 1.0)
    assert again is session
    assert list(session.partitions) == [("t", 0), ("t", 1)]


def test_an_incremental_request_changes_adds_and_forgets() -> None:
    sessions = FetchSessions(10)
    session = sessions.create([wanted(0), wanted(1)], False, 0.0)
    assert session is not None
    sessions.advance(session.id, 1, [wanted(0, offset=7), wanted(5)], [("t", 1)], False, 1.0)
    assert list(session.partitions) == [("t", 0), ("t", 5)]
    assert session.partitions["t", 0].fetch_offset == 7


def test_what_a_client_was_told_survives_its_change_of_offset() -> None:
    sessions = FetchSessions(10)
    session = sessions.create([wanted(0)], False, 0.0)
    assert session is not None
    session.partitions["t", 0].told_high_watermark = 42
    sessions.advance(session.id, 1, [wanted(0, offset=7)], [], False, 1.0)
    assert session.partitions["t", 0].told_high_watermark == 42


def test_each_epoch_is_used_once_and_wraps_to_one() -> None:
    sessions = FetchSessions(10)
    session = sessions.create([wanted(0)], False, 0.0)
    assert session is not None
    sessions.advance(session.id, 1, [], [], False, 0.0)
    with pytest.raises(InvalidFetchSessionEpoch):
        sessions.advance(session.id, 1, [], [], False, 0.0)
    session.next_epoch = MAX_EPOCH
    sessions.advance(session.id, MAX_EPOCH, [], [], False, 0.0)
    assert session.next_epoch == 1


def test_an_unknown_session_is_refused() -> None:
    with pytest.raises(FetchSessionIdNotFound):
        FetchSessions(10).advance(99, 1, [], [], False, 0.0)


def test_a_session_of_names_refuses_ids() -> None:
    sessions = FetchSessions(10)
    session = sessions.create([wanted(0)], False, 0.0)
    assert session is not None
    with pytest.raises(FetchSessionTopicIdError):
        sessions.advance(session.id, 1, [], [], True, 0.0)


def test_forgetting_the_last_partition_ends_the_session() -> None:
    sessions = FetchSessions(10)
    session = sessions.create([wanted(0)], False, 0.0)
    assert session is not None
    assert sessions.advance(session.id, 1, [], [("t", 0)], False, 0.0) is None
    assert len(sessions) == 0


def test_a_full_cache_gives_no_session_until_one_has_been_idle_for_long() -> None:
    sessions = FetchSessions(1)
    first = sessions.create([wanted(0)], False, 0.0)
    assert first is not None
    assert sessions.create([wanted(1)], False, EVICT_AFTER_S - 1) is None
    assert sessions.create([wanted(1)], False, EVICT_AFTER_S + 1) is not None
    assert len(sessions) == 1


def test_no_slots_mean_no_sessions() -> None:
    assert FetchSessions(0).create([wanted(0)], False, 0.0) is None


def test_partitions_in_all_sessions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("walrusmq.broker.fetch_sessions.MAX_CACHED_PARTITIONS", 3)
    sessions = FetchSessions(10)
    assert sessions.create([wanted(0), wanted(1)], False, 0.0) is not None
    assert sessions.create([wanted(0), wanted(1)], False, 1.0) is None
    assert sessions.create([wanted(0)], False, 1.0) is not None

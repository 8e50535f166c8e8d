"""Which sealed segment holds an offset, a time or an epoch."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from walrusmq.segments.chain import Chain
from walrusmq.segments.facts import SealedSegment

#: Segments as (entries, largest timestamp, how much the leader epoch grows).
shapes = st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 9), st.integers(0, 2)), max_size=30)


def facts_of(shape: list[tuple[int, int, int]], first_offset: int = 100) -> list[SealedSegment]:
    facts = []
    epoch = 0
    for number, (entries, timestamp, growth) in enumerate(shape, 1):
        epoch += growth
        end = first_offset + entries
        facts.append(SealedSegment(number, 1, epoch, first_offset, end, entries * 70, timestamp, first_offset, (1,)))
        first_offset = end
    return facts


class Log(SimpleNamespace):
    def close(self) -> None:
        self.is_closed = True


def a_chain(facts: list[SealedSegment]) -> Chain:
    return Chain(facts, lambda one: Log(facts=one, is_closed=False))  # type: ignore[arg-type,return-value]


@given(shapes, st.integers(95, 260))
def test_an_offset_falls_into_the_segment_that_holds_it(shape: list[tuple[int, int, int]], offset: int) -> None:
    chain = a_chain(facts_of(shape))
    holders = [place for place, one in enumerate(chain.sealed) if one.first_offset <= offset < one.end_offset]
    place = chain.at_offset(offset)
    if holders:
        assert [place] == holders
    elif place >= 0:
        assert all(one.end_offset <= offset for one in chain.sealed), "behind them all"


@given(shapes, st.integers(-1, 11))
def test_a_time_leads_to_the_first_segment_as_late(shape: list[tuple[int, int, int]], timestamp: int) -> None:
    chain = a_chain(facts_of(shape))
    late = [place for place, one in enumerate(chain.sealed) if one.max_timestamp >= timestamp]
    assert chain.at_timestamp(timestamp) == (late[0] if late else len(chain))


@given(shapes, st.integers(0, 20))
def test_an_epoch_ends_with_the_first_greater_one(shape: list[tuple[int, int, int]], epoch: int) -> None:
    chain = a_chain(facts_of(shape))
    greater = [place for place, one in enumerate(chain.sealed) if one.leader_epoch > epoch]
    assert chain.at_epoch(epoch) == (greater[0] if greater else len(chain))


@given(shapes, st.integers(95, 260))
def test_segments_that_end_before_an_offset_are_dropped(shape: list[tuple[int, int, int]], offset: int) -> None:
    facts = facts_of(shape)
    chain = a_chain(facts)
    logs = [chain.log(place) for place in range(len(chain))]
    chain.at_timestamp(5)
    dropped = chain.drop_below(offset)
    assert dropped == [one for one in facts if one.end_offset <= offset]
    assert chain.sealed == [one for one in facts if one.end_offset > offset]
    assert [log.is_closed for log in logs] == [log.facts in dropped for log in logs]  # type: ignore[attr-defined]
    assert a_chain(chain.sealed).at_timestamp(5) == chain.at_timestamp(5)


def test_a_chain_grows_at_its_end() -> None:
    facts = facts_of([(3, 5, 0), (2, 9, 1)])
    chain = a_chain(facts[:1])
    assert chain.at_timestamp(9) == 1
    chain.add(Log(facts=facts[1], is_closed=False))  # type: ignore[arg-type]
    assert chain.at_timestamp(9) == 1 == chain.at_offset(104)
    assert chain.log(1).facts is facts[1]
    assert chain.log(0) is chain.log(0)
    logs = [chain.log(0), chain.log(1)]
    chain.close()
    assert all(log.is_closed for log in logs)  # type: ignore[attr-defined]

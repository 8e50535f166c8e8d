from walrusmq.broker.deadlines import GRAIN_S, Deadlines


def test_a_wait_expires_once_its_deadline_has_passed_and_not_before() -> None:
    deadlines, expired = Deadlines(), []
    deadlines.add("a", 1.0, lambda: expired.append("a"))
    deadlines.expire(0.99)
    assert expired == []
    deadlines.expire(1.0 + GRAIN_S)
    deadlines.expire(2.0)
    assert expired == ["a"]


def test_a_removed_wait_never_expires_and_leaves_nothing_behind() -> None:
    deadlines, expired = Deadlines(), []
    bucket = deadlines.add("a", 1.0, lambda: expired.append("a"))
    deadlines.remove("a", bucket)
    deadlines.expire(5.0)
    assert expired == []
    assert deadlines._buckets == {}


def test_earlier_deadlines_expire_first() -> None:
    deadlines, expired = Deadlines(), []
    deadlines.add("late", 3.0, lambda: expired.append("late"))
    deadlines.add("early", 1.0, lambda: expired.append("early"))
    deadlines.expire(10.0)
    assert expired == ["early", "late"]


def test_a_stop_expires_all_even_those_that_are_added_meanwhile() -> None:
    deadlines, expired = Deadlines(), []
    deadlines.add("a", 9.0, lambda: deadlines.add("b", 99.0, lambda: expired.append("b")) and None)
    deadlines.expire_all()
    assert expired == ["b"]

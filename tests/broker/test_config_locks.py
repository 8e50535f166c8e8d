"""Locks of resources: one for each, as long as anybody uses it."""

from __future__ import annotations

import gc

from walrusmq.broker.commands import ResourceType
from walrusmq.broker.config_locks import ConfigLocks

TOPIC, NODE = ResourceType.TOPIC, ResourceType.BROKER


def test_a_resource_has_one_lock_and_others_have_their_own() -> None:
    locks = ConfigLocks()
    held = locks.of(TOPIC, "1")
    assert locks.of(TOPIC, "1") is held
    others = [locks.of(TOPIC, "2"), locks.of(NODE, "1"), locks.of(NODE, "")]
    assert len({id(lock) for lock in (held, *others)}) == 4


def test_a_lock_that_nobody_uses_takes_no_memory() -> None:
    locks = ConfigLocks()
    for number in range(1000):
        locks.of(TOPIC, str(number))
    gc.collect()
    assert len(locks) == 0

"""Ids for new topics."""

from __future__ import annotations

import base64
import uuid

from walrusmq.broker.topic_ids import new_topic_id


def test_ids_are_random_uuids_that_do_not_look_like_flags() -> None:
    ids = [new_topic_id() for _ in range(2000)]
    assert len(set(ids)) == len(ids)
    for topic_id in ids:
        assert uuid.UUID(bytes=topic_id).version == 4
        assert not base64.urlsafe_b64encode(topic_id).startswith(b"-")

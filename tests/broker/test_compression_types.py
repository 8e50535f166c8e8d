"""Codecs by the names of ``compression.type``, and what is said where one's library isn't there."""

from __future__ import annotations

import sys

import pytest
from support.handler_fakes import FakeNode

from walrusmq.broker.commands import ResourceType
from walrusmq.broker.compression_types import CODECS, missing_codec
from walrusmq.broker.config_changes import Change, ConfigPlanner, Operation, Wish
from walrusmq.broker.setting_names import SettingError
from walrusmq.broker.settings import Settings
from walrusmq.broker.topic_configs import log_config, validate
from walrusmq.protocol.errors import InvalidConfig, InvalidRequest
from walrusmq.protocol.records.compression import Codec

OF_EXTRA = ("snappy", "zstd")


@pytest.fixture
def _without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cramjam", None)


@pytest.mark.parametrize("value", CODECS)
def test_no_codec_is_missing_where_the_extra_is_installed(value: str) -> None:
    assert missing_codec(value) is None
    validate("compression.type", value)


@pytest.mark.usefixtures("_without_library")
@pytest.mark.parametrize("value", CODECS)
def test_without_the_extra_snappy_and_zstd_are_refused_for_topics_and_nodes_by_name(value: str) -> None:
    node = FakeNode()
    change = Wish(ResourceType.BROKER, "1", [Change("compression.type", Operation.SET, value)])
    planner = ConfigPlanner(node.image, node.settings, node.node_id)  # type: ignore[arg-type]
    if value not in OF_EXTRA:
        validate("compression.type", value)
        Settings.load({"compression.type": value})
        planner.plan(change)
        return
    told = rf'{value}.* needs the extra "codecs": pip install "walrusmq\[codecs\]"'
    with pytest.raises(InvalidConfig, match=told):
        validate("compression.type", value)
    with pytest.raises(SettingError, match=told):
        Settings.load({"compression.type": value})
    with pytest.raises(InvalidRequest, match=told):
        planner.plan(change)


@pytest.mark.usefixtures("_without_library")
def test_a_codec_that_was_taken_stays_when_its_library_has_gone() -> None:
    """The node starts; what is appended then is refused with what is missing."""
    assert log_config({"compression.type": "zstd"}, Settings.load()).codec is Codec.ZSTD

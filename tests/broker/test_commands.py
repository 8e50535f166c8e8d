"""Commands of the metadata log: what is proposed is what is applied, and what can't be read stops the node."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from walrusmq.broker import commands
from walrusmq.broker.commands import (
    COMMAND_TYPES,
    FEATURE_LEVEL,
    AllocateProducerIds,
    CommandListener,
    CommandType,
    CreateTopic,
    DeleteTopic,
    NamedValue,
    NewPartition,
    RegisterNode,
    RolloverReason,
    RolloverSegment,
    SetConfigs,
    UnreadableCommand,
    decode_command,
    encode_command,
)
from walrusmq.protocol.errors import UnsupportedVersion
from walrusmq.protocol.primitives import ZERO_UUID

TOPIC_ID = bytes(range(16))

EXAMPLES = (
    RegisterNode(
        node_id=3,
        rack=None,
        listeners=[CommandListener(name="CLIENT", host="::1", port=65535)],
        software_version="0.1.0",
    ),
    CreateTopic(
        topic_id=TOPIC_ID,
        name="events",
        partitions=[NewPartition(assigned=[1, 2, 3]), NewPartition(assigned=[2, 3], members=[3])],
        configs=[NamedValue(name="retention.ms", value="1000")],
    ),
    DeleteTopic(topic_id=TOPIC_ID),
    RolloverSegment(
        topic_id=TOPIC_ID,
        partition=7,
        segment_id=12,
        leader=1,
        leader_incarnation=2**40,
        first_offset=1000,
        end_offset=2**50,
        size_bytes=2**45,
        max_timestamp=1_700_000_000_000,
        max_timestamp_offset=2**49,
        members=[1, 2],
        reason=RolloverReason.ENTRIES,
        next_leader=2,
        next_members=[2, 1],
    ),
    SetConfigs(resource_type=2, name="events", configs=[NamedValue(name="retention.ms", value=None)]),
    AllocateProducerIds(node_id=1, incarnation=5, count=1000),
)


@pytest.mark.parametrize("command", EXAMPLES, ids=lambda command: type(command).__name__)
def test_a_command_is_read_as_it_was_written(command: Any) -> None:
    assert decode_command(encode_command(command)) == command


@pytest.mark.parametrize("kind", COMMAND_TYPES, ids=lambda kind: kind.command.__name__)
def test_every_command_begins_with_its_number_and_version(kind: CommandType) -> None:
    payload = encode_command(kind.command())
    assert payload[:4] == kind.number.to_bytes(2, "big") + (len(kind.levels) - 1).to_bytes(2, "big")
    assert decode_command(payload) == kind.command()


def test_numbers_and_classes_are_given_once_and_levels_never_fall() -> None:
    assert len({kind.number for kind in COMMAND_TYPES}) == len({kind.command for kind in COMMAND_TYPES})
    assert len({kind.number for kind in COMMAND_TYPES}) == len(COMMAND_TYPES)
    for kind in COMMAND_TYPES:
        assert list(kind.levels) == sorted(kind.levels)
        assert kind.levels[-1] <= FEATURE_LEVEL


def test_the_bytes_of_a_command_never_change() -> None:
    """The metadata log of an older version holds them."""
    assert encode_command(EXAMPLES[3]).hex() == (
        "00060000"
        "000102030405060708090a0b0c0d0e0f"
        "00000007" "0000000c" "00000001" "0000010000000000"
        "00000000000003e8" "0004000000000000" "0000200000000000"
        "0000018bcfe56800" "0002000000000000"
        "03" "00000001" "00000002"
        "01" "00000002"
        "03" "00000002" "00000001"
        "00"
    )  # fmt: skip


def test_an_unknown_command_is_named_with_what_to_do() -> None:
    with pytest.raises(UnreadableCommand, match=r"type 999 \(unknown here\), version 0.*start one that is as new"):
        decode_command((999).to_bytes(2, "big") + b"\0\0")


def test_an_unknown_version_is_named_with_its_command() -> None:
    with pytest.raises(UnreadableCommand, match=r"type 4 \(DeleteTopic\), version 9"):
        decode_command(b"\0\4\0\x09" + ZERO_UUID)


def test_a_negative_version_is_unreadable() -> None:
    with pytest.raises(UnreadableCommand, match="version -1"):
        decode_command(b"\0\4\xff\xff" + ZERO_UUID)


def test_nothing_is_proposed_above_the_feature_level(monkeypatch: pytest.MonkeyPatch) -> None:
    later = CommandType(4, DeleteTopic, (2,))
    monkeypatch.setitem(commands._BY_CLASS, DeleteTopic, later)
    monkeypatch.setitem(commands._BY_NUMBER, 4, later)
    with pytest.raises(UnsupportedVersion, match="DeleteTopic needs feature level 2, and the cluster is at 1"):
        encode_command(DeleteTopic(topic_id=TOPIC_ID), feature_level=1)
    payload = encode_command(DeleteTopic(topic_id=TOPIC_ID), feature_level=2)
    with pytest.raises(UnreadableCommand, match="needs feature level 2, while the cluster is at 1"):
        decode_command(payload, feature_level=1)
    assert decode_command(payload, feature_level=2) == DeleteTopic(topic_id=TOPIC_ID)


@given(st.sampled_from(EXAMPLES), st.data())
def test_any_bytes_are_a_command_or_unreadable(command: Any, data: st.DataObject) -> None:
    payload = bytearray(encode_command(command))
    start = data.draw(st.integers(0, len(payload)))
    payload[start:] = data.draw(st.binary(max_size=len(payload)))
    try:
        again = decode_command(bytes(payload))
    except UnreadableCommand:
        return
    assert type(again) in {kind.command for kind in COMMAND_TYPES}


@pytest.mark.parametrize("command", EXAMPLES, ids=lambda command: type(command).__name__)
def test_bytes_behind_a_command_are_unreadable(command: Any) -> None:
    with pytest.raises(UnreadableCommand, match="1 bytes too many"):
        decode_command(encode_command(command) + b"\0")

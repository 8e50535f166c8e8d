"""Term and vote: kept whole, and refused when they aren't."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.lossy_disk import LossyDisk

from walrusmq.consensus.errors import MetadataDamaged, NewerFormat
from walrusmq.consensus.storage import FILE_NAME, NO_VOTE, HardState, load_hard_state, save_hard_state
from walrusmq.protocol.records.crc import crc32c

FOLDER = "/metadata"
PATH = f"{FOLDER}/{FILE_NAME}"


def test_a_new_folder_has_no_hard_state() -> None:
    assert load_hard_state(FOLDER, LossyDisk()) is None


@given(st.integers(0, 2**63), st.integers(NO_VOTE, 2**31 - 1))
def test_what_was_saved_survives_a_crash(term: int, vote: int) -> None:
    disk = LossyDisk()
    save_hard_state(FOLDER, disk, HardState(1))
    save_hard_state(FOLDER, disk, HardState(term, vote))
    disk.crash()
    assert load_hard_state(FOLDER, disk) == HardState(term, vote)


@given(st.data())
def test_any_damage_is_refused(data: st.DataObject) -> None:
    disk = LossyDisk()
    save_hard_state(FOLDER, disk, HardState(7, 3))
    content = disk.names[PATH].cached
    position = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        del content[position:]
    else:
        content[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(MetadataDamaged, match=PATH):
        load_hard_state(FOLDER, disk)


def test_a_newer_format_is_refused_as_such() -> None:
    disk = LossyDisk()
    save_hard_state(FOLDER, disk, HardState(7))
    content = disk.names[PATH].cached
    content[8:10] = (9).to_bytes(2, "big")
    content[-4:] = crc32c(bytes(content[:-4])).to_bytes(4, "big")
    with pytest.raises(NewerFormat, match="format version is 9"):
        load_hard_state(FOLDER, disk)

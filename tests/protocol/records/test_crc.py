import subprocess
import sys

import crc32c as reference
from hypothesis import given
from hypothesis import strategies as st

from walrusmq.protocol.records import crc


def test_the_check_value_of_the_polynomial_comes_out() -> None:
    assert crc.crc32c(b"123456789") == 0xE3069283


def test_nothing_sums_to_zero() -> None:
    assert crc.crc32c(b"") == 0


@given(st.binary(max_size=300), st.integers(0, 300))
def test_a_sum_in_two_pieces_is_the_sum_of_the_whole(data: bytes, cut: int) -> None:
    assert crc.crc32c(memoryview(data)[cut:], crc.crc32c(data[:cut])) == crc.crc32c(data) == reference.crc32c(data)


def test_loading_it_leaves_the_slow_parts_of_its_package_alone() -> None:
    program = "import sys, walrusmq.protocol.records.crc; print('importlib.metadata' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "False"


def test_a_package_that_hides_its_extension_is_imported_whole(monkeypatch) -> None:
    monkeypatch.setattr(crc.PathFinder, "find_spec", lambda *_: None)
    assert crc._load_extension().crc32c(b"123456789") == 0xE3069283

"""What serve sets for its whole process. Each in a process of its own: it can't be taken back."""

from __future__ import annotations

import subprocess
import sys

import pytest


def output_of(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


def test_the_file_limit_is_raised_to_the_hard_one() -> None:
    code = """
import resource
from walrusmq.broker.process_tuning import raise_file_limit
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(200, hard), hard))
raise_file_limit()
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] in (hard, 65_536, 10_240))
raise_file_limit()
"""
    assert output_of(code) == "True"


def test_a_limit_that_the_system_wont_raise_is_left_as_it_is() -> None:
    code = """
import resource
from walrusmq.broker.process_tuning import raise_file_limit
def refuse(*arguments): raise ValueError("not allowed to raise maximum limit")
soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
resource.setrlimit = refuse
raise_file_limit()
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] == soft)
"""
    assert output_of(code) == "True"


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt is glibc's")
def test_a_large_freed_block_is_reused_without_new_page_faults() -> None:
    code = """
import resource
from walrusmq.broker.process_tuning import keep_freed_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(200):
        bytearray(1 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
if keep_freed_memory():
    faults()
    print(faults() < 1000)
else:
    print(True)
"""
    assert output_of(code) == "True"

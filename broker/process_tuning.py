"""What is set once for a whole process that does nothing but serve: its file limit and its allocator.

An embedded Node leaves its process as it is.
"""

from __future__ import annotations

import contextlib
import resource
import sys

#: Tried in this order where the hard limit can't be had as the soft one (macOS says "unlimited" and then refuses it).
FALLBACK_FILE_LIMITS = (65_536, 10_240)

#: glibc's names for what ``mallopt`` sets (malloc.h).
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
#: asyncio receives into fresh 256 KiB blocks: glibc would map and unmap each of them, at several times the cost of the
#: request in it. The most that glibc takes on 64 bits.
MMAP_THRESHOLD_BYTES = 32 << 20
#: Free memory at the heap's top that is kept rather than given back and faulted in again.
TRIM_THRESHOLD_BYTES = 64 << 20


def raise_file_limit() -> None:
    """Let this process open as many files as the system allows it: each connection and each segment takes some."""
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (hard_limit, *FALLBACK_FILE_LIMITS):
        if soft_limit != resource.RLIM_INFINITY and (limit == resource.RLIM_INFINITY or limit > soft_limit):
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard_limit))
                return


def keep_freed_memory() -> bool:
    """Have glibc reuse freed blocks instead of mapping fresh ones; False where the allocator is another."""
    if sys.platform != "linux":
        return False
    import ctypes

    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    wanted = ((M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES), (M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES))
    taken = [library.mallopt(option, size) == 1 for option, size in wanted]
    return all(taken)

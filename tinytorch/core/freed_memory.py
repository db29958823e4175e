"""Memory that a training step has freed, kept for the next one.

Every step makes and frees arrays of the same sizes. The C library of most Linux systems, glibc,
returns large ones to the system, which clears their memory before it hands it out again: with
vectors of length 128 that took a seventh of a step (bench: freed memory).
"""

import ctypes
import platform
import sys
from functools import cache

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # settings of mallopt, from malloc.h
LARGEST = 1 << 25  # bytes, 32 MiB: the most that every glibc accepts


@cache
def keep_freed_memory() -> bool:
    """Let this process keep the memory of freed arrays of up to 32 MiB; optimisers call it."""
    if sys.platform != "linux" or platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(M_MMAP_THRESHOLD, LARGEST) and mallopt(M_TRIM_THRESHOLD, 2**31 - 1))

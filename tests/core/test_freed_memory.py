"""Memory that is kept from one training step to the next: asked for by name, and only there."""

import platform
import subprocess
import sys

import pytest

from tinytorch.core import freed_memory

ON_GLIBC = sys.platform == "linux" and platform.libc_ver()[0] == "glibc"
FAULTS = """
import resource
import numpy as np
from tinytorch import SGD, Tensor

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        [np.ones(1 << 17) for _ in range(20)]  # 20 MiB, in 5,120 pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

before = faults()
SGD([Tensor([1.0], requires_grad=True)], lr=0.1)
faults()
print(before, faults())
"""


@pytest.mark.skipif(not ON_GLIBC, reason="needs glibc")
def test_optimiser_keeps_freed_memory_in_the_process():
    run = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    before, after = map(int, run.stdout.split())
    assert before > 5000 and after < before / 10


def test_nothing_happens_without_glibc(monkeypatch):
    monkeypatch.setattr(sys, "platform", "emscripten")
    monkeypatch.delattr(freed_memory, "ctypes")  # would be needed
    assert freed_memory.keep_freed_memory.__wrapped__() is False

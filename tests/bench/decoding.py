"""Writing text: prompts read at once, then one token after the other with a cache."""

from __future__ import annotations

import time

import numpy as np
import torch
from models import gpt
from torch_gpt import TorchGPT

PROMPT = 8


def programs(size: str, new: int, batch: int = 1):
    """Greedy writing of `new` tokens a text, ours and theirs; both must write the same."""
    ours = gpt(size, max_seq_len=max(256, PROMPT + new))
    theirs = TorchGPT(ours).eval()
    prompt = np.random.default_rng(0).integers(0, ours.vocab_size, (batch, PROMPT))
    tensor = torch.tensor(prompt)

    def write():
        return ours.generate(prompt, new, temperature=0).data

    def write_there():
        return theirs.generate(tensor, new).numpy()

    same = (write() == write_there()).mean()
    if same < 0.9:  # a tie may fall otherwise in another order of sums
        raise AssertionError(f"the two programs write different texts: {same:.0%} equal")
    return write, write_there, sum(p.data.nbytes for p in ours.parameters())


def prefill(size: str, length: int):
    """Reading a prompt and writing one token."""
    ours = gpt(size, max_seq_len=length + 1)
    theirs = TorchGPT(ours).eval()
    prompt = np.random.default_rng(0).integers(0, ours.vocab_size, (1, length))
    tensor = torch.tensor(prompt)
    return lambda: ours.generate(prompt, 1, temperature=0), lambda: theirs.generate(tensor, 1)


def read_bandwidth(megabytes: int = 512) -> float:
    """Bytes a second of one thread that reads a large matrix: a matrix-vector product."""
    matrix = np.ones((megabytes * 2**20 // 4 // 4096, 4096), dtype=np.float32)
    vector = np.ones(4096, dtype=np.float32)
    best = np.inf
    for _ in range(5):
        began = time.perf_counter()
        matrix @ vector
        best = min(best, time.perf_counter() - began)
    return matrix.nbytes / best

"""The models and batches that are measured."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch import GPT

SIZES: dict[str, dict[str, int]] = {
    "S": {"embed_dim": 64, "num_layers": 2, "num_heads": 4, "max_seq_len": 32},
    "M": {"embed_dim": 128, "num_layers": 4, "num_heads": 4, "max_seq_len": 64},
    "L": {"embed_dim": 384, "num_layers": 6, "num_heads": 6, "max_seq_len": 256},
}
BATCH = {"S": 16, "M": 16, "L": 8}
VOCAB = 65


def gpt(size: str, kind: type[GPT] = GPT, **options: Any) -> GPT:
    """One of the three sizes, or `gpt2-small`, with random weights."""
    if size in SIZES:
        return kind(**{"vocab_size": VOCAB, **SIZES[size], **options}, rng=0)
    return kind.preset(size, **options, rng=0)


def batch(size: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets of one training step."""
    shape = BATCH[size], SIZES[size]["max_seq_len"] + 1
    ids = np.random.default_rng(0).integers(0, VOCAB, shape)
    return ids[:, :-1], ids[:, 1:]

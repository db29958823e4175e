"""One step of an embedding table: lookup, row-sparse gradient, lazy Adam."""

from __future__ import annotations

import numpy as np
import torch

from tinytorch import AdamW, Embedding

DIM = 64


def programs(vocab: int):
    """The step with a row-sparse gradient, ours and with PyTorch's SparseAdam."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, vocab, (32, 64))
    gradient = rng.standard_normal((32, 64, DIM), dtype=np.float32)
    ours = Embedding(vocab, DIM, sparse=True, rng=0)
    optimizer = AdamW(ours.parameters(), lr=1e-3, weight_decay=0.0)
    theirs = torch.nn.Embedding(vocab, DIM, sparse=True)
    their_optimizer = torch.optim.SparseAdam(list(theirs.parameters()), lr=1e-3)
    indices, upstream = torch.tensor(ids), torch.tensor(gradient)

    def here():
        optimizer.zero_grad()
        ours(ids).backward(gradient)
        optimizer.step()

    def there():
        their_optimizer.zero_grad()
        theirs(indices).backward(upstream)
        their_optimizer.step()

    return here, there

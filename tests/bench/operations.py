"""Each fused operation, forward and backward, on the shapes of a training step of size L."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch.nn import functional as F

from tinytorch import Tensor, causal_mask, functional


def cases() -> Iterator[tuple[str, Callable[[], None], Callable[[], None]]]:
    """Names and the two programs."""
    rng = np.random.default_rng(0)

    def array(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    def pair(name, arrays, ours, theirs, outer):
        own = [Tensor(a, requires_grad=True) for a in arrays]
        tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
        upstream = torch.tensor(outer)

        def here():
            for t in own:
                t.grad = None
            ours(*own).backward(outer)

        def there():
            for t in tensors:
                t.grad = None
            theirs(*tensors).backward(upstream)

        return name, here, there

    wide, narrow = array(2048, 1536), array(2048, 384)
    heads = [array(8, 6, 256, 64) for _ in range(3)]
    mask = causal_mask(256)
    targets = rng.integers(0, 5000, 2048)
    goal = torch.tensor(targets)
    ids = rng.integers(0, 5000, 2048)
    indices = torch.tensor(ids)
    one = np.ones((), dtype=np.float32)
    yield pair(
        "linear", [narrow, array(384, 1536), array(1536)], functional.linear,
        lambda x, w, b: torch.addmm(b, x, w), wide,
    )  # fmt: skip
    yield pair("gelu", [wide], functional.gelu, lambda x: F.gelu(x, approximate="tanh"), wide)
    yield pair(
        "layer_norm", [narrow, array(384), array(384)], functional.layer_norm,
        lambda x, g, b: F.layer_norm(x, (384,), g, b), narrow,
    )  # fmt: skip
    yield pair(
        "attention", heads, lambda *qkv: functional.attention(*qkv, mask=mask),
        lambda *qkv: F.scaled_dot_product_attention(*qkv, is_causal=True), heads[0],
    )  # fmt: skip
    yield pair("softmax", [wide], functional.softmax, lambda x: F.softmax(x, -1), wide)
    yield pair(
        "cross_entropy", [array(2048, 5000)], lambda x: functional.cross_entropy(x, targets),
        lambda x: F.cross_entropy(x, goal), one,
    )  # fmt: skip
    yield pair(
        "embedding", [array(5000, 384)], lambda w: functional.embedding(w, ids),
        lambda w: F.embedding(indices, w), narrow,
    )  # fmt: skip

"""Weights in fewer bits beside those in float32: a matrix by a vector, and GPT-2 small writing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from models import gpt

from tinytorch.core import kernels
from tinytorch.core.quantization import quantize, quantize_rows

Program = Callable[[], Any]


def matrices() -> Iterator[tuple[str, Program, Program, Program]]:
    """A name, the product with 8-bit weights, that with float32, and that of a converted whole.

    A set of matrices that no cache holds, as a model has; the time is that of all of them.
    """
    rng = np.random.default_rng(0)
    for rows, columns, count in ((768, 3072, 12), (50257, 768, 1)):
        wide = [rng.normal(0, 0.02, (rows, columns)).astype(np.float32) for _ in range(count)]
        stored = [quantize_rows(matrix)[0] for matrix in wide]
        if rows < columns:
            x = rng.normal(size=(1, rows)).astype(np.float32)
            ours, theirs = kernels.matmul_int8, np.dot
        else:
            x = rng.normal(size=(1, columns)).astype(np.float32)
            ours, theirs = kernels.matmul_int8_transposed, lambda x, w: np.dot(x, w.T)
        name = f"8-bit vector by {count} x ({rows:,}, {columns:,})"
        yield (
            name,
            lambda ours=ours, x=x, stored=stored: [ours(x, q) for q in stored],
            lambda theirs=theirs, x=x, wide=wide: [theirs(x, w) for w in wide],
            lambda theirs=theirs, x=x, stored=stored: [
                theirs(x, q.astype(np.float32)) for q in stored
            ],
        )


def writing(new: int = 20) -> tuple[Program, dict[str, Program], dict[str, float]]:
    """GPT-2 small writing greedily: in float32, then by dtype, and the megabytes of each."""
    model = gpt("gpt2-small", max_seq_len=256)
    kinds = {dtype: quantize(model, dtype) for dtype in ("int8", "float16")}
    prompt = np.arange(8)[None]

    def write(model: Any) -> Program:
        return lambda: model.generate(prompt, new, temperature=0).data

    sizes = {
        name: sum(p.data.nbytes for p in m.parameters()) / 1e6
        for name, m in (("float32", model), *kinds.items())
    }
    return write(model), {name: write(m) for name, m in kinds.items()}, sizes

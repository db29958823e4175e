"""A model's matrices in fewer bits: as a file stores them, in blocks, or with a scale for more.

A file that is published in four bits does not say what the weights were before. What can be
measured is what it costs to round *its* numbers once more.
"""

from __future__ import annotations

import copy

import numpy as np

from tinytorch.core.quantization import Constant
from tinytorch.models.transformer import GPT

__all__ = ["rounded_blocks"]


def rounded_blocks(model: GPT, bits: int, run: int | None = None, *, smallest: bool = False) -> GPT:
    """A copy of a model with the matrices of its blocks rounded; it shares all its other weights.

    The numbers that go to one output are cut into runs, as in a GGUF file. Each run is rounded to
    equally spaced numbers of its own.

    Args:
        model: a float32 `GPT`.
        bits: of each number, at least 2.
        run: how many numbers share a scale; None for all that go to one output.
        smallest: whether a run also has a smallest number, from which its `2**bits` values reach to
            the largest; otherwise `2**bits - 1` of them lie evenly about 0.

    Returns:
        A model for inference only.

    Raises:
        ValueError: the model is not of float32, `bits` is less than 2, or `run` does not divide a
            row.

    Example:
        >>> model = rounded_blocks(GPT(50, 8, 1, 2, rng=0), 3, run=4)
        >>> len(np.unique(model.blocks[0].mlp.linear1.weight.data[:4, 0])) <= 4
        True
    """
    twins = {id(parameter): parameter for parameter in model.parameters()}
    for parameter in (each for block in model.blocks for each in block.parameters()):
        if parameter.dtype != np.float32:
            raise ValueError(f"rounded_blocks: load a float32 model; this has {parameter.dtype}")
        if parameter.ndim == 2:
            rows = _rounded(parameter.data.T, bits, run or len(parameter.data), smallest)
            twins[id(parameter)] = Constant(np.ascontiguousarray(rows.T))
    return copy.deepcopy(model, twins).eval()


def _rounded(rows: np.ndarray, bits: int, run: int, smallest: bool) -> np.ndarray:
    if bits < 2 or run < 1 or rows.shape[1] % run:
        got = f"got {bits} bits, and runs of {run} in rows of {rows.shape[1]}"
        raise ValueError(f"rounded_blocks: at least 2 bits, and runs that divide a row; {got}")
    runs = rows.reshape(len(rows), -1, run)
    if smallest:
        start, largest = runs.min(axis=-1, keepdims=True), runs.max(axis=-1, keepdims=True)
        step = (largest - start) / (2**bits - 1)
    else:
        start, largest = np.float32(0), np.abs(runs).max(axis=-1, keepdims=True)
        step = largest / (2 ** (bits - 1) - 1)
    step[step == 0] = 1
    return (np.rint((runs - start) / step) * step + start).reshape(rows.shape)

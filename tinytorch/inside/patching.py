"""Activation patching: replace what a part returns by what it returned for another text."""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np

from tinytorch.core.hooks import hooks
from tinytorch.core.module import Module
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import TensorLike

__all__ = ["patched"]


def patched(
    model: Module,
    name: str,
    value: TensorLike,
    positions: np.ndarray | slice | int = slice(None),
    rows: np.ndarray | slice | int = slice(None),
) -> AbstractContextManager[None]:
    """A context in which what a part returns is replaced at some positions.

    With a value from another text this is activation patching (Vig et al., 2020): whatever changes
    in the prediction was carried by the part that was replaced.

    Args:
        model: a `GPT`.
        name: the name of the part, `stage_name(1)` for the stream after the first block.
        value: the replacement; it broadcasts to `(batch, positions, embed_dim)`.
        positions: an index of the second axis: an integer, a slice or an array.
        rows: an index of the first axis. Two arrays go together: one position in each of the rows,
            and a value `(rows, embed_dim)`.

    Raises:
        ValueError: the model has no part of this name.

    Example:
        >>> from tinytorch import GPT
        >>> from tinytorch.inside.stream import residual_stream, stage_name
        >>> model = GPT(5, 8, 2, 2, rng=0)
        >>> one, other = [[1, 2, 3]], [[4, 2, 3]]
        >>> there = residual_stream(model, other)[2]
        >>> with patched(model, stage_name(2), there):  # everything before the last norm
        ...     bool(np.allclose(model(one).data, model(other).data))
        True
    """

    def replace(x: Tensor) -> np.ndarray:
        new = np.array(x.data)
        new[rows, positions] = value
        return new

    return hooks(model, after={name: replace})

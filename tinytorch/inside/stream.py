"""The residual stream of a GPT: read after every block, and scored.

A stream has `layers + 1` stages: 0 is the input of the first block, `i` the output of the `i`-th.
Everything here uses `hooks`, so the model stays as it is. A custom model works too, as long as its
parts have the names of `GPT`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tinytorch.core import functional
from tinytorch.core.grad_mode import no_grad
from tinytorch.core.hooks import hooks
from tinytorch.core.module import Module, evaluation_mode
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import TokenIds
from tinytorch.models.transformer import GPT
from tinytorch.models.weight_tying import tied_logits

__all__ = [
    "logit_lens",
    "recorded",
    "residual_stream",
    "stage_name",
]


def recorded(model: Module, ids: TokenIds, *names: str) -> list[np.ndarray]:
    """What parts of a model return when it reads a text.

    Args:
        model: a GPT, or any module.
        ids: what it reads, `(batch, seq)`.
        names: the names of the parts, as in `model.named_modules()`.

    Returns:
        An array for each name.

    Raises:
        ValueError: the model has no part of this name, or did not call it.

    Example:
        >>> from tinytorch import GPT
        >>> (added,) = recorded(GPT(5, 8, 2, 2), [[1, 2, 3]], "blocks.0.mlp")
        >>> added.shape
        (1, 3, 8)
    """
    found: dict[str, np.ndarray] = {}

    def keep(name: str) -> Callable[[Tensor], None]:
        return lambda value: found.update({name: np.array(value.data)})

    with hooks(model, after={name: keep(name) for name in names}), evaluation_mode(), no_grad():
        model(ids)
    if unseen := [name for name in names if name not in found]:
        raise ValueError(f"recorded: the model has {', '.join(unseen)} but did not call it")
    return [found[name] for name in names]


def stage_name(stage: int) -> str:
    """The part of a GPT that returns this stage of the stream.

    Example:
        >>> stage_name(0), stage_name(2)  # the embeddings end with their dropout
        ('dropout', 'blocks.1')
    """
    return f"blocks.{stage - 1}" if stage else "dropout"


def residual_stream(model: GPT, ids: TokenIds) -> np.ndarray:
    """The stream at every stage and position.

    Args:
        model: a `GPT`.
        ids: integer ids `(batch, seq)`.

    Returns:
        `(layers + 1, batch, seq, embed_dim)`: before the first block, and after each.

    Example:
        >>> from tinytorch import GPT
        >>> residual_stream(GPT(5, 8, 2, 2), [[1, 2, 3]]).shape
        (3, 1, 3, 8)
    """
    return np.stack(recorded(model, ids, *map(stage_name, range(len(model.blocks) + 1))))


def logit_lens(model: GPT, stream: np.ndarray) -> np.ndarray:
    """What the model would predict if the stream ended here (nostalgebraist, 2020).

    Args:
        model: a `GPT`, whose last norm and output layer are used.
        stream: `(..., embed_dim)`, at any stage.

    Returns:
        Log-probabilities `(..., vocab_size)`. At the last stage they are the model's own.

    Example:
        >>> from tinytorch import GPT
        >>> model, ids = GPT(5, 8, 2, 2, rng=0), [[1, 2, 3]]
        >>> seen = logit_lens(model, residual_stream(model, ids))
        >>> seen.shape, bool(np.allclose(seen[-1], functional.log_softmax(model(ids)).data))
        ((3, 1, 3, 5), True)
    """
    with evaluation_mode(), no_grad():
        x = model.ln_f(Tensor(stream))
        table = model.token_embedding
        logits = tied_logits(x, table) if model.lm_head is None else model.lm_head(x)
        return functional.log_softmax(logits).data

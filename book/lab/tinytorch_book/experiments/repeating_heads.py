"""What a model loses without the heads that repeat what followed last time, and without others.

Random tokens cannot be foreseen. What a model foresees of them when they come a second time it has
from the text itself (Olsson et al., 2022, section "Argument 4"). Which heads look there,
`head_scores` and `after_same_token` of `tinytorch.inside.heads` say.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np

from tinytorch.core.seeding import default_rng
from tinytorch.core.types import Rng, TokenIds
from tinytorch.inside.ablation import ablated
from tinytorch.inside.heads import rows_of
from tinytorch.models.transformer import GPT
from tinytorch.training.evaluation import surprise

__all__ = ["Head", "nats_by_half", "other_heads"]

Head = tuple[int, int]  # its block, and its number there


def nats_by_half(model: GPT, ids: TokenIds, without: Sequence[Head] = ()) -> np.ndarray:
    """How surprised a model is by tokens that come twice: the first time, and the second.

    The first token of each half is left out, for nothing tells that the tokens come again.

    Args:
        model: a `GPT`.
        ids: `(rows, 2 * length)`, each row the same tokens twice, at least two.
        without: heads that add nothing meanwhile.

    Returns:
        `(rows, 2)`: nats a token.

    Raises:
        ValueError: a row is not the same tokens twice, or the model has no such head.

    Example:
        >>> model, ids = GPT(50, 8, 1, 2, rng=0), [[4, 7, 9, 4, 7, 9]]
        >>> nats_by_half(model, ids, without=[(0, 1)]).round()  # it has learned nothing: near ln 50
        array([[4., 4.]])
    """
    ids = rows_of("nats_by_half", ids)
    length = ids.shape[1] // 2
    if length < 2 or not np.array_equal(ids[:, :length], ids[:, length:]):
        what = f"each row must be the same tokens twice, at least two, got shape {ids.shape}"
        raise ValueError(f"nats_by_half: {what}; write numpy.tile(tokens, 2)")
    with ExitStack() as stack:
        for block, head in without:
            stack.enter_context(ablated(model, f"blocks.{block}.attention", head))
        nats = surprise(model, ids[:, :-1], ids[:, 1:], batch_size=4)  # of tokens 1, 2, ...
    return np.stack([nats[:, : length - 1].mean(axis=1), nats[:, length:].mean(axis=1)], axis=1)


def other_heads(heads: Sequence[Head], num_heads: int, rng: Rng = None) -> list[Head]:
    """As many heads of the same blocks, drawn from those that are not among them: a control.

    Args:
        heads: at most half of those of any block.
        num_heads: how many heads a block has.
        rng: a generator, a seed, or None for the default generator.

    Raises:
        ValueError: more than half of a block's heads are among them, or a block has no such head.

    Example:
        >>> other_heads([(3, 0), (3, 2), (5, 1)], 4, rng=0)
        [(3, 1), (3, 3), (5, 2)]
    """
    rng, drawn = default_rng(rng), list[Head]()
    for block in sorted({block for block, _ in heads}):
        taken = {head for at, head in heads if at == block}
        if taken - {*range(num_heads)}:
            have = f"block {block} has heads 0 to {num_heads - 1}"
            raise ValueError(f"other_heads: {have}, not {max(taken)}; were two models confused?")
        free = sorted({*range(num_heads)} - taken)
        if len(free) < len(taken):
            raise ValueError(f"other_heads: block {block} has too few others; take fewer heads")
        drawn += [(block, int(head)) for head in rng.choice(free, len(taken), replace=False)]
    return sorted(drawn)

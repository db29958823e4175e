"""The residual stream of a GPT: read after every block, scored, silenced and replaced.

A stream has `layers + 1` stages: 0 is what enters the first block, `i` what the `i`-th leaves.
Everything here is done with `hooks`, so the model stays as it is, and may be one of your own as
long as its parts have the names of `GPT`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.attention import scaled_dot_product_attention
from tinytorch.core.attention_options import bias_between, shared
from tinytorch.core.hooks import hooks
from tinytorch.core.layers import evaluation_mode
from tinytorch.core.masks import causal_mask
from tinytorch.core.recording import no_grad
from tinytorch.core.tensor import Tensor
from tinytorch.models.transformer import tied_logits

__all__ = [
    "ablated",
    "attention_weights",
    "logit_lens",
    "patched",
    "recorded",
    "residual_stream",
    "stage_name",
]


def recorded(model: Any, ids: Any, *names: str) -> list[np.ndarray]:
    """What parts of a model return when it reads a text.

    Args:
        model: a GPT, or any module.
        ids: what it reads, `(batch, seq)`.
        names: of the parts, as in `model.named_modules()`.

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

    def keep(name: str) -> Any:
        return lambda value: found.update({name: np.array(value.data)})

    with hooks(model, after={name: keep(name) for name in names}), evaluation_mode(), no_grad():
        model(ids)
    if unseen := [name for name in names if name not in found]:
        raise ValueError(f"recorded: the model has {', '.join(unseen)} but did not call it")
    return [found[name] for name in names]


def stage_name(stage: int) -> str:
    """The part of a GPT that hands on this stage of the stream.

    Example:
        >>> stage_name(0), stage_name(2)  # the embeddings end with their dropout
        ('dropout', 'blocks.1')
    """
    return f"blocks.{stage - 1}" if stage else "dropout"


def residual_stream(model: Any, ids: Any) -> np.ndarray:
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


def logit_lens(model: Any, stream: np.ndarray) -> np.ndarray:
    """What the model would forecast if the stream ended here (nostalgebraist, 2020).

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


def attention_weights(model: Any, ids: Any) -> np.ndarray:
    """What every head looks at.

    Computed from the queries and keys of the run, rotated and shifted as the layer does it.

    Args:
        model: a `GPT` whose attentions are `MultiHeadAttention`.
        ids: integer ids `(batch, seq)`.

    Returns:
        `(layers, batch, heads, queries, keys)`; each row sums to 1, and is 0 after the query.

    Example:
        >>> from tinytorch import GPT
        >>> weights = attention_weights(GPT(5, 8, 2, 4, pos_encoding="rotary"), [[1, 2, 3]])
        >>> weights.shape, bool(np.allclose(weights.sum(axis=-1), 1))
        ((2, 1, 4, 3, 3), True)
    """
    names = [f"blocks.{i}.attention" for i in range(len(model.blocks))]
    projected = recorded(model, ids, *(f"{name}.{p}_proj" for name in names for p in "qk"))
    return np.stack(
        [
            _weights(block.attention, *projected[2 * i : 2 * i + 2])
            for i, block in enumerate(model.blocks)
        ]
    )


def ablated(
    model: Any, name: str, head: int | None = None, value: Any = 0.0
) -> AbstractContextManager[None]:
    """A context in which a part of a GPT adds nothing to the stream, or always the same.

    Args:
        model: a `GPT`.
        name: `"blocks.0.attention"`, `"blocks.0.mlp"` or, for both, `"blocks.0"`.
        head: of an attention, which head alone is silenced: the others go on.
        value: what stands in place of the output, 0 or a mean `(embed_dim,)`; of a head, in place
            of its `embed_dim / heads` numbers before they are mixed.

    Raises:
        ValueError: the model has no part of this name; the head is out of range, or is asked for
            of another part than an attention.

    Example:
        >>> from tinytorch import GPT
        >>> model = GPT(5, 8, 2, 2, rng=0)
        >>> with ablated(model, "blocks.1.attention", head=0), ablated(model, "blocks.0.mlp"):
        ...     model([[1, 2, 3]]).shape
        (1, 3, 5)
    """
    if head is None:
        both = name.startswith("blocks.") and name.count(".") == 1
        silenced = [f"{name}.attention", f"{name}.mlp"] if both else [name]
        return hooks(model, after={n: lambda x: np.zeros(x.shape) + value for n in silenced})
    part: Any = dict(model.named_modules()).get(name)
    if not hasattr(part, "num_heads") or not hasattr(part, "out_proj"):
        raise ValueError(f"ablated: {name!r} has no heads; name an attention, blocks.0.attention")
    if not 0 <= head < part.num_heads:
        raise ValueError(f"ablated: {name} has the heads 0 to {part.num_heads - 1}, not {head}")
    size = part.head_dim

    def silence(x: Any) -> np.ndarray:
        x = np.array(x.data)  # (batch, seq, heads * size)
        x[..., head * size : (head + 1) * size] = value
        return x

    return hooks(model, before={f"{name}.out_proj": silence})


def patched(
    model: Any, name: str, value: Any, positions: Any = slice(None), rows: Any = slice(None)
) -> AbstractContextManager[None]:
    """A context in which what a part returns is replaced at some positions.

    With a value from another text this is activation patching (Vig et al., 2020): what changes in
    the forecast was carried by what was replaced.

    Args:
        model: a `GPT`.
        name: of the part, `stage_name(1)` for the stream after the first block.
        value: what stands there instead; it broadcasts to `(batch, positions, embed_dim)`.
        positions: an index of the second axis: an integer, a slice or an array.
        rows: an index of the first axis. Two arrays go together: one position in each of the rows,
            and a value `(rows, embed_dim)`.

    Raises:
        ValueError: the model has no part of this name.

    Example:
        >>> from tinytorch import GPT
        >>> model = GPT(5, 8, 2, 2, rng=0)
        >>> one, other = [[1, 2, 3]], [[4, 2, 3]]
        >>> there = residual_stream(model, other)[2]
        >>> with patched(model, stage_name(2), there):  # everything before the last norm
        ...     bool(np.allclose(model(one).data, model(other).data))
        True
    """

    def replace(x: Any) -> np.ndarray:
        x = np.array(x.data)
        x[rows, positions] = value
        return x

    return hooks(model, after={name: replace})


def _weights(part: Any, q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """The weights `(batch, heads, queries, keys)` of one layer, from its `(batch, seq, ...)`."""
    with evaluation_mode(), no_grad():
        queries: Any = functional.split_heads(Tensor(q), num_heads=part.num_heads)
        keys: Any = functional.split_heads(Tensor(k), num_heads=part.num_kv_heads)
        if part.rotate is not None:
            queries, keys = part.rotate(queries), part.rotate(keys)
        keys, length = shared(keys, part.num_heads), q.shape[1]
        mask, bias = causal_mask(length), bias_between(part.bias, 0, length, length)
        return scaled_dot_product_attention(queries, keys, keys, mask, bias)[1].data

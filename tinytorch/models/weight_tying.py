"""Weight tying: the token table that reads a token also scores it (Press and Wolf, 2017)."""

from __future__ import annotations

from tinytorch.core import functional
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import TensorLike
from tinytorch.text.embeddings import Embedding


def tied_logits(x: TensorLike, token_embedding: Embedding) -> Tensor:
    """Score each token by its own row of the token table, the output layer of a tied GPT.

    Args:
        x: vectors `(..., embed_dim)`.
        token_embedding: the table, whose gradient is the sum of those of its two uses. A table
            stored in another way has a method `scores(x)`, which is called instead.

    Returns:
        Logits `(..., vocab_size)`: dot products, without a bias.

    Example:
        >>> table = Embedding(5, 8, rng=0)
        >>> tied_logits(table([3]), table).shape
        (1, 5)
    """
    if hasattr(token_embedding, "scores"):
        return token_embedding.scores(x)
    return functional.linear(x, token_embedding.weight.transpose())  # (d, vocab_size)

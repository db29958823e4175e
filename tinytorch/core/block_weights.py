"""Layers whose weights stay in blocks of four to eight bits, as a published file stores them.

They compute what a `Linear` without bias and an `Embedding` do, and read a fraction of the bytes; a
row of weights is decoded when it is needed. Like the layers of `quantization`, they cannot be
trained.
"""

from __future__ import annotations

import numpy as np

from tinytorch.core import arguments, array_forms, kernels
from tinytorch.core.block_formats import BLOCK, BLOCKS, decode_blocks, names_of
from tinytorch.core.graph import wrap
from tinytorch.core.module import Module
from tinytorch.core.ops import Result
from tinytorch.core.primitive import primitive
from tinytorch.core.quantization import Constant, no_gradient, quantized_by
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import TensorLike, TokenIds

__all__ = ["BlockEmbedding", "BlockLinear"]


class BlockLinear(Module):
    """A `Linear` without bias, `x @ W.T`, whose rows of `W` are stored in blocks.

    Args:
        stored: uint8 `(out_features, bytes)`; not copied.
        kind: one of `tinytorch.core.block_formats.BLOCKS`.

    Attributes:
        in_features: the length of the last axis of the input; `out_features` likewise.
        weight: the bytes, a `Constant`.
        kind: their format.

    Raises:
        ValueError: another kind, bytes that are no blocks, or a scale that is not finite.

    Example:
        >>> row = np.zeros((1, 1), BLOCKS["Q8_0"])
        >>> row["scale"], row["integers"][..., :2] = 0.5, (3, 4)
        >>> BlockLinear(row.view(np.uint8), "Q8_0")(np.ones((1, 32)))
        Tensor([[3.5]])
    """

    weight: Constant

    def __init__(self, stored: np.ndarray, kind: str) -> None:
        self.out_features, self.in_features = _check(self, stored, kind)
        self.weight, self.kind = Constant(stored), kind

    @quantized_by(lambda part, dtype: part)
    def forward(self, x: TensorLike) -> Tensor:
        """Map `(..., in_features)` to `(..., out_features)`."""
        return block_product(x, stored=self.weight.data, kind=self.kind)


@array_forms.reader_of(BlockLinear.forward)
def _read_linear(part: BlockLinear) -> array_forms.Reader:
    return lambda x: _product(x, part.weight.data, part.kind)


class BlockEmbedding(Module):
    """An `Embedding` whose rows are stored in blocks; its `scores` are those of `tied_logits`.

    Args:
        stored: uint8 `(vocab_size, bytes)`; not copied.
        kind: one of `tinytorch.core.block_formats.BLOCKS`.

    Attributes:
        vocab_size: the number of tokens.
        embed_dim: the length of each vector.
        weight: the bytes, a `Constant`.
        kind: their format.

    Raises:
        ValueError: as `BlockLinear`; or an id is not a token's.

    Example:
        >>> table = np.zeros((2, 1), BLOCKS["Q8_0"])
        >>> table["scale"], table["integers"][:, 0, 0] = 0.5, (3, 4)
        >>> table = BlockEmbedding(table.view(np.uint8), "Q8_0")
        >>> table([1])[:, :2], table.scores(np.ones((1, 32)))
        (Tensor([[2., 0.]]), Tensor([[1.5, 2. ]]))
    """

    weight: Constant

    def __init__(self, stored: np.ndarray, kind: str) -> None:
        self.vocab_size, self.embed_dim = _check(self, stored, kind)
        self.weight, self.kind = Constant(stored), kind

    @quantized_by(lambda part, dtype: part)
    def forward(self, ids: TokenIds | int) -> Tensor:
        """Look up every id: integers of any shape to `ids.shape + (embed_dim,)`."""
        arguments.check_equal_lengths(ids, "BlockEmbedding")
        ids = np.asarray(ids)
        arguments.check_ids(ids, self.vocab_size, "token id", "was another tokenizer used?")
        return wrap(decode_blocks(self.weight.data[ids], self.kind))

    def scores(self, x: TensorLike) -> Tensor:
        """Score each token by its own row: `(..., embed_dim)` to `(..., vocab_size)`."""
        return block_product(x, stored=self.weight.data, kind=self.kind)


def numbers_in_blocks(model: Module) -> dict[int, int]:
    """How many numbers the bytes of each weight in blocks hold, by the weight's `id`."""
    modules = (part for _, part in model.named_modules())
    parts = (part for part in modules if isinstance(part, (BlockEmbedding, BlockLinear)))
    return {id(part.weight): _numbers(part.weight.size, part.kind) for part in parts}


def _numbers(num_bytes: int, kind: str) -> int:
    """How many numbers so many bytes of this format hold."""
    return num_bytes // BLOCKS[kind].itemsize * BLOCK


def _check(part: Module, stored: np.ndarray, kind: str) -> tuple[int, int]:
    """The shape of the matrix; raise unless the bytes are whole blocks with finite scales."""
    who = type(part).__name__
    arguments.check_choice(kind, f"{who}: kind", tuple(BLOCKS))
    layout = BLOCKS[kind]
    if stored.dtype != np.uint8 or stored.ndim != 2 or stored.shape[1] % layout.itemsize:
        wanted = f"uint8 (rows, bytes) in blocks of {layout.itemsize} bytes"
        raise ValueError(f"{who}: expected {wanted}, got {stored.dtype} {stored.shape}")
    blocks = stored.view(layout)
    for name in {"scale", "smallest"} & {*names_of(kind)}:
        if not np.isfinite(blocks[name]).all():
            raise ValueError(f"{who}: a block has a {name} that is not finite; load another file")
    return len(stored), blocks.shape[1] * BLOCK


@primitive
def block_product(x: TensorLike, *, stored: np.ndarray, kind: str) -> Result:
    """`x @ W.T`, with `W` in blocks."""
    x = np.asarray(x)
    numbers = _numbers(stored.shape[1], kind)
    if x.ndim == 0 or x.shape[-1] != numbers:
        wanted = f"the last axis must have length {numbers}"
        raise ValueError(f"block_product: input {x.shape} does not fit the weight; {wanted}")
    return _product(x, stored, kind), no_gradient


def _product(x: np.ndarray, stored: np.ndarray, kind: str) -> np.ndarray:
    rows = np.asarray(x.reshape(-1, x.shape[-1]), np.float32)
    return kernels.matmul_blocks(rows, stored, kind).reshape(*x.shape[:-1], len(stored))

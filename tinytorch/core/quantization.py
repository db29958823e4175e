"""Weights in fewer bits: 8-bit integers with a scale for each row, or half precision.

To generate one token a model reads every weight once, so the smaller the weights, the faster it is.
`quantize` makes a model whose matrices are stored as int8 or float16, in a quarter or half of the
memory, and which is used as before: the sums are computed in float32, some rows at a time. It
cannot be trained. A gradient step is far smaller than the step between two 8-bit numbers, so a
model is trained in float32 first.

With int8 each stored row of a matrix is divided by its own scale and rounded (Dettmers et al.,
2022, "LLM.int8()", sections 2.1 and 3.1). No number of a row is then off by more than half of its
scale.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import numpy as np

from tinytorch.core import kernels
from tinytorch.core.arguments import check_choice, check_equal_lengths, check_ids
from tinytorch.core.graph import native, wrap
from tinytorch.core.module import Module, Parameter
from tinytorch.core.ops import Result
from tinytorch.core.primitive import primitive
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import Method, TensorLike, TokenIds

__all__ = [
    "Constant",
    "QuantizedEmbedding",
    "QuantizedLinear",
    "quantize",
    "quantize_rows",
    "quantized_by",
]

LARGEST = 127  # of int8, on both sides of 0
Kind = TypeVar("Kind", bound=Module)
_REMEDY = "train the float32 model, then quantize that"


def quantize_rows(matrix: TensorLike) -> tuple[np.ndarray, np.ndarray]:
    """Round a matrix to 8-bit integers, each row in units of its own scale.

    `scale = max(|row|) / 127` and `q = round(row / scale)`, so that `q * scale` differs from the
    row by at most half of the scale. A row of zeros has the scale 0.

    Args:
        matrix: floats `(rows, columns)`.

    Returns:
        `q`, int8 `(rows, columns)`, and the scales, float32 `(rows,)`: the matrix is nearly
        `q * scales[:, None]`.

    Raises:
        ValueError: it is not a matrix, or a number is not finite.

    Example:
        >>> q, scales = quantize_rows([[1.27, -0.5], [0.0, 0.0]])
        >>> q.tolist(), scales
        ([[127, -50], [0, 0]], array([0.01, 0.  ], dtype=float32))
    """
    matrix = np.asarray(matrix)
    if matrix.ndim != 2:
        raise ValueError(f"quantize_rows: expected (rows, columns), got shape {matrix.shape}")
    q, scales = np.empty(matrix.shape, np.int8), np.empty(len(matrix), np.float32)
    for rows, block in kernels.float32_blocks(matrix):
        scales[rows] = np.abs(block).max(axis=1, initial=0.0) / LARGEST
        finite = np.isfinite(matrix[rows]).all(axis=1) & np.isfinite(scales[rows])
        if not finite.all():
            row = rows.start + int(finite.argmin())
            raise ValueError(f"quantize_rows: row {row} holds a number that is not finite")
        block /= np.where(scales[rows] == 0, 1, scales[rows])[:, None]
        q[rows] = np.rint(block, out=block).clip(-LARGEST, LARGEST)  # a tiny scale is rounded too
    return q, scales


def quantize(model: Kind, dtype: str = "int8") -> Kind:
    """A copy of a model that keeps its matrices in fewer bits, for inference only.

    The matrices are those of each `Linear` and `Embedding`, and of every part whose `forward` is
    marked by `quantized_by`. All others (norms, biases, learned positions) stay as they are. The
    model itself is not changed, and nothing is shared with it but matrices that were quantized
    already.

    Its parameters keep their names; the scales of an 8-bit matrix are stored beside it, under its
    name and `.scales`. So `save_weights` and `load_weights` work as with any model.

    Args:
        model: a `GPT`, or any other `Module`.
        dtype: `'int8'` or `'float16'`.

    Returns:
        A model of the same class, in evaluation mode, whose parameters cannot be trained.

    Raises:
        ValueError: another dtype, or a number is not finite or too large for it.

    Example:
        >>> from tinytorch import Linear
        >>> layer = Linear(64, 32, rng=0)
        >>> small = quantize(layer)
        >>> [(name, p.dtype.name, p.shape) for name, p in small.named_parameters()][:2]
        [('weight', 'int8', (64, 32)), ('weight.scales', 'float32', (64,))]
        >>> x = np.ones((1, 64))
        >>> bool(np.abs(small(x).data - layer(x).data).max() < 0.03)
        True
    """
    check_choice(dtype, "quantize: dtype", ("int8", "float16"))
    twins: dict[int, Any] = {}  # the counterpart of each part in the copy
    replaced: set[int] = set()  # parameters of the parts that were quantized
    for _, part in model.named_modules():
        make = getattr(part.forward, "quantized_by", None)
        if make is not None:
            twins[id(part)] = make(part, dtype)
            replaced |= {id(parameter) for parameter in part.parameters()}
    for parameter in model.parameters():
        if id(parameter) not in replaced:
            twins[id(parameter)] = Constant(parameter.data.copy())
    return copy.deepcopy(model, twins).eval()


def quantized_by(make: Callable[[Any, str], Module]) -> Callable[[Method], Method]:
    """Register, for a `forward`, that `make(part, dtype)` does nearly the same with fewer bits.

    A custom `forward`, which replaces ours, does not inherit this.

    Args:
        make: called with the part and `'int8'` or `'float16'`; returns its replacement.
    """

    def noted(forward: Method) -> Method:
        setattr(forward, "quantized_by", make)  # noqa: B010 (mypy knows no such attribute)
        return forward

    return noted


# The layers ----------------------------------------------------------------------------------


class QuantizedLinear(Module):
    """The quantized form of a `Linear`: `x @ weight + bias`, the weight in fewer bits.

    Since a scale belongs to a row of the weight, it multiplies the input: the result is the sum of
    `x[i] * scales[i] * q[i, j]` over i, so `(x * scales) @ q`.

    Args:
        weight: int8 or float16, `(in_features, out_features)`; not copied.
        scales: float32 `(in_features,)` for int8, None for float16.
        bias: float32 `(out_features,)`, or None.

    Attributes:
        in_features: the length of the last axis of the input; `out_features` likewise.
        weight: the matrix, a `Constant`.
        bias: the bias, a `Constant`, or None.

    Raises:
        ValueError: dtypes or shapes do not fit.

    Example:
        >>> layer = QuantizedLinear(np.int8([[100], [-50]]), np.float32([0.01, 0.1]))
        >>> layer([[1.0, 2.0]])
        Tensor([[-9.]])
    """

    weight: Constant

    def __init__(
        self, weight: np.ndarray, scales: np.ndarray | None = None, bias: np.ndarray | None = None
    ) -> None:
        _keep(self, weight, scales)
        self.bias = None if bias is None else Constant(np.asarray(bias, np.float32))

    in_features = property(lambda self: self.weight.shape[0])
    out_features = property(lambda self: self.weight.shape[1])

    @classmethod
    def of(cls, linear: Any, dtype: str) -> QuantizedLinear:
        """The quantized form of a `Linear`."""
        bias = None if linear.bias is None else linear.bias.data.copy()
        return cls(*_stored(linear.weight.data, dtype), bias)

    @quantized_by(lambda part, dtype: part)
    def forward(self, x: TensorLike) -> Tensor:
        """Map `(..., in_features)` to `(..., out_features)`."""
        bias = None if self.bias is None else self.bias.data
        return quantized_linear(x, weight=self.weight.data, scales=_scales(self), bias=bias)


class QuantizedEmbedding(Module):
    """The quantized form of an `Embedding`: a table of vectors in fewer bits.

    Args:
        weight: int8 or float16, `(vocab_size, embed_dim)`; not copied.
        scales: float32 `(vocab_size,)` for int8, None for float16.

    Attributes:
        vocab_size: the number of tokens.
        embed_dim: the length of each vector.
        weight: the table, a `Constant`.

    Raises:
        ValueError: dtypes or shapes do not fit.

    Example:
        >>> table = QuantizedEmbedding(np.int8([[100, -50], [0, 1]]), np.float32([0.01, 0.5]))
        >>> table([0, 1])
        Tensor([[ 1. , -0.5],
                [ 0. ,  0.5]])
        >>> table.scores([[1.0, 1.0]])
        Tensor([[0.5, 0.5]])
    """

    weight: Constant

    def __init__(self, weight: np.ndarray, scales: np.ndarray | None = None) -> None:
        _keep(self, weight, scales)

    vocab_size = property(lambda self: self.weight.shape[0])
    embed_dim = property(lambda self: self.weight.shape[1])

    @classmethod
    def of(cls, embedding: Any, dtype: str) -> QuantizedEmbedding:
        """The quantized form of an `Embedding`."""
        return cls(*_stored(embedding.weight.data, dtype))

    @quantized_by(lambda part, dtype: part)
    def forward(self, ids: TokenIds | int) -> Tensor:
        """Look up every id: integers of any shape to `ids.shape + (embed_dim,)`."""
        check_equal_lengths(ids, "QuantizedEmbedding")
        ids = np.asarray(ids)
        check_ids(ids, self.vocab_size, "token id", "was another tokenizer used?")
        rows, scales = self.weight.data[ids].astype(np.float32), _scales(self)
        if scales is not None:
            rows *= scales[ids][..., None]
        return wrap(rows)

    def scores(self, x: TensorLike) -> Tensor:
        """Score each token by its own row, as `tied_logits` does: `(..., vocab_size)`."""
        return quantized_scores(x, weight=self.weight.data, scales=_scales(self))


# The numbers ---------------------------------------------------------------------------------


class Constant(Parameter):
    """Numbers that are saved with a model and never learned; `parameters()` finds them.

    Args:
        data: an array of any real dtype; not copied.

    Raises:
        RuntimeError: later, when `requires_grad` is set.

    Example:
        >>> Constant(np.int8([1, 2])).requires_grad
        False
    """

    __slots__ = ()

    def __init__(self, data: np.ndarray) -> None:
        Tensor.__init__(self, 0.0)
        self._array = native(np.asarray(data))

    @property
    def requires_grad(self) -> bool:
        """Always False."""
        return False

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        if wanted:
            raise RuntimeError(f"a quantized model does not learn: {_REMEDY}")
        self._requires_grad = False

    def __repr__(self) -> str:
        return f"Constant({self.dtype}, {self.shape}), which does not learn"


def _stored(matrix: np.ndarray, dtype: str) -> tuple[np.ndarray, np.ndarray | None]:
    """A matrix in fewer bits, and its scales if it has some."""
    if dtype == "int8":
        return quantize_rows(matrix)
    with np.errstate(over="ignore"):
        half = matrix.astype(np.float16)
    if not np.isfinite(half).all():
        largest = np.abs(matrix).max()
        raise ValueError(f"float16 holds numbers up to 65504, and a weight is {largest}")
    return half, None


def _keep(module: Module, weight: np.ndarray, scales: np.ndarray | None) -> None:
    """Set the matrix and the scales of a module, under their names in a file."""
    who, kind = type(module).__name__, np.asarray(weight).dtype
    if np.ndim(weight) != 2 or kind != (np.float16 if scales is None else np.int8):
        wanted = "int8 (rows, columns) with scales, or float16 without"
        raise ValueError(f"{who}: expected a matrix of {wanted}; got {kind}, {np.shape(weight)}")
    if scales is None and not np.isfinite(weight).all():
        raise ValueError(f"{who}: the weight holds a number that is not finite")
    if scales is not None and np.shape(scales) != (len(weight),):
        raise ValueError(f"{who}: {len(weight)} rows need as many scales, got {np.shape(scales)}")
    module.weight = Constant(weight)
    if scales is not None:
        setattr(module, "weight.scales", Constant(np.asarray(scales, np.float32)))


def _scales(module: Module) -> np.ndarray | None:
    """The scales of a module `(rows,)`; None if its matrix has none."""
    found = vars(module).get("weight.scales")
    return None if found is None else found.data


@primitive
def quantized_linear(
    x: TensorLike, *, weight: np.ndarray, scales: np.ndarray | None, bias: np.ndarray | None
) -> Result:
    """`x @ weight + bias`; a scale belongs to a row of the weight, so it multiplies the input."""
    x = np.asarray(x)
    if x.ndim == 0 or x.shape[-1] != len(weight):
        wanted = f"the last axis must have length {len(weight)}"
        raise ValueError(
            f"quantized_linear: input {x.shape} does not fit weight {weight.shape}; {wanted}"
        )
    rows = x.reshape(-1, len(weight))  # (N, in)
    value = kernels.matmul_int8(rows if scales is None else rows * scales, weight)  # (N, out)
    if bias is not None:
        value += bias
    return value.reshape(*x.shape[:-1], weight.shape[1]), no_gradient


@primitive
def quantized_scores(x: TensorLike, *, weight: np.ndarray, scales: np.ndarray | None) -> Result:
    """`x @ weight.T`; a scale belongs to a row of the weight, so it multiplies the result."""
    x = np.asarray(x)
    value = kernels.matmul_int8_transposed(x.reshape(-1, x.shape[-1]), weight)  # (N, rows)
    if scales is not None:
        value *= scales
    return value.reshape(*x.shape[:-1], len(weight)), no_gradient


def no_gradient(_: np.ndarray) -> NoReturn:
    raise RuntimeError(f"a quantized model passes no gradient on; {_REMEDY}")

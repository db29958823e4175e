"""For every primitive of the package: inputs to try it on, what it computes, and how to prove it.

`EXAMPLES` is the list that `test_ops.py` and `test_functional.py` run through. A primitive that is
not in it fails `test_every_primitive_has_an_example`.
"""

import importlib
import pkgutil
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, mutually_broadcastable_shapes

import tinytorch
from tinytorch import functional, ops
from tinytorch.core import activations
from tinytorch.core.seeding import default_rng
from tinytorch.text import embeddings
from tinytorch.training.distillation import divergence

__all__ = ["EXAMPLES", "Example", "all_primitives", "numbers"]


@dataclass(frozen=True)
class Example:
    """How to try one primitive.

    Attributes:
        operation: the primitive.
        inputs: a strategy for `(operands, settings)`, the operands float64 or integer arrays.
        value: the same result by NumPy alone, from the operands and settings.
        analytic: whether the operation is differentiable in the complex sense, so that the complex
            step applies: f(x + ih) = f(x) + ih f'(x), exact to rounding.
        rtol: how near the value must be.
        constants: the operands that have no gradient though they are floating-point.
    """

    operation: Any
    inputs: Any
    value: Any
    analytic: bool = True
    rtol: float = 1e-12
    constants: tuple[int, ...] = ()

    def learned(self, operands):
        """Which of the operands have a gradient."""
        floats = [i for i, a in enumerate(operands) if a.dtype.kind == "f"]
        return [i for i in floats if i not in self.constants]


def numbers(shape, seed, low=-2.0, high=2.0):
    """Distinct numbers, none nearer than 0.01 to another or to zero: away from every kink."""
    size = int(np.prod(shape, dtype=int))
    grid = low + (high - low) * (np.arange(size) + 0.5) / max(size, 1)
    grid = np.where(np.abs(grid) < 0.01, 0.013, grid)
    return np.random.default_rng(seed).permutation(grid).reshape(shape)


seeds = st.integers(0, 10_000)
shapes = array_shapes(min_dims=0, max_dims=3, max_side=3)
shapes_with_axes = array_shapes(min_dims=1, max_dims=3, max_side=3)


@st.composite
def one(draw, low=-2.0, high=2.0, shapes=shapes, **settings):
    """One operand and its settings."""
    return (numbers(draw(shapes), draw(seeds), low, high),), settings


@st.composite
def two(draw, low=-2.0):
    """Two operands that broadcast together."""
    first, second = draw(mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3))[0]
    # the second lies on another grid, so that no number of it equals one of the first
    return (numbers(first, draw(seeds), low), numbers(second, draw(seeds), low, 2.1)), {}


@st.composite
def reduced(draw):
    """One operand, and an axis, several axes or none."""
    x = numbers(draw(shapes_with_axes), draw(seeds))
    axes = st.integers(-x.ndim, x.ndim - 1)
    several = st.sets(st.integers(0, x.ndim - 1), min_size=1).map(
        lambda found: tuple(sorted(found))
    )
    return (x,), {"axis": draw(st.none() | axes | several), "keepdims": draw(st.booleans())}


@st.composite
def one_axis(draw):
    """One operand and one axis."""
    x = numbers(draw(shapes_with_axes), draw(seeds))
    return (x,), {"axis": draw(st.integers(-x.ndim, x.ndim - 1))}


@st.composite
def powers(draw):
    """A positive operand and an exponent."""
    exponent = draw(st.sampled_from([0, 1, 2, 3, 0.5, -1, -1.5]))
    return (numbers(draw(shapes), draw(seeds), 0.5, 2.0),), {"exponent": exponent}


@st.composite
def matrices(draw):
    """Two operands of a matrix product: vectors, matrices, batches that broadcast."""
    m, k, n = (draw(st.integers(1, 3)) for _ in range(3))
    left, right = draw(
        st.sampled_from([((), ()), ((2,), ()), ((), (2,)), ((2, 1), (3,)), ((1,), (2, 1))])
    )
    x = draw(st.sampled_from([(k,), (*left, m, k)]))
    y = draw(st.sampled_from([(k,), (*right, k, n)]))
    return (numbers(x, draw(seeds)), numbers(y, draw(seeds))), {}


@st.composite
def chosen(draw):
    """Two operands and a condition, all three broadcasting together."""
    a, b, c = draw(mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3))[0]
    condition = np.random.default_rng(draw(seeds)).random(c) < 0.5
    return (numbers(a, draw(seeds)), numbers(b, draw(seeds))), {"condition": condition}


@st.composite
def reshaped(draw):
    """An operand and another shape for it."""
    shape = draw(st.sampled_from([(12,), (3, 4), (2, 3, 2), (1, 12)]))
    return (numbers(shape, draw(seeds)),), {"shape": draw(st.sampled_from([(4, -1), (2, 6), 12]))}


@st.composite
def swapped(draw):
    """An operand of two or three axes, and two of them."""
    x = numbers(draw(array_shapes(min_dims=2, max_dims=3, max_side=3)), draw(seeds))
    axes = st.integers(-x.ndim, x.ndim - 1)
    return (x,), {"axis0": draw(axes), "axis1": draw(axes)}


@st.composite
def permuted(draw):
    """An operand and an order of its axes, some counted from the end."""
    x = numbers(draw(shapes_with_axes), draw(seeds))
    order = draw(st.permutations(range(x.ndim)))
    return (x,), {"axes": tuple(a - x.ndim if draw(st.booleans()) else a for a in order)}


@st.composite
def clipped(draw):
    """An operand and one bound or two, which none of its elements equals."""
    bounds = draw(st.sampled_from([(-0.5001, None), (None, 0.7001), (-0.5001, 0.7001)]))
    x = numbers(draw(shapes), draw(seeds))
    return (x,), {"min": bounds[0], "max": bounds[1]}


INDICES = [
    1,
    -1,
    slice(None, None, 2),
    slice(2, None, -1),
    ...,
    None,
    (1, 2),
    (..., 0),
    (slice(None), 1),
    (None, slice(1, 3), 2),
    [0, 2, 0, 0],
    np.array([[0, 1], [2, 2]]),
    (np.array([0, 0, 1]), np.array([3, 3, 2])),
    (slice(None), [1, 1]),
    np.array([True, False, True]),
    np.arange(12).reshape(3, 4) % 2 == 0,
    (np.array([True, False, True]), 1),
]


@st.composite
def indexed(draw):
    """A matrix and an index: slices, integers, masks, integer arrays with repeats."""
    return (numbers((3, 4), draw(seeds)),), {"index": draw(st.sampled_from(INDICES))}


@st.composite
def joined(draw):
    """Operands of equal shape but for one axis, along which they are joined."""
    shape, axis = draw(st.sampled_from([((2, 3), 0), ((2, 3), -1), ((3,), 0), ((1, 2, 3), 1)]))
    lengths = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    parts = []
    for length in lengths:
        own = list(shape)
        own[axis] = length
        parts.append(numbers(own, draw(seeds)))
    return tuple(parts), {"axis": axis}


@st.composite
def stacked(draw):
    """Operands of equal shape and the place of the new axis."""
    shape = draw(array_shapes(min_dims=1, max_dims=2, max_side=3))
    parts = tuple(numbers(shape, draw(seeds)) for _ in range(draw(st.integers(1, 3))))
    return parts, {"axis": draw(st.integers(-len(shape) - 1, len(shape)))}


@st.composite
def rows_of(draw):
    """Leading axes and a length for the last one."""
    return draw(array_shapes(min_dims=0, max_dims=2, max_side=3)), draw(st.integers(1, 4))


@st.composite
def linear_inputs(draw):
    """Input, weight and perhaps a bias."""
    lead, k = draw(rows_of())
    n = draw(st.integers(1, 3))
    operands = (numbers((*lead, k), draw(seeds)), numbers((k, n), draw(seeds)))
    return (*operands, numbers((n,), draw(seeds))) if draw(st.booleans()) else operands, {}


@st.composite
def embedding_inputs(draw):
    """A table of four rows, and ids of which some repeat."""
    ids = np.random.default_rng(draw(seeds)).integers(0, 4, size=draw(shapes))
    return (numbers((4, 3), draw(seeds)), ids), {"sparse": draw(st.booleans())}


@st.composite
def layer_norm_inputs(draw):
    """Input, scale and shift."""
    lead, d = draw(rows_of())
    operands = tuple(numbers(shape, draw(seeds)) for shape in [(*lead, d), (d,), (d,)])
    return operands, {"eps": draw(st.sampled_from([1e-5, 0.1]))}


@st.composite
def dropout_inputs(draw):
    """Input, a probability, and a seed that makes two calls choose alike."""
    p = draw(st.sampled_from([0.0, 0.3, 0.9]))
    return (numbers(draw(shapes), draw(seeds)),), {"p": p, "rng": draw(seeds)}


@st.composite
def cross_entropy_inputs(draw):
    """Logits and targets."""
    lead, classes = draw(rows_of())
    targets = np.random.default_rng(draw(seeds)).integers(0, classes, size=lead)
    return (numbers((*lead, classes), draw(seeds)), targets), {}


@st.composite
def mse_inputs(draw):
    """Two operands of one shape."""
    shape = draw(shapes)
    return (numbers(shape, draw(seeds)), numbers(shape, draw(seeds), -1.9)), {}


@st.composite
def rotary_inputs(draw):
    """Vectors of even length, where they begin, and tables for at least as many positions."""
    lead, pairs = draw(rows_of())
    seq, start = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    length = start + seq + draw(st.integers(0, 2))
    cos, sin = embeddings.create_rotary_embeddings(length, 2 * pairs)
    return (numbers((*lead, seq, 2 * pairs), draw(seeds)), cos, sin), {"start": start}


@st.composite
def split_inputs(draw):
    batch, seq, num_heads, head_dim = (draw(st.integers(1, 3)) for _ in range(4))
    x = numbers((batch, seq, num_heads * head_dim), draw(seeds))
    return (x,), {"num_heads": num_heads}


@st.composite
def merge_inputs(draw):
    return (numbers(tuple(draw(st.integers(1, 3)) for _ in range(4)), draw(seeds)),), {}


@st.composite
def attention_inputs(draw):
    """Queries, keys and values whose batch axes broadcast, perhaps a mask, perhaps dropout.

    The dropout probabilities are those whose scale, 2 or 4, is exact in float32.
    """
    for_q, for_k, for_v = draw(
        st.sampled_from([((), (), ()), ((2,), (2,), (2,)), ((2, 1), (3,), (1,)), ((), (), (2,))])
    )
    queries, keys, d, dv = (draw(st.integers(1, 3)) for _ in range(4))
    operands = (
        numbers((*for_q, queries, d), draw(seeds)),
        numbers((*for_k, keys, d), draw(seeds)),
        numbers((*for_v, keys, dv), draw(seeds)),
    )
    batch = np.broadcast_shapes(for_q, for_k)
    shape = draw(st.sampled_from([None, (keys,), (queries, keys), (*batch, queries, keys)]))
    rng = np.random.default_rng(draw(seeds))
    mask = None if shape is None else rng.choice([0.0, -np.inf], size=shape)  # also a whole row
    bias = rng.choice([0.0, -1.5, 0.5], size=(queries, keys)) if draw(st.booleans()) else None
    dropout = draw(st.sampled_from([0.0, 0.5, 0.75]))
    return operands, {"mask": mask, "bias": bias, "dropout": dropout, "rng": draw(seeds)}


# What they compute, by NumPy alone -------------------------------------------------------------


def softmax(x, axis=-1):
    e = np.exp(x)
    return e / e.sum(axis=axis, keepdims=True)


def linear(x, weight, bias=0.0):
    return np.einsum("...i,ij->...j", x, weight) + bias


def layer_norm(x, gamma, beta, eps):
    mean, var = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(var + eps) * gamma + beta


def dropout(x, p, rng):
    return np.where(default_rng(rng).random(x.shape) >= p, x / (1 - p), 0.0)


def cross_entropy(logits, targets):
    flat = softmax(logits).reshape(-1, logits.shape[-1])
    return np.mean([-np.log(row[t]) for row, t in zip(flat, targets.reshape(-1), strict=True)])


def rotary(x, cos, sin, start):
    turned = (x[..., 0::2] + 1j * x[..., 1::2]) * (cos + 1j * sin)[start:][: x.shape[-2]]
    return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)


def attention(q, k, v, mask, bias, dropout, rng):
    scores = np.einsum("...id,...jd->...ij", q, k) / np.sqrt(q.shape[-1])
    for shift in (mask, bias):
        scores = scores if shift is None else scores + shift
    e = np.exp(scores)
    total = e.sum(axis=-1, keepdims=True)
    weights = np.divide(e, total, out=np.zeros_like(e), where=total > 0)
    if dropout:
        weights *= (default_rng(rng).random(weights.shape) >= dropout) / (1 - dropout)
    return np.einsum("...ij,...jd->...id", weights, v)


EXAMPLES = {
    "abs": Example(ops.abs, one(), np.abs, analytic=False),
    "add": Example(ops.add, two(), lambda x, y: x + y),
    "cast": Example(ops.cast, two(), lambda x, like: x, analytic=False, constants=(1,)),
    "clip": Example(ops.clip, clipped(), lambda x, min, max: np.clip(x, min, max), analytic=False),
    "concatenate": Example(
        ops.concatenate, joined(), lambda *parts, axis: np.concatenate(parts, axis)
    ),
    "cos": Example(ops.cos, one(), np.cos),
    "div": Example(ops.div, two(low=0.5), lambda x, y: x / y),
    "exp": Example(ops.exp, one(), np.exp),
    "getitem": Example(ops.getitem, indexed(), lambda x, index: x[index]),
    "log": Example(ops.log, one(low=0.5), np.log),
    "matmul": Example(ops.matmul, matrices(), lambda x, y: x @ y),
    "max": Example(ops.max, reduced(), np.max, analytic=False),
    "maximum": Example(ops.maximum, two(), np.maximum, analytic=False),
    "mean": Example(ops.mean, reduced(), np.mean),
    "min": Example(ops.min, reduced(), np.min, analytic=False),
    "mul": Example(ops.mul, two(), lambda x, y: x * y),
    "neg": Example(ops.neg, one(), lambda x: -x),
    "permute": Example(ops.permute, permuted(), np.transpose),
    "power": Example(ops.power, powers(), lambda x, exponent: x**exponent),
    "reshape": Example(ops.reshape, reshaped(), lambda x, shape: x.reshape(shape)),
    "sin": Example(ops.sin, one(), np.sin),
    "sqrt": Example(ops.sqrt, one(low=0.5), np.sqrt),
    "stack": Example(ops.stack, stacked(), lambda *parts, axis: np.stack(parts, axis)),
    "std": Example(ops.std, reduced(), np.std),
    "sub": Example(ops.sub, two(), lambda x, y: x - y),
    "sum": Example(ops.sum, reduced(), np.sum),
    "tanh": Example(ops.tanh, one(), np.tanh),
    "transpose": Example(
        ops.transpose, swapped(), lambda x, axis0, axis1: np.swapaxes(x, axis0, axis1)
    ),
    "var": Example(ops.var, reduced(), np.var),
    "where": Example(ops.where, chosen(), lambda x, y, condition: np.where(condition, x, y)),
    # the fused ones
    "apply_rotary": Example(embeddings.apply_rotary, rotary_inputs(), rotary, constants=(1, 2)),
    "attention": Example(functional.attention, attention_inputs(), attention, analytic=False),
    "cross_entropy": Example(functional.cross_entropy, cross_entropy_inputs(), cross_entropy),
    "divergence": Example(
        divergence,
        mse_inputs().filter(lambda given: given[0][0].ndim),
        lambda z, t: (softmax(t) * np.log(softmax(t) / softmax(z))).sum(axis=-1),
        constants=(1,),
    ),
    # dropout scales by a float32 number: seven digits
    "dropout": Example(functional.dropout, dropout_inputs(), dropout, rtol=1e-6),
    "split_heads": Example(
        functional.split_heads,
        split_inputs(),
        lambda x, num_heads: np.stack(np.split(x, num_heads, axis=-1), axis=1),
    ),
    "merge_heads": Example(
        functional.merge_heads,
        merge_inputs(),
        lambda x: np.concatenate([*x.swapaxes(0, 1)], axis=-1),
    ),
    "embedding": Example(
        functional.embedding, embedding_inputs(), lambda weight, ids, sparse: weight[ids]
    ),
    "gelu": Example(
        functional.gelu,
        one(),
        lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    ),
    "layer_norm": Example(functional.layer_norm, layer_norm_inputs(), layer_norm),
    "linear": Example(functional.linear, linear_inputs(), linear),
    "log_softmax": Example(
        functional.log_softmax, one_axis(), lambda x, axis: np.log(softmax(x, axis))
    ),
    "log_sigmoid": Example(
        activations.log_sigmoid, one(), lambda x: -np.logaddexp(0, -x), analytic=False
    ),
    "mse": Example(functional.mse, mse_inputs(), lambda p, t: np.mean((p - t) ** 2)),
    "relu": Example(functional.relu, one(), lambda x: np.maximum(x, 0), analytic=False),
    "sigmoid": Example(functional.sigmoid, one(), lambda x: 1 / (1 + np.exp(-x)), analytic=False),
    "softmax": Example(functional.softmax, one_axis(), softmax, analytic=False),
}


def all_primitives():
    """Every primitive of the package that passes a gradient on, by name, wherever it stands.

    Those of the book's exercises are not among them.
    """
    lifted = ops.add.__code__  # the function inside `primitive` that all of them are
    home = tinytorch.__path__[0]
    packages = {p.name for p in pkgutil.iter_modules([home]) if p.ispkg} - {"plots"}
    modules = [
        importlib.import_module(module.name)
        for package in packages
        for module in pkgutil.iter_modules([f"{home}/{package}"], f"tinytorch.{package}.")
    ]
    return {
        value.__name__: value
        for module in modules
        for value in vars(module).values()
        if getattr(value, "__code__", None) is lifted
        and not value.__name__.startswith(("quantized_", "block_"))
    }

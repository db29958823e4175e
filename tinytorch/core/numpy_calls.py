"""NumPy's own functions, called with a tensor: differentiated, computed or refused, never silent.

- NumPy's arithmetic (`np.exp(t)`, `array * t`) is the operation of the same name in `ops.py`.
- Comparisons give a tensor of booleans, as the operators do.
- Everything else reads a tensor as an array and returns arrays. Where numbers would come out that
  depend on a tensor whose gradient is wanted, it is refused, with the name of what to use instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.core import ops
from tinytorch.core.recording import is_recording
from tinytorch.core.tracing import Node, as_operand, wrap

__all__ = ["call_function", "call_ufunc", "combine", "compare", "refuse_if_lost"]

ARITHMETIC: dict[Any, Callable[..., Any]] = {
    np.add: ops.add,
    np.subtract: ops.sub,
    np.multiply: ops.mul,
    np.true_divide: ops.div,
    np.negative: ops.neg,
    np.power: lambda x, y: ops.power(x, exponent=y),
    np.square: lambda x: ops.power(x, exponent=2),
    np.matmul: ops.matmul,
    np.exp: ops.exp,
    np.log: ops.log,
    np.sqrt: ops.sqrt,
    np.tanh: ops.tanh,
    np.sin: ops.sin,
    np.cos: ops.cos,
    np.absolute: ops.abs,
    np.maximum: ops.maximum,
}
COMPARISONS = {np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal}
MASKS = {np.bitwise_and: "&", np.bitwise_or: "|", np.bitwise_xor: "^", np.invert: "~"}
WRITERS = {"copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"}

INSTEAD = {
    "amax": "t.max()",
    "amin": "t.min()",
    "clip": "t.clip(min, max)",
    "concatenate": "tinytorch.ops.concatenate(*tensors, axis=...)",
    "dot": "a @ b",
    "einsum": "@ between transposed or reshaped tensors",
    "expand_dims": "t.unsqueeze(axis)",
    "flip": "t[::-1]",
    "hstack": "tinytorch.ops.concatenate(*tensors, axis=...)",
    "inner": "a @ b.T",
    "linalg.norm": "(t * t).sum().sqrt()",
    "max": "t.max()",
    "mean": "t.mean()",
    "min": "t.min()",
    "minimum": "-tinytorch.ops.maximum(-a, -b)",
    "moveaxis": "t.permute(*axes)",
    "outer": "a[:, None] * b",
    "ravel": "t.ravel()",
    "reshape": "t.reshape(*shape)",
    "split": "slices, t[a:b]",
    "squeeze": "t.squeeze()",
    "stack": "tinytorch.ops.stack(*tensors, axis=...)",
    "std": "t.std()",
    "sum": "t.sum()",
    "swapaxes": "t.transpose(axis0, axis1)",
    "take": "t[indices]",
    "tensordot": "@ between reshaped tensors",
    "transpose": "t.permute(*axes) or t.T",
    "var": "t.var()",
    "vstack": "tinytorch.ops.concatenate(*tensors, axis=0)",
    "where": "tinytorch.ops.where(x, y, condition=...)",
}


def call_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """Answer an elementwise NumPy function that was called with a tensor.

    Raises:
        TypeError: the gradient of a tensor would be lost, or a tensor is to be written into.

    Example:
        >>> from tinytorch import Tensor
        >>> np.exp(Tensor([0.0, 1.0], requires_grad=True))
        Tensor([1.    , 2.7183], requires_grad=True)
        >>> np.floor(Tensor([0.5, 1.5]))
        array([0., 1.], dtype=float32)
    """
    if method == "__call__" and not settings:
        if ufunc in ARITHMETIC:
            return ARITHMETIC[ufunc](*inputs)
        if ufunc in COMPARISONS:
            return compare(ufunc, *inputs)
        if ufunc in MASKS:
            return combine(ufunc, *inputs)
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    writes = method == "at"
    return _computed(name, getattr(ufunc, method), inputs, settings, writes)


def call_function(function: Any, args: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """Answer any other NumPy function that was called with a tensor.

    Raises:
        TypeError: the gradient of a tensor would be lost, or a tensor is to be written into.

    Example:
        >>> from tinytorch import Tensor
        >>> np.concatenate([Tensor([1.0]), Tensor([2.0])])
        array([1., 2.], dtype=float32)
        >>> np.argmax(Tensor([1.0, 3.0], requires_grad=True))  # a position has no gradient
        np.int64(1)
    """
    name = f"{function.__module__}.{function.__name__}".removeprefix("numpy.")
    return _computed(name, function, args, settings, name in WRITERS)


def compare(relation: Any, x: Any, y: Any) -> Any:
    """A tensor of booleans: whether `relation`, a NumPy comparison, holds for each element.

    Example:
        >>> compare(np.less, [1.0, 2.0], 1.5)
        Tensor([ True, False], dtype=bool)
    """
    return wrap(np.asarray(relation(as_operand(x), as_operand(y))))


def combine(logic: Any, *masks: Any) -> Any:
    """A mask made of masks: `logic` is NumPy's `bitwise_and`, `bitwise_or`, `_xor` or `invert`.

    Raises:
        TypeError: an operand does not consist of booleans.

    Example:
        >>> combine(np.bitwise_and, [True, True], [True, False])
        Tensor([ True, False], dtype=bool)
    """
    arrays = [np.asarray(as_operand(mask)) for mask in masks]
    if any(array.dtype != bool for array in arrays):
        kinds = " and ".join(str(array.dtype) for array in arrays)
        raise TypeError(
            f"{MASKS[logic]} combines masks of booleans, got {kinds}; compare first, as in "
            "(x > 0) & (y > 0)"
        )
    return wrap(np.asarray(logic(*arrays)))


def refuse_if_lost(call: str, tensors: Any, instead: str) -> None:
    """Refuse a call that drops the gradient of a tensor; under `no_grad` there is none to lose.

    Args:
        call: the call, for the message.
        tensors: the operands, nested in lists or tuples or not.
        instead: what to write in its place.

    Raises:
        TypeError: one of the tensors requires a gradient, and operations are being recorded.
    """
    for tensor in _tensors(tensors):
        if tensor.requires_grad and is_recording():
            raise TypeError(
                f"{call} would lose the gradient of a tensor of shape {tensor.data.shape}; use "
                f"{instead}, or detach() for the numbers alone"
            )


def _computed(
    name: str, function: Any, args: tuple[Any, ...], settings: dict[str, Any], writes: bool
) -> Any:
    """What NumPy makes of the arrays; refused where a gradient or a change would go unnoticed."""
    operands = (args, tuple(settings.values()))
    out = settings.get("out", args[0] if writes else None)
    if any(True for _ in _tensors(out)):
        raise TypeError(
            f"np.{name} would change a tensor unnoticed; write into t.data and call "
            "t.mark_changed()"
        )
    if out is not None:
        refuse_if_lost(f"np.{name} into an array", operands, "a new tensor, as in a = a + t")
    result = function(*_arrays(args), **_arrays(settings))
    if _holds_floats(result) and not name.endswith("_like"):
        instead = INSTEAD.get(name, "the operations of tinytorch.ops")
        refuse_if_lost(f"np.{name}", operands, instead)
    return result


def _tensors(value: Any) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)


def _arrays(value: Any) -> Any:
    """`value` with the array of each tensor in it."""
    if isinstance(value, Node):
        return value.data
    if isinstance(value, dict):
        return {key: _arrays(part) for key, part in value.items()}
    return type(value)(map(_arrays, value)) if type(value) in (list, tuple) else value


def _holds_floats(result: Any) -> bool:
    if isinstance(result, (list, tuple)):
        return any(map(_holds_floats, result))
    return isinstance(result, float) or getattr(result, "dtype", np.dtype(bool)).kind in "fc"

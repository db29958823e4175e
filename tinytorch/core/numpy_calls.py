"""NumPy's own functions called with a tensor: no gradient is lost silently.

- NumPy's arithmetic (`np.exp(t)`, `array * t`) is the operation of the same name in `ops.py`.
- Comparisons give a tensor of booleans, as the operators do.
- Everything else reads a tensor as an array and returns arrays. If the result would depend on a
  tensor that requires a gradient, the call is refused, and the error names what to use instead.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.core import ops
from tinytorch.core.grad_mode import is_recording
from tinytorch.core.graph import Node, wrap
from tinytorch.core.primitive import as_operand

# operations with another name in NumPy: ours, and theirs
NAMES = {
    "abs": "absolute",
    "concatenate": "hstack vstack",
    "div": "divide",
    "getitem": "flip split take",
    "matmul": "dot einsum inner tensordot",
    "mul": "multiply outer",
    "neg": "negative",
    "reshape": "expand_dims ravel squeeze",
    "sub": "subtract",
    "transpose": "swapaxes",
}
OURS = {theirs: ours for ours, names in NAMES.items() for theirs in names.split()}
WRITERS = {"copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"}


def call_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """Compute an elementwise NumPy function that was called with a tensor.

    Example:
        >>> from tinytorch import Tensor
        >>> np.exp(Tensor([0.0, 1.0], requires_grad=True))
        Tensor([1.    , 2.7183], requires_grad=True)
        >>> np.floor(Tensor([0.5, 1.5]))
        array([0., 1.], dtype=float32)
    """
    if method == "__call__" and not settings and ufunc in OPERATORS:
        return OPERATORS[ufunc](*inputs)
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    return _computed(name, getattr(ufunc, method), inputs, settings, method == "at")


def call_function(function: Any, args: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """Compute any other NumPy function that was called with a tensor.

    Example:
        >>> from tinytorch import Tensor
        >>> np.concatenate([Tensor([1.0]), Tensor([2.0])])
        array([1., 2.], dtype=float32)
        >>> np.argmax(Tensor([1.0, 3.0], requires_grad=True))  # a position has no gradient
        np.int64(1)
    """
    name = f"{function.__module__}.{function.__name__}".removeprefix("numpy.")
    return _computed(name, function, args, settings, name in WRITERS)


def _with_booleans(ufunc: Any, sign: str) -> Callable[..., Any]:
    """The operator that compares tensors or, if it has a `sign`, makes a mask of one or two."""

    def operator(*operands: Any) -> Any:
        arrays = [as_operand(operand) for operand in operands]
        kinds = [str(np.asarray(array).dtype) for array in arrays] if sign else []
        if {*kinds} - {"bool"}:
            got = f"got {' and '.join(kinds)}; compare first, as in (x > 0) & (y > 0)"
            raise TypeError(f"{sign} combines Boolean masks, {got}")
        return wrap(np.asarray(ufunc(*arrays)))

    return operator


ARITHMETIC = (
    "absolute add cos divide exp log matmul maximum multiply negative sin sqrt subtract tanh"
)
COMPARISONS = "equal not_equal less less_equal greater greater_equal"
SIGNS = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^", "invert": "~"}

# what Python's operators, and NumPy's functions behind them, do with tensors
OPERATORS: dict[Any, Callable[..., Any]] = {}
for _name in ARITHMETIC.split():
    OPERATORS[getattr(np, _name)] = getattr(ops, OURS.get(_name, _name))
for _name in (*COMPARISONS.split(), *SIGNS):
    OPERATORS[getattr(np, _name)] = _with_booleans(getattr(np, _name), SIGNS.get(_name, ""))


def refuse_if_lost(call: str, tensors: object, instead: str) -> None:
    """Refuse a call that drops the gradient of a tensor; under `no_grad` there is none to lose."""
    for tensor in _tensors(tensors):
        if tensor.requires_grad and is_recording():
            lost = f"the gradient of a tensor of shape {tensor.data.shape}"
            remedy = f"use {instead}, or detach() for the numbers alone"
            raise TypeError(f"{call} would lose {lost}; {remedy}")


def _computed(name: str, function: Any, args: Any, settings: dict[str, Any], writes: bool) -> Any:
    """NumPy's result for the arrays; refused where a gradient or a change would go unnoticed."""
    operands = (args, tuple(settings.values()))
    out = settings.get("out", args[0] if writes else None)
    if any(True for _ in _tensors(out)):
        remedy = "write into t.data and call t.mark_changed()"
        raise TypeError(f"np.{name} would change a tensor unnoticed; {remedy}")
    if out is not None:
        refuse_if_lost(f"np.{name} into an array", operands, "a new tensor, as in a = a + t")
    result = function(*_arrays(args), **_arrays(settings))
    if _holds_floats(result) and not name.endswith("_like"):
        ours = OURS.get(name, name)
        known = f"tinytorch.ops.{ours}" if hasattr(ops, ours) else "the operations of tinytorch.ops"
        refuse_if_lost(f"np.{name}", operands, known)
    return result


def _tensors(value: object) -> Iterator[Node]:
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


def _holds_floats(result: object) -> bool:
    if isinstance(result, (list, tuple)):
        return any(map(_holds_floats, result))
    return isinstance(result, float) or getattr(result, "dtype", np.dtype(bool)).kind in "fc"

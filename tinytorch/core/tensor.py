"""Arrays that know their gradient.

A `Tensor` is a NumPy array together with a note of how it was made: the tensors it was computed
from and a function that carries a gradient back to them. `backward()` reads those notes in reverse
order (reverse-mode differentiation: Griewank and Walther, 2008, chapter 3; Baydin et al., 2018,
section 3.2).

An operation is a plain NumPy function that returns its value *and* its pullback, the function that
maps the gradient of the value to the gradients of the operands. `primitive` lifts it to tensors::

    @primitive
    def mul(x, y):
        return x * y, lambda g: (g * y, g * x)

Broadcasting, recording and dtype rules live here once, so that no operation repeats them.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np

from tinytorch.core.sparse import RowSparse

__all__ = ["Tensor", "no_grad", "primitive"]

Gradient = Any  # an array or a RowSparse
Pullback = Callable[[np.ndarray], Any]


class Tensor:
    """A NumPy array that can carry a gradient.

    Args:
        data: numbers, nested lists, an array or another Tensor; always copied. Floats become
            float32 unless `dtype` says otherwise, integers and booleans stay what they are.
        requires_grad: whether `backward()` shall leave a gradient in `.grad`.
        dtype: a NumPy dtype to convert to.

    Raises:
        TypeError: the data are not numbers, or integers are asked to require a gradient.
        ValueError: nested lists of unequal length.

    Example:
        >>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        array([2., 4., 6.], dtype=float32)
    """

    __slots__ = ("__weakref__", "_parents", "_pullback", "data", "grad", "requires_grad")
    __array_ufunc__ = None  # array * tensor is answered by Tensor.__rmul__

    data: np.ndarray
    grad: Any
    requires_grad: bool

    def __init__(self, data: Any, requires_grad: bool = False, dtype: Any = None) -> None:
        self.data = _as_array(data, dtype)
        if requires_grad and self.data.dtype.kind != "f":
            raise TypeError(
                f"a tensor of {self.data.dtype} cannot require a gradient; only floating-point "
                "numbers vary continuously: pass dtype=numpy.float32"
            )
        self.requires_grad = requires_grad
        self.grad = None
        self._parents: tuple[Tensor, ...] = ()
        self._pullback: Pullback | None = None

    # What it is ------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self.data.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.data.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.data.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
        return self.data.dtype

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor was made by hand and not computed from others that need a gradient."""
        return self._pullback is None

    @property
    def T(self) -> Tensor:
        """The tensor with its last two axes swapped."""
        return self.transpose()

    def item(self) -> Any:
        """The single element as a Python number."""
        if self.size != 1:
            raise ValueError(f"item() needs one element, this tensor has shape {self.shape}")
        return self.data.item()

    def numpy(self) -> np.ndarray:
        """The array itself, not a copy."""
        return self.data

    def detach(self) -> Tensor:
        """The same data, cut off from the graph."""
        return _wrap(self.data)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.data, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("a tensor without axes has no length")
        return len(self.data)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(
                f"the truth of a tensor of shape {self.shape} is ambiguous; reduce it to one value"
            )
        return bool(self.data.item())

    def __repr__(self) -> str:
        shown = np.array2string(self.data, separator=", ", prefix="Tensor(", precision=4)
        dtype = "" if self.dtype == np.float32 else f", dtype={self.dtype}"
        return f"Tensor({shown}{dtype}{', requires_grad=True' if self.requires_grad else ''})"

    # Gradients -------------------------------------------------------------------------------

    def zero_grad(self) -> None:
        """Forget the gradient."""
        self.grad = None

    def backward(self, gradient: Any = None) -> None:
        """Leave the gradient of this tensor in `.grad` of every leaf that requires one.

        Gradients add up over the paths that lead to a leaf, and over repeated calls, until
        `zero_grad()`. The graph is freed on the way.

        Args:
            gradient: the gradient of the final result with respect to this tensor, an array of
                the same shape; needed unless the tensor holds a single element.

        Raises:
            ValueError: a gradient is missing or has the wrong shape.
            RuntimeError: there is nothing to differentiate, or the graph was already used.
        """
        if not self.requires_grad:
            raise RuntimeError(
                "backward() on a tensor that does not depend on anything that requires a gradient; "
                "create an input with requires_grad=True, outside no_grad()"
            )
        waiting = {id(self): _first_gradient(self, gradient)}
        order = _leaves_to_result(self)
        while order:
            tensor = order.pop()
            g = waiting.pop(id(tensor))
            if tensor._pullback is None:  # a leaf
                tensor.grad = g if tensor.grad is None else total_gradient(tensor.grad, g)
                continue
            for parent, part in _pull_back(tensor, tensor._pullback, g):
                held = waiting.get(id(parent))
                waiting[id(parent)] = part if held is None else total_gradient(held, part)

    # Operators: each is one primitive of ops.py ------------------------------------------------

    def __add__(self, other: Any) -> Tensor:
        return ops.add(self, other)

    def __radd__(self, other: Any) -> Tensor:
        return ops.add(other, self)

    def __sub__(self, other: Any) -> Tensor:
        return ops.sub(self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return ops.sub(other, self)

    def __mul__(self, other: Any) -> Tensor:
        return ops.mul(self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return ops.mul(other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return ops.div(self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return ops.div(other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return ops.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return ops.matmul(other, self)

    def __pow__(self, exponent: float) -> Tensor:
        return ops.power(self, exponent=exponent)

    def __neg__(self) -> Tensor:
        return ops.neg(self)

    def __getitem__(self, index: Any) -> Tensor:
        return ops.getitem(self, index=index)

    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]
        return _compare(np.equal, self, other)

    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]
        return _compare(np.not_equal, self, other)

    def __lt__(self, other: Any) -> Tensor:
        return _compare(np.less, self, other)

    def __le__(self, other: Any) -> Tensor:
        return _compare(np.less_equal, self, other)

    def __gt__(self, other: Any) -> Tensor:
        return _compare(np.greater, self, other)

    def __ge__(self, other: Any) -> Tensor:
        return _compare(np.greater_equal, self, other)

    __hash__ = object.__hash__

    def sum(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """The sum over `axis`, or over everything."""
        return ops.sum(self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """The mean over `axis`, or over everything."""
        return ops.mean(self, axis=axis, keepdims=keepdims)

    def var(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """The variance (divided by n, not n - 1) over `axis`, or over everything."""
        return ops.var(self, axis=axis, keepdims=keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """The largest element along `axis`, or of all."""
        return ops.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        """The smallest element along `axis`, or of all."""
        return ops.min(self, axis=axis, keepdims=keepdims)

    def argmax(self, axis: int | None = None) -> Tensor:
        """Where the largest element is (integers: no gradient)."""
        return _wrap(np.asarray(self.data.argmax(axis)))

    def exp(self) -> Tensor:
        """Elementwise e to the power of x."""
        return ops.exp(self)

    def log(self) -> Tensor:
        """Elementwise natural logarithm."""
        return ops.log(self)

    def sqrt(self) -> Tensor:
        """Elementwise square root."""
        return ops.sqrt(self)

    def tanh(self) -> Tensor:
        """Elementwise hyperbolic tangent."""
        return ops.tanh(self)

    def reshape(self, *shape: Any) -> Tensor:
        """The same elements in another shape; one length may be -1."""
        return ops.reshape(self, shape=_flatten(shape))

    def transpose(self, axis0: int = -2, axis1: int = -1) -> Tensor:
        """The tensor with two axes swapped, the last two unless told otherwise."""
        return ops.transpose(self, axis0=axis0, axis1=axis1)

    def permute(self, *axes: Any) -> Tensor:
        """The tensor with its axes in the given order."""
        return ops.permute(self, axes=_flatten(axes))


# Recording -----------------------------------------------------------------------------------


class _Mode(threading.local):
    def __init__(self) -> None:
        self.recording = True
        self.before: list[bool] = []  # what the open no_grad blocks will restore, innermost last


_mode = _Mode()


class no_grad:
    """A context, or a decorator, in which no graph is recorded: for evaluation and updates.

    Example:
        >>> w = Tensor([2.0], requires_grad=True)
        >>> with no_grad():
        ...     y = w * 3
        >>> y.requires_grad
        False
    """

    def __enter__(self) -> None:
        _mode.before.append(_mode.recording)
        _mode.recording = False

    def __exit__(self, *_: object) -> None:
        _mode.recording = _mode.before.pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate `function` so that it always runs without recording."""

        @wraps(function)
        def without_grad(*args: Any, **kwargs: Any) -> Any:
            with no_grad():
                return function(*args, **kwargs)

        return without_grad


def primitive(function: Callable[..., tuple[Any, Pullback]]) -> Callable[..., Tensor]:
    """Lift a NumPy function that returns `(value, pullback)` to an operation on tensors.

    Positional arguments are operands: tensors, arrays or numbers, handed to `function` as arrays.
    Keyword arguments are settings and pass through untouched. The pullback takes the gradient of
    the value and returns one gradient for each operand (None where there is none); with a single
    operand it may return that gradient alone. It works with the arrays after broadcasting: summing
    a gradient back to its operand's shape happens here.

    The result has dtype float64 only if a tensor among the operands has.

    Args:
        function: `f(*arrays, **settings) -> (value, pullback)`, which must not change its inputs.

    Example:
        >>> @primitive
        ... def cube(x):
        ...     return x * x * x, lambda g: g * 3 * x * x
        >>> x = Tensor([2.0], requires_grad=True)
        >>> cube(x).backward()
        >>> x.grad
        array([12.], dtype=float32)
    """

    @wraps(function)
    def operation(*operands: Any, **settings: Any) -> Tensor:
        arrays = tuple(_operand(operand) for operand in operands)
        try:
            value, pullback = function(*arrays, **settings)
        except ValueError as error:
            raise _explained(error, function.__name__, arrays) from None
        result = _wrap(_settle_dtype(np.asarray(value), operands))
        if _mode.recording:
            parents = tuple(o if isinstance(o, Tensor) else _constant for o in operands)
            if any(parent.requires_grad for parent in parents):
                result.requires_grad = True
                result._parents, result._pullback = parents, pullback
        return result

    return _described(operation, function)


# Helpers -------------------------------------------------------------------------------------


def _as_array(data: Any, dtype: Any) -> np.ndarray:
    """A fresh numeric array holding `data`."""
    try:
        array = np.array(data.data if isinstance(data, Tensor) else data, dtype=dtype)
    except ValueError as error:
        remedy = "; all rows must have the same length" if "inhomogeneous" in str(error) else ""
        raise ValueError(f"Tensor: {error}{remedy}") from None
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"Tensor: cannot hold {array.dtype} data; numbers, lists of numbers and numeric arrays "
            "are allowed"
        )
    if dtype is None and array.dtype.kind == "f":
        array = array.astype(np.float32, copy=False)
    return array


def _described(operation: Callable[..., Tensor], function: Callable[..., Any]) -> Any:
    """`operation`, which tells `help` that it returns a tensor and not the pair."""
    operation.__annotations__ = {**function.__annotations__, "return": Tensor}
    signature = inspect.signature(function).replace(return_annotation=Tensor)
    setattr(operation, "__signature__", signature)  # noqa: B010 (mypy knows no such attribute)
    return operation


def _wrap(array: np.ndarray) -> Tensor:
    """A tensor around an existing array: no copy, no conversion, no graph."""
    tensor = Tensor.__new__(Tensor)
    tensor.data, tensor.grad, tensor.requires_grad = array, None, False
    tensor._parents, tensor._pullback = (), None
    return tensor


_constant = _wrap(np.zeros(()))  # stands for every operand that is not a tensor


def _operand(operand: Any) -> Any:
    """What a primitive computes with: the array of a tensor, anything else as it is."""
    if isinstance(operand, Tensor):
        return operand.data
    if not isinstance(operand, (list, tuple)):
        return operand
    if any(isinstance(part, Tensor) and part.requires_grad for part in operand):
        raise TypeError(
            "a list of tensors is not an operand, their gradients would be lost; "
            "pass them one by one, or join them with ops.stack(*tensors)"
        )
    return np.asarray(operand)


def _settle_dtype(value: np.ndarray, operands: tuple[Any, ...]) -> np.ndarray:
    """Keep float64 only where a tensor asked for it."""
    if value.dtype != np.float64:
        return value
    if any(isinstance(o, Tensor) and o.data.dtype == np.float64 for o in operands):
        return value
    return value.astype(np.float32)


def _compare(relation: Callable[..., Any], x: Tensor, y: Any) -> Tensor:
    return _wrap(np.asarray(relation(x.data, _operand(y))))


def _flatten(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """Accept both f(2, 3) and f((2, 3))."""
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes


def _explained(error: ValueError, name: str, arrays: tuple[Any, ...]) -> ValueError:
    """The same error, saying which operation it was and what shapes came."""
    message = str(error)
    if message.startswith(name):
        return error
    shapes = " and ".join(str(np.shape(array)) for array in arrays)
    if "broadcast" in message:
        return ValueError(
            f"{name}: shapes {shapes} do not broadcast; aligned from the right, two lengths must "
            "be equal or one of them 1"
        )
    return ValueError(f"{name}: operands of shape {shapes}: {message}")


def _first_gradient(result: Tensor, gradient: Any) -> np.ndarray:
    """The gradient that starts the backward pass."""
    if gradient is None:
        if result.size != 1:
            raise ValueError(
                f"backward() on shape {result.shape} needs an explicit gradient; reduce with .sum()"
            )
        return np.ones_like(result.data)
    own = True if result.is_leaf else None  # a leaf keeps it; pullbacks do not change theirs
    array = np.array(gradient, dtype=result.dtype, copy=own)
    if array.shape != result.shape:
        raise ValueError(
            f"backward() on shape {result.shape} got a gradient of shape {array.shape}; "
            "the two must be equal"
        )
    return array


def _leaves_to_result(result: Tensor) -> list[Tensor]:
    """Every tensor that needs a gradient, each before all the tensors computed from it.

    An explicit stack instead of recursion: a graph may be deeper than Python's call stack.
    """
    order: list[Tensor] = []
    seen: set[int] = set()
    stack = [(result, False)]
    while stack:
        tensor, parents_done = stack.pop()
        if parents_done:
            order.append(tensor)
        elif id(tensor) not in seen:
            seen.add(id(tensor))
            stack.append((tensor, True))
            stack.extend((p, False) for p in tensor._parents if p.requires_grad)
    return order


def _pull_back(tensor: Tensor, pullback: Pullback, g: Gradient) -> list[tuple[Tensor, Gradient]]:
    """The gradient for each parent that requires one; frees the tensor's record."""
    g = g.to_dense() if isinstance(g, RowSparse) else g
    parts, parents = pullback(g), tensor._parents
    tensor._parents, tensor._pullback = (), _freed
    parts = parts if isinstance(parts, tuple) else (parts,)
    if len(parts) != len(parents):
        raise ValueError(
            f"a pullback returned {len(parts)} gradients for {len(parents)} operands; "
            "it must return one each, None where there is none"
        )
    return [
        (parent, _fit(part, parent, (g, *parts[:i])))
        for i, (parent, part) in enumerate(zip(parents, parts, strict=True))
        if parent.requires_grad
    ]


def _freed(_: np.ndarray) -> Any:
    raise RuntimeError(
        "backward() through a graph that was already used and freed; "
        "compute the result again before calling backward() a second time"
    )


def _fit(part: Gradient, parent: Tensor, shared: tuple[Any, ...]) -> Gradient:
    """`part` in the shape and dtype of `parent`, and not in memory that somebody else holds."""
    if isinstance(part, RowSparse):
        return part.astype(parent.dtype)
    if part is None:
        return np.zeros_like(parent.data)
    fitted = _undo_broadcast(np.asarray(part), parent.shape).astype(parent.dtype, copy=False)
    if parent.is_leaf and (fitted.base is not None or any(fitted is other for other in shared)):
        return fitted.copy()
    return fitted


def total_gradient(held: Gradient, part: Gradient) -> Gradient:
    """The sum of two gradients; an array also where NumPy would make a bare number of it."""
    total = held + part
    return total if isinstance(total, RowSparse) else np.asarray(total)


def _undo_broadcast(g: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum `g` over the axes along which an operand of `shape` was repeated."""
    if g.shape == shape:
        return g
    added = g.ndim - len(shape)
    if added < 0 or any(n not in (1, m) for n, m in zip(shape, g.shape[added:], strict=True)):
        raise ValueError(f"a pullback returned shape {g.shape} for an operand of shape {shape}")
    repeated = tuple(i + added for i, n in enumerate(shape) if n == 1 and g.shape[i + added] != 1)
    return np.asarray(g.sum(axis=(*range(added), *repeated))).reshape(shape)


from tinytorch.core import ops  # noqa: E402  (ops needs Tensor and primitive; the operators need ops)

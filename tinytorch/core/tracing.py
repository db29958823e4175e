"""What an operation returns, and what it records.

An operation is a plain NumPy function that returns its value *and* its pullback, the function that
maps the gradient of the value to the gradients of the operands. `primitive` lifts it to tensors::

    @primitive
    def mul(x, y):
        return x * y, lambda g: (g * y, g * x)

The result is a `Node`: an array together with a `Record` of how it was made, and the records are
what `backward.py` reads in reverse. The rules for recording and dtypes are here, so no operation
repeats them; the class `Tensor`, a node with operators, is in `tensor.py`.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec

import numpy as np

from tinytorch.core.arguments import refuse_mask
from tinytorch.core.recording import open_blocks
from tinytorch.core.sparse import RowSparse
from tinytorch.core.types import TensorLike

if TYPE_CHECKING:  # operations return one, though it is made of them
    from tinytorch.core.tensor import Tensor

Gradient = Any  # an array or a RowSparse
Pullback = Callable[[np.ndarray], Any]
Operands = ParamSpec("Operands")  # and settings


class Record:
    """How a tensor was made: all that the backward pass needs, without the array itself.

    A pullback keeps the arrays that it uses; the others are freed when nothing else refers to them.

    Attributes:
        name: the operation.
        _parents: for each operand its record, itself if it is a leaf, or None if it is no tensor.
        pullback: the operation's; None once it has been used.
        time: when it was made; see `Node`.
        shape: of the tensor; `dtype` likewise.
    """

    __slots__ = ("_changed", "_parents", "dtype", "name", "pullback", "shape", "time")
    _requires_grad = True  # or nothing would have been recorded

    def __init__(
        self, name: str, parents: list[Record | Node | None], pullback: Pullback, made: np.ndarray
    ) -> None:
        self.name, self._parents, self.time = name, parents, next(_ticks)
        self.pullback: Pullback | None = pullback
        self.shape, self.dtype = made.shape, made.dtype
        self._changed: list[int] | None = None


class Node:
    """An array, its gradient, and the record of the operation that made it.

    A time here is a number that no other record or change has. A record stores the time when it was
    made, a node that of its last change, and `backward` compares the two.
    """

    result_class: ClassVar[type[Any]]  # what operations return: a node with operators, `Tensor`
    __slots__ = ("__weakref__", "_array", "_changed", "_grad", "_record", "_requires_grad")

    _parents = ()  # of a leaf; of a result, its record has them
    _array: np.ndarray
    _grad: Gradient
    _requires_grad: bool
    _record: Record | None  # None for a leaf
    # the time of the last change, shared by all that share the data; a result's is in its record
    _changed: list[int] | None

    @property
    def data(self) -> np.ndarray:
        """The array itself.

        Assigning to it (`t.data = a`, `t.data -= a`) is noted, and a backward pass through an
        operation that used the old numbers is refused. Writing into the array (`t.data[...] = a`)
        cannot be detected: call `mark_changed()` after it if a graph is open. Floats without a
        dtype, a list for instance, take that of the tensor.
        """
        return self._array

    @data.setter
    def data(self, array: TensorLike) -> None:
        refuse_mask(array, "data")
        has_dtype, array = hasattr(array, "dtype"), native(np.asarray(array))
        if array.dtype.kind == "f" and not has_dtype:
            array = array.astype(self._array.dtype if self._array.dtype.kind == "f" else _FLOAT32)
        kinds, wanted = ("f", "floating-point") if self._requires_grad else ("fiub", "real")
        if array.dtype.kind not in kinds:
            raise TypeError(f"this tensor holds {wanted} numbers, got data of {array.dtype}")
        if array is not self._array:
            self._array = array
            (self._record or self)._changed = None  # no longer that of a detached twin
        self.mark_changed()

    @property
    def grad(self) -> Any:
        """The gradient that `backward()` stored: an array, a `RowSparse`, or None."""
        return self._grad

    @grad.setter
    def grad(self, gradient: TensorLike | RowSparse | None) -> None:
        self._grad = None if gradient is None else as_gradient(gradient, self._array.shape)

    @property
    def requires_grad(self) -> bool:
        """Whether `backward()` carries a gradient to this tensor; may be set on a leaf."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        if wanted and self._array.dtype.kind != "f":
            why = "only floating-point numbers vary continuously: pass dtype=numpy.float32"
            raise TypeError(f"a tensor of {self.data.dtype} cannot require a gradient; {why}")
        if not wanted and self._record is not None:
            made = "computed from others that require a gradient, which would be lost"
            raise RuntimeError(f"this tensor was {made}; use detach() for its data alone")
        self._requires_grad = bool(wanted)

    @property
    def is_leaf(self) -> bool:
        """Whether the tensor was created directly, not computed from others with a gradient."""
        return self._record is None

    def mark_changed(self) -> None:
        """Note that the data were changed in place, so that no stale gradient is computed.

        Example:
            >>> from tinytorch import Tensor
            >>> w = Tensor([2.0], requires_grad=True)
            >>> y = w * w
            >>> w.data[...] = 5.0
            >>> w.mark_changed()
            >>> y.backward()  # doctest: +ELLIPSIS
            Traceback (most recent call last):
            RuntimeError: backward() through mul: its operand 0 of shape (1,) was changed ...
        """
        self.clock()[0] = next(_ticks)

    def clock(self) -> list[int]:
        """The time of the last change of the data, shared by every tensor that shares them."""
        holder = self._record or self
        holder._changed = holder._changed or [0]
        return holder._changed


_ticks = itertools.count(1)  # of all threads


def as_gradient(gradient: TensorLike | RowSparse, shape: tuple[int, ...]) -> Gradient:
    """A gradient of a tensor of `shape` as an array, or the `RowSparse` that it is."""
    array = gradient if isinstance(gradient, RowSparse) else np.asarray(gradient)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"a gradient must hold real numbers, got {array.dtype}")
    if array.shape != shape:
        wrong = f"has its shape, got {array.shape}"
        raise ValueError(f"the gradient of a tensor of shape {shape} {wrong}")
    return array


def wrap(array: np.ndarray) -> Tensor:
    """A tensor around an existing array: no copy, no conversion, no record."""
    node = _new(Node.result_class)
    node._array = array
    node._grad = node._record = node._changed = None
    node._requires_grad = False
    return node


_new = object.__new__

# Operations ----------------------------------------------------------------------------------


def primitive(function: Callable[Operands, tuple[Any, Pullback]]) -> Callable[Operands, Tensor]:
    """Lift a NumPy function that returns `(value, pullback)` to an operation on tensors.

    Positional arguments are operands: tensors, arrays or numbers, passed to `function` as arrays.
    Keyword arguments are settings and pass through untouched. The pullback takes the gradient of
    the value and returns one gradient for each operand (None where there is none); with a single
    operand it may return that gradient alone. One that takes long may be a function without
    arguments instead, called only if its operand requires a gradient. A pullback works with the
    arrays after broadcasting: `backward` sums a gradient back to its operand's shape.

    A pullback may keep the arrays. Integers and Booleans are copied, so the ids of the next batch
    may overwrite them before `backward()`. Floats are not: if you write into such an array before
    `backward()`, pass `Tensor(a)`, which is a copy.

    The result has dtype float64 only if a tensor among the operands has.

    Args:
        function: `f(*arrays, **settings) -> (value, pullback)`, which must not change its inputs.

    Raises:
        TypeError: raised by the operation if `function` returns anything but such a pair.

    Example:
        >>> from tinytorch import Tensor
        >>> @primitive
        ... def cube(x):
        ...     return x * x * x, lambda g: g * 3 * x * x
        >>> x = Tensor([2.0], requires_grad=True)
        >>> cube(x).backward()
        >>> x.grad
        array([12.], dtype=float32)
    """
    name = function.__name__

    @wraps(function)
    def operation(*operands: Any, **settings: Any) -> Tensor:
        arrays = [as_operand(operand) for operand in operands]
        try:
            made = function(*arrays, **settings)
        except ValueError as error:
            raise _explained(error, name, arrays) from None
        if type(made) is not tuple or not callable(made[-1]):
            pair = "a value and its pullback, a function of a gradient"
            raise TypeError(f"{name}: a primitive returns {pair}; got {type(made).__name__}")
        value, pullback = made
        result = wrap(_settled(value, name, operands))
        if not open_blocks.get() and result._array.dtype.kind == "f":
            parents = [(o._record or o) if isinstance(o, Node) else None for o in operands]
            if any([p._requires_grad for p in parents if p is not None]):
                result._requires_grad = True
                result._record = Record(name, parents, pullback, result._array)
        return result

    signature = inspect.signature(function).replace(return_annotation="Tensor")
    setattr(operation, "__signature__", signature)  # noqa: B010 (mypy knows no such attribute)
    return operation


_FLOAT32 = np.dtype(np.float32)


def as_operand(operand: object) -> Any:
    """The operand as an operation uses it: a tensor's array, an array of a list, else unchanged.

    Integers and Booleans are copied, for a pullback may keep them: a batch of ids is small, and the
    next one is often written in its place.
    """
    if isinstance(operand, Node):
        return operand._array
    if isinstance(operand, np.ndarray):
        refuse_mask(operand, "an operand")
        return operand.copy() if operand.dtype.kind in "iub" else operand
    if not isinstance(operand, (list, tuple)):
        return operand
    if any(isinstance(part, Node) and part.requires_grad for part in operand):
        lost = "their gradients would be lost"
        remedy = "pass them one by one, or join them with ops.stack(*tensors)"
        raise TypeError(f"a list of tensors is not an operand, {lost}; {remedy}")
    return np.asarray(operand)


def _settled(value: Any, name: str, operands: tuple[Any, ...]) -> np.ndarray:
    """`value` as an array, wider than float32 only if an operand is a tensor that is."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name}: the result is of {array.dtype}; tensors hold real numbers")
    if array.dtype.kind != "f" or array.dtype.itemsize <= 4:
        return native(array)
    tensors = [o._array.dtype for o in operands if isinstance(o, Node)]
    floats = [dtype for dtype in tensors if dtype.kind == "f"]
    return array.astype(np.result_type(_FLOAT32, *floats), copy=False)


def floats(x: TensorLike) -> np.ndarray:
    """`x` as an array of floats in which a formula neither wraps nor loses digits.

    Integers, Booleans and half precision are widened: to float32, or to float64 if float32 cannot
    hold them. An array of floats is returned as it is.

    Example:
        >>> floats(np.uint8([200])) * 2
        array([400.], dtype=float32)
    """
    array = np.asarray(x)
    return array.astype(np.result_type(array, np.float32), copy=False)


def native(array: np.ndarray) -> np.ndarray:
    """The same numbers in the byte order of this machine."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _explained(error: ValueError, name: str, arrays: list[Any]) -> ValueError:
    """The same error, naming the operation and the shapes of its operands."""
    message = str(error)
    if message.startswith(name):
        return error
    shapes = " and ".join(str(np.shape(array)) for array in arrays)
    if "broadcast" in message:
        rule = "aligned from the right, two lengths must be equal or one of them 1"
        return ValueError(f"{name}: shapes {shapes} do not broadcast; {rule}")
    return ValueError(f"{name}: operands of shape {shapes}: {message}")

"""Operations: NumPy functions that also say how a gradient goes back through them.

An operation is a plain NumPy function that returns its value *and* its pullback, the function that
maps the gradient of the value to the gradients of the operands. `primitive` lifts it to tensors::

    @primitive
    def mul(x, y):
        return x * y, lambda g: (g * y, g * x)

The rules for recording and dtypes are here, so no operation repeats them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np

from tinytorch.core.arguments import refuse_mask
from tinytorch.core.grad_mode import open_blocks
from tinytorch.core.graph import FLOAT32, Node, Pullback, Record, native, wrap
from tinytorch.core.types import TensorLike

if TYPE_CHECKING:
    from tinytorch.core.tensor import Tensor

Operands = ParamSpec("Operands")  # and settings


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
        TypeError: raised by the operation if `function` returns anything but such a pair, or if a
            tensor that is an operand is passed by name.

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
    name, signature = function.__name__, inspect.signature(function)
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    required = {key: x for key, x in signature.parameters.items() if x.default is x.empty}
    by_position = {key for key, x in required.items() if x.kind in kinds}

    @wraps(function)
    def operation(*operands: Any, **settings: Any) -> Tensor:
        arrays = [as_operand(operand) for operand in operands]
        for setting, given in settings.items():
            if setting in by_position and isinstance(given, Node):
                raise TypeError(f"{name}: pass the operand {setting} by position, not by name")
        try:
            made = function(*arrays, **settings)
        except ValueError as error:
            raise _explained(error, name, arrays).with_traceback(error.__traceback__) from None
        if type(made) is not tuple or len(made) != 2 or not callable(made[1]):
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

    shown = signature.replace(return_annotation="Tensor")
    setattr(operation, "__signature__", shown)  # noqa: B010 (mypy knows no such attribute)
    return operation


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
    return array.astype(np.result_type(FLOAT32, *floats), copy=False)


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

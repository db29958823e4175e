"""The backward pass: gradients carried from a result to the leaves it was computed from.

Every operation has recorded its operands and its pullback (`tracing.py`). `backward` reads those
records in reverse order (reverse-mode differentiation: Griewank and Walther, 2008, chapter 3;
Baydin et al., 2018, section 3.2).
"""

from typing import Any, cast

import numpy as np

from tinytorch.core.broadcasting import undo_broadcast
from tinytorch.core.sparse import RowSparse
from tinytorch.core.tracing import Gradient, Node, Pullback, Record, as_gradient


def backward(result: Node, gradient: Any = None) -> None:
    """Store the gradient of `result` in `.grad` of every leaf that requires one.

    Gradients add up over the paths that lead to a leaf, and over repeated calls until
    `zero_grad()`. The graph is freed on the way. `Tensor.backward` calls this function.

    Args:
        result: the tensor to differentiate.
        gradient: the gradient of the final result with respect to this tensor, an array of
            the same shape; needed unless the tensor holds a single element.

    Raises:
        ValueError: a gradient is missing or has the wrong shape.
        TypeError: the gradient does not consist of real numbers.
        RuntimeError: nothing to differentiate, a used graph or changed data; no gradient changes.

    Example:
        >>> from tinytorch import Tensor
        >>> x = Tensor([1.0, 2.0], requires_grad=True)
        >>> backward(x * x, [1.0, 10.0])
        >>> x.grad
        array([ 2., 40.], dtype=float32)
    """
    first = _first_gradient(result, gradient)
    order = topological_order(result)
    _check_unchanged(order)
    waiting = {id(order[-1]): first}
    while order:
        node = order.pop()
        g = waiting.pop(id(node))
        if isinstance(node, Node):  # a leaf
            node._grad = g if node._grad is None else total_gradient(node._grad, g)
            continue
        for parent, part in _pull_back(node, g):
            held = waiting.get(id(parent))
            waiting[id(parent)] = part if held is None else total_gradient(held, part)


def _first_gradient(result: Node, gradient: Any) -> Gradient:
    """The gradient that starts the backward pass."""
    if not result.requires_grad:
        remedy = "create an input with requires_grad=True, outside no_grad()"
        what = "a tensor that does not depend on anything that requires a gradient"
        raise RuntimeError(f"backward() on {what}; {remedy}")
    data = result.data
    if gradient is None and data.size != 1:
        remedy = "reduce with .sum()"
        raise ValueError(f"backward() on shape {data.shape} needs an explicit gradient; {remedy}")
    if gradient is None:
        return np.ones_like(data)
    array = as_gradient(np.asarray(gradient), data.shape)
    return array.astype(data.dtype, copy=result.is_leaf)  # a leaf keeps it


def topological_order(result: Node) -> list[Record | Node]:
    """Every tensor that needs a gradient, each before all the tensors computed from it.

    A computed tensor is represented by its record, a leaf by itself.

    An explicit stack replaces recursion: a graph may be deeper than Python's call stack.

    Example:
        >>> from tinytorch import Tensor
        >>> x = Tensor([3.0], requires_grad=True)
        >>> y = x * x
        >>> leaf, *records = topological_order(y + x)
        >>> leaf is x, [record.name for record in records]
        (True, ['mul', 'add'])
    """
    order: list[Record | Node] = []
    seen: set[int] = set()
    stack = [(result._record or result, False)]
    while stack:
        node, parents_done = stack.pop()
        if parents_done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            for parent in node.parents if isinstance(node, Record) else ():
                if parent is not None and parent._requires_grad:
                    stack.append((parent, False))
    return order


def _check_unchanged(order: list[Record | Node]) -> None:
    """Refuse a graph that was freed, or whose data changed after they were recorded."""
    for node in order:
        if isinstance(node, Node):
            continue
        if node.pullback is None:
            remedy = "compute the result again before calling backward() a second time"
            graph = "a graph that was already used and freed"
            raise RuntimeError(f"backward() through {graph}; {remedy}")
        for i, used in enumerate((node, *node.parents)):
            if used is not None and used._changed is not None and used._changed[0] > node.time:
                what = f"{f'operand {i - 1}' if i else 'result'} of shape {_like(used).shape}"
                late = "was changed after the operation had used it, so the gradient would be wrong"
                remedy = "compute the result again after an update, or update after backward()"
                raise RuntimeError(f"backward() through {node.name}: its {what} {late}; {remedy}")


def _pull_back(record: Record, g: Gradient) -> list[tuple[Record | Node, Gradient]]:
    """The gradient for each parent that requires one; frees the record."""
    parents = record.parents
    pullback = cast(Pullback, record.pullback)  # `_check_unchanged` refuses a record without one
    record.parents, record.pullback = [], None
    g = g.to_dense() if isinstance(g, RowSparse) else g
    try:
        parts = pullback(g)
        parts = parts if isinstance(parts, tuple) else (parts,)
        if len(parts) != len(parents):
            got = f"{len(parts)} gradients for {len(parents)} operands"
            remedy = "it must return one each, None where there is none"
            raise ValueError(f"the pullback returned {got}; {remedy}")
        return [
            (parent, _fitted(parts, i, parent, g))
            for i, parent in enumerate(parents)
            if parent is not None and parent._requires_grad
        ]
    except Exception as error:
        kind = ValueError if isinstance(error, ValueError) else RuntimeError
        raise kind(f"backward() through {record.name}: {error}") from error


def _fitted(parts: tuple[Any, ...], i: int, parent: Record | Node, g: np.ndarray) -> Gradient:
    """Part `i` in the shape and dtype of `parent`; a leaf gets memory that nothing else shares."""
    part, like = parts[i], _like(parent)
    if isinstance(part, RowSparse):
        return part.astype(like.dtype)
    if part is None:
        return np.zeros(like.shape, like.dtype)
    part = undo_broadcast(np.asarray(part), like.shape).astype(like.dtype, copy=False)
    shared = part.base is not None or part is g or any(part is other for other in parts[:i])
    return part.copy() if shared and isinstance(parent, Node) else part


def _like(node: Record | Node) -> Record | np.ndarray:
    """The object with the shape and dtype of a tensor: its record, or the array of a leaf."""
    return node._array if isinstance(node, Node) else node


def total_gradient(held: Gradient, part: Gradient) -> Gradient:
    """The sum of two gradients, arrays or row-sparse; always an array, even for a single number.

    Example:
        >>> total_gradient(np.array(1.0), np.array(2.0))
        array(3.)
    """
    total = held + part
    return total if isinstance(total, RowSparse) else np.asarray(total)

"""The backward pass: gradients carried from a result to the leaves it was computed from.

Every operation has recorded its operands and its pullback (`graph.py`). `backward` reads those
records in reverse order (reverse-mode differentiation: Griewank and Walther, 2008, chapter 3;
Baydin et al., 2018, section 3.2). What it refuses, and how a gradient is fitted to its tensor, is
in `backward_checks.py`.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from tinytorch.core.backward_checks import check_graph, first_gradient, fitted, located
from tinytorch.core.graph import Gradient, Node, Pullback, Record
from tinytorch.core.sparse import RowSparse
from tinytorch.core.types import TensorLike


def backward(result: Node, gradient: TensorLike | None = None) -> None:
    """Store the gradient of `result` in `.grad` of every leaf that requires one.

    Gradients add up over the paths that lead to a leaf, and over repeated calls until
    `zero_grad()`. The graph is freed on the way. `Tensor.backward` calls this function.

    Args:
        result: the tensor to differentiate.
        gradient: that of the final result, in this one's shape; needed unless it is one number.

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
    first = first_gradient(result, gradient)
    order = topological_order(result)
    check_graph(order)
    waiting, leaves = {id(order[-1]): first}, []
    while order:
        node = order.pop()
        g = waiting.pop(id(node))
        if isinstance(node, Node):
            leaves.append((node, total_gradient(node._grad, g)))
            continue
        for parent, part in _pull_back(node, g):
            waiting[id(parent)] = total_gradient(waiting.get(id(parent)), part)
    for leaf, total in leaves:  # at the end: a pullback that fails changes no gradient
        leaf._grad = total


def topological_order(result: Node) -> list[Record | Node]:
    """Every tensor that needs a gradient, each before all the tensors computed from it.

    A computed tensor is represented by its record, a leaf by itself. An explicit stack replaces
    recursion: a graph may be deeper than Python's call stack.

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
            stack += [(p, False) for p in node._parents if p is not None and p._requires_grad]
    return order


def _pull_back(record: Record, g: Gradient) -> list[tuple[Record | Node, Gradient]]:
    """The gradient for each parent that requires one; frees the record: a graph is used once."""
    parents, pullback = record._parents, cast(Pullback, record.pullback)
    record._parents, record.pullback = [], None
    g = g.to_dense() if isinstance(g, RowSparse) else g
    try:
        return fitted(pullback(g), parents, g)
    except Exception as error:
        raise located(error, record) from error


def total_gradient(held: Gradient, part: Gradient) -> Gradient:
    """A gradient added to what has arrived before it, None at first."""
    if held is None:
        return part
    total = held + part
    return total if isinstance(total, RowSparse) else np.asarray(total)  # of 0-d arrays: a number

"""What the backward pass refuses, and how it fits a gradient to the tensor that receives it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core.broadcasting import undo_broadcast
from tinytorch.core.graph import Gradient, Node, Record, as_gradient
from tinytorch.core.sparse import RowSparse
from tinytorch.core.types import TensorLike


def first_gradient(result: Node, gradient: TensorLike | None) -> Gradient:
    """The gradient that starts the backward pass: the one given, or 1 for a single number."""
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


def check_graph(order: list[Record | Node]) -> None:
    """Refuse a graph that was freed, or whose data changed after they were recorded."""
    for node in order:
        if isinstance(node, Node):
            continue
        if node.pullback is None:
            remedy = "compute the result again before calling backward() a second time"
            graph = "a graph that was already used and freed"
            raise RuntimeError(f"backward() through {graph}; {remedy}")
        for i, used in enumerate((node, *node._parents)):
            if used is not None and used._changed is not None and used._changed[0] > node.time:
                what = f"{f'operand {i - 1}' if i else 'result'} of shape {_like(used).shape}"
                late = "was changed after the operation had used it, so the gradient would be wrong"
                remedy = "compute the result again after an update, or update after backward()"
                raise RuntimeError(f"backward() through {node.name}: its {what} {late}; {remedy}")


def fitted(
    parts: object, parents: list[Record | Node | None], g: np.ndarray
) -> list[tuple[Record | Node, Gradient]]:
    """What a pullback made of `g`, one for each parent that requires it, in its shape and dtype."""
    made: list[Any] = list(parts) if isinstance(parts, tuple) else [parts]
    if len(made) != len(parents):
        got = f"{len(made)} gradients for {len(parents)} operands"
        remedy = "it must return one each, None where there is none"
        raise ValueError(f"the pullback returned {got}; {remedy}")
    return [
        (parent, _fitted(made, i, parent, g))
        for i, parent in enumerate(parents)
        if parent is not None and parent._requires_grad
    ]


def _fitted(parts: list[Any], i: int, parent: Record | Node, g: np.ndarray) -> Gradient:
    """Part `i` in the shape and dtype of `parent`; a leaf gets memory that nothing else shares."""
    if callable(parts[i]):
        parts[i] = parts[i]()
    part, like = parts[i], _like(parent)
    if isinstance(part, RowSparse):
        return part.astype(like.dtype)
    if part is None:
        return np.zeros(like.shape, like.dtype)
    part = undo_broadcast(np.asarray(part), like.shape).astype(like.dtype, copy=False)
    if isinstance(parent, Record):
        return part
    shared = part.base is not None or part is g or any(part is other for other in parts[:i])
    return part.copy() if shared else part


def _like(node: Record | Node) -> Record | np.ndarray:
    """The object with the shape and dtype of a tensor: its record, or the array of a leaf."""
    return node._array if isinstance(node, Node) else node


def located(error: Exception, record: Record) -> Exception:
    """The error of a pullback, saying through which operation it came."""
    kind = ValueError if isinstance(error, ValueError) else RuntimeError
    return kind(f"backward() through {record.name}: {error}")

"""Broadcasting, undone: the gradient of an operand that NumPy stretched."""

import numpy as np


def undo_broadcast(g: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum `g` over the axes along which an operand of `shape` was repeated.

    An element that was used many times collects the gradient of each use, and gradients add.

    Example:
        >>> g = np.ones((4, 3))
        >>> undo_broadcast(g, (3,)).tolist()  # added to each of 4 rows
        [4.0, 4.0, 4.0]
        >>> undo_broadcast(g, (4, 1)).tolist()
        [[3.0], [3.0], [3.0], [3.0]]
    """
    if g.shape == shape:
        return g
    added = g.ndim - len(shape)
    if added < 0 or any(n not in (1, m) for n, m in zip(shape, g.shape[added:], strict=True)):
        raise ValueError(f"a gradient of shape {g.shape} does not fit an operand of shape {shape}")
    repeated = tuple(i + added for i, n in enumerate(shape) if n == 1 and g.shape[i + added] != 1)
    return np.asarray(g.sum(axis=(*range(added), *repeated))).reshape(shape)

"""Layers: functions with parameters.

A `Module` is plain Python. Its parameters are found by walking its attributes, lists included, in
the order in which they were set; nothing is registered and nothing is hidden.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.seeding import default_rng
from tinytorch.core.state import restore
from tinytorch.core.tensor import Tensor

__all__ = ["Dropout", "LayerNorm", "Linear", "Module", "Parameter", "Sequential", "xavier_uniform"]


class Parameter(Tensor):
    """A tensor that a model learns: it requires a gradient and `parameters()` finds it.

    Example:
        >>> Parameter([1.0, 2.0]).requires_grad
        True
    """

    __slots__ = ()

    def __init__(self, data: Any, dtype: Any = None) -> None:
        super().__init__(data, requires_grad=True, dtype=dtype)


class Module:
    """The base of every layer and model: parameters, saving and loading, train and eval.

    Subclasses write `forward`; `layer(x)` and `layer.forward(x)` are the same.

    Example:
        >>> class Scale(Module):
        ...     def __init__(self):
        ...         self.factor = Parameter([2.0])
        ...
        ...     def forward(self, x):
        ...         return x * self.factor
        >>> Scale()(Tensor([1.0, 3.0])).data.tolist()
        [2.0, 6.0]
        >>> [name for name, _ in Scale().named_parameters()]
        ['factor']
    """

    training: bool = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output; every subclass says how."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The same as `forward`."""
        return self.forward(*args, **kwargs)

    def named_parameters(self) -> list[tuple[str, Tensor]]:
        """Every parameter once, with its path (`blocks.0.ln1.gamma`), in definition order."""
        once: dict[int, tuple[str, Tensor]] = {}
        for name, part in _walk(self, ""):
            if isinstance(part, Parameter):
                once.setdefault(id(part), (name, part))
        return list(once.values())

    def parameters(self) -> list[Tensor]:
        """Every parameter once, in definition order; a shared one is listed the first time."""
        return [parameter for _, parameter in self.named_parameters()]

    def named_modules(self) -> list[tuple[str, Module]]:
        """This module, under the empty name, and every one inside it, with its path."""
        inside = [(name, part) for name, part in _walk(self, "") if isinstance(part, Module)]
        return [("", self), *inside]

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        for parameter in self.parameters():
            parameter.zero_grad()

    def train(self) -> Module:
        """Switch this module and all inside it to training: dropout drops."""
        return self._set_training(True)

    def eval(self) -> Module:
        """Switch this module and all inside it to evaluation: dropout does nothing."""
        return self._set_training(False)

    def _set_training(self, training: bool) -> Module:
        for _, part in self.named_modules():
            part.training = training
        return self

    def state_dict(self) -> dict[str, np.ndarray]:
        """A copy of every parameter's array, by name."""
        return {name: parameter.data.copy() for name, parameter in self.named_parameters()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Copy arrays into the parameters of the same names.

        Raises:
            ValueError: names are missing, unexpected, of another shape or not floats; all of them
                are listed, and no parameter is changed.
        """
        named = self.named_parameters()
        restore({name: p.data for name, p in named}, state, type(self).__name__)
        for _, parameter in named:
            parameter.mark_changed()

    def __repr__(self) -> str:
        lines = [
            f"{name}: {repr(part).replace(chr(10), chr(10) + '  ')}"
            if isinstance(part, Module)
            else f"{name}: {part.shape}"
            for name, part in _children(self)
        ]
        if not lines:
            return f"{type(self).__name__}()"
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines) + "\n)"


def _children(module: Module) -> Iterator[tuple[str, Module | Parameter]]:
    """The parameters and modules held by `module` directly, in lists and dictionaries too."""
    for name, value in vars(module).items():
        yield from _held(name, value)


def _held(name: str, value: Any) -> Iterator[tuple[str, Module | Parameter]]:
    if isinstance(value, (Module, Parameter)):
        yield name, value
    elif isinstance(value, (list, tuple, dict)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _held(f"{name}.{key}", part)


def _walk(module: Module, prefix: str) -> Iterator[tuple[str, Module | Parameter]]:
    """Everything held by `module`, at any depth."""
    for name, part in _children(module):
        yield prefix + name, part
        if isinstance(part, Module):
            yield from _walk(part, f"{prefix}{name}.")


@contextmanager
def evaluation_mode(model: Any) -> Iterator[None]:
    """A context in which a model is evaluated: dropout is off, and each part's mode comes back.

    Args:
        model: a `Module`; anything else that can be called passes through untouched.

    Example:
        >>> layer = Dropout(0.5)
        >>> with evaluation_mode(layer):
        ...     layer.training
        False
        >>> layer.training
        True
    """
    parts = [part for _, part in model.named_modules()] if isinstance(model, Module) else []
    modes = [part.training for part in parts]
    for part in parts:
        part.training = False
    try:
        yield
    finally:
        for part, mode in zip(parts, modes, strict=True):
            part.training = mode


def xavier_uniform(shape: tuple[int, int], rng: Any = None) -> np.ndarray:
    """Uniform numbers within `sqrt(6 / (rows + columns))` (Glorot and Bengio, 2010, equation 16).

    Args:
        shape: `(rows, columns)`.
        rng: a generator, a seed, or None for the default generator.

    Example:
        >>> bool(np.abs(xavier_uniform((4, 2), rng=0)).max() <= 1.0)
        True
    """
    limit = math.sqrt(6 / (shape[0] + shape[1]))
    return default_rng(rng).uniform(-limit, limit, size=shape).astype(np.float32)


class Linear(Module):
    """`x @ weight + bias`, the weight Xavier uniform and the bias zero at the start.

    Args:
        in_features: length of the last axis of the input.
        out_features: length of the last axis of the output.
        bias: whether to add a bias.
        rng: where the initial weights come from.

    Attributes:
        weight: `(in_features, out_features)`.
        bias: `(out_features,)`, or None.

    Example:
        >>> Linear(3, 2)(Tensor([[1.0, 2.0, 3.0]])).shape
        (1, 2)
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, rng: Any = None
    ) -> None:
        check_sizes(in_features=in_features, out_features=out_features)
        self.weight = Parameter(xavier_uniform((in_features, out_features), rng))
        self.bias = Parameter(np.zeros(out_features)) if bias else None

    def forward(self, x: Any) -> Tensor:
        """Map `(..., in_features)` to `(..., out_features)`."""
        if self.bias is None:
            return functional.linear(x, self.weight)
        return functional.linear(x, self.weight, self.bias)


class LayerNorm(Module):
    """Normalise the last axis to mean 0 and variance 1, then scale by `gamma` and shift by `beta`.

    Ba et al., 2016, section 3.

    Args:
        normalized_shape: the length d of the last axis, or `(d,)`.
        eps: added to the variance.

    Attributes:
        gamma: `(d,)`, the scale, ones at the start.
        beta: `(d,)`, the shift, zeros at the start.

    Example:
        >>> LayerNorm(4)(Tensor([[2.0, 4.0, 6.0, 8.0]]))
        Tensor([[-1.3416, -0.4472,  0.4472,  1.3416]], requires_grad=True)
    """

    def __init__(self, normalized_shape: int | tuple[int], eps: float = 1e-5) -> None:
        size = normalized_shape
        if isinstance(normalized_shape, (tuple, list)) and len(normalized_shape) == 1:
            size = normalized_shape[0]
        check_sizes(normalized_shape=size)
        self.gamma = Parameter(np.ones(size))
        self.beta = Parameter(np.zeros(size))
        self.eps = eps

    def forward(self, x: Any) -> Tensor:
        """Normalise `(..., d)`; the shape stays."""
        return functional.layer_norm(x, self.gamma, self.beta, eps=self.eps)


class Dropout(Module):
    """In training, zero each element with probability `p` and scale the others up; else nothing.

    Args:
        p: the probability.
        rng: where the choices come from.

    Raises:
        ValueError: `p` is not in `0 <= p < 1`.

    Example:
        >>> Dropout(0.5).eval()(Tensor([1.0, 2.0]))
        Tensor([1., 2.])
    """

    def __init__(self, p: float = 0.5, rng: Any = None) -> None:
        functional.check_probability(p, "Dropout: p")
        self.p = p
        self.rng = default_rng(rng) if rng is not None else None

    def forward(self, x: Any) -> Tensor:
        """Drop from `x`; the shape stays."""
        if not self.training or self.p == 0:
            return x if isinstance(x, Tensor) else Tensor(x)
        return functional.dropout(x, p=self.p, rng=self.rng)


class Sequential(Module):
    """Layers applied one after the other.

    Example:
        >>> Sequential(Linear(2, 3), Linear(3, 1))(Tensor([[1.0, 2.0]])).shape
        (1, 1)
    """

    def __init__(self, *layers: Module) -> None:
        self.layers = list(layers)

    def forward(self, x: Any) -> Any:
        """Pass `x` through every layer in turn."""
        for layer in self.layers:
            x = layer(x)
        return x


def check_sizes(**sizes: Any) -> None:
    """Raise unless every named size is a positive integer.

    Raises:
        TypeError: a size is not an integer.
        ValueError: a size is less than 1.

    Example:
        >>> check_sizes(vocab_size=0)
        Traceback (most recent call last):
        ...
        ValueError: vocab_size must be at least 1, got 0
    """
    for name, size in sizes.items():
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool):
            raise TypeError(f"{name} must be an integer, got {size!r}")
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")

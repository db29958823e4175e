"""Modules: functions with parameters.

A `Module` is plain Python. Its parameters are found by walking its attributes, lists and
dictionaries included, in the order in which they were set; nothing is registered and nothing is
hidden. What would be overlooked, a module in a set for instance, raises an error that names it. A
`Tensor` that is not a `Parameter` is a constant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from reprlib import recursive_repr
from typing import Any, Self

import numpy as np

from tinytorch.core import hooks
from tinytorch.core.held_parts import PLAIN, Parameters, note_replaced
from tinytorch.core.state_dicts import restore
from tinytorch.core.tensor import Tensor
from tinytorch.core.types import DType, TensorLike


class Parameter(Tensor):
    """A tensor that a model learns: it requires a gradient, and `parameters()` finds it.

    Example:
        >>> Parameter([1.0, 2.0]).requires_grad
        True
    """

    __slots__ = ()

    def __init__(self, data: TensorLike, dtype: DType = None) -> None:
        super().__init__(data, requires_grad=True, dtype=dtype)


_evaluating: ContextVar[bool] = ContextVar("evaluating", default=False)  # one for each thread


@contextmanager
def evaluation_mode() -> Iterator[None]:
    """A context in which modules are evaluated: dropout is off.

    It applies to every module called inside it, in this thread only, and leaves each module's own
    switch alone: afterwards every module is in its former mode.

    Example:
        >>> class Layer(Module):
        ...     pass
        >>> layer = Layer()
        >>> with evaluation_mode():
        ...     layer.training
        False
        >>> layer.training
        True
    """
    before = _evaluating.set(True)
    try:
        yield
    finally:
        _evaluating.reset(before)


class Module:
    """The base class of every layer and model: parameters, saving and loading, train and eval.

    Subclasses define `forward`; `layer(x)` and `layer.forward(x)` are the same.

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

    _training: bool = True

    @property
    def training(self) -> bool:
        """Whether dropout drops: the module's own switch, which `evaluation_mode` overrules."""
        return self._training and not _evaluating.get()

    @training.setter
    def training(self, training: bool) -> None:
        vars(self)["_training"] = bool(training)

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute; refuse to replace a parameter by what `parameters()` would not find.

        Raises:
            TypeError: the attribute is a `Parameter` and the value is an array or a plain tensor.
        """
        held = vars(self).get(name)
        if isinstance(held, Parameter) and not isinstance(value, (Parameter, Module, type(None))):
            who, other = f"{type(self).__name__}.{name}", type(value).__name__
            lost = f"{who} is a Parameter and would be lost to parameters(), replaced by {other}"
            remedy = f"write {who}.data[...] = values to change its numbers, or wrap them"
            raise TypeError(f"{lost}; {remedy}: Parameter(values)")
        super().__setattr__(name, value)
        if held is not value and (_has_parts(held) or _has_parts(value)):
            note_replaced()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output; every subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward()")

    def __call__(self, *args: Any, **kwargs: Any) -> Tensor:
        """The same as `forward`, seen by the `hooks` that are open."""
        if hooks.opened():
            return hooks.called(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def named_parameters(self) -> list[tuple[str, Tensor]]:
        """Every parameter once, with its path (`blocks.0.ln1.gamma`), in definition order."""
        once: dict[int, tuple[str, Tensor]] = {}
        for name, part in _walk(self, "", ()):
            if isinstance(part, Parameter):
                once.setdefault(id(part), (name, part))
        return list(once.values())

    def parameters(self) -> list[Tensor]:
        """Every parameter once, in definition order; a shared one is listed the first time."""
        return Parameters((parameter for _, parameter in self.named_parameters()), self)

    def trainable_parameters(self) -> list[Tensor]:
        """The parameters that require a gradient: all, unless some were frozen.

        `parameter.requires_grad = False` freezes one. It is saved and loaded as before.
        """
        return Parameters((p for _, p in self.named_parameters() if p.requires_grad), self)

    def named_modules(self) -> list[tuple[str, Module]]:
        """This module, under the empty name, and every module inside it, each with its path."""
        inside = ((name, part) for name, part in _walk(self, "", ()) if isinstance(part, Module))
        return [("", self), *inside]

    def zero_grad(self) -> None:
        """Clear the gradients of all parameters."""
        for parameter in self.parameters():
            parameter.zero_grad()

    def train(self, training: bool = True) -> Self:
        """Switch this module and all inside it to training: dropout drops."""
        for _, part in self.named_modules():
            part.training = training
        return self

    def eval(self) -> Self:
        """Switch this module and all inside it to evaluation: dropout does nothing."""
        return self.train(False)

    def state_dict(self) -> dict[str, np.ndarray]:
        """A copy of every parameter's array, by name."""
        return {name: parameter.data.copy() for name, parameter in self.named_parameters()}

    def load_state_dict(self, state: Mapping[str, TensorLike]) -> None:
        """Copy arrays into the parameters of the same names.

        Raises:
            ValueError: names are missing, unexpected, of another shape or not floats; all of them
                are listed, and no parameter is changed.
        """
        named = self.named_parameters()
        restore({name: p.data for name, p in named}, state, type(self).__name__)
        for _, parameter in named:
            parameter.mark_changed()

    @recursive_repr(fillvalue="...")
    def __repr__(self) -> str:
        parts = "".join(
            f"\n{name}: {part if isinstance(part, Module) else part.shape}"
            for name, part in _children(self)
        )
        end = "\n" if parts else ""
        return f"{type(self).__name__}({parts.replace(chr(10), chr(10) + '  ')}{end})"


def _walk(module: Module, prefix: str, above: tuple[Module, ...]) -> Iterator[tuple[str, Any]]:
    """Everything inside `module`, at any depth; a cycle of modules is followed once."""
    above = (*above, module)
    for name, part in _children(module):
        if isinstance(part, Parameter):
            yield prefix + name, part
        elif not any(part is other for other in above):
            yield prefix + name, part
            yield from _walk(part, f"{prefix}{name}.", above)


def _children(module: Module) -> Iterator[tuple[str, Module | Parameter]]:
    """The parameters and modules directly in `module`, in lists and dictionaries too."""
    for name, value in vars(module).items():
        if type(value) not in PLAIN:
            yield from _held(name, value, type(module).__name__)


def _has_parts(value: object) -> bool:
    if isinstance(value, (list, tuple, dict)):
        return any(map(_has_parts, value.values() if isinstance(value, dict) else value))
    return isinstance(value, (Module, Parameter))


def _held(name: str, value: object, owner: str) -> Iterator[tuple[str, Module | Parameter]]:
    if isinstance(value, (Module, Parameter)):
        yield name, value
    elif isinstance(value, (list, tuple, dict)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _held(f"{name}.{key}", part, owner)
    elif any(isinstance(part, (Module, Parameter)) for part in _elements(value)):
        what = f"{owner}.{name} is a {type(value).__name__} with modules or parameters in it"
        remedy = "use a list, a tuple or a dictionary"
        raise TypeError(f"{what}, which parameters() does not look into; {remedy}")


def _elements(value: object) -> Iterable[Any]:
    """The elements of a container that is not walked, a set for instance."""
    if isinstance(value, np.ndarray):
        return value.flat if value.dtype == object else ()
    return value if isinstance(value, Collection) and not isinstance(value, (str, bytes)) else ()

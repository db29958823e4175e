"""Whether operations record how their results were made, and how to pause it."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Generator
from contextvars import ContextVar
from functools import wraps
from typing import Any

from tinytorch.core.types import Method

# how many no_grad blocks are open; every thread and every asynchronous task has its own count
open_blocks: ContextVar[int] = ContextVar("open no_grad blocks", default=0)


def is_recording() -> bool:
    """Whether operations record themselves here and now."""
    return not open_blocks.get()


class no_grad:
    """A context, or a decorator, in which no graph is recorded: for evaluation and updates.

    A decorated generator or asynchronous function pauses recording only while its own body runs,
    not while it waits. A `with no_grad():` block that is open when a generator yields, however,
    stays open for the caller, so decorate the generator instead.

    Example:
        >>> from tinytorch import Tensor
        >>> w = Tensor([2.0], requires_grad=True)
        >>> with no_grad():
        ...     y = w * 3
        >>> y.requires_grad
        False
        >>> @no_grad()
        ... def evaluations():
        ...     yield w * 3
        >>> [y.requires_grad for y in evaluations()]
        [False]
    """

    def __enter__(self) -> None:
        open_blocks.set(open_blocks.get() + 1)

    def __exit__(self, *_: object) -> None:
        open_blocks.set(max(0, open_blocks.get() - 1))

    def __call__(self, function: Method) -> Method:
        """Decorate `function` so that it always runs without recording.

        Raises:
            TypeError: it is an asynchronous generator.
        """
        without_grad: Callable[..., Any]
        if inspect.isasyncgenfunction(function):
            remedy = "write with no_grad(): between yields"
            raise TypeError(f"no_grad cannot decorate an asynchronous generator; {remedy}")
        if inspect.isgeneratorfunction(function):

            def without_grad(*args: Any, **kwargs: Any) -> Any:
                return (yield from _step_by_step(function(*args, **kwargs)))

        elif inspect.iscoroutinefunction(function):

            async def without_grad(*args: Any, **kwargs: Any) -> Any:
                return await _awaited(function(*args, **kwargs))

        else:

            def without_grad(*args: Any, **kwargs: Any) -> Any:
                with self:
                    return function(*args, **kwargs)

        return wraps(function)(without_grad)  # type: ignore[return-value]


def _step_by_step(body: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Run a generator or a coroutine; nothing is recorded while it runs, from pause to pause."""
    resume, given = body.send, None
    try:
        while True:
            with no_grad():
                produced = resume(given)
            try:
                resume, given = body.send, (yield produced)
            except BaseException as error:
                resume, given = body.throw, error
    except StopIteration as end:
        return end.value


_awaited = types.coroutine(_step_by_step)

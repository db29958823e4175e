"""Checks for the chapter "Normalisation and the MLP"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from tinytorch.check.gpt import lively_gpt
from tinytorch.check.report import Case, NotYet, case, cases, exercise, predictions
from tinytorch.check.rules import in_numpy, tensor_operations
from tinytorch.core.layers import LayerNorm, Module
from tinytorch.core.tensor import Tensor, primitive

__all__ = ["norm_each_token", "norm_layer", "norm_outputs", "norm_rms"]

_TOKEN = np.array([1.0, 3.0, 3.0, 9.0])  # mean 4, standard deviation 3


def _mean(x: np.ndarray) -> np.ndarray:
    return np.mean(x, axis=-1, keepdims=True)


@exercise(points=1)
def norm_outputs(answer: dict[str, Any]) -> Iterator[Case]:
    """Check five predicted outputs of LayerNorm, each of two numbers.

    Example:
        >>> norm_outputs({"[0, 2]": ...})
        norm_outputs: not yet
          [ ] [0, 2]
              came      nothing yet: replace the ...
              hint      The mean is 1, and each number is one deviation away from it.
        >>> norm_outputs({"[0, 2]": [-1, 1]}).cases[0].passed
        True
    """
    shift = "Compare it with the one before: the mean takes a common shift away."
    yield from predictions(answer, {
        "[0, 2]": ([-1.0, 1], "The mean is 1, and each number is one deviation away from it."),
        "[100, 102]": ([-1.0, 1], shift),
        "[0, -2000]": ([1.0, -1], "The deviation takes the size away, but not the sign."),
        "[5, 5]": ([0.0, 0], "Both are the mean, and zero over the root of epsilon is zero."),
        "[0, 2], gamma 3, beta 1": ([-2.0, 4], "Normalise, then times gamma, then plus beta."),
    })  # fmt: skip


# Each token ----------------------------------------------------------------------------------


def _normalised(x: np.ndarray, eps: float = 1e-5, axis: Any = -1, keep: bool = True) -> Any:
    centred = x - x.mean(axis=axis, keepdims=keep)
    return centred / np.sqrt((centred * centred).mean(axis=axis, keepdims=keep) + eps)


_KEEPDIMS = "The mean of each token must stay in its row: look at keepdims."
_ACROSS = [
    (partial(_normalised, axis=None),
        "The mean and the deviation are still those of all the numbers."),
    (partial(_normalised, axis=0, keep=False),
        "That is batch normalisation: axis 0 runs over the tokens."),
    (partial(_normalised, keep=False), _KEEPDIMS),
    (lambda x, eps=1e-5: (x - x.mean(-1)) / np.sqrt(x.var(-1) + eps), _KEEPDIMS),
]  # fmt: skip


@exercise(points=2, reference=_normalised, mistakes=_ACROSS)
def norm_each_token(answer: Callable[..., Any]) -> Iterator[Case]:
    """Check a normalisation of the last axis, for any number of axes, with its epsilon.

    Example:
        >>> bool(norm_each_token(lambda x, eps=1e-5: (x - x.mean()) / np.sqrt(x.var() + eps)))
        False
        >>> bool(norm_each_token(_normalised))
        True
    """
    last = "The mean of a token is over the last axis, and so is its deviation."
    inside = "eps is added to the variance, before the root is taken."
    batch = np.random.default_rng(0).normal(size=(2, 3, 5))
    yield from cases(answer, {
        "normalises one token": (
            "Subtract the mean, divide by the root of the mean of the squares plus eps.", _TOKEN),
        "normalises each of two tokens": (last, np.array([[0.0, 2.0], [10.0, 30.0]])),
        "normalises each token of a batch": (
            "The last axis is axis=-1, however many axes there are.", batch),
        "keeps eps inside the root": (inside, 0.01 * _TOKEN),
        "uses the eps that it is given": (inside, batch[0], 0.5),
        "leaves a constant vector at zero": (
            "Zero over zero is not a number; eps prevents it.", np.full((1, 4), 2.0)),
        "finds a small deviation far from zero": (
            "Subtract the mean before you square: the squares of large numbers lose the rest.",
            1e8 + _TOKEN),
    }, rtol=1e-4)  # fmt: skip


# The reader's own layer ----------------------------------------------------------------------


def _built(answer: Any, width: int, *eps: float) -> Any:
    layer = answer(width, *eps)
    if layer is None or layer is ...:
        raise NotYet("nothing yet: replace the ...")
    if not isinstance(layer, Module):
        raise NotYet(f"a {type(layer).__name__}, which is not a Module")
    return layer


def _parameters(answer: Any, width: int) -> dict[str, Any]:
    return dict(_built(answer, width).named_parameters())


def _output(answer: Any, x: Any, *eps: float) -> Any:
    return _built(answer, x.shape[-1], *eps)(Tensor(x))


def _output_with(answer: Any, x: Any, gamma: Any, beta: Any) -> Any:
    layer = _built(answer, x.shape[-1])
    layer.load_state_dict({"gamma": gamma, "beta": beta})
    return layer(Tensor(x))


def _gradients(answer: Any, x: Any, g: Any) -> dict[str, Any]:
    layer = _built(answer, x.shape[-1])
    found = {"x": _input_gradient(layer, x, g)}
    found |= {name: parameter.grad for name, parameter in layer.named_parameters()}
    for name, gradient in found.items():
        if gradient is None:
            raise NotYet(f"no gradient of {name}: the result does not depend on it")
    return found


def _input_gradient(function: Callable[[Any], Any], x: Any, g: Any) -> Any:
    tensor = Tensor(x, requires_grad=True, dtype=np.float64)
    result = function(tensor)
    if not isinstance(result, Tensor):
        raise NotYet(f"a {type(result).__name__} as the result: forward must return a Tensor")
    if not result.requires_grad:
        raise NotYet("a result without a gradient: somewhere a .data or NumPy cut it off")
    result.backward(g)
    return tensor.grad


def _logits(answer: Any, ids: Any) -> Any:
    return lively_gpt(5, 6, 2, 2, 4, norm=answer)(ids)


@exercise(points=3, reference=LayerNorm, rules=[tensor_operations], run=_output)
def norm_layer(answer: Callable[..., Any]) -> Iterator[Case]:
    """Check a LayerNorm module: parameters, values, gradients, and its use in a GPT.

    Example:
        >>> norm_layer(LayerNorm).cases[-1].came
        "the right result, but it is the package's LayerNorm"
        >>> norm_layer(Module).cases[-1].claim
        'has the parameters gamma and beta'
    """
    for claim, width in (("has the parameters gamma and beta", 4), ("as many as the width", 6)):
        ones, zeros = np.ones(width), np.zeros(width)
        yield case(
            claim, answer, width, run=_parameters, expected={"gamma": ones, "beta": zeros},
            hint="gamma starts as d ones and beta as d zeros; both are attributes of these names.",
            mistakes=[
                ({}, "Make each a Parameter in __init__; a Tensor or an array is not found."),
                ({"weight": ones, "bias": zeros}, "PyTorch's names; ours are gamma and beta."),
                ({"gamma": zeros, "beta": zeros}, "gamma multiplies, so it starts at one."),
        ])  # fmt: skip
    yield from _values(answer)
    yield from _backward(answer)
    hint = "GPT calls norm(embed_dim) and loads gamma and beta by their names."
    ids = np.array([[1, 4, 2, 0]])
    yield case("stands in for ours in a GPT", answer, ids, run=_logits, hint=hint, rtol=1e-4)


def _values(answer: Any) -> Iterator[Case]:
    normal = (_TOKEN - 4) / 3
    mistakes = [
        (normal / 3, "Divide by the root of the variance."),
        ((_TOKEN - 4) / np.sqrt(12.0), "The variance is a mean: divide by d, not by d - 1."),
    ]
    inside = "eps, 1e-5 unless told otherwise, is added to the variance before the root."
    batch = np.random.default_rng(1).normal(size=(2, 4, 6))
    yield from cases(answer, {
        "normalises one token": ("Subtract the mean, divide by the deviation.", _TOKEN),
        "normalises each token of a batch by itself": (
            "Mean and deviation over axis=-1, with keepdims=True.", batch),
        "keeps eps inside the root": (inside, 0.01 * _TOKEN),
        "uses the eps that it is given": (inside, batch[0], 0.5),
        "leaves a constant vector at zero": (
            "Zero over zero is not a number; eps prevents it.", np.full(4, 2.0)),
    }, mistakes, rtol=1e-4)  # fmt: skip
    gamma, beta = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 0.0, 10.0, -1.0])
    yield case(
        "multiplies by gamma, then adds beta", answer, _TOKEN, gamma, beta, run=_output_with,
        hint="gamma times the normalised vector plus beta, read when forward is called.",
        mistakes=[
            (normal, "gamma and beta are there, but forward does not use them."),
            (gamma * (normal + beta), "First times gamma, then plus beta."),
    ])  # fmt: skip


def _backward(answer: Any) -> Iterator[Case]:
    last, normal = np.array([0.0, 0.0, 0.0, 1.0]), (_TOKEN - 4) / 3
    yield case(
        "has the gradient of its input: how the last output responds", answer, _TOKEN, last,
        run=_gradients, part=("gradient of x", lambda found: found["x"]),
        hint="Every operation between x and the result must be one of tensors.",
        mistakes=[
            ((last - 0.25) / 3, "The deviation is treated as a constant: keep it a tensor."),
            ((last - normal * 5 / 12) / 3, "The mean is treated as a constant."),
    ])  # fmt: skip
    x, g = np.random.default_rng(2).normal(size=(2, 2, 3, 5))
    hint = "Use self.gamma and self.beta themselves in forward, not their .data."
    claim = "has the gradients of a batch, of gamma and of beta"
    yield case(claim, answer, x, g, run=_gradients, hint=hint, rtol=1e-4)


# A norm without a mean -----------------------------------------------------------------------


def _rms(change: Callable[..., Any] | None = None, centre: bool = False) -> Any:
    """The norm of the exercise; `change(g, y, r)` is a wrong pullback."""

    @primitive
    def rms_norm(x: Any, *, eps: float = 1e-5) -> Any:
        r = np.sqrt(_mean(x * x) + eps)
        y = (x - _mean(x) if centre else x) / r
        return y, lambda g: change(g, y, r) if change else (g - y * _mean(g * y)) / r

    return rms_norm


def _called(answer: Any, x: Tensor, eps: float | None = None) -> Tensor:
    before = x.data.copy()
    plain, options = getattr(answer, "__wrapped__", None), {} if eps is None else {"eps": eps}
    came = ... if plain is None else plain(before.copy(), **options)
    if plain is not None and (came is None or came is ...):
        raise NotYet("nothing yet: return the value and its pullback")
    if plain is None:
        raise NotYet("no primitive: keep the @primitive line, and write the pullback yourself")
    result = answer(x, **options)
    if not np.array_equal(before, x.data):
        raise NotYet("a result, but x is no longer what it was: compute into a new array")
    return result


def _value(answer: Any, x: Any, *eps: float) -> Any:
    return _called(answer, Tensor(x, dtype=np.float64), *eps).data


def _rms_gradient(answer: Any, x: Any, g: Any, *eps: float) -> Any:
    return _input_gradient(lambda tensor: _called(answer, tensor, *eps), x, g)


_WRONG_RMS = [
    (_rms(centre=True), "No mean is subtracted here."),
    (_rms(lambda g, y, r: g / r), "r is treated as a constant, but every element of x changes it."),
    (_rms(lambda g, y, r: (g - y * (g * y).sum(axis=-1, keepdims=True)) / r),
        "The mean of g y, not its sum."),
    (_rms(lambda g, y, r: (g - _mean(g) - y * _mean(g * y)) / r),
        "No mean, so no correction for it."),
    (_rms(lambda g, y, r: g - y * _mean(g * y)), "Divide the whole by r."),
]  # fmt: skip


@exercise(points=3, reference=_rms(), mistakes=_WRONG_RMS, rules=[in_numpy], run=_value)
def norm_rms(answer: Any) -> Iterator[Case]:
    """Check a primitive that divides the last axis by its root mean square.

    Example:
        >>> bool(norm_rms(primitive(lambda x, eps=1e-5: ...)))
        False
        >>> norm_rms(primitive(lambda x, eps=1e-5: (x, lambda g: g))).cases[-1].claim
        'divides by the root mean square'
    """
    x, first = np.array([1.0, 7.0]), np.array([1.0, 0.0])  # root mean square 5
    yield case(
        "divides by the root mean square", answer, x,
        hint="The root of the mean of the squares of 1 and 7 is 5.",
        mistakes=[
            ([-1.0, 1.0], "No mean is subtracted here."),
            (x / np.sqrt(50), "The mean of the squares, not their sum."),
            (x / 25, "Divide by the root."),
            (TypeError, "Keep the @primitive line above the function, and return a pair."),
    ])  # fmt: skip
    root = "eps is added to the mean square, under the root."
    through = "Each input moves y directly and through r: subtract y times the mean of g y."
    means = "Both means are over the last axis, with keepdims=True."
    tokens, g = np.random.default_rng(4).normal(size=(2, 2, 3, 5))
    yield from cases(answer, {
        "leaves zeros at zero": (root, np.zeros(2)),
        "divides each token by its own": (means, tokens),
        "keeps eps under the root of small numbers": (root, 1e-3 * tokens),
        "uses the eps that it is given": (root, tokens, 0.5),
    })  # fmt: skip
    yield from cases(answer, {
        "how the first output responds to each input": (through, x, first),
        "has the gradient of each token": (means, tokens, g),
        "has that of small numbers, with an eps of 0.001": (root, 1e-2 * tokens, g, 1e-3),
    }, run=_rms_gradient)  # fmt: skip

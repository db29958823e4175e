"""Checks for the chapter "Normalisation and the MLP"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.check.report import Case, NotYet, case, exercise
from tinytorch.core.functional import layer_norm
from tinytorch.core.layers import Module
from tinytorch.core.tensor import Tensor
from tinytorch.models.transformer import GPT

__all__ = ["norm_each_token", "norm_layer", "norm_outputs", "norm_rms"]

_TOKEN = np.array([1.0, 3.0, 3.0, 9.0])  # mean 4, standard deviation 3
_NORMAL = np.array([-1.0, -1 / 3, -1 / 3, 5 / 3])


def _normalised(x: np.ndarray, eps: float = 1e-5) -> np.ndarray:
    d = x.shape[-1]
    return layer_norm(Tensor(x, dtype=np.float64), np.ones(d), np.zeros(d), eps=eps).data


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
    results = {
        "[0, 2]": ([-1, 1], "The mean is 1, and each number is one deviation away from it."),
        "[100, 102]": ([-1, 1], shift),
        "[0, -2000]": ([1, -1], "The deviation takes the size away, but not the sign."),
        "[5, 5]": ([0, 0], "Both are the mean, and zero over the root of epsilon is zero."),
        "[0, 2], gamma 3, beta 1": ([-2, 4], "Normalise, then times gamma, then plus beta."),
    }
    for name, (result, hint) in results.items():
        predicted = answer.get(name, ...) if isinstance(answer, dict) else ...
        yield case(name, predicted, expected=result, hint=hint, show_expected=False)


@exercise(points=2)
def norm_each_token(answer: Callable[[Any], Any]) -> Iterator[Case]:
    """Check a normalisation of the last axis, for any number of axes.

    Example:
        >>> bool(norm_each_token(lambda x: (x - x.mean()) / np.sqrt(x.var() + 1e-5)))
        False
        >>> bool(norm_each_token(_normalised))
        True
    """
    hint = "Subtract the mean, divide by the root of the mean of the squares plus eps."
    yield case("normalises one token", answer, _TOKEN, expected=_NORMAL, hint=hint)
    pair = np.array([[0.0, 2.0], [10.0, 30.0]])
    hint = "The mean of a token is over the last axis, and so is its deviation."
    with np.errstate(all="ignore"):
        mixed = [
            (_over(pair, None), "The mean and the deviation are still those of all the numbers."),
            (_over(pair, 0), "That is batch normalisation: axis 0 runs over the tokens."),
            (
                (pair - pair.mean(-1)) / np.sqrt(pair.var(-1) + 1e-5),
                "The mean of each token must stay in its row: look at keepdims.",
            ),
            (
                _without_keepdims(pair),
                "The mean of each token must stay in its row: look at keepdims.",
            ),
        ]
        yield case(
            "normalises each of two tokens",
            answer,
            pair,
            expected=[[-1.0, 1.0], [-1.0, 1.0]],
            hint=hint,
            mistakes=mixed,
        )
        x = np.random.default_rng(0).normal(size=(2, 3, 5))
        yield case(
            "normalises each token of a batch",
            answer,
            x,
            expected=_normalised(x),
            hint="The last axis is axis=-1, however many axes there are.",
            rtol=1e-4,
        )
        small = 0.01 * _TOKEN
        yield case(
            "keeps eps inside the root",
            answer,
            small,
            expected=_normalised(small),
            hint="eps is added to the variance, before the root is taken.",
        )
        yield case(
            "leaves a constant vector at zero",
            answer,
            np.full((1, 4), 2.0),
            expected=np.zeros((1, 4)),
            hint="Zero over zero is not a number; eps prevents it.",
        )


def _over(x: np.ndarray, axis: int | None) -> np.ndarray:
    return (x - x.mean(axis=axis)) / np.sqrt(x.var(axis=axis) + 1e-5)


# The reader's own layer ----------------------------------------------------------------------


@exercise(points=3)
def norm_layer(answer: Callable[[int], Any]) -> Iterator[Case]:
    """Check a LayerNorm module: parameters, values, gradients, and its use in a GPT.

    Example:
        >>> from tinytorch.core.layers import LayerNorm
        >>> bool(norm_layer(LayerNorm))
        True
        >>> norm_layer(Module).cases[-1].claim
        'has the parameters gamma and beta'
    """
    ones, zeros = np.ones(4), np.zeros(4)
    found = {"gamma": ones, "beta": zeros}
    yield case(
        "has the parameters gamma and beta",
        lambda: dict(_built(answer).named_parameters()),
        expected=found,
        hint="gamma starts as d ones and beta as d zeros; both are attributes with these names.",
        mistakes=[
            ({}, "Make each a Parameter in __init__; a Tensor or an array is not found."),
            ({"weight": ones, "bias": zeros}, "PyTorch's names; ours are gamma and beta."),
            ({"gamma": zeros, "beta": zeros}, "gamma multiplies, so it starts at one."),
        ],
    )
    with np.errstate(all="ignore"):
        yield from _values(answer)
        yield from _gradients(answer)
        yield from _in_a_gpt(answer)


def _values(answer: Any) -> Iterator[Case]:
    def output(x: Any) -> Any:
        return _built(answer)(Tensor(x))

    biased = (_TOKEN - 4) / np.sqrt(12.0)
    yield case(
        "normalises one token",
        output,
        _TOKEN,
        expected=_NORMAL,
        hint="Subtract the mean, divide by the standard deviation.",
        mistakes=[
            (_NORMAL / 3, "Divide by the root of the variance."),
            (biased, "The variance is the mean of the squares: divide by d, not by d - 1."),
        ],
    )
    x = np.random.default_rng(1).normal(size=(2, 4, 4))
    yield case(
        "normalises each token of a batch by itself",
        output,
        x,
        expected=_normalised(x),
        hint="Mean and deviation over axis=-1, with keepdims=True.",
        rtol=1e-4,
    )
    yield case(
        "keeps eps inside the root",
        output,
        0.01 * _TOKEN,
        expected=_normalised(0.01 * _TOKEN),
        hint="eps, 1e-5 unless told otherwise, is added to the variance before the root.",
        rtol=1e-4,
    )
    yield case(
        "leaves a constant vector at zero",
        output,
        np.full(4, 2.0),
        expected=np.zeros(4),
        hint="Zero over zero is not a number; eps prevents it.",
    )
    gamma, beta = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 0.0, 10.0, -1.0])
    yield case(
        "multiplies by gamma, then adds beta",
        lambda x: _built(answer, gamma, beta)(Tensor(x)),
        _TOKEN,
        expected=gamma * _NORMAL + beta,
        hint="gamma times the normalised vector plus beta, read when forward is called.",
        mistakes=[
            (_NORMAL, "gamma and beta are there, but forward does not use them."),
            (gamma * (_NORMAL + beta), "First times gamma, then plus beta."),
        ],
    )


def _gradients(answer: Any) -> Iterator[Case]:
    last = np.array([0.0, 0.0, 0.0, 1.0])
    careless = np.array([-0.25, -0.25, -0.25, 0.75]) / 3
    yield case(
        "has the gradient of its input: how the last output responds",
        lambda x, g: _input_gradient(_built(answer), x, g),
        _TOKEN,
        last,
        expected=_input_gradient(_ours, _TOKEN, last),
        hint="Every operation between x and the result must be one of tensors.",
        mistakes=[
            (careless, "The deviation is treated as a constant: keep it a tensor."),
            ((last - _NORMAL * 5 / 12) / 3, "The mean is treated as a constant."),
        ],
    )
    x, g = np.random.default_rng(2).normal(size=(2, 2, 3, 4))
    yield case(
        "has the gradients of gamma and beta",
        lambda x, g: _parameter_gradients(_built(answer), x, g),
        x,
        g,
        expected={
            "gamma": (g * _normalised(x)).sum(axis=(0, 1)),
            "beta": g.sum(axis=(0, 1)),
        },
        hint="Use self.gamma and self.beta themselves in forward, not their .data.",
        rtol=1e-4,
    )
    yield case(
        "has the gradient of a batch",
        lambda x, g: _input_gradient(_built(answer), x, g),
        x,
        g,
        expected=_input_gradient(_ours, x, g),
        hint="Every operation between x and the result must be one of tensors.",
        rtol=1e-4,
    )


def _in_a_gpt(answer: Any) -> Iterator[Case]:
    ids = np.array([[1, 4, 2, 0]])
    model = _perturbed_gpt()
    state = model.state_dict()

    def logits(tokens: Any) -> Any:
        own = GPT(5, 4, 2, 2, max_seq_len=4, norm=answer)
        own.load_state_dict(state)
        return own(tokens)

    yield case(
        "stands in for ours in a GPT",
        logits,
        ids,
        expected=model(ids).data,
        hint="GPT calls norm(embed_dim) and loads gamma and beta by their names.",
        rtol=1e-4,
    )


def _perturbed_gpt() -> GPT:
    """A small model whose norms do something: every parameter is random."""
    rng = np.random.default_rng(3)
    model = GPT(5, 4, 2, 2, max_seq_len=4, rng=rng)
    for parameter in model.parameters():
        parameter.data += rng.normal(0.0, 0.3, size=parameter.shape).astype(np.float32)
    return model


def _built(answer: Any, gamma: Any = None, beta: Any = None) -> Any:
    layer = answer(4)
    if layer is None or layer is ...:
        raise NotYet("nothing yet: replace the ...")
    if not isinstance(layer, Module):
        raise NotYet(f"a {type(layer).__name__}, which is not a Module")
    if gamma is not None:
        layer.load_state_dict({"gamma": gamma, "beta": beta})
    return layer


def _ours(x: Any) -> Tensor:
    return layer_norm(x, np.ones(4), np.zeros(4))


def _input_gradient(layer: Callable[[Any], Any], x: Any, g: Any) -> np.ndarray:
    tensor = Tensor(x, requires_grad=True, dtype=np.float64)
    _backward(layer(tensor), g)
    if tensor.grad is None:
        raise NotYet("no gradient of x: the result does not depend on it")
    return np.asarray(tensor.grad)


def _parameter_gradients(layer: Module, x: Any, g: Any) -> dict[str, np.ndarray]:
    _backward(layer(Tensor(x, dtype=np.float64)), g)
    named = dict(layer.named_parameters())
    for name in named:
        if named[name].grad is None:
            raise NotYet(f"no gradient of {name}: the result does not depend on it")
    return {name: np.asarray(parameter.grad) for name, parameter in named.items()}


def _backward(result: Any, g: Any) -> None:
    if not isinstance(result, Tensor):
        raise NotYet(f"a {type(result).__name__} as the result: forward must return a Tensor")
    if not result.requires_grad:
        raise NotYet("a result without a gradient: somewhere a .data or NumPy cut it off")
    result.backward(np.asarray(g))


# A norm without a mean -----------------------------------------------------------------------


@exercise(points=3)
def norm_rms(answer: Any) -> Iterator[Case]:
    """Check a primitive that divides the last axis by its root mean square.

    Example:
        >>> from tinytorch import primitive
        >>> bool(norm_rms(primitive(lambda x: ...)))
        False
        >>> norm_rms(primitive(lambda x: (x, lambda g: g))).cases[-1].claim
        'divides by the root mean square'
    """
    x = np.array([1.0, 7.0])  # root mean square 5
    yield case(
        "divides by the root mean square",
        _value_of(answer),
        x,
        expected=[0.2, 1.4],
        hint="The root of the mean of the squares of 1 and 7 is 5.",
        mistakes=[
            ([-1.0, 1.0], "No mean is subtracted here."),
            (x / np.sqrt(50), "The mean of the squares, not their sum."),
            (x / 25, "Divide by the root."),
            (TypeError, "Keep the @primitive line above the function, and return a pair."),
        ],
    )
    yield case(
        "leaves zeros at zero",
        _value_of(answer),
        np.zeros(2),
        expected=np.zeros(2),
        hint="eps is added to the mean square, under the root.",
    )
    first = np.array([1.0, 0.0])
    yield case(
        "how the first output responds to each input",
        _gradient_of(answer),
        x,
        first,
        expected=(first - np.array([0.2, 1.4]) * 0.1) / 5,
        hint="Each input moves y directly and through r: subtract y times the mean of g y.",
        mistakes=[
            (first / 5, "r is treated as a constant, but every element of x changes it."),
            ((first - np.array([0.2, 1.4]) * 0.2) / 5, "The mean of g y, not its sum."),
            ((first - 0.5 - np.array([0.2, 1.4]) * 0.1) / 5, "No mean, so no correction for it."),
            (first - np.array([0.2, 1.4]) * 0.1, "Divide the whole by r."),
        ],
    )
    x, g = np.random.default_rng(4).normal(size=(2, 2, 3, 5))
    r = np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)
    y = x / r
    hint = "Both means are over the last axis, with keepdims=True."
    yield case("divides each token by its own", _value_of(answer), x, expected=y, hint=hint)
    expected = (g - y * (g * y).mean(axis=-1, keepdims=True)) / r
    yield case(
        "has the gradient of each token", _gradient_of(answer), x, g, expected=expected, hint=hint
    )


def _value_of(answer: Any) -> Callable[[Any], Any]:
    def value(x: Any) -> Any:
        return _called(answer, Tensor(x, dtype=np.float64)).data

    return value


def _gradient_of(answer: Any) -> Callable[[Any, Any], Any]:
    def gradient(x: Any, g: Any) -> Any:
        tensor = Tensor(x, requires_grad=True, dtype=np.float64)
        _backward(_called(answer, tensor), g)
        return tensor.grad

    return gradient


def _without_keepdims(x: np.ndarray) -> np.ndarray:
    centred = x - x.mean(-1)
    return np.asarray(centred / np.sqrt((centred * centred).mean(-1) + 1e-5))


def _called(answer: Any, x: Tensor) -> Tensor:
    before = x.data.copy()
    plain = getattr(answer, "__wrapped__", None)
    came = ... if plain is None else plain(before.copy())
    if answer is ... or (plain is not None and (came is None or came is ...)):
        raise NotYet("nothing yet: return the value and its pullback")
    if callable(answer) and plain is None:
        raise NotYet("no primitive: keep the @primitive line, and write the pullback yourself")
    result = answer(x)
    if not isinstance(result, Tensor):
        raise NotYet(f"a {type(result).__name__}: keep the @primitive line above the function")
    if not np.array_equal(before, x.data):
        raise NotYet("a result, but x is no longer what it was: compute into a new array")
    return result

"""Checks for the chapter "Normalisation and the MLP"."""

from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.layers import LayerNorm
from tinytorch.core.module import Module
from tinytorch.core.primitive import primitive
from tinytorch.core.tensor import Tensor
from tinytorch.models.transformer import MLP
from tinytorch_book.exercises.autograd import gradient_at, value_at
from tinytorch_book.exercises.cases import Cases, NotYet, alone, case, cases, predictions
from tinytorch_book.exercises.drawn_numbers import drawn
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.gpt import lively, lively_gpt
from tinytorch_book.exercises.rules import (
    Rule,
    functions_of,
    in_numpy,
    no_loop,
    package_only,
    tensor_operations,
)
from tinytorch_book.exercises.values import show

__all__ = ["mlp_layer", "norm_each_token", "norm_layer", "norm_outputs", "norm_rms", "norm_sizes"]

_TOKEN = np.array([1.0, 3.0, 3.0, 9.0])  # mean 4, standard deviation 3
_NAN = "Zero over zero is not a number; eps prevents it."


def _mean(x: np.ndarray) -> np.ndarray:
    return np.mean(x, axis=-1, keepdims=True)


@exercise(points=1)
def norm_outputs(answer: dict[str, Any]) -> Cases:
    """Check five predicted outputs of LayerNorm, each of two numbers."""
    shift = "Compare it with the one before: the mean takes a common shift away."
    yield from predictions(answer, {
        "[0, 2]": ([-1.0, 1], "The mean is 1, and each number is one deviation away from it."),
        "[100, 102]": ([-1.0, 1], shift),
        "[0, -2000]": ([1.0, -1], "The deviation takes the size away, but not the sign."),
        "[5, 5]": ([0.0, 0], "Both are the mean, and zero over the root of epsilon is zero."),
        "[0, 2], gamma 3, beta 1": ([-2.0, 4], "Normalise, then times gamma, then plus beta."),
    })  # fmt: skip


# Each token ----------------------------------------------------------------------------------


def _normed(x: np.ndarray, eps: float = 1e-5, axis: Any = -1, keep: bool = True) -> Any:
    centred = x - x.mean(axis=axis, keepdims=keep)
    return centred / np.sqrt((centred * centred).mean(axis=axis, keepdims=keep) + eps)


_BY_D = "The variance is a mean: divide by d, not by d - 1."
_KEEPDIMS = "The mean of each token must stay in its row: look at keepdims."
_ACROSS = [
    (partial(_normed, axis=None), "The mean and the deviation are still those of all the numbers."),
    (partial(_normed, axis=0, keep=False), "That is batch normalisation, over the tokens."),
    (partial(_normed, keep=False), _KEEPDIMS),
    (lambda x, eps=1e-5: (x - x.mean(-1)) / np.sqrt(x.var(-1) + eps), _KEEPDIMS),
    (lambda x, eps=1e-5: (x - _mean(x)) / np.sqrt(x.var(-1, ddof=1, keepdims=True) + eps), _BY_D),
]


@exercise(points=2, reference=_normed, mistakes=_ACROSS)
def norm_each_token(answer: Any) -> Cases:
    """Check a normalisation of the last axis, for any number of axes, with its epsilon."""
    last = "The mean of a token is over the last axis, axis=-1, and so is its deviation."
    inside = "eps is added to the variance, before the root is taken."
    whole = "Subtract the mean, divide by the root of the mean of the squares plus eps."
    early = "Subtract the mean before you square: the squares of large numbers lose the rest."
    (batch,) = drawn((2, 3, 5))
    yield from cases(answer, {
        "normalises one token": (whole, _TOKEN),
        "normalises each of two tokens": (last, np.array([[0.0, 2.0], [10.0, 30.0]])),
        "normalises each token of a batch": (last, batch),
        "normalises long ones": (last, *drawn((9, 300))),
        "keeps eps inside the root": (inside, 0.01 * _TOKEN),
        "uses the eps that it is given": (inside, batch[0], 0.5),
        "leaves a constant vector at zero": (_NAN, np.full((1, 4), 2.0)),
        "finds a small deviation far from zero": (early, 1e8 + _TOKEN),
    }, rtol=1e-4)  # fmt: skip


# The reader's own layer ----------------------------------------------------------------------


def built(answer: Any, *sizes: Any) -> Any:
    """A layer of the reader's."""
    layer = answer(*sizes)
    if not isinstance(layer, Module):
        raise NotYet(f"{show(layer)}, which is not a Module")
    return layer


def _parameters(answer: Any, width: int) -> dict[str, Any]:
    return dict(built(answer, width).named_parameters())


def _output(answer: Any, x: Any, *eps: float, **parameters: Any) -> Any:
    layer = built(answer, x.shape[-1], *eps)
    layer.load_state_dict({**layer.state_dict(), **parameters})
    return layer(Tensor(x))


def _gradients(answer: Any, x: Any, g: Any) -> dict[str, Any]:
    return gradients_of(built(answer, x.shape[-1]), x, g)


def gradients_of(layer: Any, x: Any, g: Any) -> dict[str, Any]:
    """The gradients at a layer's input `x` and at its parameters, by name."""
    found = {"x": gradient_at(layer, x, g)}
    found |= {name: parameter.grad for name, parameter in layer.named_parameters()}
    for name in (name for name, gradient in found.items() if gradient is None):
        raise NotYet(f"no gradient of {name}: the result does not depend on it")
    return found


_NORMAL, _LAST = (_TOKEN - 4) / 3, np.array([0.0, 0.0, 0.0, 1.0])
_GAMMA, _BETA = np.arange(1.0, 5.0), np.array([0.0, 0.0, 10.0, -1.0])
_WRONG = [
    ({}, "Make each a Parameter in __init__; a Tensor or an array is not found."),
    ({"weight": np.ones(4), "bias": np.zeros(4)}, "PyTorch's names; ours are gamma and beta."),
    ({"gamma": np.zeros(4), "beta": np.zeros(4)}, "gamma multiplies, so it starts at one."),
    (_NORMAL / 3, "Divide by the root of the variance."),
    (_NORMAL * 0.75**0.5, _BY_D),
    (_GAMMA * (_NORMAL + _BETA), "First times gamma, then plus beta."),
    ((_LAST - 0.25) / 3, "The deviation is treated as a constant: keep it a tensor."),
    ((_LAST - _NORMAL * 5 / 12) / 3, "The mean is treated as a constant."),
]


@exercise(points=3, reference=LayerNorm, mistakes=_WRONG, rules=[tensor_operations], run=_output)
def norm_layer(answer: Any) -> Cases:
    """Check a LayerNorm module: parameters, values, gradients, and its use in a GPT."""
    starts = "gamma starts as d ones and beta as d zeros; both are attributes of these names."
    inside = "eps, 1e-5 unless told otherwise, is added to the variance before the root."
    scaled = "gamma times the normalised vector plus beta, read when forward is called."
    cut = "Every operation between x and the result must be one of tensors."
    themselves = "Use self.gamma and self.beta themselves in forward, not their .data."
    called = "GPT calls norm(embed_dim) and loads gamma and beta by their names."
    (batch,), (x, g) = drawn((2, 4, 6), seed=1), drawn((2, 2, 3, 5), seed=2)[0]
    parameters, gradients = alone(run=_parameters), alone(run=_gradients)
    model = alone(run=lambda answer, ids: lively_gpt(5, 6, 2, 2, 4, norm=answer)(ids))
    unused = [(_NORMAL, "gamma and beta are there, but forward does not use them.")]
    scale = alone(run=partial(_output, gamma=_GAMMA, beta=_BETA), mistakes=unused)
    at_x = alone(run=_gradients, part=("gradient of x", itemgetter("x")))
    yield from cases(answer, {
        "has the parameters gamma and beta": (starts, 4, parameters),
        "as many as the width": (starts, 6, parameters),
        "normalises one token": ("Subtract the mean, divide by the deviation.", _TOKEN),
        "normalises each token of a batch by itself": ("axis=-1, with keepdims=True.", batch),
        "keeps eps inside the root": (inside, 0.01 * _TOKEN),
        "uses the eps that it is given": (inside, batch[0], 0.5),
        "leaves a constant vector at zero": (_NAN, np.full(4, 2.0)),
        "multiplies by gamma, then adds beta": (scaled, _TOKEN, scale),
        "has the gradient of its input: how the last output responds": (cut, _TOKEN, _LAST, at_x),
        "has the gradients of a batch, of gamma and of beta": (themselves, x, g, gradients),
        "works in a GPT in place of ours": (called, np.array([[1, 4, 2, 0]]), model),
    }, rtol=1e-4)  # fmt: skip


# A norm without a mean -----------------------------------------------------------------------


def _rms(change: Any = None) -> Any:
    """The norm of the exercise; `change(g, y, r)` is a wrong pullback."""

    @primitive
    def rms_norm(x: Any, *, eps: float = 1e-5) -> Any:
        r = np.sqrt(_mean(x * x) + eps)
        y = x / r
        return y, lambda g: change(g, y, r) if change else (g - y * _mean(g * y)) / r

    return rms_norm


def _rms_value(answer: Any, x: Any, *eps: float) -> Any:
    if not hasattr(answer, "__wrapped__"):
        raise NotYet("no primitive: keep the @primitive line, and write the pullback yourself")
    if isinstance(answer.__wrapped__(np.array(x)), np.ndarray):
        raise NotYet("a value without a pullback: return both, `y, lambda g: ...`")
    return value_at(answer, x, *eps)


_WRONG_RMS = [
    ([-1.0, 1.0], "No mean is subtracted here."),
    ([0.0, 0.0], "No gradient at all: does the pullback return one?"),
    (_rms(lambda g, y, r: g / r), "r is treated as a constant, but every element of x changes it."),
    (_rms(lambda g, y, r: (g - y * y.shape[-1] * _mean(g * y)) / r), "The mean of g y, no sum."),
    (_rms(lambda g, y, r: (g - _mean(g) - y * _mean(g * y)) / r),
        "No mean, so no correction for it."),
    (_rms(lambda g, y, r: g - y * _mean(g * y)), "Divide the whole by r."),
    (TypeError, "Keep the @primitive line above the function, and return a pair."),
]  # fmt: skip


@exercise(points=3, reference=_rms(), mistakes=_WRONG_RMS, rules=[in_numpy], run=_rms_value)
def norm_rms(answer: Any) -> Cases:
    """Check a primitive that divides the last axis by its root mean square."""
    divided = "The root of the mean of the squares of 1 and 7 is 5."
    root = "eps is added to the mean square, under the root."
    through = "Each input moves y directly and through r: subtract y times the mean of g y."
    means = "Both means are over the last axis, with keepdims=True."
    x, (tokens, g) = np.array([1.0, 7.0]), drawn((2, 2, 3, 5), seed=4)[0]
    gradient = alone(run=gradient_at)
    yield from cases(answer, {
        "divides by the root mean square": (divided, x),
        "leaves zeros at zero": (root, np.zeros(2)),
        "divides each token by its own": (means, tokens),
        "keeps eps under the root of small numbers": (root, 1e-3 * tokens),
        "uses the eps that it is given": (root, tokens, 0.5),
        "how the first output responds to each input": (through, x, np.eye(2)[0], gradient),
        "has the gradient of each token": (means, tokens, g, gradient),
        "has that of small numbers, with an eps of 0.001": (root, 0.01 * tokens, g, 1e-3, gradient),
    })  # fmt: skip


@exercise(points=1, reference=lambda x: np.sqrt((x * x).mean(axis=-1)), rules=[no_loop])
def norm_sizes(answer: Any) -> Cases:
    """Check the root mean square of each token."""
    order = "Square first, then the mean over the last axis, then the root."
    centred = [(lambda x: x.std(axis=-1), "`std` subtracts the mean; nothing is subtracted here.")]
    for shape in ((3, 4), (5,), (2, 3, 4), (2, 1), (2, 2, 30, 50)):
        yield case(f"measures tokens of shape {shape}", answer, 1 + drawn(shape)[0], hint=order,
            mistakes=centred)  # fmt: skip
    yield case("does not subtract the mean", answer, np.full((2, 3), 7.0), hint=order)
    yield case("measures tiny tokens", answer, 1e-9 * drawn((2, 3))[0], hint=order, atol=0.0)


# The MLP -------------------------------------------------------------------------------------


def _mlp_with(forward: Any) -> Any:
    """Our MLP with another way forward."""
    return type("Slip", (MLP,), {"forward": forward})


_MLP_SLIPS = [
    (_mlp_with(lambda self, x: self.linear2(self.linear1(x))),
        "Without a bend in between, two linear layers are one."),
    (_mlp_with(lambda self, x: self.linear2(functional.relu(self.linear1(x)))),
        "That is ReLU; this MLP uses functional.gelu."),
    (_mlp_with(lambda self, x: functional.gelu(self.linear2(self.linear1(x)))),
        "GELU stands between the two layers, not after them."),
    (_mlp_with(lambda self, x: x + MLP.forward(self, x)),
        "The block adds x; the MLP returns its branch alone."),
]  # fmt: skip
_WRITE = "Write the layer yourself, as a Module, of two Linear and functional.gelu."


def _makes(module: str, called: Any) -> str:
    return "it makes an MLP" if called is MLP.__init__.__code__ else ""


def _inherits(answer: Any) -> str:
    return "it is the package's MLP" if any(f is MLP.forward for f in functions_of(answer)) else ""


_OWN_MLP = [
    package_only(_WRITE, "tinytorch.core", "tinytorch.models"),
    Rule(_WRITE, _inherits, _makes),
]


def _mlp(answer: Any, embed_dim: int, hidden_dim: int) -> Any:
    layer = built(answer, embed_dim, hidden_dim, 0.0)
    layer.load_state_dict(lively(MLP(embed_dim, hidden_dim, 0.0)).state_dict())
    return layer


def _mlp_output(answer: Any, x: Any, hidden_dim: int) -> Any:
    return _mlp(answer, x.shape[-1], hidden_dim)(Tensor(x))


def _mlp_gradients(answer: Any, x: Any) -> Any:
    return gradients_of(_mlp(answer, x.shape[-1], 6), x, np.ones(x.shape))


@exercise(3, _MLP_SLIPS, stub="forward", reference=MLP, rules=_OWN_MLP, run=_mlp_output)
def mlp_layer(answer: Any) -> Cases:
    """Check an MLP module: parameters, values, gradients, and its use in a GPT."""
    hint = "linear1 widens, GELU comes between, linear2 narrows."
    sizes = "linear1 maps embed_dim to hidden_dim, linear2 maps it back."
    cut = "Compute with tensors from end to end: .data and .numpy() leave the gradient behind."
    built_as = "Models build it as (embed_dim, hidden_dim, dropout)."
    one, batch, wide, x = map(np.float32, drawn((1, 3), (2, 3, 4), (2, 1, 5), (2, 3, 4)))
    gradients = alone(run=_mlp_gradients, rtol=1e-3, show_expected=False)
    ids = np.array([[1, 2, 6]])
    model = alone(run=lambda answer, ids: lively_gpt(7, 4, 2, 2, 5, mlp=answer)(ids))
    yield from cases(answer, {
        "one token": (hint, one, 4),
        "a batch": (hint, batch, 16),
        "a hidden layer that is not four times as wide": (sizes, wide, 7),
        "has the gradients of its input and its parameters": (cut, x, gradients),
        "works in a GPT in place of ours": (built_as, ids, model),
    }, rtol=1e-4)  # fmt: skip

"""Checks for the chapter "What it knows"."""

from collections.abc import Iterator
from functools import cache, partial
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tinytorch.core.module import Module
from tinytorch.core.tensor import Tensor
from tinytorch.inside.probes import LinearProbe, r_squared
from tinytorch.inside.stream import residual_stream
from tinytorch_book.exercises.cases import Cases, NotYet, alone, cases, measured, predictions
from tinytorch_book.exercises.drawn_numbers import drawn
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import Rule, globals_of, without
from tinytorch_book.exercises.values import as_array, show
from tinytorch_book.experiments.story_gpt import load_story_gpt, story_tokenizer
from tinytorch_book.experiments.what_it_learned import readable, study_stories
from tinytorch_book.stories import StoryGrammar, hidden_values, token_beliefs

__all__ = ["inside_control", "inside_lens", "inside_selective", "inside_unseen"]


# Predictions ---------------------------------------------------------------------------------


@exercise(points=1)
def inside_selective(answer: Any) -> Cases:
    """Check predictions of what R² and selectivity are."""
    yield from predictions(answer, {
        "R² of the posterior itself": (1, "No error is left: 1 minus nothing."),
        "R² of always saying the mean": (
            0, "Its error is the variance itself.",
            (1, "That is for always being right.")),
        "R² can be below 0 on new stories": (
            True, "Nothing keeps a guess from being worse than the mean."),
        "selectivity, if the random targets of each place are read as well": (
            0, "Selectivity is the R² of the true target minus that of the random ones.",
            (1, "That would be so if the random targets were not read at all.")),
        "a new random target in every story is read as well": (
            False, "Such a target depends on nothing that the stream could hold."),
        "a probe on an untrained model reads nothing": (
            False, "Its heads look at everything alike, and so let a little of the place through.",
            ("False", "Without quotes.")),
    })  # fmt: skip


# The lens ------------------------------------------------------------------------------------


def _lens(stream: Any, gamma: Any, beta: Any, table: Any) -> Any:
    return _log_softmax(_normed(stream, 1e-5) * gamma + beta, table)


def _normed(x: Any, eps: float) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)


def _log_softmax(x: Any, table: Any) -> Any:
    logits = x @ table.T
    logits = logits - logits.max(axis=-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


@exercise(points=2, reference=_lens, mistakes=[
    (lambda s, g, b, t: _log_softmax(s, t), "The last norm stands before the output."),
    (lambda s, g, b, t: _log_softmax(_normed(s, 1e-5), t), "Scale by gamma and add beta."),
    (lambda s, g, b, t: np.exp(_lens(s, g, b, t)), "Return the logarithms of the probabilities."),
    (lambda s, g, b, t: (_normed(s, 1e-5) * g + b) @ t.T, "Logits: a log-softmax follows."),
    (lambda s, g, b, t: _log_softmax((s - s.mean(axis=-1, keepdims=True)) * g + b, t),
        "Divide by the deviation too."),
])  # fmt: skip
def inside_lens(answer: Any) -> Cases:
    """Check a logit lens: the last norm, the token table, a log-softmax."""
    hint = "Norm over the last axis, times gamma, plus beta, times table.T, then log-softmax."
    large = "Subtract the largest logit of each row before np.exp."
    small = "Add 1e-5 to the variance, under the root."
    one, stage, seven = drawn(6, (2, 3, 6), (7, 6))
    gamma, beta, table = drawn(6, 6, (9, 6), seed=1)
    yield from cases(answer, {
        "one position": (hint, one, gamma, beta, table),
        "a stage of the stream": (hint, stage, gamma, beta, table),
        "seven positions, shifted": (hint, seven + 5, gamma, beta, table),
        "a stream of tiny numbers": (small, seven / 1000, gamma, beta, table),
        "logits in the thousands":
            (large, seven, gamma, beta, 1000 * table, alone(atol=2e-3)),
        "a stream in the thousands": (hint, 1000 * seven, gamma, beta, table),
        "a stream of equal numbers": (small, np.full((2, 6), 3.0), gamma, beta, table),
        "a width of 64, three hundred tokens":
            (hint, *drawn((3, 2, 5, 64), 64, 64, (300, 64), seed=2)),
    })  # fmt: skip


# A probe that is too good --------------------------------------------------------------------


def _r2(x: Any, y: Any) -> float:
    return readable(x, y)


def _r2_with(seen: bool, centred: bool, axis: int | None = 0, ridge: float = 0.03) -> Any:
    """The same with some of the mistakes."""

    def wrong(x: Any, y: Any) -> float:
        cut = 2 * len(x) // 3
        probe = LinearProbe(x, y, ridge) if seen else LinearProbe(x[:cut], y[:cut], ridge)
        mean = y[cut:].mean(axis=axis) if centred else 0.0
        return 1 - ((y[cut:] - probe(x[cut:])) ** 2).sum() / ((y[cut:] - mean) ** 2).sum()

    return wrong


def _r2_of_all(x: Any, y: Any) -> float:
    return r_squared(y, LinearProbe(x, y, 0.03)(x))


_SEEN = "The probe has seen the rows that it is tried on: fit it to the first two thirds only."
_CENTRE = "The variance is about the mean of each column, not about 0."
_FIT = (
    "Fit LinearProbe, with ridge=0.03, to the first 2 * len(x) // 3 rows. R² is that of the other "
    "rows: 1 - the squares of the error / the squares about the mean of these rows, all added."
)
_RIDGE = "The ridge is to be 0.03: LinearProbe(x, y, ridge=0.03)."


@exercise(points=2, reference=_r2, mistakes=[
    (_r2_with(True, True), _SEEN),
    (_r2_with(False, False), _CENTRE),
    (_r2_with(False, True, axis=None), "Each column has a mean of its own: axis=0."),
    (_r2_with(True, False), "Which rows has the probe seen? And what is R² for the mean?"),
    (_r2_of_all, _SEEN),
    (lambda x, y: _r2_of_all(x[2 * len(x) // 3 :], y[2 * len(x) // 3 :]), _SEEN),
    (lambda x, y: r_squared(y, LinearProbe(x[: 2 * len(x) // 3], y[: 2 * len(x) // 3], 0.03)(x)),
        "It is tried on all rows: R² is that of the last third, which the probe has not seen."),
    (lambda x, y: 1 - _r2(x, y), "That is what is not read: R² is 1 minus it."),
    *((lambda x, y, ridge=ridge: _r2_with(False, True, ridge=ridge)(x, y), _RIDGE)
        for ridge in (0.0, 1e-4)),
])  # fmt: skip
def inside_control(answer: Any) -> Cases:
    """Check a repaired R² of a probe, on rows that it has not seen."""
    x, noise, map_ = drawn((150, 64), (150, 4), (64, 4))
    beliefs = np.exp(noise) / np.exp(noise).sum(axis=1, keepdims=True)
    yield from cases(answer, {
        "beliefs that have nothing to do with x": (_FIT, x, beliefs),
        "what can be read": (_FIT, x, x @ map_ + 3),
        "what can be read in part": (_CENTRE, x, x @ map_ + 5 * noise + 3),
        "columns with means of their own": (_CENTRE, x, x @ map_ + 5 * noise + [0, 10, 20, 90]),
        "columns of every size": (_CENTRE, x, (x @ map_ + 5 * noise) * [1e-3, 1, 10, 300]),
        "a single column": (_FIT, x[:80, :9], (noise + x[:, :4])[:80, :1] + 7),
        "a number of rows that three does not divide": (
            "Two thirds of the rows: 2 * len(x) // 3.", x[:100], (x @ map_ + noise)[:100]),
    })  # fmt: skip


# A place never seen --------------------------------------------------------------------------

AIM = 0.8


@cache
def _studied() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Stage 1 before the animal, the beliefs there, and the places of the stories."""
    grammar, tokenizer, stories = StoryGrammar(), story_tokenizer(), study_stories(300)
    places, texts = hidden_values(grammar, "place"), map(tokenizer.decode, stories.ids)
    place = np.array([[f" {name}" in text for name in places].index(True) for text in texts])
    told = [tokenizer.encode(f"It was a warm day, and Tom ran to the {name}.") for name in places]
    known = np.array([token_beliefs(grammar, tokenizer, ids, "animal")[-1] for ids in told])
    rows, at = stories.before("animals")
    return residual_stream(load_story_gpt(), stories.ids)[1][rows, at], known[place], place


def _unread(answer: Any) -> float:
    """The share of the variance that is not read, each place left out once."""
    x, belief, place = _studied()
    found = np.zeros_like(belief)
    for k in range(8):
        out = place == k
        read = answer(x[~out].copy(), belief[~out].copy(), x[out].copy())
        if read is None or np.shape(as_array(read)) != found[out].shape:
            raise NotYet(f"{show(read)}, where the beliefs are {found[out].shape}")
        found[out] = as_array(read)
    return 1 - r_squared(belief, found)


def _numbers_in(value: Any, seen: set[int]) -> Iterator[np.ndarray]:
    """The floats that an answer has, or any object: in lists, in functions and in what they use."""
    if id(value) in seen:
        return
    seen.add(id(value))
    owner, inner = value if isinstance(value, (type, FunctionType)) else type(value), []
    ours = owner.__module__.split(".")[0] in ("tinytorch", "tinytorch_book", "numpy")
    if isinstance(value, (Tensor, np.ndarray, float)):
        array = as_array(value)
        inner = list(array.flat) if array.dtype == object else []
        if array.dtype.kind == "f":
            yield array.astype(float).reshape(-1)
    elif isinstance(value, Module):
        inner = [*value.parameters()]
    elif isinstance(value, (list, tuple, set, dict)):
        inner = [*value, *(value.values() if isinstance(value, dict) else ())]
    elif isinstance(value, (MethodType, partial)):
        inner = [getattr(value, name, None) for name in ("__self__", "__func__", "func", "args",
                                                         "keywords")]  # fmt: skip
    elif isinstance(value, LinearProbe) or not (ours or isinstance(value, ModuleType)):
        inner = [*getattr(value, "__dict__", {}).values()]
        if isinstance(value, FunctionType):
            cells = (cell for cell in value.__closure__ or () if cell != CellType())
            inner += [cell.cell_contents for cell in cells] + [v for _, v in globals_of(value)]
            inner += [value.__defaults__, value.__kwdefaults__]
    for item in inner:
        yield from _numbers_in(item, seen)


def _fitted_elsewhere(answer: Any) -> str:
    """Numbers that an answer has from elsewhere: what it is given and the model are enough."""
    held = np.concatenate([*_numbers_in(answer, set()), []])
    weights = np.concatenate([p.data.reshape(-1) for p in load_story_gpt().parameters()])
    foreign = len(held) - np.isin(held, weights).sum()
    return f"it uses {foreign:,} numbers made outside of it" if foreign > _CONSTANTS else ""


_CONSTANTS = 8  # so many numbers may stand in a function, a ridge or a temperature
_FIT_HERE = "Fit to nothing but x and belief: there the place that is left out does not occur."
_NOTHING_ELSE = [
    Rule(_FIT_HERE, _fitted_elsewhere),
    without(_FIT_HERE, study_stories, residual_stream, token_beliefs),
]


@exercise(points=4, rules=_NOTHING_ELSE)
def inside_unseen(answer: Any) -> Cases:
    """`answer(x, belief, new)` reads the belief at a place of which it has seen no story."""
    hint = (
        "What can be fitted to seven places does not carry over to the eighth. What does the model "
        "itself still do with this position, before its forecast?"
    )
    claim = f"R² of at least {AIM} at places left out: at most {1 - AIM:.1f} unread"
    told = "{0:.2f} of the variance unread"
    yield from measured(claim, answer, run=_unread, aim=1 - AIM, told=told, hint=hint)

"""Checks for the chapter "Optimisation"."""

import math
from functools import cache, partial
from typing import Any

import numpy as np

from tinytorch.models.transformer import GPT
from tinytorch.training.evaluation import evaluate
from tinytorch.training.trainer import Trainer
from tinytorch_book.exercises.cases import Cases, NotYet, alone, as_new, case, cases, measured
from tinytorch_book.exercises.drawn_numbers import drawn
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import in_numpy
from tinytorch_book.exercises.values import show
from tinytorch_book.experiments.story_gpt import SEQ_LEN, VOCAB_SIZE, story_batches, story_windows

__all__ = ["optim_adamw", "optim_budget", "optim_bytes", "optim_clip", "optim_schedule"]

_BETA1, _BETA2, _EPS = 0.9, 0.999, 1e-8


_COPIES = "Return new arrays even if no number changes: the caller may write into its own."


# One step of AdamW ---------------------------------------------------------------------------


def _adamw(*given: Any, root: Any = np.sqrt) -> tuple[Any, Any, Any]:
    w, g, m, v, t, lr, decay = given
    m, v = _BETA1 * m + (1 - _BETA1) * g, _BETA2 * v + (1 - _BETA2) * g * g
    step = m / (1 - _BETA1**t) / (root(v / (1 - _BETA2**t)) + _EPS)
    return w - lr * (step + decay * w), m, v


def _corrected(w: Any, g: Any, m: Any, v: Any, t: int, *rest: float) -> Any:
    new, m, v = _adamw(w, g, m, v, t, *rest)
    return new, m / (1 - _BETA1**t), v / (1 - _BETA2**t)


_STILL = "The decay moves a weight whose gradient is 0 as well."
_WRONG_STEPS = [
    (lambda w, g, *rest: _adamw(w, g, *rest[:-1], rest[-1] * (g != 0)), _STILL),
    (lambda *given: _adamw(*given[:6], 0.0), "The decay is missing."),
    (lambda w, g, *rest: _adamw(w, g + rest[-1] * w, *rest[:-1], 0.0),
        "The decay went through the means (L2)."),
    (lambda *given: _adamw(*given[:6], given[6] / given[5]), "The decay is multiplied by lr too."),
    (lambda *given: _adamw(*given[:6], -given[6]), "Decay pulls towards zero."),
    (lambda *given: _adamw(*given[:5], -given[5], -given[6]), "The step goes uphill."),
    (lambda *given: _adamw(*given[:4], np.inf, *given[5:]),
        "The means begin at zero: divide them by 1 - beta**t before the step."),
    (lambda *given: _adamw(*given[:4], given[4] + 1, *given[5:]), "t counts from 1."),
    (partial(_adamw, root=np.positive), "Divide by the square root of v."),
    (_corrected, "Return the means as they are; only the step uses the corrected ones."),
    (lambda *given: _adamw(*given)[0], "Return three things: the weights and both means."),
    (lambda *given: [_adamw(*given)[i] for i in (0, 2, 1)], "First m, then v."),
]  # fmt: skip


@exercise(points=2, reference=_adamw, mistakes=_WRONG_STEPS, rules=[in_numpy])
def optim_adamw(answer: Any) -> Cases:
    """Check one step of AdamW, the betas being 0.9 and 0.999."""
    hint = "Means, corrections, then the step, the decay added to it; return w, m, v in this order."
    first = np.array([1.0, -1.0]), np.array([4.0, 0.5]), *np.zeros((2, 2)), 1, 0.1
    w, g, m, v = np.array([[0.5, 2.0], [0.0, -3.0], [-2.0, 1.0], [4.0, 9.0]])
    (W, G, M), wide = drawn((3, 4, 3))[0], np.array([1e-30, -1e-4, 1e30])
    small = "epsilon, 1e-8, is added to the root, not under it. Without it, 0 is divided by 0."
    yield from cases(answer, {
        "the first step moves every weight by lr": (hint, *first, 0.0),
        "decay pulls the weight, not the means": (hint, *first, 0.5),
        "a later step": (hint, w, g, m, v, 5, 0.01, 0.0),
        "a later step, with decay": (hint, w, g, m, v, 5, 0.01, 0.1),
        "decay without a gradient": (_STILL, w[:2], *np.zeros((3, 2)), 1, 0.1, 0.5),
        "gradients of 0 and 1e-8, where epsilon counts":
            (small, np.ones(2), np.array([0.0, 1e-8]), *np.zeros((2, 2)), 1, 0.1, 0.0),
        "a matrix": (hint, W, G, M, M * M + 1, 7, 0.02, 0.1),
        "gradients of every size": (hint, W[0], wide, 0 * wide, 0 * wide, 1, 0.3, 0.2),
        "nothing to do": (_COPIES, W[0], *np.zeros((3, 3)), 1, 0.1, 0.0, alone(run=as_new)),
    })  # fmt: skip
    correct = "The corrections divide by 1 - beta**t at every t; they never end."
    for seed, t in enumerate((2, 3, 10, 60, 900, 20_000), start=1):
        w, g, m, v = drawn((2, 3), (2, 3), (2, 3), (2, 3), seed=seed)
        yield case(f"step {t:,}", answer, w, g, m, v * v, t, 0.03, 0.2, hint=correct)


# Rise, stay, fall ----------------------------------------------------------------------------


def _rate(step: int, lr: float, *spans: int, late: int = 0, early: int = 0) -> float:
    warmup, total, cooldown = spans
    return lr * min(1, (step + 1 - late) / warmup, (total - early - step) / cooldown)


_RISE = "In the warm-up the rate is lr (step + 1) / warmup."
_FALL = "The rate is lr at step total - cooldown and would be 0 at step total."
_WRONG_RATES = [
    (lambda step, lr, *rest: _rate(step, 1.0, *rest), "Multiply by lr."),
    (partial(_rate, late=1), f"Steps count from 0; a rate of 0 is wasted. {_RISE}"),
    (partial(_rate, early=1), _FALL),
    (partial(_rate, early=-1), _FALL),
]  # fmt: skip


@exercise(points=2, reference=_rate, mistakes=_WRONG_RATES)
def optim_schedule(answer: Any) -> Cases:
    """Check a learning rate that rises, stays, and falls at the end."""
    level, usual = "Between warm-up and cool-down the rate is lr.", (2.0, 4, 20, 5)
    yield from cases(answer, {
        "the first step": (_RISE, 0, *usual),
        "in the warm-up": (_RISE, 2, *usual),
        "the end of the warm-up": (_RISE, 3, *usual),
        "the level part": (level, 10, *usual),
        "the cool-down begins": (_FALL, 15, *usual),
        "in the cool-down": (_FALL, 17, *usual),
        "the last step": (_FALL, 19, *usual),
    })  # fmt: skip
    for shape in ((3e-4, 30, 300, 90), (0.5, 1, 12, 1), (1e-8, 6, 12, 6)):
        hint = f"The list has the rate of each step; the cool-down takes {shape[3]}."
        claim = f"every step of {shape[2]}, warm-up {shape[1]}"
        yield case(claim, answer, *shape, run=_rates, hint=hint, rtol=1e-9, atol=0)


def _rates(answer: Any, lr: float, warmup: int, total: int, cooldown: int) -> list[float]:
    return [float(answer(step, lr, warmup, total, cooldown)) for step in range(total)]


# Clipping ------------------------------------------------------------------------------------


def _norm(gradients: Any) -> Any:
    return np.sqrt(sum(np.sum(g * g) for g in gradients))


def _clip(gradients: Any, max_norm: float, norm: Any = _norm) -> list[Any]:
    return [g * (max_norm / max(norm(gradients), max_norm)) for g in gradients]


_ALONE = "Compare the ratio of the two norms before and after: what changed it?"
_UP = "A norm below the limit stays: the factor is at most 1."
_WRONG_CLIPS = [
    (lambda gradients, limit: gradients, "Here the norm is above the limit, and it stayed."),
    (lambda gradients, limit: [g * limit / _norm(gradients) for g in gradients], _UP),
    (lambda gradients, limit: [_clip([g], limit)[0] for g in gradients], _ALONE),
    (lambda gradients, limit: [np.clip(g, -limit, limit) for g in gradients],
        "Each number was clipped by itself, so the direction has changed."),
    (partial(_clip, norm=lambda gradients: sum(map(np.linalg.norm, gradients))),
        "Norms do not add; their squares do."),
    (partial(_clip, norm=lambda gradients: _norm(gradients) ** 2), "Take the root of the sum."),
    (lambda gradients, limit: [g / _norm(gradients) for g in gradients],
        "The new norm is to be max_norm, not 1."),
]  # fmt: skip


@exercise(points=2, reference=_clip, mistakes=_WRONG_CLIPS)
def optim_clip(answer: Any) -> Cases:
    """Check the clipping of several gradients by one common norm."""
    common = "One norm for all of them, one factor for all of them."
    zero = "0 / 0 is not a number: a norm of 0 is below every limit."
    small, pair = list(np.array([[0.3], [0.4]])), list(np.array([[6.0, 0.0], [4.8, 6.4]]))
    three, many = [np.array([12.0]), np.array([1.0, 0.0]), np.zeros(1)], drawn((3, 4), 4, (4, 2))
    yield from cases(answer, {
        "below the limit": (_UP, small, 5.0),
        "keeps the direction": (common, pair, 5.0),
        "one of three is large": (_ALONE, three, 1.0),
        **{f"matrices, limit {limit:g}": (common, many, limit) for limit in (0.5, 2.0, 50.0)},
        "a million times as large": (common, [1e6 * g for g in many], 1e-3, alone(atol=0)),
        "a billionth as large": (_UP, [1e-9 * g for g in many], 1.0, alone(atol=0)),
        "ten of them": (common, drawn(*range(1, 11), seed=1), 1.0),
        "zeros stay zeros": (zero, [np.zeros(2)] * 2, 1.0),
        "new arrays below the limit as well": (_COPIES, many, 1e3, alone(run=as_new)),
    })  # fmt: skip


# Memory --------------------------------------------------------------------------------------

_ARRAYS = {
    "sgd": (2, "Plain SGD keeps nothing of its own: weights and gradients."),
    "momentum": (3, "Momentum keeps one running sum for every weight."),
    "adamw": (4, "AdamW keeps two running means for every weight."),
}


def _bytes(n: int, name: str, each: int = 4) -> int:
    return n * each * _ARRAYS[name][0]


_NUMBERS = partial(_bytes, each=1), "Bytes, not numbers: float32 takes 4."


@exercise(points=1, reference=_bytes, mistakes=[_NUMBERS], show_expected=False)
def optim_bytes(answer: Any) -> Cases:
    """Check the memory that training takes for each way of stepping, in float32."""
    for n in (10, 124_439_808):
        for name, (_, hint) in _ARRAYS.items():
            yield case(f"{name}, {n:,} parameters", answer, n, name, hint=hint)


# A fixed budget ------------------------------------------------------------------------------

_WINDOWS, _LARGEST, _PARAMETERS, _LAYERS = 500, 50, 100_000, 4
_SETTINGS = {"embed_dim", "num_layers", "num_heads", "pos_encoding", "init_std", "batch_size"}


def _built(rate: Any, settings: Any) -> tuple[GPT, tuple[float, ...]]:
    """The model that is asked for, and the rate of each step."""
    if not isinstance(settings, dict) or settings.keys() != _SETTINGS:
        raise NotYet(f"the settings must be a dictionary with {', '.join(sorted(_SETTINGS))}")
    sizes = {name: value for name, value in settings.items() if name != "batch_size"}
    model, batch_size = GPT(VOCAB_SIZE, max_seq_len=SEQ_LEN, rng=0, **sizes), settings["batch_size"]
    if (number := model.num_parameters()["total"]) > _PARAMETERS or model.num_layers > _LAYERS:
        raise NotYet(f"{number:,} parameters, layers: {model.num_layers}")
    if type(batch_size) is not int or not 1 <= batch_size <= _LARGEST:
        raise NotYet(f"a batch_size of {show(batch_size)}, not 1 to {_LARGEST}")
    steps = _WINDOWS // batch_size
    rates = [rate(step, steps) for step in range(steps)]
    for step, found in enumerate(rates):
        if not isinstance(found, (int, float, np.number)) or not 0 <= found < math.inf:
            raise NotYet(f"a rate of {show(found)} at step {step} of {steps}")
    return model, tuple(map(float, rates))


@cache
def _trained(rates: tuple[float, ...], settings: tuple[tuple[str, Any], ...]) -> float:
    """How far the loss on stories that were not read stays above the floor, in nats a token."""
    chosen, unread = dict(settings), story_windows()
    model, _ = _built(lambda step, steps: rates[step], chosen)
    batches = story_batches(chosen["batch_size"], num_stories=1000)
    Trainer(model, batches, schedule=rates.__getitem__, progress=False).run(len(rates))
    return round(evaluate(model, unread.inputs, unread.targets) - float(unread.floor.mean()), 2)


@exercise(points=4, show_expected=False)
def optim_budget(settings: Any, rate: Any) -> Cases:
    """Train a GPT on 500 windows of stories, and measure how near it comes to the floor."""
    small = (
        "About 12 embed_dim^2 parameters are in a block, 512 embed_dim in the table. And there is "
        "a rate for every step, a number."
    )
    slow = "How many steps do 500 windows make? How does attention learn where a token stands?"

    def loss(rate: Any, settings: Any) -> float:
        return _trained(_built(rate, settings)[1], tuple(sorted(settings.items())))

    yield case(f"at most {_PARAMETERS:,} parameters, 1 to {_LAYERS} layers", rate, settings,
               run=lambda *given: bool(_built(*given)), expected=True, hint=small)  # fmt: skip
    yield from measured("within 0.25 nats of the floor", rate, settings, run=loss, aim=0.25,
                        told="{:.2f} nats a token above the floor", hint=slow)  # fmt: skip

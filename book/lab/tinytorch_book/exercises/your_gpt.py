"""Checks for the chapter "Your GPT"."""

from functools import partial
from typing import Any

import numpy as np

from tinytorch.models.transformer import GPT
from tinytorch_book.exercises.cases import Cases, NotYet, case, cases, measured, predictions
from tinytorch_book.exercises.drawn_numbers import drawn, generator
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import no_loop
from tinytorch_book.exercises.values import show
from tinytorch_book.experiments.staircase import nats_per_letter, train_on_stories
from tinytorch_book.experiments.story_gpt import SEQ_LEN, VOCAB_SIZE

__all__ = ["capstone_differences", "capstone_faults", "capstone_mlp", "capstone_seen",
           "capstone_share"]  # fmt: skip


# What a comparison sees ----------------------------------------------------------------------


@exercise(points=1)
def capstone_seen(answer: Any) -> Cases:
    """Check which comparison of a new model is the first to see a mistake."""
    forward = "It changes what the model computes, at once."
    later = "Logits and gradients are both there before it is called. Let it train and write."
    yield from predictions(answer, {
        "a norm that never adds beta": (
            "gradients", "In a new model beta is zero. What would its gradient be?",
            ("logits", "In a new model beta is zero: adding it changes no logit.")),
        "an MLP without its GELU": ("logits", forward),
        "a mask that shows one token of the future": ("logits", forward,
            ("neither", "Each query mixes one value more, so the logits are others.")),
        "a position table whose gradient is that of one row of the batch": (
            "gradients", "The table is added as it should be; only the way back is wrong.",
            ("logits", "The table is added as it should be: the logits are right.")),
        "an AdamW that forgets the decay": ("neither", later,
            ("gradients", "The gradients are its input. What it makes of them comes later.")),
        "a top-p that always keeps one token": ("neither", later,
            ("logits", "It is called with probabilities, after the logits.")),
    })  # fmt: skip


# Two sets of gradients -----------------------------------------------------------------------


def _differences(own: dict[str, Any], ours: dict[str, Any], most: Any = np.allclose) -> list[str]:
    def agree(a: Any, b: Any) -> bool:
        return a is b if a is None or b is None else bool(most(a, b, 1e-3, 1e-5))

    return sorted(name for name in {*own, *ours} if not agree(own.get(name), ours.get(name)))


def _without_none(own: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    names = [n for n in {*own, *ours} if own.get(n) is not None and ours.get(n) is not None]
    return _differences({n: own[n] for n in names}, {n: ours[n] for n in names})


_TOLERANCES = "Take the tolerances of the page: np.allclose(a, b, 1e-3, 1e-5)."


def _sorted(answer: Any, *given: Any) -> Any:
    found = answer(*given)
    return found if found is None or found is ... else sorted(found)


@exercise(2, reference=_differences, run=_sorted, mistakes=[
    (lambda own, ours: _differences(own, {n: ours.get(n) for n in own}),
        "A parameter may be missing among the own ones: look at the names of both."),
    (_without_none, "A gradient that one has and the other has not is a difference."),
    (partial(_differences, most=lambda a, b, *_: np.allclose(a, b)), _TOLERANCES),
    (partial(_differences, most=lambda a, b, *_: np.allclose(a, b, 1e-5, 1e-3)),
        "0.001 is much for a small gradient: 1e-3 is rtol, which comes first, and atol is 1e-5."),
    (partial(_differences, most=lambda a, b, *_: np.abs(a - b).mean() < 1e-3),
        "A mean hides one wrong entry among many right ones, and every small gradient."),
    (partial(_differences, most=lambda a, b, r, t: not (np.abs(a - b) > t + r * np.abs(b)).any()),
        "NaN agrees with nothing, and every comparison with it is False: ask whether it is near."),
])  # fmt: skip
def capstone_differences(answer: Any) -> Cases:
    """Check the names of all gradients that do not agree."""
    large, small = drawn((30, 10), 4)
    ours = {"weight": large, "bias": small}
    nearly = {name: g * (1 + 1e-5) for name, g in ours.items()}
    square, (many,) = drawn((8, 8), seed=1)[0], drawn((12, 5), seed=2)
    away = np.array([1.0, -1.0, 0.0, 0.0])
    one, nan, slow = large.copy(), large.copy(), 1e-3 * small
    one[7, 3] += 0.1
    nan[0, 0] = np.nan
    places = "Compare every number with the one in its place, not sums or sorted numbers."
    hint = "Two gradients agree if no entry of one is far from that of the other."
    yield from cases(answer, {
        "rounding is no difference": (_TOLERANCES, nearly, ours),
        "one entry of 300": (hint, {**ours, "weight": one}, ours),
        "no gradient at all": (hint, {**ours, "bias": None}, ours),
        "a parameter that only the other has": (hint, {"weight": large}, ours),
        "a NaN": (hint, {**ours, "weight": nan}, ours),
        "a NaN in both": ("NaN agrees with nothing.", {"weight": nan}, {"weight": nan}),
        "a small gradient, off by a tenth": (
            "Compare with the size of the gradient.", {"bias": 1.1 * slow}, {"bias": slow}),
        "none in either": ("Then they agree.", {"bias": None}, {"bias": None}),
        "a parameter that only the own one has": (
            "Look at the names of both.", {**ours, "beta": small}, ours),
        "both": (hint, {"weight": one, "bias": -small}, ours),
        "the same numbers, transposed": (places, {"weight": square.T}, {"weight": square}),
        "the same numbers, in another order": (places, {"bias": small[::-1]}, {"bias": small}),
        "two entries that cancel": (places, {"bias": small + away}, {"bias": small}),
        "off by 0.9 in a thousand": (_TOLERANCES, {"bias": 1.0009 * large}, {"bias": large}),
        "off by 1.5 in a thousand": (_TOLERANCES, {"bias": 1.0015 * large}, {"bias": large}),
        "a small entry, beside a large one": (
            "Each entry has a tolerance of its own, which goes by its own size.",
            {"bias": np.array([1e3, 0.4])}, {"bias": np.array([1e3, 0.0])}),
        "off by 0.000009": ("atol is 1e-5.", {"bias": np.full(3, 9e-6)}, {"bias": np.zeros(3)}),
        "off by 0.00002": ("atol is 1e-5.", {"bias": np.full(3, 2e-5)}, {"bias": np.zeros(3)}),
    })  # fmt: skip
    names = [f"blocks.{i}.weight" for i in generator().permutation(12)]
    own = {name: g + (i % 5 == 0) for i, (name, g) in enumerate(zip(names, many, strict=True))}
    given = own, dict(zip(names[::-1], many[::-1], strict=True))
    yield case("three of twelve blocks, in another order", answer, *given, hint=hint)


# The part at fault ---------------------------------------------------------------------------


def _faults(parts: dict[str, Any], agrees: Any) -> list[str]:
    return [name for name in parts if not agrees({name: parts[name]})]


def _left_out(parts: dict[str, Any], agrees: Any) -> list[str]:
    return [n for n in parts if agrees({k: v for k, v in parts.items() if k != n})]


def _run_faults(answer: Any, names: tuple[str, ...], bad: tuple[str, ...]) -> Any:
    parts = {name: object() for name in names}

    def agrees(chosen: Any) -> bool:
        if not isinstance(chosen, dict):
            raise NotYet(f"agrees({show(chosen)}); it takes a dictionary of parts by name")
        return not any(chosen.get(name) is parts[name] for name in bad)

    found = answer(parts, agrees)
    if found is None or found is ... or isinstance(found, (list, tuple)):
        return found
    raise NotYet(show(found), "Return a list, in the order of `parts`; a set has no order.")


_WRONG_FAULTS = [
    (_left_out, "Leaving one out names the right ones, or none: put them in one by one."),
    (lambda parts, agrees: _faults(parts, agrees)[:1], "There may be several."),
    (lambda parts, agrees: [n for n in parts if agrees({n: parts[n]})], "Those are the good ones."),
]


@exercise(2, _WRONG_FAULTS, reference=_faults, run=_run_faults)
def capstone_faults(answer: Any) -> Cases:
    """Check the names of all parts that do not agree, in their order.

    Args:
        answer: `answer(parts, agrees)`; `agrees(some)` tells whether a GPT with these parts of
            the reader's, and ours elsewhere, agrees with ours.
    """
    hint = "Make a GPT with one of the parts and all others ours; do so for each."
    yield from cases(answer, {
        "one of three": (hint, ("norm", "block", "heads"), ("block",)),
        "none of two": (
            "The list is empty. Leaving one out would agree each time: put them in one by one.",
            ("norm", "heads"), ()),
        "two of four": (hint, ("heads", "mlp", "loss", "norm"), ("heads", "norm")),
        "all of three": ("In the order of `parts`.", *[("norm", "block", "heads")] * 2),
        "the only one": (hint, ("norm",), ("norm",)),
        "no parts": ("No parts, no faults.", (), ()),
    })  # fmt: skip
    order = generator().permutation(12).tolist()
    names, bad = ([f"part {i}" for i in chosen] for chosen in (order, sorted(order[::3])))
    claim = "four of twelve, in the order of `parts`"
    yield case(claim, answer, tuple(names), tuple(bad), hint="In the order of `parts`.")


# How near to the floor -----------------------------------------------------------------------


def _share(losses: Any, floor: float) -> Any:
    return (losses[0] - losses) / (losses[0] - floor)


_WRONG_SHARES = [
    (lambda losses, floor: losses / losses[0], "The floor counts as zero, not a loss of 0."),
    (
        lambda losses, floor: (losses[0] - losses) / losses[0],
        "The way ends at the floor, not at 0.",
    ),
    (lambda losses, floor: 100 * _share(losses, floor), "A fraction, not a percentage."),
    (lambda losses, floor: 1 - _share(losses, floor), "That is the share that is left."),
]


@exercise(1, _WRONG_SHARES, reference=_share, rules=[no_loop])
def capstone_share(answer: Any) -> Cases:
    """Check which share of the way from the first loss to the floor each loss has come."""
    hint = "What has been gained since the first loss, divided by all that could be gained."
    many = np.exp(drawn(50)[0]).tolist()
    for losses, floor in (
        ([4.0, 3.0, 2.0], 2.0), ([6.4, 0.9, 0.5, 0.6], 0.119), ([2.0, 5.0], 1.0), ([3.0], 0.5),
        (many, 0.01), ([1e-9 * n for n in many], 1e-11), ([n + 1e3 for n in many], 1e3),
    ):  # fmt: skip
        claim = f"losses above a floor of {floor:g}: {len(losses)}"
        yield case(claim, answer, np.array(losses), floor, hint=hint)


# An MLP of the reader's own ------------------------------------------------------------------

_AIM, _PARAMETERS, _STEPS = 0.57, 46_000, 100


def _loss_with(mlp: Any) -> tuple[float, int]:
    """The loss of a GPT with this MLP after its training, and the number of its parameters."""
    model = GPT(VOCAB_SIZE, 32, 2, 4, SEQ_LEN, mlp=mlp, init_std=0.1, rng=0)
    if (number := model.num_parameters()["total"]) > _PARAMETERS:
        raise NotYet(f"{number:,} parameters")
    train_on_stories(model, _STEPS)
    model.eval()
    for seq in (12, SEQ_LEN):
        ids, other = np.random.default_rng(seq).integers(VOCAB_SIZE, size=(2, 2, seq))
        other[:, : seq // 2] = ids[:, : seq // 2]
        logits, same = (model(each).data[:, : seq // 2] for each in (ids, other))
        if not np.allclose(logits, same, atol=1e-4):
            raise NotYet("logits that change when a later token does")
    return round(nats_per_letter(model), 3), number


@exercise(points=4, show_expected=False)
def capstone_mlp(answer: Any) -> Cases:
    """Check an MLP with which a GPT learns more in a hundred steps; it must not see the future."""
    claim = f"at most {_AIM} nats a letter, {_PARAMETERS:,} parameters, {_STEPS} steps"
    hint = (
        "What would help to foresee the next token that the MLP of a token does not get? The token "
        "before it, say. It may not look ahead, and has to pay for what it adds."
    )
    told = "{} nats a letter, {:,} parameters"
    yield from measured(claim, answer, run=_loss_with, aim=_AIM, told=told, hint=hint)

"""Checks for the chapter "Data and loss"."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from tinytorch.check.report import Case, case, cases, exercise, one_of_pair
from tinytorch.check.rules import in_numpy

__all__ = ["data_split", "data_windows", "loss_and_gradient", "loss_bits_per_byte"]


# Windows of stories --------------------------------------------------------------------------


def _windows(ids: Any, T: int, newline: int, skip: int = 0, shift: int = 1) -> tuple[Any, Any]:
    starts = np.flatnonzero(ids == newline) + skip
    starts = starts[starts + T < len(ids)][:, None] + np.arange(T)
    return ids[starts], ids[starts + shift]


_FITS = "A window may begin at s if its last target exists: s + T < len(ids)."
_WRONG_WINDOWS = [
    (IndexError, _FITS),
    (partial(_windows, skip=1),
        "A window begins with the newline, so that the first character is predicted too."),
    (partial(_windows, shift=0),
        "Targets are the inputs of one position further on: ids[s + 1 : s + T + 1]."),
]  # fmt: skip


@exercise(points=2, reference=_windows, mistakes=_WRONG_WINDOWS)
def data_windows(answer: Callable[[Any, int, int], Any]) -> Iterator[Case]:
    """Check windows that begin at every newline, and their shifted targets.

    Example:
        >>> def right(ids, T, newline):
        ...     starts = [i for i in np.flatnonzero(ids == newline) if i + T < len(ids)]
        ...     rows = np.stack([ids[i : i + T + 1] for i in starts])
        ...     return rows[:, :-1], rows[:, 1:]
        >>> bool(data_windows(right))
        True
        >>> bool(data_windows(lambda ids, T, newline: (ids[:T], ids[1 : T + 1])))
        False
    """
    ids = np.array([0, 5, 6, 7, 0, 8, 9, 0, 3])
    hint = "Begin at every newline: one row of T numbers for each."
    for i, name in enumerate(("inputs", "targets")):
        part = name, one_of_pair(i, "(inputs, targets)")
        yield case(f"{name} of two stories, T = 3", answer, ids, 3, 0, part=part, hint=hint)
    rng = np.random.default_rng(0)
    long = rng.integers(4, 9, size=60) * (rng.random(60) > 0.2)
    yield from cases(answer, {
        "the last window that fits, T = 4": (_FITS, ids, 4, 0),
        "no window past the end, T = 5": (_FITS, ids, 5, 0),
        "another newline, T = 7": ("The newline is whatever id is passed, and T too.", long, 7, 5),
        "the last newline too, T = 1": (
            "The last newline counts as well, if a window of T fits behind it.", ids, 1, 0),
    })  # fmt: skip


# A split without a leak ----------------------------------------------------------------------


def _split(n: int, T: int, share: float, more: int = 0) -> tuple[Any, Any]:
    cut = n - round(n * share)
    return np.arange(cut - T + more), np.arange(cut, n - T, T)


@exercise(points=2, reference=_split)
def data_split(answer: Callable[[int, int, float], Any]) -> Iterator[Case]:
    """Check where the windows of a split text begin.

    Example:
        >>> def right(n, T, share):
        ...     cut = n - round(n * share)
        ...     return np.arange(cut - T), np.arange(cut, n - T, T)
        >>> bool(data_split(right))
        True
        >>> bool(data_split(lambda n, T, share: (np.arange(n - T), np.arange(0, n - T, T))))
        False
    """
    for n, T, share in ((20, 3, 0.25), (500, 16, 0.1), (101, 7, 0.3)):
        cut, where = n - round(n * share), f"{n} tokens, T = {T}"
        last = f"Tokens {cut} and up are held out; the window of start s needs tokens s to s + T."
        yield case(
            f"training windows of {where}", answer, n, T, share, hint=last, show_expected=False,
            part=("training starts", one_of_pair(0, "(training starts, validation starts)")),
            mistakes=[
                (lambda n, T, share: _split(n, T, share, T),
                    f"Which tokens does the window of start {cut - 1} need? {last}"),
                (partial(_split, more=1), f"The last target is held out. {last}"),
                (partial(_split, more=-1), f"One window more fits. {last}"),
        ])  # fmt: skip
        yield case(
            f"validation windows of {where}", answer, n, T, share,
            part=("validation starts", one_of_pair(1, "(training starts, validation starts)")),
            hint="One after the other from the cut, while the last target still exists.",
        )  # fmt: skip


# Cross-entropy -------------------------------------------------------------------------------


def _cross_entropy(logits: Any, targets: Any, hot: float = 1.0) -> tuple[float, Any]:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    one_hot = np.eye(logits.shape[-1])[targets]
    loss = -float((log_probs * one_hot).sum()) / targets.size
    return loss, (np.exp(log_probs) - hot * one_hot) / targets.size


def _times(loss: float, gradient: float) -> Callable[[Any, Any], Any]:
    def wrong(logits: Any, targets: Any) -> Any:
        right = _cross_entropy(logits, targets)
        return right[0] * loss, right[1] * gradient

    return wrong


def _summed(logits: Any, targets: Any) -> Any:
    return _times(targets.size, targets.size)(logits, targets)


_WRONG_LOSSES: dict[str, list[tuple[Any, str]]] = {
    "loss": [
        (_summed, "Loss and gradient are means over positions, not sums."),
        (_times(-1, 1), "A surprise is positive: minus the logarithm."),
        (_times(1 / math.log(2), 1), "In nats, the natural logarithm."),
    ],
    "gradient": [
        (_summed, "Loss and gradient are means over positions, not sums."),
        (_times(1, -1), "The other way round: softmax minus one-hot."),
        (partial(_cross_entropy, hot=0.0), "Subtract 1 at the target of each position."),
    ],
}  # fmt: skip


@exercise(points=3, reference=_cross_entropy, rules=[in_numpy])
def loss_and_gradient(answer: Callable[[Any, Any], Any]) -> Iterator[Case]:
    """Check a cross-entropy and its gradient at the logits.

    Example:
        >>> bool(loss_and_gradient(_cross_entropy))
        True
        >>> bool(loss_and_gradient(lambda logits, targets: (0.0, np.zeros_like(logits))))
        False
    """
    one, two = np.log([[0.5, 0.25, 0.25]]), np.log([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]])
    large, both = np.array([[1000.0, 0.0], [0.0, -1000.0]]), np.array([1, 2])
    rng = np.random.default_rng(0)
    cube, many = rng.normal(0, 3, size=(2, 3, 5)), rng.integers(0, 5, size=(2, 3))
    stable = "Subtract each row's largest logit, and take no logarithm of a q."
    for claim, logits, targets, hint in (
        ("one position", one, both[:1],
            "loss: -ln p of the target; gradient: softmax minus one-hot."),
        ("the mean of two positions", two, both, "Loss and gradient are means over positions."),
        ("logits that are not ln p", two + 3.0, both, "A softmax does not mind a constant."),
        ("large logits", large, np.array([1, 0]), stable),
        ("a batch (B, T, V)", cube, many,
            "The classes are the last axis; average over all B * T positions."),
        ("rows of very different size", cube * np.array([1e4, 1e-4])[:, None, None], many, stable),
        ("a single position (V,)", cube[0, 0], many[0, 0, ...],
            "targets may have no axis at all: targets.size is 1, and axis=-1 the only one."),
    ):  # fmt: skip
        for i, (name, mistakes) in enumerate(_WRONG_LOSSES.items()):
            yield case(
                f"{claim}: {name}", answer, logits, targets, hint=hint, mistakes=mistakes,
                part=(name, one_of_pair(i, "(loss, gradient)")),
            )  # fmt: skip


# Comparing tokenizers ------------------------------------------------------------------------


def _bits_per_byte(nats: Any, text: str) -> float:
    return float(nats.sum()) / len(text.encode()) / math.log(2)


_WRONG_BITS = [
    (lambda nats, text: _bits_per_byte(nats, text) * len(text.encode()) / len(text),
        "A character of UTF-8 may have several bytes."),
    (lambda nats, text: _bits_per_byte(nats, text) * len(text.encode()) / len(nats),
        "That is bits per token: divide by bytes."),
    (lambda nats, text: _bits_per_byte(nats, text) * math.log(2),
        "That is in nats: a bit is ln 2 nats."),
    (lambda nats, text: _bits_per_byte(nats, text) * math.log(2) ** 2,
        "Divide by ln 2: one nat is more than one bit."),
]  # fmt: skip


@exercise(points=2, reference=_bits_per_byte, mistakes=_WRONG_BITS)
def loss_bits_per_byte(answer: Callable[[Any, str], Any]) -> Iterator[Case]:
    """Check the bits a model needs for each byte of a text.

    Example:
        >>> bool(loss_bits_per_byte(lambda s, text: sum(s) / len(text.encode()) / np.log(2)))
        True
        >>> bool(loss_bits_per_byte(lambda s, text: np.mean(s) / np.log(2)))
        False
    """
    rng = np.random.default_rng(0)
    for claim, surprise, text in (
        ("one token of one nat", np.array([1.0]), "a"),
        ("two tokens of three bytes", np.array([2.0, 1.0]) * math.log(2), "the"),
        ("characters of two and four bytes", np.array([3.0, 4.0, 5.0]), "é 🦊"),
        ("a longer text", rng.exponential(3.0, size=12), "The fox ate the purée, and was happy."),
        ("spaces and line ends, bytes as well", rng.exponential(3.0, size=5), "  the fox\r\n\n"),
    ):
        hint = "The sum of all surprises, in bits, over the number of bytes of the text."
        yield case(claim, answer, surprise, text, hint=hint)

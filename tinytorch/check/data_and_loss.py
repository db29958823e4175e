"""Checks for the chapter "Data and loss"."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.check.report import Case, case, exercise, one_of_pair

__all__ = ["data_split", "data_windows", "loss_and_gradient", "loss_bits_per_byte"]

# Windows of stories --------------------------------------------------------------------------


@exercise(points=2)
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
    right, late = _story_windows(ids, 3, 0), _story_windows(ids, 3, 0, skip=1)
    after = "A window begins with the newline, so that the first character is predicted too."
    shifted = "Targets are the inputs of one position further on: ids[s + 1 : s + T + 1]."
    fits = "A window may begin at s if its last target exists: s + T < len(ids)."
    for i, name in enumerate(("inputs", "targets")):
        yield case(
            f"{name} of two stories, T = 3",
            answer,
            ids,
            3,
            0,
            expected=right[i],
            part=(name, one_of_pair(i, "(inputs, targets)")),
            hint="Begin at every newline: one row of T numbers for each.",
            mistakes=[(IndexError, fits), (late[i], after), (right[0], shifted)],
        )
    for T, claim in ((4, "the last window that fits, T = 4"), (5, "no window past the end, T = 5")):
        both = _story_windows(ids, T, 0)
        yield case(claim, answer, ids, T, 0, expected=both, hint=fits)
    rng = np.random.default_rng(0)
    long = rng.integers(4, 9, size=60) * (rng.random(60) > 0.2)
    hint = "The newline is whatever id is passed, and T too."
    shown = _story_windows(long, 7, 5)
    yield case("another newline, T = 7", answer, long, 7, 5, expected=shown, hint=hint)


def _story_windows(
    ids: np.ndarray, T: int, newline: int, skip: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    starts = np.flatnonzero(ids == newline) + skip
    rows = ids[starts[starts + T < len(ids)][:, None] + np.arange(T + 1)]
    return rows[:, :-1], rows[:, 1:]


# A split without a leak ----------------------------------------------------------------------


@exercise(points=2)
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
    for n, T, share in ((20, 3, 0.25), (500, 16, 0.1)):
        cut = n - round(n * share)
        where = f"{n} tokens, T = {T}"
        last = f"Tokens {cut} and up are held out; the window of start s needs tokens s to s + T."
        yield case(
            f"training windows of {where}",
            answer,
            n,
            T,
            share,
            expected=np.arange(cut - T),
            part=("training starts", one_of_pair(0, "(training starts, validation starts)")),
            hint=last,
            show_expected=False,
            mistakes=[
                (np.arange(cut), f"Which tokens does the window of start {cut - 1} need? {last}"),
                (np.arange(cut - T + 1), f"The last target is held out. {last}"),
                (np.arange(cut - T - 1), f"One window more fits. {last}"),
            ],
        )
        yield case(
            f"validation windows of {where}",
            answer,
            n,
            T,
            share,
            expected=np.arange(cut, n - T, T),
            part=("validation starts", one_of_pair(1, "(training starts, validation starts)")),
            hint="One after the other from the cut, while the last target still exists.",
        )


# Cross-entropy -------------------------------------------------------------------------------


@exercise(points=3)
def loss_and_gradient(answer: Callable[[Any, Any], Any]) -> Iterator[Case]:
    """Check a cross-entropy and its gradient at the logits.

    Example:
        >>> def right(logits, targets):
        ...     shifted = logits - logits.max(axis=-1, keepdims=True)
        ...     log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
        ...     hot = np.eye(logits.shape[-1])[targets]
        ...     return -(log_p * hot).sum() / targets.size, (np.exp(log_p) - hot) / targets.size
        >>> bool(loss_and_gradient(right))
        True
        >>> bool(loss_and_gradient(lambda logits, targets: (0.0, np.zeros_like(logits))))
        False
    """
    one, first = np.log([[0.5, 0.25, 0.25]]), np.array([1])
    two, both = np.log([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]), np.array([1, 2])
    large = np.array([[1000.0, 0.0], [0.0, -1000.0]])
    rng = np.random.default_rng(0)
    cube, many = rng.normal(0, 3, size=(2, 3, 5)), rng.integers(0, 5, size=(2, 3))
    stable = "Subtract each row's largest logit, and take no logarithm of a q."
    for claim, logits, targets, hint in (
        ("one position", one, first, "loss: -ln p of the target; gradient: softmax minus one-hot."),
        ("the mean of two positions", two, both, "Loss and gradient are means over positions."),
        ("logits that are not ln p", two + 3.0, both, "A softmax does not mind a constant."),
        ("large logits", large, np.array([1, 0]), stable),
        (
            "a batch (B, T, V)",
            cube,
            many,
            "The classes are the last axis; average over all B * T positions.",
        ),
    ):
        yield from _loss_cases(answer, claim, logits, targets, hint)


def _loss_cases(
    answer: Any, claim: str, logits: np.ndarray, targets: np.ndarray, hint: str
) -> Iterator[Case]:
    loss, gradient = _cross_entropy(logits, targets)
    n = targets.size
    mean = "Loss and gradient are means over positions, not sums."
    hot = np.eye(logits.shape[-1])[targets]
    wrong = [
        [(n * loss, mean), (-loss, "A surprise is positive: minus the logarithm.")],
        [
            (n * gradient, mean),
            (-gradient, "The other way round: softmax minus one-hot."),
            (gradient + hot / n, "Subtract 1 at the target of each position."),
        ],
    ]
    for i, (name, expected) in enumerate((("loss", loss), ("gradient", gradient))):
        yield case(
            f"{claim}: {name}",
            answer,
            logits,
            targets,
            expected=expected,
            part=(name, one_of_pair(i, "(loss, gradient)")),
            hint=hint,
            mistakes=wrong[i],
        )


def _cross_entropy(logits: np.ndarray, targets: np.ndarray) -> tuple[float, np.ndarray]:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    hot = np.eye(logits.shape[-1])[targets]
    loss = -float((log_probs * hot).sum()) / targets.size
    return loss, (np.exp(log_probs) - hot) / targets.size


# Comparing tokenizers ------------------------------------------------------------------------


@exercise(points=2)
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
    ):
        size = len(text.encode())
        expected = float(surprise.sum()) / size / math.log(2)
        yield case(
            claim,
            answer,
            surprise,
            text,
            expected=expected,
            hint="The sum of all surprises, in bits, over the number of bytes of the text.",
            mistakes=[
                (expected * size / len(text), "A character of UTF-8 may have several bytes."),
                (expected * size / len(surprise), "That is bits per token: divide by bytes."),
                (expected * math.log(2), "That is in nats: a bit is ln 2 nats."),
                (expected * math.log(2) ** 2, "Divide by ln 2: one nat is more than one bit."),
            ],
        )

"""Checks for the chapter "Data and loss"."""

import math
from functools import partial
from typing import Any

import numpy as np

from tinytorch_book.exercises.cases import Cases, case, cases, one_of, predictions
from tinytorch_book.exercises.drawn_numbers import drawn, generator, seed_of
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import in_numpy, no_loop
from tinytorch_book.exercises.values import STRANGE

__all__ = ["data_gather", "data_numbers", "data_split", "data_windows", "loss_and_gradient",
           "loss_bits_per_byte"]  # fmt: skip


# Numbers on paper ----------------------------------------------------------------------------


@exercise(points=1)
def data_numbers(answer: dict[str, Any]) -> Cases:
    """Check five numbers of windows and losses, predicted on paper."""
    yield from predictions(answer, {
        "windows of 8 tokens in a text of 100": (92, "It needs a ninth token, its last target."),
        "training windows, 20 tokens held out": (72, "Their last targets are not held out either."),
        "bits, if every target was given 1/8": (3, "How often must 1 be halved to get 1/8?"),
        "perplexity, if every target was given 1/8": (8, "As many equal choices give each 1/8."),
        "bits per byte, at 4 bits and 2.5 bytes a token": (1.6, "Bits a token over bytes a token."),
    })  # fmt: skip


# Windows of stories --------------------------------------------------------------------------


def _windows(ids: Any, T: int, newline: int, skip: int = 0, shift: int = 1) -> tuple[Any, Any]:
    starts = np.flatnonzero(ids == newline) + skip
    starts = starts[starts + T < len(ids)][:, None] + np.arange(T)
    return ids[starts], ids[starts + shift]


_FITS = "A window may begin at s if its last target exists: s + T < len(ids)."
_WRONG_WINDOWS = [
    (IndexError, _FITS),
    (partial(_windows, skip=1), "A window begins with the newline, to predict what follows it."),
    (partial(_windows, shift=0), "Targets are the inputs one position later: from ids[s + 1]."),
]


@exercise(points=2, reference=_windows, mistakes=_WRONG_WINDOWS, rules=[in_numpy])
def data_windows(answer: Any) -> Cases:
    """Check windows that begin at every newline, and their shifted targets."""
    ids, rng = np.array([0, 5, 6, 7, 0, 8, 9, 0, 3]), np.random.default_rng(seed_of(0))
    hint = "Begin at every newline: one row of T numbers for each."
    for name in ("inputs", "targets"):
        part = one_of(name, "inputs", "targets")
        yield case(f"{name} of two stories, T = 3", answer, ids, 3, 0, part=part, hint=hint)
    long = rng.integers(4, 9, size=600) * (rng.random(600) > 0.2)
    yield from cases(answer, {
        "the last window that fits, T = 4": (_FITS, ids, 4, 0),
        "no window past the end, T = 5": (_FITS, ids, 5, 0),
        "another newline, T = 7": ("The newline is whatever id is passed, and T too.", long, 7, 5),
        "the last newline too, T = 1": ("It counts, if a window of T fits after it.", ids, 1, 0),
    })  # fmt: skip


# A split without a leak ----------------------------------------------------------------------


def _split(n: int, T: int, share: float, more: int = 0) -> tuple[Any, Any]:
    cut = n - round(n * share)
    return np.arange(cut - T + more), np.arange(cut, n - T, T)


_WRONG_SPLITS = [
    (lambda n, T, s: _split(n, T, s, T), "What does the window of start {} need, targets too?"),
    (partial(_split, more=1), "The last target is held out."),
    (partial(_split, more=-1), "One window more fits."),
]


@exercise(points=2, reference=_split)
def data_split(answer: Any) -> Cases:
    """Check where the windows of a split text begin."""
    later = "One after the other from the cut, while the last target still exists."
    training, validation = "training starts", "validation starts"
    for n, T, share in ((20, 3, 0.25), (500, 16, 0.1), (101, 7, 0.3), (103, 5, 0.2)):
        cut, where = n - round(n * share), f"windows of {n} tokens, T = {T}"
        last = f"Tokens {cut} and up are held out, as inputs and as targets."
        told = [(wrong, f"{hint.format(cut - 1)} {last}") for wrong, hint in _WRONG_SPLITS]
        yield case(
            f"training {where}", answer, n, T, share, mistakes=told, hint=last,
            part=one_of(training, training, validation), show_expected=False,
        )  # fmt: skip
        part = one_of(validation, training, validation)
        yield case(f"validation {where}", answer, n, T, share, part=part, hint=later)


# Cross-entropy -------------------------------------------------------------------------------


def _cross_entropy(logits: Any, targets: Any, sign: int = 1, slope: int = 1, hot: int = 1) -> Any:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    one_hot = np.eye(logits.shape[-1])[targets] / targets.size
    gradient = np.exp(log_probs) / targets.size - hot * one_hot
    return -sign * float((log_probs * one_hot).sum()), slope * gradient


_WRONG_LOSSES = [
    (partial(_cross_entropy, sign=-1), "A surprise is positive: minus the logarithm."),
    (partial(_cross_entropy, slope=-1), "The other way round: softmax minus one-hot."),
    (partial(_cross_entropy, hot=0), "Subtract 1 at the target of each position."),
]


@exercise(points=3, reference=_cross_entropy, mistakes=_WRONG_LOSSES, rules=[in_numpy])
def loss_and_gradient(answer: Any) -> Cases:
    """Check a cross-entropy and its gradient at the logits."""
    two, large = np.log([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]), np.diag([1000.0, -1000.0])
    (cube,), (wide,), both = drawn((2, 3, 5)), drawn((7, 300)), np.array([1, 2])
    many = np.random.default_rng(seed_of(0)).integers(0, 5, size=(2, 3))
    means = "Loss and gradient are means over positions, not sums; the loss is in nats."
    stable = "Subtract each row's largest logit, and never take the logarithm of a q."
    for claim, (hint, *given) in {
        "one position":
            ("loss: -ln p of the target; gradient: softmax minus one-hot.", two[:1], both[:1]),
        "the mean of two positions": (means, two, both),
        "logits that are not ln p": ("A softmax does not mind a constant.", two + 3.0, both),
        "large logits": (stable, large, np.array([1, 0])),
        "a batch (B, T, V)": ("Classes on the last axis, a mean over B * T.", 3 * cube, many),
        "a vocabulary of three hundred": (means, 3 * wide, np.arange(7) * 40),
        "rows of very different size": (stable, cube * np.array([[[3e4]], [[3e-4]]]), many),
        "a single position (V,)":
            ("targets may have no axis, and the size 1.", 3 * cube[0, 0], many[0, 0, ...]),
    }.items():  # fmt: skip
        for name in ("loss", "gradient"):
            part = one_of(name, "loss", "gradient")
            yield case(f"{claim}: {name}", answer, *given, part=part, hint=hint)


# Comparing tokenizers ------------------------------------------------------------------------


_BIT = math.log(2)  # in nats


def _bits_per_byte(nats: Any, text: str, units: Any = str.encode, bit: Any = _BIT) -> float:
    return float(nats.sum()) / len(units(text)) / bit


_WRONG_BITS = [
    (partial(_bits_per_byte, units=str), "A character of UTF-8 may have several bytes."),
    (lambda nats, text: nats.mean() / _BIT, "That is bits per token: divide by bytes."),
    (partial(_bits_per_byte, bit=1.0), "That is in nats: a bit is ln 2 nats."),
    (partial(_bits_per_byte, bit=1 / _BIT), "Divide by ln 2: a nat is 1.44 bits."),
]


@exercise(points=2, reference=_bits_per_byte, mistakes=_WRONG_BITS)
def loss_bits_per_byte(answer: Any) -> Cases:
    """Check the bits a model needs for each byte of a text."""
    hint = "The sum of all surprises, in bits, over the number of bytes of the text."
    rng = np.random.default_rng(seed_of(0))
    yield from cases(answer, {
        "one token of one nat": (hint, np.array([1.0]), "a"),
        "two tokens of three bytes": (hint, np.array([2.0, 1.0]) * math.log(2), "the"),
        "characters of two and four bytes": (hint, np.array([3.0, 4.0, 4.0]), "é 🦊"),
        "white space, marks, and a zero": (hint, rng.exponential(3.0, size=9), STRANGE),
        "a longer text": (hint, rng.exponential(3.0, size=12), "The fox ate the purée, happily."),
        "spaces and line ends, bytes as well":
            (hint, rng.exponential(3.0, size=5), "  the fox\r\n\n"),
    })  # fmt: skip


@exercise(
    points=1, reference=lambda ids, starts, T: ids[starts[:, None] + np.arange(T)], rules=[no_loop]
)
def data_gather(answer: Any) -> Cases:
    """Check the windows of a batch."""
    index = "Position t of window b is token starts[b] + t: a column of starts plus a row."
    ids, long = 7 * np.arange(20) % 19, generator().permutation(999)
    yield from cases(answer, {
        "reads two windows": (index, ids, np.array([0, 5]), 3),
        "reads as many windows as tokens": (index, ids, np.array([4, 1, 9]), 3),
        "reads one window": (index, ids, np.array([6]), 8),
        "reads windows that overlap": (index, ids, np.array([2, 3, 2]), 4),
        "reads fifty long ones": (index, long, long[:50] % 900, 80),
        "reads up to the end": (index, ids, np.array([15, 0]), 5),
        "reads single tokens": (index, ids, np.array([3, 19]), 1),
    })  # fmt: skip

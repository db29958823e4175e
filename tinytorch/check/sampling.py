"""Checks for the chapter "Sampling"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.check.report import Case, case, exercise
from tinytorch.models.sampling import keep_top_p, next_token_probs

__all__ = [
    "sampling_draw",
    "sampling_kept",
    "sampling_temperature",
    "sampling_top_p",
    "sampling_write",
]

# How many are left ----------------------------------------------------------------------------


@exercise(points=1)
def sampling_kept(answer: dict[str, Any]) -> Iterator[Case]:
    """Check how many of five tokens can still be drawn.

    Example:
        >>> sampling_kept({"top_k = 2": 3})
        sampling_kept: not yet
          [ ] top_k = 2
              came      3
              hint      Top-k keeps k tokens.
    """
    results = {
        "top_k = 2": (2, "Top-k keeps k tokens."),
        "temperature = 0, top_p = 0.75": (1, "At temperature 0 one token has everything."),
        "top_p = 0.75": (3, "0.5 + 0.2 falls short of 0.75; the token that reaches it is kept."),
        "temperature = 0.5, top_p = 0.75": (
            1,
            "Temperature 0.5 squares each probability before they are made to sum to one.",
        ),
        "top_k = 3, top_p = 0.8": (2, "After top-k the three sum to one again: 0.5 / 0.85 leads."),
    }
    for name, (result, hint) in results.items():
        predicted = answer.get(name, ...) if isinstance(answer, dict) else ...
        yield case(name, predicted, expected=result, hint=hint, show_expected=False)


# The draw -------------------------------------------------------------------------------------


@exercise(points=2)
def sampling_draw(answer: Callable[[Any, Any], Any]) -> Iterator[Case]:
    """Check a draw for every row from the cumulative sum.

    Example:
        >>> def right(probs, u):
        ...     edges = probs.cumsum(axis=1)
        ...     return (edges <= (u * edges[:, -1])[:, None]).sum(axis=1)
        >>> bool(sampling_draw(right))
        True
        >>> bool(sampling_draw(lambda probs, u: probs.argmax(axis=1)))
        False
    """
    probs = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]])
    hint = "Of the sums 0.5, 0.75, 1.0 the first above 0.6 is that of token 1."
    yield case(
        "three rows, each with its number",
        answer,
        probs,
        np.array([0.6, 0.2, 0.9]),
        expected=np.array([1, 0, 2]),
        hint=hint,
        mistakes=[(probs.argmax(axis=1), "That is the most likely token; u must decide.")],
    )
    hint = "A token of probability 0 is never drawn, not even by u = 0: look for a sum above u."
    given = np.array([[0.0, 1.0, 0.0]]), np.array([0.0])
    yield case("never a token of probability 0", answer, *given, expected=np.array([1]), hint=hint)
    hint = "Each token owns the numbers from the sum before it up to its own sum, that excluded."
    given = np.array([[0.5, 0.5]]), np.array([0.5])
    yield case("a number on the edge", answer, *given, expected=np.array([1]), hint=hint)
    tenths = np.full((1, 10), 0.1)
    hint = "Ten tenths add up to a little less than 1: compare with u times the last sum."
    yield case(
        "u = 1 - 2**-53, the largest number below 1",
        answer,
        tenths,
        np.array([1 - 2.0**-53]),
        expected=np.array([9]),
        hint=hint,
    )
    yield case(
        "the same, before a token of probability 0",
        answer,
        np.array([[0.1] * 10 + [0.0]]),
        np.array([1 - 2.0**-53]),
        expected=np.array([9]),
        hint="The last column is not always the last token that can be drawn: scale u instead.",
    )
    rng = np.random.default_rng(0)
    probs, u = rng.dirichlet(np.ones(7), size=50), rng.random(50)
    edges = probs.cumsum(axis=1)
    expected = np.array(
        [np.searchsorted(e, x * e[-1], "right") for e, x in zip(edges, u, strict=True)]
    )
    hint = "Row i is decided by u[i] and by nothing else."
    yield case("fifty rows", answer, probs, u, expected=expected, hint=hint)


# Temperature ----------------------------------------------------------------------------------


@exercise(points=2)
def sampling_temperature(answer: Callable[[Any, float], Any]) -> Iterator[Case]:
    """Check probabilities at a temperature, 0 included.

    Example:
        >>> bool(sampling_temperature(next_token_probs))
        True
        >>> bool(sampling_temperature(lambda logits, t: next_token_probs(logits)))
        False
    """
    logits = np.array([1.0, 2.0, 3.0])
    plain = next_token_probs(logits)
    yield case("temperature 1 changes nothing", answer, logits, 1.0, expected=plain)
    yield case(
        "temperature 2",
        answer,
        logits,
        2.0,
        expected=next_token_probs(logits, 2.0),
        hint="Which numbers does the temperature divide, and when?",
        mistakes=[
            (
                plain,
                "A factor that is the same for all probabilities goes when they are normalised.",
            ),
            (plain / 2, "These sum to 0.5: divide the logits instead."),
            (next_token_probs(logits, 0.5), "The logits are divided by it, not multiplied."),
        ],
    )
    rows = np.array([[0.0, 1.0], [3.0, 0.0]])
    hint = "The softmax runs along the last axis."
    yield case("two rows", answer, rows, 0.5, expected=next_token_probs(rows, 0.5), hint=hint)
    hint = "At 0 the most likely token has probability 1; there is nothing to divide."
    given = np.array([[1.0, 3.0, 2.0], [0.5, 0.1, 0.2]]), 0.0
    yield case("temperature 0", answer, *given, expected=np.eye(3)[[1, 0]], hint=hint)
    hint = "Of equal logits the first wins, alone: argmax gives its position."
    given = np.array([2.0, 5.0, 5.0]), 0.0
    yield case("temperature 0, a tie", answer, *given, expected=np.eye(3)[1], hint=hint)
    given = np.array([10.0, 9.0, 0.0]), 0.01
    hint = "exp(1000) is too large for a float: functional.softmax subtracts the largest first."
    yield case("a small temperature", answer, *given, expected=np.eye(3)[0], hint=hint)


# The nucleus ----------------------------------------------------------------------------------


@exercise(points=3)
def sampling_top_p(answer: Callable[[Any, float], Any]) -> Iterator[Case]:
    """Check the smallest set of tokens that holds `p`.

    Example:
        >>> bool(sampling_top_p(keep_top_p))
        True
        >>> bool(sampling_top_p(lambda probs, p: probs))
        False
    """
    probs = np.array([[0.5, 0.3, 0.15, 0.05]])
    kept = np.array([[0.5, 0.3, 0.15, 0.0]])
    yield case(
        "0.9 of 0.5, 0.3, 0.15, 0.05",
        answer,
        probs,
        0.9,
        expected=kept / 0.95,
        hint="The two largest hold 0.8, the three largest 0.95: three are kept.",
        mistakes=[
            (kept, "The right tokens; now make them sum to one."),
            (np.array([[0.625, 0.375, 0, 0]]), "They hold 0.8 only: keep the one that reaches p."),
            (probs, "The set must be as small as possible: without the last it holds 0.95."),
        ],
    )
    probs = np.array([[0.05, 0.5, 0.15, 0.3]])
    expected = np.array([[0.0, 0.5, 0.0, 0.3]]) / 0.8
    hint = "The most likely come first in the sum, but each must stay in its own column."
    yield case("the same, not in order", answer, probs, 0.7, expected=expected, hint=hint)
    hint = "One token holds more than p by itself. It is kept, and it alone."
    given = np.array([[0.1, 0.9]]), 0.6
    yield case("never empty", answer, *given, expected=np.array([[0.0, 1.0]]), hint=hint)
    hint = "One token holds exactly p: that is enough."
    given = np.array([[0.5, 0.25, 0.25]]), 0.5
    yield case("exactly p", answer, *given, expected=np.array([[1.0, 0.0, 0.0]]), hint=hint)
    hint = "Of equals, only as many are kept as are needed: the set is the smallest."
    yield case(
        "one of three equals",
        answer,
        np.array([[0.4, 0.2, 0.2, 0.2]]),
        0.5,
        expected=np.array([2]),
        part=("tokens kept in each row", lambda kept: (np.asarray(kept) > 0).sum(axis=-1)),
        hint=hint,
    )
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.full(9, 0.5), size=6)
    hint = "Each row has an order of its own, and keeps a number of its own."
    yield case("rows of a batch", answer, rows, 0.8, expected=keep_top_p(rows, 0.8), hint=hint)


# The loop -------------------------------------------------------------------------------------


@exercise(points=3)
def sampling_write(answer: Callable[[Any, Any, int, int, Any], Any]) -> Iterator[Case]:
    """Check the loop that writes one text.

    Example:
        >>> def right(next_probs, prompt, max_new, stop, u):
        ...     ids = list(prompt)
        ...     for number in u[:max_new]:
        ...         ids.append(int((np.cumsum(next_probs(ids)) <= number).sum()))
        ...         if ids[-1] == stop:
        ...             break
        ...     return ids
        >>> bool(sampling_write(right))
        True
        >>> bool(sampling_write(lambda next_probs, prompt, max_new, stop, u: prompt))
        False
    """
    u = np.array([0.9, 0.1, 0.6, 0.3, 0.5])
    hint = "Append what is drawn, and give the longer list to next_probs."
    given = sure_of_last_plus_1, [3], 3, 9, u
    yield case(
        "three tokens after one",
        answer,
        *given,
        expected=[3, 4, 5, 6],
        hint=hint,
        mistakes=[
            ([4, 5, 6], "Return the prompt as well."),
            ([3, 4, 4, 4], "next_probs must read the new tokens too."),
        ],
    )
    yield case(
        "stops at the stop token",
        answer,
        *(sure_of_last_plus_1, [3], 5, 5, u),
        expected=[3, 4, 5],
        hint="When the stop token was drawn, nothing more is.",
        mistakes=[([3, 4], "The stop token itself belongs to the text.")],
    )
    hint = "A story begins with the newline that also ends it: only a drawn one ends the text."
    given = sure_of_last_plus_1, [0], 2, 0, u
    yield case("not at one in the prompt", answer, *given, expected=[0, 1, 2], hint=hint)
    hint = "Each token has a number of its own: u[0] decides the first, u[1] the second."
    given = always_50_25_25, [0], 3, 9, u
    yield case("draws with the numbers in turn", answer, *given, expected=[0, 2, 0, 1], hint=hint)
    hint = "Give next_probs all ids so far, the prompt included, not the last one alone."
    given = sure_of_the_sum, [1, 2], 3, 9, u
    yield case("reads everything so far", answer, *given, expected=[1, 2, 3, 6, 2], hint=hint)
    hint = "With max_new = 0 the prompt comes back."
    yield case("nothing new", answer, sure_of_last_plus_1, [4], 0, 9, u, expected=[4], hint=hint)


def sure_of_last_plus_1(ids: Any) -> np.ndarray:
    """A model that is sure of the next number."""
    return np.eye(10)[(list(ids)[-1] + 1) % 10]


def always_50_25_25(ids: Any) -> np.ndarray:
    """A model that expects the same whatever it has read."""
    return np.array([0.5, 0.25, 0.25])


def sure_of_the_sum(ids: Any) -> np.ndarray:
    """A model that is sure of the sum of what it has read, modulo 10."""
    return np.eye(10)[sum(int(i) for i in ids) % 10]

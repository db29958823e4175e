"""Checks for the chapter "Sampling"."""

from functools import partial
from typing import Any

import numpy as np

from tinytorch.models.sampling import keep_top_p, next_token_probs
from tinytorch_book.exercises.cases import Cases, alone, case, cases, predictions
from tinytorch_book.exercises.drawn_numbers import drawn, generator
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import in_numpy, no_loop, without

__all__ = ["sampling_draw", "sampling_kept", "sampling_temperature", "sampling_top_k",
           "sampling_top_p", "sampling_write"]  # fmt: skip


# How many are left ----------------------------------------------------------------------------


@exercise(points=1)
def sampling_kept(answer: dict[str, Any]) -> Cases:
    """Check how many of five tokens can still be drawn."""
    yield from predictions(answer, {
        "top_k = 2": (2, "Top-k keeps k tokens."),
        "temperature = 0, top_p = 0.75": (1, "At temperature 0 one token has everything."),
        "top_p = 0.75": (3, "0.5 + 0.2 falls short of 0.75; the token that reaches it is kept."),
        "temperature = 0.5, top_p = 0.75": (1, "Temperature 0.5 squares each; then they sum to 1."),
        "top_k = 3, top_p = 0.8": (2, "After top-k the three sum to one again: 0.5 / 0.85 leads."),
    })  # fmt: skip


# The draw -------------------------------------------------------------------------------------


def _draw(probs: Any, u: Any) -> Any:
    sums = probs.cumsum(axis=1)
    return (sums <= (u * sums[:, -1])[:, None]).sum(axis=1)


_LIKELY = np.array([0, 1, 2]), "That is the most likely token; u must decide."


@exercise(points=2, reference=_draw, mistakes=[_LIKELY], rules=[in_numpy, no_loop])
def sampling_draw(answer: Any) -> Cases:
    """Check a draw for every row from the cumulative sum."""
    halves, rng = (1 + np.eye(3)) / 4, generator()
    tenths, largest = np.full((1, 10), 0.1), np.array([1 - 2.0**-53])
    sums = "Of the sums 0.5, 0.75, 1.0 the first above 0.6 is that of token 1."
    never = "A token of probability 0 is never drawn, not even by u = 0: look for a sum above u."
    owns = "Each token owns the numbers from the sum before it up to its own sum, that excluded."
    short = "Ten tenths add up to a little less than 1: compare with u times the last sum."
    last = "The last column is not always the last token that can be drawn: scale u instead."
    yield from cases(answer, {
        "three rows, each with its number": (sums, halves, np.array([0.6, 0.2, 0.9])),
        "never a token of probability 0": (never, np.array([[0.0, 1.0, 0.0]]), np.zeros(1)),
        "a number on the edge": (owns, np.array([[0.5, 0.5]]), np.array([0.5])),
        "u = 1 - 2**-53, the largest number below 1": (short, tenths, largest),
        "the same, before a token of probability 0": (last, np.append(tenths, [[0.0]], 1), largest),
        "fifty rows": ("Row i is decided by u[i].", rng.dirichlet(np.ones(7), 50), rng.random(50)),
        "two thousand tokens, most of them hardly likely":
            (owns, rng.dirichlet(np.full(2000, 0.02), 30), rng.random(30)),
        "tokens of one in a billion":
            (owns, np.array([[1e-9, 1e-9, 1 - 2e-9]] * 3), np.array([5e-10, 1.5e-9, 2.5e-9])),
        "no rows": ("Without rows there are no tokens.", np.zeros((0, 3)), np.zeros(0)),
        "a gap between two tokens": (owns, np.array([[0.5, 0.0, 0.0, 0.5]]), np.array([0.5])),
        "one token to choose from": (owns, np.ones((2, 1)), np.array([0.0, 0.7])),
    })  # fmt: skip


# Temperature ----------------------------------------------------------------------------------


_REPAIR = without("Repair it yourself: the package does the same.", next_token_probs)


@exercise(points=2, reference=next_token_probs, rules=[_REPAIR], mistakes=[
    (lambda logits, t: next_token_probs(logits),
        "Dividing all probabilities by 2, and then by their sum: what is left of the 2?"),
    (lambda logits, t: next_token_probs(logits) / t, "These sum to 0.5: divide the logits."),
    (lambda logits, t: next_token_probs(logits, 1 / t), "The logits are divided, not multiplied."),
])  # fmt: skip
def sampling_temperature(answer: Any) -> Cases:
    """Check probabilities at a temperature, 0 included."""
    logits, batch = np.array([1.0, 2.0, 3.0]), 9 * drawn((2, 3, 5))[0]
    divided = "Which numbers does the temperature divide, and when?"
    largest = "exp(1000) is too large for a float: functional.softmax subtracts the largest first."
    zero = "At 0 the most likely token has probability 1; there is nothing to divide."
    tie = "Of equal logits the first wins, alone: argmax gives its position."
    last = "The softmax runs along the last axis."
    yield from cases(answer, {
        "temperature 1 changes nothing": (divided, logits, 1.0),
        "temperature 2": (divided, logits, 2.0),
        "two rows": (last, np.array([[0.0, 1.0], [3.0, 0.0]]), 0.5),
        "temperature 0": (zero, np.array([[1.0, 3.0, 2.0], [0.5, 0.1, 0.2]]), 0.0),
        "temperature 0, a tie": (tie, np.array([2.0, 5.0, 5.0]), 0.0),
        "a small temperature": (largest, np.array([10.0, 9.0, 0.0]), 0.01),
        "a batch (B, T, V)": (last, batch, 3.0),
        "a batch at 0": (zero, batch, 0.0),
        "a token that is forbidden": (divided, np.array([[0.0, -np.inf, 1.0, 2.0]]), 70.0),
        "logits far apart at a tiny temperature": (largest, 1e4 * batch, 1e-4),
        "small probabilities": (divided, 1e-3 * batch, 8e-4, alone(rtol=1e-3, atol=0)),
        "a vocabulary of a thousand": (last, *drawn((2, 1000)), 1.5, alone(rtol=1e-3, atol=0)),
        "a single token": (zero, np.array([[2.0], [-3.0]]), 0.0),
    })  # fmt: skip


# The nucleus ----------------------------------------------------------------------------------


@exercise(points=3, reference=keep_top_p, rules=[in_numpy], mistakes=[
    (lambda probs, p: probs * (keep_top_p(probs, p) > 0),
        "The right tokens; now make them sum to one."),
    (lambda probs, p: probs, "The set must be as small as possible, and these are all."),
])  # fmt: skip
def sampling_top_p(answer: Any) -> Cases:
    """Check the smallest set of tokens that holds `p`."""
    own = "Each row has an order of its own, and keeps a number of its own."
    rows, many = (generator().dirichlet(np.full(n, 0.3), size=6) for n in (9, 400))
    three = "The two largest hold 0.8, the three largest 0.95: three are kept."
    order = "The most likely come first in the sum, but each must stay in its own column."
    single = "One token holds more than p by itself. It is kept, and it alone."
    equals = "Of equals, only as many are kept as are needed: the set is the smallest."
    two = [(np.array([[0.625, 0.375, 0, 0]]), "They hold 0.8 only: keep the one that reaches p.")]
    number = "tokens kept in each row", lambda kept: (np.asarray(kept) > 0).sum(axis=-1)
    probs, four = np.array([[0.5, 0.3, 0.15, 0.05]]), np.array([[0.4, 0.2, 0.2, 0.2]])
    yield from cases(answer, {
        "0.9 of 0.5, 0.3, 0.15, 0.05": (three, probs, 0.9, alone(mistakes=two)),
        "the same, not in order": (order, np.array([[0.05, 0.5, 0.15, 0.3]]), 0.7),
        "never empty": (single, np.array([[0.1, 0.9]]), 0.6),
        "exactly p": ("Exactly p is enough.", np.array([[0.5, 0.25, 0.25]]), 0.5),
        "one of three equals": (equals, four, 0.5, alone(part=number)),
        "rows of a batch": (own, rows, 0.8),
        "four hundred tokens": (own, many, 0.9999, alone(atol=0)),
        "one token": (single, np.ones((3, 1)), 0.5),
        "a tiny share": (own, rows[:, :5] / rows[:, :5].sum(axis=1, keepdims=True), 1e-6),
        "all of it": ("Ten tenths add up to less than 1: keep all.", np.full((1, 10), 0.1), 1.0),
    })  # fmt: skip


# The loop -------------------------------------------------------------------------------------


def _write(f: Any, prompt: Any, n: int, stop: Any, u: Any, read: Any = lambda ids, new: ids) -> Any:
    ids = list(prompt)
    for number in u[:n]:
        probs = f(read(ids, len(ids) - len(prompt)))
        ids.append(int(np.searchsorted(np.cumsum(probs), number, side="right")))
        if ids[-1] == stop:
            break
    return ids


@exercise(points=3, reference=_write, mistakes=[
    (lambda f, prompt, *o: _write(f, prompt, *o)[len(prompt) :], "Return the prompt as well."),
    (partial(_write, read=lambda ids, new: ids[: len(ids) - new]),
        "next_probs must read the new tokens too."),
    (lambda f, prompt, n, stop, u: [i for i in _write(f, prompt, n, stop, u) if i != stop],
        "The stop token itself belongs to the text."),
    (lambda f, prompt, n, stop, u: _write(f, prompt, len(u), stop, u),
        "Only max_new tokens are new, however many numbers u holds."),
])  # fmt: skip
def sampling_write(answer: Any) -> Cases:
    """Check the loop that writes one text."""
    u, edges = np.array([0.9, 0.1, 0.6, 0.3, 0.5]), np.array([0.5, 0.75, 0.0])
    longer = "Append what is drawn, and give the longer list to next_probs."
    drawn_one = "A story begins with the newline that also ends it: only a drawn one ends the text."
    in_turn = "Each token has a number of its own: u[0] decides the first, u[1] the second."
    all_ids = "Give next_probs all ids so far, the prompt included, not the last one alone."
    passed = 'A sum equal to u has been passed: np.searchsorted(..., side="right"), or draw.'
    next_one = sure_of_last_plus_1
    yield from cases(answer, {
        "three tokens after one": (longer, next_one, [3], 3, 9, u),
        "stops at the stop token": ("After it nothing more is drawn.", next_one, [3], 5, 5, u),
        "not at one in the prompt": (drawn_one, next_one, [0], 2, 0, u),
        "draws with the numbers in turn": (in_turn, always_50_25_25, [0], 3, 9, u),
        "reads everything so far": (all_ids, sure_of_the_sum, [1, 2], 3, 9, u),
        "nothing new": ("With max_new = 0 the prompt comes back.", next_one, [4], 0, 9, u),
        "numbers that equal a sum": (passed, always_50_25_25, [1, 1, 1], 3, 9, edges),
        "no prompt": ("The first token may follow nothing.", sure_of_the_sum, [], 2, 9, u),
        "the last one that is allowed stops as well": (longer, next_one, [1], 3, 4, u),
    })  # fmt: skip
    rng = generator()
    for new in (3, 20, 60):
        prompt = rng.integers(200, size=4).tolist()
        given = depends_on_the_order, prompt, new, 200, rng.random(new + 5)
        yield case(f"{new} tokens of 200", answer, *given, hint=all_ids)


def sure_of_last_plus_1(ids: Any) -> np.ndarray:
    """A model that is sure of the next number."""
    return np.eye(10)[(list(ids)[-1] + 1) % 10]


def always_50_25_25(ids: Any) -> np.ndarray:
    """A model that expects the same whatever it has read."""
    return np.array([0.5, 0.25, 0.25])


def sure_of_the_sum(ids: Any) -> np.ndarray:
    """A model that is sure of the sum of what it has read, modulo 10."""
    return np.eye(10)[sum(int(i) for i in ids) % 10]


def depends_on_the_order(ids: Any) -> np.ndarray:
    """A model of 200 tokens, most of them hardly likely, that hears each id where it stands."""
    heard = sum((place + 1) * int(token) for place, token in enumerate(ids))
    return np.random.default_rng(heard).dirichlet(np.full(200, 0.1))


@exercise(
    points=1,
    reference=lambda logits, k: np.where(logits >= np.sort(logits)[..., -k, None], logits, -np.inf),
    rules=[no_loop],
)
def sampling_top_k(answer: Any) -> Cases:
    """Check that all but the largest logits are replaced."""
    rest = "The k-th largest of each row is the limit: what is below it becomes minus infinity."
    for shape, k in (((5,), 2), ((3, 6), 1), ((2, 2, 4), 3), ((4, 4), 4), ((1, 9), 5)):
        yield case(f"keeps {k} of shape {shape}", answer, drawn(shape)[0], k, hint=rest)
    yield case("keeps negative ones", answer, np.array([-5.0, -1.0, -3.0]), 2, hint=rest)
    (wide,) = drawn((3, 2000))
    for scale in (1e-30, 1e30):
        yield case(f"logits of {scale:g}", answer, scale * wide, 50, hint=rest, atol=0)

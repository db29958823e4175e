"""Checks for the chapter "GPT"."""

import inspect
from functools import partial
from operator import call
from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.attention import MultiHeadAttention
from tinytorch.core.grad_mode import no_grad
from tinytorch.core.layers import LayerNorm
from tinytorch.core.module import Module, evaluation_mode
from tinytorch.core.seeding import drawing_from
from tinytorch.core.tensor import Tensor
from tinytorch.models.transformer import GPT
from tinytorch_book.exercises.cases import Cases, NotYet, alone, case, cases, measured
from tinytorch_book.exercises.drawn_numbers import drawn, seed_of
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import in_numpy, no_loop
from tinytorch_book.exercises.training import train
from tinytorch_book.exercises.values import show
from tinytorch_book.stories import StoryGrammar

__all__ = ["gpt_assembled", "gpt_half", "gpt_is_causal", "gpt_last_logits", "gpt_num_parameters",
           "gpt_tied_gradient"]  # fmt: skip


# The gradient of a tied table ----------------------------------------------------------------


@exercise(
    points=2,
    reference=lambda ids, g_in, x, g: g.T @ x + np.eye(g.shape[1])[ids].T @ g_in,
    rules=[in_numpy],
)
def gpt_tied_gradient(answer: Any) -> Cases:
    """Check the gradient of a table that is both the lookup and the output."""
    ids, one = np.array([2, 0]), np.eye(2)
    g_in, g_logits = np.array([[1.0, 2], [3, 4]]), np.array([[1.0, 0, -1], [0, 2, -2]])
    lookup = "Row ids[t] of the table was read at t: it receives g_in[t]. The result is (V, d)."
    output = "logits = x @ table.T, so the table's part is g_logits.T @ x."
    both = "The table is used twice; its gradient is the sum of both parts."
    again = "table[ids] += g adds once for a row named several times; np.add.at adds all."
    four, six = drawn((4, 3), (4, 3), (4, 5)), drawn((6, 4), (6, 4), (6, 2), seed=1)
    yield from cases(answer, {
        "the lookup alone": (lookup, ids, g_in, one, 0 * g_logits),
        "the output alone": (output, ids, 0 * g_in, one, g_logits),
        "both uses": (both, ids, g_in, one, g_logits),
        "a token read again": (again, np.array([1, 3, 1, 1]), *four),
        "ninety tokens": (again, np.arange(40) ** 2 % 90, *drawn((40, 8), (40, 8), (40, 90))),
        "more positions than tokens": (again, np.array([0, 1, 1, 0, 0, 1]), *six),
    })  # fmt: skip


# Counting ------------------------------------------------------------------------------------


def _count(*sizes: int, norms: int = 1, positions: int = 1, bias: int = 0) -> int:
    V, d, L, T, ratio, tied = sizes
    block = 4 * d * d + 4 * d + 2 * ratio * d * d + ratio * d + d + 4 * d
    tables = V * d + (0 if tied else V * d + V * bias) + T * d * positions
    return tables + L * block + 2 * d * norms


_MISCOUNTED = [
    (lambda *sizes: _count(*sizes[:4], 4, sizes[5]), "The MLP is mlp_ratio times as wide inside."),
    (partial(_count, norms=0), "The last norm, after the blocks, has parameters as well."),
    (partial(_count, norms=2), "Each block has two norms, and one more comes at the end."),
    (partial(_count, positions=0), "The positions are learned: a table of T rows."),
    (partial(_count, bias=1), "The output has no bias."),
]


@exercise(points=2, reference=_count, mistakes=_MISCOUNTED)
def gpt_num_parameters(answer: Any) -> Cases:
    """Check the number of parameters of a GPT."""
    one = "With d = 1: 20 in the tables, 8 in attention, 13 in the MLP, 4 in its norms, 2 after it."
    block = "Count a block by its matrices and its vectors: four, two, and two norms."
    untied = "Untied, the output is a matrix of its own, (d, V), without a bias."
    yield from cases(answer, {
        "d = 1, one block": (one, 15, 1, 1, 5, 4, True),
        "V, d, L, T, ratio = 65, 64, 2, 32, 4": (block, 65, 64, 2, 32, 4, True),
        "V, d, L, T, ratio = 7, 8, 3, 5, 2": (block, 7, 8, 3, 5, 2, True),
        "an untied output": (untied, 7, 8, 3, 5, 2, False),
        "GPT-2 small": ("Compute it from the arguments.", 50257, 768, 12, 1024, 4, True),
    })  # fmt: skip


# A test for causality ------------------------------------------------------------------------

_IN_VOCABULARY = "Another token must be in the vocabulary, whose size is logits.shape[1]."


@exercise(points=3)
def gpt_is_causal(answer: Any) -> Cases:
    """Check a test for causality on models that look ahead and on some that do not."""
    ids = np.array([0, 4, 1, 3])
    for claim, model, read, causal in (
        ("clears an honest model", reads_the_past, ids, True),
        ("finds a full leak", reads_everything, ids, False),
        ("finds one step ahead", reads_the_next, ids, False),
        ("finds a look far ahead", first_reads_the_last, ids, False),
        ("finds a single leak", one_leaks, ids, False),
        ("forgives rounding", reads_and_rounds, ids, True),
        ("clears a single token", reads_the_past, ids[3:], True),
    ):
        yield case(claim, answer, model, read, expected=causal, hint=inspect.getdoc(model) or "")
    other = "Change each to a different one, such as (ids[t] + 1) % V: a fixed one may be there."
    texts = [np.where(ids == 1, token, ids) for token in range(5)]
    each = lambda f, model, texts: [f(model, text) for text in texts]  # noqa: E731
    yield case("whichever token leaks", answer, one_leaks, texts, run=each, expected=[False] * 5,
               hint=other)  # fmt: skip
    one = "In each model one row reads one later token: change it to another, compare that row."
    for V, strength, claim in (
        (2, 1.0, "finds each of 28 leaks, two tokens to choose from"),
        (9, 1e-3, "and in a larger vocabulary, though each is faint"),
    ):
        text = np.random.default_rng(seed_of(V)).integers(V, size=8)
        no, verdicts = [False] * 28, partial(_verdicts, V=V, strength=strength)
        yield case(claim, answer, text, run=verdicts, expected=no, hint=one)
        shifted = "Compare all logits themselves: a softmax, or a sum, hides some changes of them."
        verdicts = partial(_verdicts, V=V, strength=strength, shift=True)
        claim = f"finds leaks that move all {V} logits of a row alike"
        yield case(claim, answer, text, run=verdicts, expected=no, hint=shifted)
    rare = "A mean hides one leaking logit: take the largest difference."
    yield case("finds 0.001 in one logit of 12,000", answer, one_logit_leaks,
               np.arange(40, 0, -1), expected=False, hint=rare)  # fmt: skip
    ids, masks = np.array([0, 0, 2, 5, 1]), "This GPT drops its mask in attention."
    honest, leaking = _real(MultiHeadAttention), _real(_Unmasked)
    yield case("a real GPT", answer, honest, ids, expected=True, hint=_IN_VOCABULARY)
    yield case("a leaking GPT", answer, leaking, ids, expected=False, hint=masks)


# Toy models, whose logits are sums of what they read; the docstring is the hint for each.


def _features(ids: Any, V: int = 5) -> np.ndarray:
    """A vector `(T, V)` for each token and its position."""
    ids = np.asarray(ids)
    if ids.ndim != 1 or ids.min() < 0 or ids.max() >= V:
        told = f"ids must be one sequence of numbers in 0..{V - 1}, got {ids.tolist()}"
        raise NotYet(told, _IN_VOCABULARY if ids.ndim == 1 else "")
    return np.eye(V)[ids] * (1 + np.arange(len(ids))[:, None])


def reads_the_past(ids: Any) -> np.ndarray:
    """Compare the rows before the changed token, and change a copy of `ids` each time."""
    return _features(ids).cumsum(axis=0)


def reads_everything(ids: Any) -> np.ndarray:
    """Change token t and look at the logits of all positions before t."""
    return reads_the_past(ids) + _features(ids).sum(axis=0)


def reads_the_next(ids: Any) -> np.ndarray:
    """Here position t sees t + 1 and no more. Look at row t - 1 as well when you change t."""
    return reads_the_past(ids) + np.vstack([_features(ids)[1:], np.zeros((1, 5))])


def first_reads_the_last(ids: Any) -> np.ndarray:
    """Here only position 0 looks ahead, at the last token. Compare all earlier rows."""
    return reads_the_past(ids) + np.eye(len(ids))[:, :1] * _features(ids)[-1]


def one_leaks(ids: Any) -> np.ndarray:
    """Here only position 1 looks ahead, at token 2. Change every token in its turn, to another."""
    return reads_the_past(ids) + (np.arange(len(ids)) == 1)[:, None] * _features(ids)[2:3].sum(0)


def reads_and_rounds(ids: Any) -> np.ndarray:
    """Compare with np.allclose: floating-point sums may differ in the last digits."""
    return reads_the_past(ids) + 1e-10 * _features(ids).sum(axis=0)


def one_logit_leaks(ids: Any) -> np.ndarray:
    """For a vocabulary of 300."""
    logits = _features(ids, 300).cumsum(axis=0)
    logits[0, 0] += 1e-3 * ids[-1]
    return logits


def _verdicts(answer: Any, ids: Any, V: int, strength: float, shift: bool = False) -> Any:
    """What the answer says of each model in which one row reads one later token."""

    def one_row_reads_ahead(ids: Any, row: int, token: int) -> np.ndarray:
        logits = _features(ids, V).cumsum(axis=0)
        read = _features(ids, V)[token : token + 1].sum(axis=0)
        logits[row : row + 1] += strength * (read @ np.arange(1, V + 1) if shift else read)
        return logits

    leaks = [{"row": row, "token": token} for token in range(len(ids)) for row in range(token)]
    return [answer(partial(one_row_reads_ahead, **leak), ids.copy()) for leak in leaks]


class _Unmasked(MultiHeadAttention):
    def forward(self, query: Any, *others: Any, mask: Any = None, **options: Any) -> Tensor:
        return super().forward(query, *others, **options)


def _real(attention: Any) -> Any:
    def gpt(ids: Any) -> np.ndarray:
        return np.array(lively_gpt(6, 8, 2, 2, 5, attention=attention)(ids).data)

    return gpt


def lively(model: Any) -> Any:
    """Give a model of ours weights so large that every connection shows."""
    rng = np.random.default_rng(0)
    for parameter in model.parameters():
        parameter.data = rng.normal(0.0, 0.5, size=parameter.shape)
    return model


def lively_gpt(*sizes: int, **parts: Any) -> GPT:
    """A GPT with a part of the reader's, and lively weights that do not depend on it."""
    model = GPT(*sizes, **parts)
    model.load_state_dict(lively(GPT(*sizes)).state_dict())
    return model


# A model of the reader's own -----------------------------------------------------------------


class DoubledNorm(LayerNorm):
    """A norm that shows whether it is used."""

    def forward(self, x: Any) -> Tensor:
        """Twice the usual."""
        return super().forward(x) * 2


class HalvedAttention(MultiHeadAttention):
    """An attention that shows whether it is used."""

    def forward(self, *inputs: Any, **options: Any) -> Tensor:
        """Half the usual."""
        return super().forward(*inputs, **options) * 0.5


class _PassOn(LayerNorm):
    def forward(self, x: Any) -> Tensor:
        return x


def _logits(answer: Any, V: int, d: int, layers: int, heads: int, T: int, parts: Any) -> Any:
    """What the reader's model computes with our weights."""
    sizes = V, d, layers, heads, T
    own = answer(*sizes, **parts)
    if own is None or own is ...:
        return own
    own.load_state_dict(lively(GPT(*sizes, **parts)).state_dict())
    return np.asarray(own(np.random.default_rng(1).integers(V, size=(2, T - 1))).data)


def _size(model: Any) -> int:
    return sum(parameter.size for parameter in model.parameters())


def _built(last: Any = None, masked: bool = True, **used: bool) -> Any:
    """Our model with one of the mistakes: parts that are not used, no mask, another last norm."""

    def build(*sizes: int, **parts: Any) -> GPT:
        own = {name: part for name, part in parts.items() if used.get(name, True)}
        model = GPT(*sizes, **(own if masked else {**own, "attention": _Unmasked}))
        model.ln_f = last(sizes[1]) if last else parts.get("norm", LayerNorm)(sizes[1])
        return model

    return build


_TWICE = "Two blocks, and the parameters of one: how many different blocks does the list hold?"
_MASK = "Every block needs mask=causal_mask(T); without it, tokens see the future."
_WRONG_MODELS = [
    (lambda V, d, layers, *rest: GPT(V, d, 1, *rest), _TWICE),
    (_built(masked=False), _MASK),
    (_built(masked=False, last=_PassOn), _MASK),
    (_built(last=_PassOn), "The output reads ln_f(x), not x."),
    (_built(attention=False), "Pass attention= on to the blocks."),
    (_built(LayerNorm, norm=False, attention=False), "Pass norm= and attention= on to the blocks."),
    (_built(last=LayerNorm), "ln_f is a norm too: norm(d)."),
    (_built(norm=False), "The blocks have norms as well."),
]


@exercise(points=3, reference=GPT, mistakes=_WRONG_MODELS, run=_logits)
def gpt_assembled(answer: Any) -> Cases:
    """Check a GPT assembled by the reader, a class, against ours with the same weights."""
    whole = "Two tables, the blocks, and a norm at the end."
    hint = "Compare yours with MyGPT, line by line, names included."
    number = alone(run=call, part=("number of parameters", _size))
    yield from cases(answer, {
        "two blocks have the parameters of two": (whole, 7, 8, 2, 2, 6, number),
        "one block gives our logits": (hint, 7, 8, 1, 2, 6, {}),
        "so do two": (hint, 7, 8, 2, 2, 6, {}),
        "and three, in other sizes": (hint, 11, 12, 3, 4, 9, {}),
        "the norm is the one passed": (hint, 7, 8, 2, 2, 6, {"norm": DoubledNorm}),
        "the attention is the one passed": (hint, 7, 8, 2, 2, 6, {"attention": HalvedAttention}),
    }, rtol=1e-4)  # fmt: skip


# The last logits -----------------------------------------------------------------------------


@exercise(reference=lambda logits, n: logits[np.arange(len(logits)), n - 1], rules=[no_loop])
def gpt_last_logits(answer: Any) -> Cases:
    """Check the logits after the last true token of each text."""
    last = "The last of n tokens has the index n - 1; choose text and position together."
    for B, T, V in ((2, 4, 3), (1, 5, 2), (3, 3, 3), (5, 2, 4), (9, 60, 30)):
        lengths = 1 + np.arange(B) * 2 % T
        claim = f"reads after {lengths.tolist()} tokens"
        yield case(claim, answer, drawn((B, T, V))[0], lengths, hint=last)
    yield case("reads full texts", answer, drawn((2, 3, 2))[0], np.array([3, 3]), hint=last)


# Half the parameters -------------------------------------------------------------------------

LETTERS, WINDOW, MOST, AIM = 38, 16, 14_496 // 2, 1.6  # parameters, nats a letter


def _drawing(seed: int) -> Any:
    """A function that draws windows of stories, and what follows each letter."""
    grammar, rng = StoryGrammar(), np.random.default_rng(seed)
    alphabet, text = grammar.alphabet, grammar.generate(200, seed=seed)
    stream = np.array([alphabet.index(letter) for letter in text])

    def draw(count: int) -> tuple[np.ndarray, np.ndarray]:
        start = rng.integers(len(stream) - WINDOW, size=(count, 1))
        ids = stream[start + np.arange(WINDOW + 1)]  # (count, WINDOW + 1)
        return ids[:, :-1], ids[:, 1:]

    return draw


def _loss(model: Any, ids: np.ndarray, targets: np.ndarray) -> Tensor:
    return functional.cross_entropy(model(ids), targets)


def _made(make: Any) -> Module:
    """The reader's model, if it has few parameters and knows nothing yet."""
    with drawing_from(np.random.default_rng(0)):
        model = make(LETTERS, WINDOW)
    if not isinstance(model, Module):
        raise NotYet(f"{show(model)}, which is not a Module")
    if not 0 < (number := sum({id(p): p.size for p in model.parameters()}.values())) <= MOST:
        raise NotYet(f"{number:,} parameters")
    if (loss := _loss(model, *_drawing(1)(64)).item()) < 3:
        raise NotYet(f"a loss of {loss:.2f} before the first step")
    return model


def _learned(make: Any, steps: int = 250) -> float:
    """The loss on new stories after training, if no letter is seen too early."""
    model, draw = _made(make), _drawing(0)
    with drawing_from(np.random.default_rng(3)):
        train(model, lambda: _loss(model, *draw(32)), [0.01] * steps)
    with no_grad(), evaluation_mode():
        ids, targets = _drawing(1)(512)
        loss, few = _loss(model, ids, targets).item(), ids[:8]
        for t in range(1, WINDOW):
            changed = np.where(np.arange(WINDOW) < t, few, (few + 1) % LETTERS)
            if np.abs(model(changed).data - model(few).data)[:, :t].max() > 1e-3:
                told = f"{loss:.2f} nats, but logits before {t} depend on letter {t}"
                raise NotYet(told, "It copies what comes next: does every block get its mask?")
    return loss


@exercise(points=4, show_expected=False)
def gpt_half(answer: Any) -> Cases:
    """`answer(V, T)` is a model of half the page's parameters that reaches a lower loss."""
    most = f"At most {MOST:,} parameters, and untrained: at the start it knows no letter better."
    low = "Which arguments cost no parameter, and may yet make a small model learn faster?"
    few = f"has at most {MOST:,} parameters, none of them trained yet"
    learns = f"reaches {AIM} nats a letter on new stories, without a leak"
    yield case(few, answer, run=lambda f: _made(f) and "few", expected="few", hint=most)
    yield from measured(
        learns, answer, run=_learned, aim=AIM, told="{:.3f} nats a letter", hint=low
    )

"""Checks for the chapter "A model that answers"."""

from functools import partial
from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.grad_mode import is_recording
from tinytorch.core.hooks import hooks
from tinytorch.core.module import Module, Parameter
from tinytorch.core.optimizers import AdamW
from tinytorch.text.chat import IGNORED, answer_rows
from tinytorch.training.abstention import best_score
from tinytorch_book.exercises.cases import (
    Cases,
    NotYet,
    alone,
    cases,
    measured,
    predictions,
)
from tinytorch_book.exercises.drawn_numbers import generator
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.gpt import lively_gpt
from tinytorch_book.exercises.rules import THE_SAME, in_numpy, no_loop, without
from tinytorch_book.exercises.values import as_array, show
from tinytorch_book.experiments.answering import believed, new_answering_gpt
from tinytorch_book.experiments.fine_tuning import excess
from tinytorch_book.experiments.story_gpt import story_batches
from tinytorch_book.experiments.story_questions import answers_to, question_chats, story_questions

__all__ = ["asking_forget", "asking_predict", "asking_scores", "asking_start",
           "asking_targets"]  # fmt: skip


# The mask ------------------------------------------------------------------------------------


def _targets(prompt: Any, answer: Any) -> list[int]:
    return [IGNORED] * (len(prompt) - 1) + list(answer)


_ZERO = "0 is an id like any other: an answer may have it."


_BY_HAND = without(THE_SAME, answer_rows)


def _integers(*names: str) -> alone:
    """The options of a case that asks whether a result, or each of its parts, is of integers."""

    def run(answer: Any, *given: Any) -> bool:
        result = answer(*given)
        for name, part in zip(names, result if names[1:] else [result], strict=True):
            if (dtype := np.asarray(part).dtype).kind not in "iu":
                raise NotYet(f"{name} of {dtype}")
        return True

    return alone(run=run, expected=True)


_WHOLE = "Ids are integers: an embedding looks up no 5.0, and a loss no target 7.0."


@exercise(points=1, reference=_targets, rules=[_BY_HAND], mistakes=[
    (lambda prompt, answer: [IGNORED] * len(prompt) + list(answer),
        "One too many: the inputs are all ids but the last, and the prompt's last token forecasts "
        "the answer's first."),
    (lambda prompt, answer: [IGNORED] * len(prompt) + list(answer[1:]),
        "The prompt's last token forecasts the answer's first: that one counts, too."),
    (lambda prompt, answer: [IGNORED] * (len(prompt) - 1) + list(answer[:-1]) + [IGNORED],
        "The last target counts as well: a model has to learn when to stop."),
    (lambda prompt, answer: list(prompt[1:]) + list(answer), "The prompt's tokens do not count."),
    (lambda prompt, answer: list(answer), "As many targets as inputs: the prompt's are -100."),
    (lambda prompt, answer: [0] * (len(prompt) - 1) + list(answer),
        "0 is a token. What does not count is -100."),
])  # fmt: skip
def asking_targets(answer: Any) -> Cases:
    """Check the targets of one row: the answer's tokens, and -100 where nothing counts."""
    hint = "The targets are the ids from the second on, with -100 up to where the answer begins."
    rng = generator()
    more = [rng.integers(3, 500, size=n).tolist() for n in (40, 3, 9, 6)]
    yield from cases(answer, {
        "a prompt of three, an answer of two": (hint, [7, 512, 513], [9, 514]),
        "a prompt of one": (hint, [513], [9, 514]),
        "an answer of one": (hint, [7, 8, 513], [514]),
        "a long prompt": (hint, more[0], more[1]),
        "a long answer": (hint, more[2], more[3]),
        "an answer with a token of the prompt": (hint, [9, 512, 9, 513], [9, 9, 514]),
        "a prompt that has its last id twice": (hint, [513, 7, 513], [9, 514]),
        "an answer with id 0": (_ZERO, [5, 513], [9, 0, 514]),
        "integers": (_WHOLE, [7, 513], [9, 514], _integers("targets")),
    })  # fmt: skip


# Predictions ---------------------------------------------------------------------------------


@exercise(points=1)
def asking_predict(answer: Any) -> Cases:
    """Check what rules of grading are worth, where duck has 0.5, frog 0.4 and goat 0.1."""
    score = "Right with probability p: p - penalty * (1 - p)."
    yield from predictions(answer, {
        "best share right, if one must answer": (
            0.5, "Nothing beats the likeliest answer.", (1, "Nobody knows who will come.")),
        "share right, if duck, frog and goat are said as often as each comes": (
            0.42, "Duck is said half of the time and then right half of the time, and so on.",
            (0.5, "That is for always saying duck.")),
        "expected score of 'duck', penalty 2": (
            -0.5, score, (0.5, "The wrong half costs 2."), (-2, "Half of the time it is right.")),
        "expected score of 'I do not know', penalty 3": (0, "It is worth nothing, by every rule."),
        "largest penalty at which 'duck' is worth no less than 'I do not know'": (
            1, f"{score} When is that 0?", (0.5, "That is the probability, not the penalty.")),
        "expected score of the best answerer, penalty 0.5": (
            0.25, f"{score} Is it above 0?", (0, "Duck is worth more than that.")),
    })  # fmt: skip


# Three new tokens ----------------------------------------------------------------------------


def _below(table: Any) -> Any:
    return np.vstack([table, np.tile(table.mean(axis=0), (3, 1))])


def _start(model: Any, lr: float, grown: Any = _below, held: Any = Module.parameters) -> AdamW:
    model.token_embedding.weight = Parameter(grown(model.token_embedding.weight.data))
    return AdamW(list(held(model)), lr=lr)


def _too_early(model: Any, lr: float) -> AdamW:
    optimizer = AdamW(list(model.parameters()), lr=lr)
    _start(model, lr)
    return optimizer


def _started(answer: Any, sizes: Any, lr: float, look: str) -> Any:
    """The token table that a GPT begins with, the rate, or what a step leaves as it was."""
    model = lively_gpt(*sizes)
    optimizer = answer(model, lr)
    if not isinstance(optimizer, AdamW):
        raise NotYet(f"{show(optimizer)}, which is not an AdamW")
    before = model.state_dict()
    if look != "still":
        return before["token_embedding.weight"] if look == "table" else optimizer.lr
    ids = [0, *range(sizes[0], len(before["token_embedding.weight"]))]
    functional.cross_entropy(model(ids[:-1]), ids[1:]).backward()
    optimizer.step()
    return [n for n, array in model.state_dict().items() if np.array_equal(array, before[n])]


@exercise(points=2, reference=_start, mistakes=[
    (_too_early, "The optimiser holds the old table; the model reads the new one."),
    (partial(_start, held=lambda model: [model.token_embedding.weight]),
        "All of the model is to learn, not the table alone."),
    (partial(_start, grown=lambda table: np.vstack([_below(table)[-3:], table])),
        "The new ids come after the old ones: their rows stand below."),
    (partial(_start, grown=lambda table: np.vstack([table, np.zeros((3, table.shape[1]))])),
        "The new rows are the mean of the others, not zeros."),
    (partial(_start, grown=lambda table: np.vstack([table, 0 * table[:3] + table.mean()])),
        "The mean row: a mean for each column, along axis 0."),
    (partial(_start, grown=lambda table: _below(table)[-3:]), "The old rows stay above the new."),
])  # fmt: skip
def asking_start(answer: Any) -> Cases:
    """Check a table with three more rows, and that an optimiser trains it and all the rest."""
    rows = "np.vstack puts rows under the table; the model's token_embedding.weight is the result."
    moves = "model.parameters() are those of the moment: is the table among them yet?"
    small, wide = (7, 8, 1, 2, 6), (12, 4, 2, 1, 9)
    looks = {look: alone(run=partial(_started, look=look)) for look in ("table", "still", "rate")}
    for claim, sizes, lr in (("a small model", small, 0.01), ("another model", wide, 0.2)):
        yield from cases(answer, {
            f"{claim}: the table": (rows, sizes, lr, looks["table"]),
            f"{claim}: what a step leaves as it was": (moves, sizes, lr, looks["still"]),
            f"{claim}: the rate": ("AdamW(..., lr=lr)", sizes, lr, looks["rate"]),
        })  # fmt: skip


# The best score ------------------------------------------------------------------------------


_WRONG_SCORES = [
    (lambda beliefs, penalty: beliefs.max(axis=1) - penalty * (1 - beliefs.max(axis=1)),
        "Whoever expects less than 0 says 'I do not know', for 0."),
    (lambda beliefs, penalty: np.maximum(beliefs.max(axis=1) - penalty, 0),
        "Only a wrong answer costs the penalty: it comes with probability 1 - p."),
    (lambda beliefs, penalty: best_score(beliefs, penalty).mean(), "One number for each row."),
    (lambda beliefs, penalty: np.full(len(beliefs), best_score(beliefs.reshape(-1), penalty)),
        "The largest of each row: along axis 1."),
    (lambda beliefs, penalty: np.where(
        beliefs.max(axis=1) > penalty / (1 + penalty), beliefs.max(axis=1), 0),
        "The threshold is right; what the answer is worth is p - penalty * (1 - p)."),
    (lambda beliefs, penalty: beliefs.max(axis=1), "A wrong answer costs something, too."),
]  # fmt: skip


@exercise(points=1, reference=best_score, mistakes=_WRONG_SCORES, rules=[in_numpy, no_loop,
    without(THE_SAME, best_score)])  # fmt: skip
def asking_scores(answer: Any) -> Cases:
    """Check what the best answerer expects for each row of beliefs."""
    hint = "The largest p of each row is worth p - penalty * (1 - p), or 0 if that is more."
    rows = generator().dirichlet(np.full(5, 0.4), size=40)
    pond, known = np.array([[0.5, 0.4, 0.1]]), np.array([[0.0, 1.0], [0.2, 0.8]])
    yield from cases(answer, {
        "at the pond, no penalty": (hint, pond, 0.0),
        "at the pond, a penalty of 1": (hint, pond, 1.0),
        "at the pond, a penalty of 3": (hint, pond, 3.0),
        "one that is known, one that is nearly": (hint, known, 2.0),
        "forty rows, a small penalty": (hint, rows, 0.2),
        "forty rows, a large penalty": (hint, rows, 9.0),
        "one answer only": (hint, np.ones((3, 1)), 5.0),
    })  # fmt: skip


# Project: forget less ------------------------------------------------------------------------

BATCHES, LOST, AIM = 120, 1.5, 0.05
_ABOUT = "hero", "animal"


_UNREAD = (
    "Learn from what `questions` and `stories` give, and from each batch once; "
    "with no_grad() what the model only reads is not counted."
)


class _Counted:
    """Batches of questions and of stories: only so many may be read, and learned from once."""

    def __init__(self) -> None:
        pool = [each for each in story_questions(1500, seed=3) if each.about in _ABOUT]
        self._chats = question_chats([each for each in pool if each.stated])
        self._stories, self.read = story_batches(8, num_stories=1000, seed=7), 0
        self.asked, self._rows = False, 0

    def _count(self, rows: int) -> None:
        self.read, self._rows = self.read + 1, self._rows + rows
        if self.read > BATCHES:
            raise NotYet(f"more than {BATCHES} batches were read")

    def learned(self, ids: Any) -> None:
        """Rows that pass through the model, before it does anything with them."""
        self._rows -= len(np.atleast_2d(as_array(ids))) if is_recording() else 0
        if self._rows < 0:
            raise NotYet("the model has learned from more rows than it was given", _UNREAD)

    def questions(self, step: int) -> Any:
        """Inputs and targets of sixteen chats; answers alone count."""
        self._count(16)
        self.asked = True
        rows = np.random.default_rng(step).integers(len(self._chats), size=16)
        return answer_rows([self._chats[i] for i in rows])

    def stories(self, step: int) -> Any:
        """Inputs and targets of eight plain stories."""
        self._count(8)
        return self._stories[step]


def _tuned(answer: Any) -> tuple[bool, float, float]:
    """Whether an aim is missed; the share of wrong answers, and what was lost on stories."""
    model, batches = new_answering_gpt(), _Counted()
    before = [p.data.copy() for p in model.parameters()]
    with hooks(model, before={"": batches.learned}):
        answer(model, batches.questions, batches.stories)
    if all(np.array_equal(p.data, b) for p, b in zip(model.parameters(), before, strict=True)):
        raise NotYet("the model that was passed has not changed")
    if not batches.asked:
        raise NotYet("`questions` was never called", _UNREAD)
    lost = excess(model, num_stories=50)
    asked = [each for each in story_questions(300, seed=78) if each.about in _ABOUT]
    asked = [each for each in asked if each.stated][:60]
    said = [
        answers_to(each.about)[belief[:-1].argmax()]
        for each, belief in zip(asked, believed(model, asked), strict=True)
    ]
    wrong = float(np.mean([a != b.answer for a, b in zip(said, asked, strict=True)]))
    return not (wrong <= AIM and lost <= LOST), wrong, lost


@exercise(points=4)
def asking_forget(answer: Any) -> Cases:
    """`answer(model, questions, stories)` tunes a model to answer without forgetting stories."""
    hint = (
        "cross_entropy(..., ignore_index=-100) of questions(step), and now and then of "
        "stories(step). What is forgotten comes back fast, so when do the stories help most?"
    )
    goal = f"at most {AIM:.0%} wrong, at most {LOST} nats lost"
    claim, told = f"{goal}, with {BATCHES} batches", "{1:.0%} wrong, {2:.2f} nats lost"
    yield from measured(claim, answer, run=_tuned, aim=0, told=told, goal=goal, hint=hint)

"""A story GPT that answers questions: tuned on answers, and then by a rule of grading.

Both start from the story GPT with three new tokens. `tune_to_answers` learns from true answers,
one of ten replaced by "I do not know", whatever is asked; `tune_to_score` then makes the expected
score of a rule as high as it can. What that changes is measured beside what could be known:
`believed` gives the model's belief in each answer, a `StoryQuestion` has the posterior.

`load_answering_gpt` gives the model that comes with the package, tuned to answers and to stories;
`answering_results` the results of all runs. To make them again:

    python -m tinytorch_book.experiments.answering

writes both, `answering_gpt.safetensors` beside `answering.json`; with `--in-package` they replace
those of the package. Runs that are in the file are not repeated.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tinytorch.core.grad_mode import no_grad
from tinytorch.core.gradient_clipping import clip_grad_norm
from tinytorch.core.losses import cross_entropy
from tinytorch.core.optimizers import AdamW
from tinytorch.core.schedules import CosineSchedule
from tinytorch.core.tensor import Tensor
from tinytorch.models.new_tokens import add_tokens
from tinytorch.models.transformer import GPT
from tinytorch.text.chat import CHAT_TOKENS, IGNORED, answer_rows
from tinytorch.training import weight_files
from tinytorch.training.abstention import answer_probs
from tinytorch_book.experiments.fine_tuning import excess
from tinytorch_book.experiments.stored_results import read_results, run_recipe, write_results
from tinytorch_book.experiments.story_gpt import load_story_gpt, story_batches
from tinytorch_book.experiments.story_questions import (
    QUESTIONS,
    UNSURE,
    StoryQuestion,
    answers_to,
    question_chats,
    question_tokenizer,
    story_questions,
)

__all__ = ["PENALTIES", "STEPS", "answering_results", "believed", "load_answering_gpt", "measured",
           "new_answering_gpt", "scores", "train", "tune_to_answers", "tune_to_score",
           "unread_questions"]  # fmt: skip

#: How many steps a model is tuned to answers, and then to a score.
STEPS, SCORE_STEPS = 1000, 200
#: What a wrong answer costs, by the rules that are tried.
PENALTIES = (0.0, 1.0, 3.0)
SEQ_LEN = 128  # tokens; enough for the longest story and a question
_DATA = Path(__file__).with_name("data")
_FILE, _WEIGHTS = _DATA / "answering.json", _DATA / "answering_gpt.safetensors"
_RATE, _SCORE_RATE = 3e-3, 1e-3
_ROWS, _SHARE_UNSURE = 16, 0.1


def new_answering_gpt() -> GPT:
    """The story GPT with rows for the three tokens of a chat; it has not read a question yet.

    Example:
        >>> new_answering_gpt().num_parameters()["total"]
        133056
    """
    story = add_tokens(load_story_gpt(), len(CHAT_TOKENS))
    model = GPT(story.vocab_size, 64, 2, 4, SEQ_LEN, pos_encoding="rotary", rng=0)
    model.load_state_dict(story.state_dict())
    model.eval()
    return model


def load_answering_gpt() -> GPT:
    """The tuned model that comes with the package: it answers, and still tells stories.

    Example:
        >>> model, [question] = load_answering_gpt(), story_questions(1)
        >>> answers_to("animal")[believed(model, [question])[0].argmax()]
        'hen'
    """
    model = new_answering_gpt()
    weight_files.load_weights(_WEIGHTS, model)
    model.eval()
    return model


def train(model: GPT, loss: Callable[[int], Tensor], lr: float, steps: int) -> list[float]:
    """Take steps down a loss.

    Args:
        model: changed in place.
        loss: the loss of a step, by its number.
        lr: the highest rate, after a tenth of the steps; then it falls.
        steps: how many.

    Returns:
        The loss of every step.
    """
    optimizer = AdamW(model.trainable_parameters(), betas=(0.9, 0.99), weight_decay=0.0)
    schedule = CosineSchedule(lr=lr, warmup_steps=max(1, steps // 10), total_steps=steps)
    history = []
    model.train()
    for step in range(steps):
        model.zero_grad()
        now = loss(step)
        now.backward()
        clip_grad_norm(optimizer.params, 1.0)
        optimizer.lr = schedule(step)
        optimizer.step()
        history.append(now.item())
    model.eval()
    return history


def tune_to_answers(
    model: GPT, questions: Sequence[StoryQuestion], steps: int = STEPS, seed: int = 0,
    stories: int = 0, whole: bool = False, lr: float = _RATE, unsure: float = _SHARE_UNSURE,
) -> list[float]:  # fmt: skip
    """Learn true answers by their likelihood; returns the loss of every step.

    A step reads 16 questions, and beside them `stories` plain stories with a loss of their own.
    `whole` counts the text and the question, too; `unsure` is the share of the answers that are "I
    do not know" instead.
    """
    plain = story_batches(max(stories, 1), num_stories=2000, seed=100 + seed)

    def loss(step: int) -> Tensor:
        rng = np.random.default_rng([seed, step])
        asked = _drawn(questions, rng)
        said = [UNSURE if rng.random() < unsure else question.answer for question in asked]
        total = _likelihood(model, *answer_rows(question_chats(asked, said), whole))
        return total + _likelihood(model, *plain[step]) if stories else total

    return train(model, loss, lr, steps)


def tune_to_score(
    model: GPT, questions: Sequence[StoryQuestion], penalty: float, steps: int = SCORE_STEPS,
    seed: int = 0, stories: int = 0,
) -> list[float]:  # fmt: skip
    """Make the expected score as high as possible; its gradient is exact, nothing is drawn.

    The model must say "I do not know" now and then; `penalty` is what a wrong answer costs.
    """
    plain = story_batches(max(stories, 1), num_stories=2000, seed=200 + seed)

    def loss(step: int) -> Tensor:
        asked = _drawn(questions, np.random.default_rng([seed, step]))
        right, unsure = (
            answer_probs(model(inputs), targets, IGNORED).mean()
            for inputs, targets in (
                answer_rows(question_chats(asked)),
                answer_rows(question_chats(asked, [UNSURE] * _ROWS)),
            )
        )
        score = right * (1 + penalty) + unsure * penalty - penalty
        total = -score
        return total + _likelihood(model, *plain[step]) if stories else total

    return train(model, loss, _SCORE_RATE, steps)


def believed(model: GPT, questions: Sequence[StoryQuestion]) -> list[np.ndarray]:
    """How probable a model finds every answer, and "I do not know", as a whole text.

    Args:
        model: a model.
        questions: what is asked.

    Returns:
        For each question the probabilities of `answers_to(about)`, and of `UNSURE` at the end;
        what is missing to 1 are texts that are none of these.
    """
    found = []
    for question in questions:
        every = [*answers_to(question.about), UNSURE]
        inputs, targets = answer_rows(question_chats([question] * len(every), every))
        with no_grad():
            found.append(answer_probs(model(inputs), targets, IGNORED).data.astype(float))
    return found


def measured(model: GPT, penalty: float = 1.0) -> dict[str, Any]:
    """What a model answers to 300 unread questions, beside what could be known.

    Returns:
        `"right"`: the share of stated questions that it answers rightly, by what they are about;
        `"open"`: the same of the open ones, all kinds together; `"distance"`: how far its belief
        about open questions is from the posterior, in total variation, and `"nats"` in divergence;
        `"score"`: what its likeliest answers can expect under the posterior; `"lost"`: how many
        nats a story it is above the oracle; `"points"`: for each question the posterior's maximum,
        how probable "I do not know" is, and the belief in its likeliest answer among answers.
    """
    questions = unread_questions()
    beliefs = believed(model, questions)
    shares = [belief[:-1] / belief[:-1].sum() for belief in beliefs]  # once an answer is given
    right: dict[str, list[bool]] = {}
    for question, share in zip(questions, shares, strict=True):
        kind = question.about if question.stated else "open"
        right.setdefault(kind, []).append(
            answers_to(question.about)[share.argmax()] == question.answer
        )
    gaps = [
        (np.abs(share - question.posterior).sum() / 2, _divergence(question.posterior, share))
        for question, share in zip(questions, shares, strict=True) if not question.stated
    ]  # fmt: skip
    rates = {kind: round(float(np.mean(hits)), 4) for kind, hits in sorted(right.items())}
    return {
        "open": rates.pop("open"),
        "right": rates,
        "distance": round(float(np.mean([gap for gap, _ in gaps])), 4),
        "nats": round(float(np.mean([nats for _, nats in gaps])), 4),
        "score": round(float(np.mean(scores(beliefs, questions, penalty))), 4),
        "lost": round(excess(model), 3),
        "points": [
            [round(float(x), 3) for x in (question.posterior.max(), belief[-1], share.max())]
            for question, belief, share in zip(questions, beliefs, shares, strict=True)
        ],
    }


def scores(
    beliefs: Sequence[np.ndarray], questions: Sequence[StoryQuestion], penalty: float
) -> np.ndarray:
    """What the likeliest text of each belief can expect: 0 for "I do not know".

    Example:
        >>> scores(
        ...     [np.array([0.5, 0.4, 0.1])], [StoryQuestion("", "", "", np.array([0.7, 0.3]))], 1
        ... )
        array([0.4])
    """
    given = [
        0.0 if belief.argmax() == len(belief) - 1
        else (1 + penalty) * question.posterior[belief.argmax()] - penalty
        for belief, question in zip(beliefs, questions, strict=True)
    ]  # fmt: skip
    return np.array(given)


@cache
def unread_questions(count: int = 300) -> list[StoryQuestion]:
    """Questions about stories that no model has read.

    Example:
        >>> len(unread_questions(2))
        2
    """
    return story_questions(count, seed=77)


def answering_results() -> dict[str, list[dict[str, Any]]]:
    """The results of all runs.

    Returns:
        `"tuned"`: runs of `tune_to_answers`, by `kind` (`"untuned"`, `"answers"`, `"all
        tokens"`, `"and stories"`) and `seed`; `"scored"`: runs of `tune_to_score` that continue
        the last of these, by `penalty` and `seed`. Each has what `measured` gives (the first
        three kinds without `points`), a date, a machine and seconds.

    Example:
        >>> sorted(answering_results())
        ['scored', 'tuned']
    """
    return read_results(_FILE)


# Helpers -------------------------------------------------------------------------------------

_SEEDS = 1, 2, 3
_KINDS: dict[str, dict[str, Any]] = {
    "and stories": {"stories": 4},
    "answers": {},
    "all tokens": {"whole": True},
}


def _drawn(questions: Sequence[StoryQuestion], rng: np.random.Generator) -> list[StoryQuestion]:
    """Sixteen questions after texts of about one length, so that few rows have to be filled up."""
    more = [questions[i] for i in rng.integers(len(questions), size=4 * _ROWS)]
    more.sort(key=lambda question: len(question.text))
    first = _ROWS * int(rng.integers(4))
    return more[first : first + _ROWS]


def _likelihood(model: GPT, inputs: np.ndarray, targets: np.ndarray) -> Tensor:
    return cross_entropy(model(inputs), targets, ignore_index=IGNORED)


def _divergence(truth: np.ndarray, said: np.ndarray) -> float:
    """Kullback and Leibler's, in nats."""
    held = truth > 0
    return float((truth[held] * np.log(truth[held] / said[held])).sum())


@cache
def _pool(seed: int) -> list[StoryQuestion]:
    """The questions that a run learns from."""
    return story_questions(16_000, seed=10 + seed)


def _record(model: GPT, began: float, **run: Any) -> dict[str, Any]:
    """One run: what it was, where and when, and what it came to."""
    about = {"date": time.strftime("%Y-%m-%d"), "machine": _machine()}
    seconds = round(time.perf_counter() - began)
    found = measured(model, run.get("penalty", 1.0))
    if run.get("kind", "and stories") != "and stories":
        del found["points"]  # they are drawn for the others
    return {**run, **about, "seconds": seconds, **found}


def _make(path: Path) -> None:
    """All runs that the file does not have yet, each written as soon as it is done."""
    results = read_results(path) if path.exists() else {"tuned": [], "scored": []}

    def add(group: str, run: Callable[..., GPT], **what: Any) -> None:
        if not any(what.items() <= done.items() for done in results[group]):
            began = time.perf_counter()
            results[group].append(_record(run(**what), began, **what))
            write_results(path, results)

    def tuned(kind: str, seed: int) -> GPT:
        model = new_answering_gpt()
        tune_to_answers(model, _pool(seed), seed=seed, **_KINDS[kind])
        if kind == "and stories":
            _store(model, _weights_beside(path, seed))
        return model

    def scored(penalty: float, seed: int) -> GPT:
        model = new_answering_gpt()
        weight_files.load_weights(_weights_beside(path, seed), model)
        tune_to_score(model, _pool(seed), penalty, seed=seed, stories=4)
        return model

    add("tuned", lambda **_: new_answering_gpt(), kind="untuned", seed=0)
    for seed in _SEEDS:
        for kind in _KINDS:
            add("tuned", tuned, kind=kind, seed=seed)
        for penalty in PENALTIES:
            add("scored", scored, penalty=penalty, seed=seed)
        if seed != _SEEDS[0]:
            _weights_beside(path, seed).unlink(missing_ok=True)


def _weights_beside(path: Path, seed: int) -> Path:
    """Where the weights of a run stand; only those of the first seed are kept."""
    return path.with_name(f"{path.stem}_gpt{'' if seed == 1 else f'_{seed}'}.safetensors")


def _store(model: GPT, path: Path) -> None:
    """Write the weights in half precision, with what a reader in another language needs."""
    weights = {name: array.astype(np.float16) for name, array in model.state_dict().items()}
    facts = {
        "recipe": f"tune_to_answers, {STEPS} steps, stories={_KINDS['and stories']['stories']}",
        "date": time.strftime("%Y-%m-%d"),
        "machine": _machine(),
        "num_heads": str(model.num_heads),
        "max_seq_len": str(model.max_seq_len),
        "special_tokens": json.dumps(question_tokenizer().special_tokens),
        "questions": json.dumps(QUESTIONS),
    }
    weight_files.save_safetensors(path, weights, facts)


def _machine() -> str:
    return f"{platform.machine()}, {os.cpu_count()} cores, NumPy {np.__version__}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    about = "Tune the story GPT to answer questions in many ways (an hour or so)."
    stopped = "stopped; what is done is kept, and the same command goes on from there"
    return run_recipe("answering", about, _make, _FILE, arguments, stopped)


if __name__ == "__main__":
    sys.exit(main())

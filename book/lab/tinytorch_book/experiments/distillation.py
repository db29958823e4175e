"""A smaller model trained on several kinds of labels, and what it is worth as a draft.

The student has one layer of width 32, a fifth of the story GPT's weights. It reads the same stories
with different labels:

* `"hard"`: the token that came;
* `"truth"`: the grammar's own probabilities of what could have come;
* `"teacher"`: the forecasts of the story GPT, which has read twenty thousand stories;
* `"overlap"`: the same forecasts, but in the second half of the steps the loss is the
  total variation, which is what a draft loses by;
* `"overlap alone"`: the total variation from the first step on.

Measured are the divergence from the grammar ("excess": nats a token above the floor) and, on
stories that the story GPT has written itself, how probably it keeps a token that the student
drafts, if all before it were kept.

    python -m tinytorch_book.experiments.distillation

writes the results to `distillation.json`; `--in-package` adds the missing ones to those of the
package. Every run is saved as soon as it is done, so this can be stopped and started again.
"""

import json
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tinytorch.core import functional
from tinytorch.core.grad_mode import no_grad
from tinytorch.core.gradient_clipping import clip_grad_norm
from tinytorch.core.optimizers import AdamW, only_matrices
from tinytorch.core.schedules import CosineSchedule
from tinytorch.core.softmax import softmax_array
from tinytorch.models.draft_quality import expected_readings
from tinytorch.models.transformer import GPT
from tinytorch.training.distillation import soft_cross_entropy, total_variation_loss
from tinytorch_book.experiments.preferences import write_stories
from tinytorch_book.experiments.stored_results import read_results, run_recipe, write_results
from tinytorch_book.experiments.story_gpt import SEQ_LEN, VOCAB_SIZE, load_story_gpt
from tinytorch_book.experiments.what_it_learned import story_truth, study_stories

__all__ = ["LABELS", "Lessons", "as_draft", "distillation_results", "excess", "forecasts",
           "lessons", "new_student", "own_stories", "train_student"]  # fmt: skip

#: What the student may be told about each token.
LABELS = "hard", "truth", "teacher", "overlap", "overlap alone"
_FILE = Path(__file__).with_name("data") / "distillation.json"
_SIZES, _SEEDS = (30, 100, 300, 1000), (0, 1, 2)
_ONLY = {"overlap alone": (1000,)}  # trained on these sizes alone
_STEPS, _BATCH, _RATE = 500, 8, 1e-2
_LOOKS = 50, 75, 100, 150, 200, 300, 400, 500
_TEST = 100  # stories to choose the step by, and as many others to measure


class Lessons(NamedTuple):
    """Stories to learn from or to be measured on, one in a row.

    Attributes:
        inputs: ids `(n, seq)`, beginning with the newline before a story.
        targets: the ids that follow, `(n, seq)`; -1 after the story.
        probs: the soft labels, `(n, seq, vocab)`; zeros after the story.
    """

    inputs: np.ndarray
    targets: np.ndarray
    probs: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """Which positions count, `(n, seq)`."""
        return self.targets >= 0


def new_student(rng: Any = 0, width: int = 32) -> GPT:
    """The smaller model, before it has read anything.

    Example:
        >>> new_student().num_parameters()["total"]
        29152
    """
    return GPT(VOCAB_SIZE, width, 1, 2, SEQ_LEN, pos_encoding="rotary", init_std=0.1, rng=rng)


def lessons(num_stories: int, seed: int) -> Lessons:
    """Stories of the grammar, with the exact probabilities of what could have come.

    Example:
        >>> two = lessons(2, seed=3)
        >>> bool(np.allclose(two.probs.sum(axis=-1), two.counts, atol=1e-3))
        True
    """
    stories = study_stories(num_stories, seed)
    ids, newline = stories.ids, stories.ids[0, 0]
    counts = np.arange(ids.shape[1]) < stories.lengths[:, None]
    after = np.concatenate([ids[:, 1:], np.full((num_stories, 1), newline)], axis=1)
    probs = np.nan_to_num(story_truth(stories)).astype(np.float16)
    return Lessons(ids, np.where(counts, after, -1), probs)


def own_stories(num_stories: int, seed: int) -> Lessons:
    """Stories that the story GPT has written, with its own forecasts as labels.

    Example:
        >>> own_stories(2, seed=0).inputs.shape[0]
        2
    """
    model = load_story_gpt()
    inputs, targets, _, _ = write_stories(model, num_stories, np.random.default_rng(seed))
    probs = forecasts(model, inputs) * (targets >= 0)[..., None]
    return Lessons(inputs, targets, probs.astype(np.float16))


def forecasts(model: Any, ids: np.ndarray) -> np.ndarray:
    """The probabilities that a model gives to what comes next, `(n, seq, vocab)`."""
    with no_grad():
        parts = [softmax_array(model(ids[i : i + 50]).data, -1) for i in range(0, len(ids), 50)]
    return np.concatenate(parts)


def excess(model: Any, truth: Lessons) -> float:
    """By how many nats a token a model's expected loss is above the floor: exact, story by story.

    Args:
        model: a language model.
        truth: stories with the grammar's own probabilities.

    Example:
        >>> excess(load_story_gpt(), lessons(20, seed=9)) < 0.005
        True
    """
    at = np.nonzero(truth.probs)
    p, q = truth.probs[at].astype(float), forecasts(model, truth.inputs)[at]
    with np.errstate(divide="ignore"):
        nats = p @ (np.log(p) - np.log(q.astype(float)))
    return float(nats / truth.counts.sum())


def as_draft(model: Any, own: Lessons, num_drafted: int = 4) -> dict[str, float]:
    """What a model is worth as a draft for the story GPT, computed and not sampled.

    Args:
        model: the draft.
        own: stories of the story GPT, see `own_stories`.
        num_drafted: the most tokens drafted for a reading.

    Returns:
        `accepted`, the mean of `sum(min(p, q))`; and `tokens`, new tokens a reading.

    Example:
        >>> as_draft(load_story_gpt(), own_stories(3, seed=0))["accepted"] > 0.999
        True
    """
    counts = own.counts
    p, q = own.probs[counts].astype(np.float32), forecasts(model, own.inputs)[counts]
    at = np.arange(len(p)), own.targets[counts]
    kept = np.split(np.minimum(1, q[at] / p[at]), counts.sum(axis=1).cumsum()[:-1])
    readings = sum(expected_readings(story, num_drafted) for story in kept)
    accepted = np.minimum(p, q).sum(axis=-1).mean()
    return {"accepted": float(accepted), "tokens": float(counts.sum() / readings)}


def train_student(
    labels: str,
    given: Lessons,
    steps: int = _STEPS,
    rng: int = 0,
    look: Any = None,
) -> Any:
    """A student after some steps, of at most 8 stories each, on one of the `LABELS`.

    `given` is the stories, for soft labels with their probabilities; `look` is called with the step
    and the model at some steps.
    """
    model, order = new_student(rng), np.random.default_rng(rng)
    optimizer = AdamW(model.parameters(), betas=(0.9, 0.99), weight_decay=0.01, decay=only_matrices)
    schedule = CosineSchedule(_RATE, max(1, steps // 10), steps)
    overlap_from = {"overlap": steps // 2, "overlap alone": 0}.get(labels, steps)
    left: list[int] = []
    for step in range(steps):
        if len(left) < min(_BATCH, len(given.inputs)):
            left = order.permutation(len(given.inputs)).tolist()
        rows, left = left[:_BATCH], left[_BATCH:]
        counts = given.counts[rows]
        long = int(counts.any(axis=0).sum())
        logits = model(given.inputs[rows, :long])
        if labels == "hard":
            loss = functional.cross_entropy(logits, given.targets[rows, :long], ignore_index=-1)
        else:
            loss_of = soft_cross_entropy if step < overlap_from else total_variation_loss
            loss = loss_of(logits, given.probs[rows, :long], counts[:, :long])
        optimizer.zero_grad()
        loss.backward()
        clip_grad_norm(optimizer.params, 1.0)
        optimizer.lr = schedule(step)
        optimizer.step()
        if look is not None and step + 1 in _LOOKS:
            look(step + 1, model)
    return model


def distillation_results() -> dict[str, list[dict[str, Any]]]:
    """The results of the runs of the recipe.

    Returns:
        Under `"students"` a dictionary for each run, with `labels`, `stories`, `seed`; the `excess`
        at its `excess_step`, and as `last` at the end; what `as_draft` returns at its `draft_step`;
        with the `seconds` of the processor, the `machine` and the `date`. Each of the two steps is
        that at which the student was best on some stories; all is measured on others. Under
        `"others"` the excess of the story GPT.

    Example:
        >>> sorted(distillation_results())
        ['others', 'students']
    """
    return read_results(_FILE)


# Helpers -------------------------------------------------------------------------------------


@cache
def _lessons(seed: int) -> tuple[Lessons, Lessons]:
    """The stories of a seed with true labels and with those of the story GPT."""
    true = lessons(max(_SIZES), 5000 + seed)
    return true, _taught(load_story_gpt(), true)


def _taught(teacher: Any, given: Lessons) -> Lessons:
    """The same stories with the forecasts of a teacher."""
    probs = forecasts(teacher, given.inputs) * given.counts[..., None]
    return given._replace(probs=probs.astype(np.float16))


@cache
def _measured_on() -> tuple[Lessons, Lessons, tuple[Lessons, Lessons]]:
    """Stories to choose a step by, to measure on, and both of the story GPT's own."""
    own = own_stories(_TEST, 4003), own_stories(_TEST, 4004)
    return lessons(_TEST, 4001), lessons(_TEST, 4002), own


def _first(given: Lessons, n: int) -> Lessons:
    return Lessons(*(array[:n] for array in given))


def _at_its_best(
    labels: str, given: Lessons, seed: int
) -> tuple[Any, dict[str, dict[str, Any]], float]:
    """A trained model, its weights at its best steps, and its last excess on what is measured.

    One step is that of the smallest excess, the other that of the best draft, on other stories.
    """
    chosen, test, own = _measured_on()
    found: dict[str, tuple[float, dict[str, Any]]] = {}

    def look(step: int, model: Any) -> None:
        lost = 1 - as_draft(model, own[0])["accepted"]
        for name, value in (("excess", excess(model, chosen)), ("draft", lost)):
            if name not in found or value < found[name][0]:
                found[name] = value, model.state_dict() | {"step": step}

    model = train_student(labels, given, rng=seed, look=look)
    return model, {name: weights for name, (_, weights) in found.items()}, excess(model, test)


def _run(labels: str, stories: int, seed: int) -> dict[str, Any]:
    """Train a student, and measure it on other stories than those that chose the step."""
    _, test, own = _measured_on()
    given = _first(_lessons(seed)[labels in ("teacher", "overlap", "overlap alone")], stories)
    model, best, last = _at_its_best(labels, given, seed)
    measured: dict[str, float] = {"last": last}
    for name, weights in best.items():
        measured[f"{name}_step"] = weights.pop("step")
        model.load_state_dict(weights)
        measured |= {"excess": excess(model, test)} if name == "excess" else as_draft(model, own[1])
    return {name: round(value, 4) for name, value in measured.items()}


def _make(path: Path) -> None:
    """All runs that are not in a file yet."""
    empty: dict[str, Any] = {"students": [], "others": []}
    groups = empty | (read_results(path) if path.exists() else {})
    if not groups["others"]:
        value = excess(load_story_gpt(), _measured_on()[1])
        groups["others"] = [{"model": "story GPT", "excess": round(value, 4)}]
    for wanted in _wanted():
        if any(wanted.items() <= run.items() for run in groups["students"]):
            continue
        began = time.process_time()
        run = {**wanted, **_run(**wanted)}
        run["seconds"] = round(time.process_time() - began, 1)
        run["machine"] = f"{platform.machine()}, NumPy {np.__version__}"
        run["date"] = time.strftime("%Y-%m-%d")
        groups["students"].append(run)
        write_results(path, groups)
        sys.stdout.write(f"{json.dumps(run)}\n")
        sys.stdout.flush()


def _wanted() -> Iterator[dict[str, Any]]:
    """The runs of the recipe."""
    for seed in _SEEDS:
        for stories in _SIZES:
            for labels in LABELS:
                if stories in _ONLY.get(labels, _SIZES):
                    yield {"labels": labels, "stories": stories, "seed": seed}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    about = "Train small models on several kinds of labels (a quarter of an hour)."
    stopped = "stopped; what is done is kept, and the same command goes on from there"
    return run_recipe("distillation", about, _make, _FILE, arguments, stopped)


if __name__ == "__main__":
    sys.exit(main())

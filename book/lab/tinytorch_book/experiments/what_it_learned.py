"""What the story GPT knows at each token, beside what can be known there.

`study_stories` are stories that no model has read, cut into tokens, with the words that are about
to come. `held` is one measurement: how well does a linear probe read the exact posterior over
something hidden off the stream, where a word needs it and elsewhere? `readable_controls` is the
same for meaningless targets, for comparison.

`learned_when` gives the results along whole training runs. To make them again:

    python -m tinytorch_book.experiments.what_it_learned

writes it to `what_it_learned.json`; with `--in-package` it replaces that of the package.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tinytorch.inside.probes import LinearProbe, calibration_error, r_squared
from tinytorch.inside.stream import residual_stream
from tinytorch_book.experiments.stored_results import read_results, run_recipe, write_results
from tinytorch_book.experiments.story_gpt import STEPS, story_tokenizer, story_trainer
from tinytorch_book.stories import StoryGrammar, hidden_values, next_token_table, token_beliefs
from tinytorch_book.stories.rules import WORD

__all__ = [
    "NEEDED",
    "StudyStories",
    "asked",
    "held",
    "learned_when",
    "readable",
    "readable_controls",
    "story_beliefs",
    "story_truth",
    "study_stories",
    "study_stream",
]

#: What is hidden, and the word that depends on it: of which kind, and whether it is one that the
#: story has had before. Nothing depends on the ending once it has begun to be told.
NEEDED = {
    "child": ("pronouns", False),
    "hero": ("names", True),
    "animal": ("animals", False),
    "thing": ("things", True),
}
_FILE = Path(__file__).with_name("data") / "what_it_learned.json"
_RIDGE = 0.03
_DRAWS = 20  # of the controls' targets
_MEASURED = 0, 50, 100, 150, 200, 300, 500, 750, 1000, 1500, 2000, 3000, STEPS


class StudyStories(NamedTuple):
    """Stories as a model reads them, one in a row.

    Attributes:
        ids: `(n, seq)`; a row begins with the newline before its story, and is filled with more.
        lengths: how many tokens of each row are read, `(n,)`: all but the newline at the end.
        kinds: `(n, seq)`: of which kind the word is that begins with the *next* token, `"animals"`
            for instance; empty if none begins or it is of no kind. Those of `StoryGrammar.kinds`,
            and `"pronouns"`.
        again: `(n, seq)`: whether the story has had that word before.
        within: `(n, seq)`: of which kind the word is that each token itself is a part of.
    """

    ids: np.ndarray
    lengths: np.ndarray
    kinds: np.ndarray
    again: np.ndarray
    within: np.ndarray

    def before(self, kind: str, again: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Where the first word of a kind is about to begin; `again`, one that the story had before.

        Returns:
            The rows that have one, and the positions of the last token before it.
        """
        found = (self.kinds == kind) & (self.again == again)
        rows = np.flatnonzero(found.any(axis=1))
        return rows, found[rows].argmax(axis=1)


def study_stories(num_stories: int = 300, seed: int = 5) -> StudyStories:
    r"""Stories that no model has read, ready to be studied.

    Args:
        num_stories: how many.
        seed: which; those to train on have seed 0.

    Example:
        >>> stories = study_stories(2)
        >>> rows, at = stories.before("animals")
        >>> story_tokenizer().decode(stories.ids[0, at[0] - 5 : at[0] + 2])
        ' A sleepy rabbit'
    """
    stories = _grammar().generate(num_stories, seed).splitlines(keepends=True)
    texts = [story_tokenizer().encode("\n" + story) for story in stories]
    (newline,) = story_tokenizer().encode("\n")
    ids = np.full((num_stories, max(map(len, texts)) - 1), newline)
    kinds, within = (np.full(ids.shape, "", dtype="U9") for _ in range(2))
    again = np.zeros(ids.shape, dtype=bool)
    for row, (text, story) in enumerate(zip(texts, stories, strict=True)):
        ids[row, : len(text) - 1] = text[:-1]
        seen: set[str] = set()
        for word, first, end in _words(story):
            kinds[row, first - 1] = within[row, first:end] = _kind_of().get(word, "")
            again[row, first - 1] = word in seen
            seen.add(word)
    return StudyStories(ids, np.array([len(text) - 1 for text in texts]), kinds, again, within)


def story_beliefs(stories: StudyStories, name: str) -> np.ndarray:
    """The exact posterior over what is hidden under a name, `(n, seq, values)`.

    Row `i` is after token `i`; NaN where nothing is read.
    """
    values = hidden_values(_grammar(), name)
    return _along(stories, len(values), lambda ids: token_beliefs(_grammar(), _cut(), ids, name))


def story_truth(stories: StudyStories) -> np.ndarray:
    """The exact distribution of the next token, `(n, seq, vocab)`; NaN where nothing is read."""
    size = story_tokenizer().vocab_size
    return _along(stories, size, lambda ids: next_token_table(_grammar(), _cut(), ids, size))


def readable(x: np.ndarray, y: np.ndarray, ridge: float = _RIDGE) -> tuple[float, float]:
    """How well a linear probe reads `y` off `x`, on unseen rows.

    It is fitted to the first two thirds and tested on the rest: its R² and its calibration error.

    Args:
        x: activations `(n, d)`.
        y: posteriors `(n, k)`.
        ridge: as for `LinearProbe`.
    """
    cut = 2 * len(x) // 3
    said = LinearProbe(x[:cut], y[:cut], ridge)(x[cut:])
    return r_squared(y[cut:], said), calibration_error(y[cut:], said)


def readable_controls(
    x: np.ndarray, y: np.ndarray, draws: int = _DRAWS, rng: int = 0, ridge: float = _RIDGE
) -> dict[str, np.ndarray]:
    """How well the same probe reads meaningless targets, for comparison with `readable`.

    The control task of Hewitt and Liang (2019, section 2): every *type* of input gets a target at
    random, and the probe is fitted to that. Rows with the same posterior are of one type here. A
    posterior that is read no better than such targets is read because its types can be told apart.
    The difference is the probe's *selectivity*.

    Args:
        x: activations `(n, d)`.
        y: posteriors `(n, k)`.
        draws: how often the targets are drawn.
        rng: the seed of the draws.
        ridge: as for `LinearProbe`.

    Returns:
        The R² of each draw, as `readable` computes it, `(draws,)`: under `"another"`, where every
        type has the posterior of another type; under `"random"`, where it has any distribution,
        all of them equally likely.
    """
    posteriors, types = np.unique(y.round(9), axis=0, return_inverse=True)  # (types, k), (n,)
    onehot, cut = np.eye(len(posteriors))[types.ravel()], 2 * len(x) // 3
    # The weights of a probe are linear in its target, so one that reads the types reads them all.
    said = LinearProbe(x[:cut], onehot[:cut], ridge)(x[cut:])  # (n - cut, types)
    found: dict[str, list[float]] = {"another": [], "random": []}
    generator = np.random.default_rng(rng)
    for _ in range(draws):
        cycle, another = generator.permutation(len(posteriors)), np.empty_like(posteriors)
        another[cycle] = posteriors[np.roll(cycle, 1)]  # no type keeps its own
        random = generator.dirichlet(np.ones(y.shape[1]), size=len(posteriors))
        for name, target in (("another", another), ("random", random)):
            found[name].append(r_squared(onehot[cut:] @ target, said @ target))
    return {name: np.array(r2) for name, r2 in found.items()}


def study_stream(model: Any, stories: StudyStories, batch_size: int = 100) -> np.ndarray:
    """The stream of a model that reads all the stories, a batch of them at a time.

    Args:
        model: a `GPT`.
        stories: what it reads.
        batch_size: how many rows at a time.

    Returns:
        `(layers + 1, n, seq, embed_dim)`.

    Example:
        >>> from tinytorch_book.experiments.story_gpt import load_story_gpt
        >>> study_stream(load_story_gpt(), study_stories(3), batch_size=2).shape[:2]
        (3, 3)
    """
    starts = range(0, len(stories.ids), batch_size)
    streams = [residual_stream(model, stories.ids[i : i + batch_size]) for i in starts]
    return np.concatenate(streams, axis=1)


def asked(stories: StudyStories, hidden: str, where: str) -> tuple[np.ndarray, np.ndarray]:
    """The rows and the positions at which a probe reads what is hidden.

    `where` is `"needed"`, the last token before the word that depends on it, `"before"`, one token
    earlier, or `"end"`, the last token of the story.
    """
    if where == "end":
        return np.arange(len(stories.ids)), stories.lengths - 1
    rows, at = stories.before(*NEEDED[hidden])
    return rows, at - (where == "before")


def held(
    stream: np.ndarray, stories: StudyStories, posterior: np.ndarray, hidden: str, where: str
) -> list[tuple[float, float]]:
    """The R² and the calibration error of a probe at each stage; `where` is as in `asked`."""
    rows, at = asked(stories, hidden, where)
    return [readable(stage[rows, at], posterior[rows, at]) for stage in stream]


def learned_when() -> list[dict[str, Any]]:
    """What the probes read in the course of whole training runs.

    Returns:
        One dictionary for each run, step, hidden thing and position where it is read:
        `seed`, `step`, `hidden`, `where`, and the `r2` and the calibration error, `off`, of a
        probe at each stage of the stream, on 1,500 stories. `another` and `random` are the lowest
        and the highest R² of `readable_controls`, at each stage.

    Example:
        >>> sorted(learned_when()[0])
        ['another', 'hidden', 'off', 'r2', 'random', 'seed', 'step', 'where']
    """
    return read_results(_FILE)


# Helpers -------------------------------------------------------------------------------------

_grammar = cache(StoryGrammar)
_cut = story_tokenizer
_PRONOUNS = "he", "He", "him", "his"


@cache
def _kind_of() -> dict[str, str]:
    """The kind of every word that has one."""
    kinds = {word: kind for kind, words in _grammar().kinds.items() for word in words}
    pronouns = (word for name in _PRONOUNS for word in hidden_values(_grammar(), name))
    return {**kinds, **dict.fromkeys((word for word in pronouns if word), "pronouns")}


def _words(story: str) -> list[tuple[str, int, int]]:
    """Every word of a story, and which tokens it is made of, after one newline."""
    pieces = story_tokenizer().pieces("\n" + story)
    starts = np.cumsum([0, *map(len, pieces)]) - 1  # of the tokens, in the story
    found = []
    for match in WORD.finditer(story):
        first = np.searchsorted(starts, match.start(), side="right") - 1
        end = np.searchsorted(starts, match.end() - 1, side="right")
        found.append((match.group(), int(first), int(end)))
    return found


def _along(stories: StudyStories, size: int, known: Any) -> np.ndarray:
    """The values of `known` after every token of every row."""
    result = np.full((*stories.ids.shape, size), np.nan)
    for row, length in enumerate(stories.lengths):
        result[row, :length] = known(stories.ids[row, 1:length])  # without the newline
    return result


def _control_ranges(
    stream: np.ndarray, stories: StudyStories, posterior: np.ndarray, hidden: str, where: str
) -> dict[str, list[list[float]]]:
    """Of each control the lowest and the highest R², `(stages, 2)`."""
    rows, at = asked(stories, hidden, where)
    stages = [readable_controls(stage[rows, at], posterior[rows, at]) for stage in stream]
    return {
        name: [[round(float(end(r2[name])), 3) for end in (np.min, np.max)] for r2 in stages]
        for name in stages[0]
    }


def _make(path: Path, seeds: tuple[int, ...] = (0, 1)) -> None:
    """Train the story GPT from each seed, and probe it on the way."""
    stories = study_stories(1500)
    questions = [(hidden, where) for hidden in NEEDED for where in ("needed", "before", "end")]
    questions.append(("ending", "end"))
    posteriors = {hidden: story_beliefs(stories, hidden) for hidden, _ in questions}
    runs = []
    for seed in seeds:
        trainer = story_trainer(rng=seed, progress=False)
        for step in _MEASURED:
            if step:
                trainer.run(step - trainer.step_number)
            stream = study_stream(trainer.model, stories)
            for hidden, where in questions:
                stages = held(stream, stories, posteriors[hidden], hidden, where)
                r2, off = (
                    [round(value, 3) for value in each] for each in zip(*stages, strict=True)
                )
                run = {"seed": seed, "step": step, "hidden": hidden, "where": where}
                spread = _control_ranges(stream, stories, posteriors[hidden], hidden, where)
                runs.append({**run, "r2": r2, "off": off, **spread})
    write_results(path, runs)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    about = "Train the story GPT twice and probe it on the way (a quarter of an hour)."
    return run_recipe("what_it_learned", about, _make, _FILE, arguments)


if __name__ == "__main__":
    sys.exit(main())

"""The story GPT tuned to a reward, beside the best that the reward could make of the stories.

The reward gives points for the words of a kind story. The study asks of the story GPT, untuned and
tuned in two ways, what its stories earn and how far it has moved:

* by a policy gradient: it writes, the points are counted, and its own stories are the lesson;
* by pairs (DPO): stories that the untuned model has written, the preferred one of each pair drawn
  as Bradley and Terry say.

Of a tuned model the divergence is from the *untuned model*. Along its own stories it is the sum,
token by token, of the exact divergence of the two forecasts: a mean over stories, with an error.
(Its divergence from the grammar is infinite, like that of any model that sometimes writes what is
no story.) The best is that of the *grammar*, exact; `untuned` has what the model's own would need.

    python -m tinytorch_book.experiments.preferences

writes the results to `preferences.json`; `--in-package` adds the missing ones to those of the
package. Every run is saved as soon as it is done, so this can be stopped and started again.
"""

import json
import platform
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tinytorch.core.grad_mode import no_grad
from tinytorch.core.gradient_clipping import clip_grad_norm
from tinytorch.core.optimizers import AdamW
from tinytorch.core.schedules import CosineSchedule
from tinytorch.core.softmax import log_softmax_array
from tinytorch.training.preferences import (
    dpo_loss,
    group_advantages,
    policy_gradient_loss,
    sequence_log_probs,
)
from tinytorch_book.experiments.stored_results import read_results, run_recipe, write_results
from tinytorch_book.experiments.story_gpt import SEQ_LEN, load_story_gpt, story_tokenizer
from tinytorch_book.stories import StoryGrammar
from tinytorch_book.stories.tilted import every_story, reward_of

__all__ = ["KINDNESS", "WrittenStories", "preference_results", "tiny_world", "tune_by_pairs",
           "tune_by_reward", "tuned", "write_stories"]  # fmt: skip

#: The points of a word, each time a story has it.
KINDNESS = {
    **dict.fromkeys(("friends", "laughed", "smiled"), 2.0),
    **dict.fromkeys(("happy", "glad", "proud", "merry"), 1.0),
    **dict.fromkeys(("sad", "lonely", "tired", "cold", "bed"), -1.0),
}
# A grammar of 240 stories, small enough to list, and a reader's points for what a story says.
_TINY_RULES = {
    "story": "{hero} met a {animal}. {middle} {ending}\n",
    "middle": {"It was {sad}.": 4, "They shared some {food}.": 3, "They sang.": 2},
    "ending": {
        "{hero} went home.": 6, "They became friends.": 2,
        "{hero} was happy.": 3, "{hero} was happy, happy, happy.": 0.1,
    },
    "sad": {"sad": 2, "lonely": 1},
    "food": {"bread": 2, "honey": 1},
}  # fmt: skip
_TINY_CAST = {
    "hero": {"Mia": 3, "Tom": 2, "Ida": 1},
    "animal": {"fox": 4, "owl": 3, "bear": 2, "hen": 1},
}
_TINY_TASTE = {
    "sad": -1,
    "lonely": -1,
    "shared": 1,
    "friends": 1,
    "was happy": 1,
    "happy, happy": -3,
}
_FILE = Path(__file__).with_name("data") / "preferences.json"
_BETAS, _SEEDS = (2.0, 1.0, 0.5, 0.25), (0, 1, 2)
_STEPS, _BATCH, _PAIRS, _EPOCHS = 100, 64, 1000, 3
_RATES, _FAST = {"reward": 1e-3, "pairs": 3e-4}, 1e-3
_TEST, _CHUNK = 1000, 100  # stories that are measured, and how many of them at a time


def tiny_world() -> tuple[list[str], np.ndarray, np.ndarray]:
    """Every story of the tiny grammar, its probability and its reward, `(240,)` each."""
    found = every_story(StoryGrammar(_TINY_RULES, _TINY_CAST))
    rewards = [sum(_TINY_TASTE[says] for says in _TINY_TASTE if says in story) for story in found]
    return [*found], np.array([*found.values()]), np.array(rewards, float)


class WrittenStories(NamedTuple):
    """Stories that a model has written, ready to be read.

    Attributes:
        inputs: ids `(n, seq)`, beginning with the newline before a story.
        targets: the ids that follow, `(n, seq)`; -1 after the newline that ends the story.
        texts: the stories.
        rewards: their points, `(n,)`.
    """

    inputs: np.ndarray
    targets: np.ndarray
    texts: list[str]
    rewards: np.ndarray


def write_stories(model: Any, num_stories: int, rng: Any) -> WrittenStories:
    """Let a model write stories and count their points."""
    tokenizer = story_tokenizer()
    (newline,) = tokenizer.encode("\n")
    start = np.full((num_stories, 1), newline)
    ids = model.generate(start, SEQ_LEN, stop_tokens=[newline], rng=rng).data
    inputs, targets = ids[:, :-1], ids[:, 1:]
    ended = (targets == newline).cumsum(axis=1) - (targets == newline) > 0
    targets = np.where(ended, -1, targets)
    texts = [tokenizer.decode(row[row >= 0]) for row in targets]
    return WrittenStories(
        inputs, targets, texts, np.array([reward_of(text, KINDNESS) for text in texts])
    )


def tune_by_reward(
    beta: float, seed: int = 0, lr: float = _RATES["reward"], steps: int = _STEPS
) -> Any:
    """The story GPT after a policy gradient on its own stories (REINFORCE).

    The reward of a story is its points minus `beta` times log(tuned / untuned); its baseline is the
    mean of the other stories of the batch.
    """
    model, reference = load_story_gpt(), load_story_gpt()
    tuner = _Tuner(model, steps, lr)
    for step in range(steps):
        written = write_stories(model, _BATCH, np.random.default_rng((seed, step)))
        before = _log_probs(reference, written)
        log_probs = sequence_log_probs(model, written.inputs, written.targets)
        rewards = written.rewards - beta * (log_probs.data - before)
        tuner.step(policy_gradient_loss(log_probs, group_advantages(rewards)))
    return model


def tune_by_pairs(
    beta: float,
    seed: int = 0,
    lr: float = _RATES["pairs"],
    num_pairs: int = _PAIRS,
    epochs: int = _EPOCHS,
) -> Any:
    """The story GPT after direct preference optimisation on pairs of its own, untuned stories.

    `beta` is what a nat of divergence costs, `epochs` how often each pair is read.
    """
    model, reference, rng = load_story_gpt(), load_story_gpt(), np.random.default_rng(seed)
    both = write_stories(reference, 2 * num_pairs, rng)
    first, second = np.arange(2 * num_pairs).reshape(2, num_pairs)
    odds = np.exp(both.rewards[second] - both.rewards[first])
    wins = rng.random(num_pairs) < 1 / (1 + odds)  # Bradley and Terry
    chosen, rejected = np.where(wins, first, second), np.where(wins, second, first)
    before, half = _log_probs(reference, both), _BATCH // 2
    tuner = _Tuner(model, epochs * (num_pairs // half), lr)
    for _ in range(epochs):
        order = rng.permutation(num_pairs)
        for start in range(0, num_pairs - half + 1, half):
            pairs = order[start : start + half]
            rows = np.concatenate([chosen[pairs], rejected[pairs]])
            now = sequence_log_probs(model, both.inputs[rows], both.targets[rows])
            old, older = before[rows].reshape(2, half)
            tuner.step(dpo_loss(now[:half], now[half:], old, older, beta))
    return model


def tuned(model: Any, num_stories: int = _TEST, seed: int = 1000) -> dict[str, float]:
    """What a tuned model's stories earn, and how far it is from the untuned one.

    Returns:
        `reward` and `kl`, means over stories, with their standard errors `reward_error` and
        `kl_error`; and `stories`, the share of texts that the grammar could have written.
    """
    reference, grammar = load_story_gpt(), StoryGrammar()
    rewards: list[float] = []
    kls: list[float] = []
    whole: list[bool] = []
    for chunk in range(num_stories // _CHUNK):
        written = write_stories(model, _CHUNK, np.random.default_rng((seed, chunk)))
        with no_grad():
            ours, theirs = (
                log_softmax_array(m(written.inputs).data.astype(float), -1)
                for m in (model, reference)
            )
        at_token = (np.exp(ours) * (ours - theirs)).sum(axis=-1)
        kls.extend((at_token * (written.targets >= 0)).sum(axis=-1))
        rewards.extend(written.rewards)
        whole.extend(map(grammar.is_story, written.texts))
    found = {"stories": float(np.mean(whole))}
    for name, values in (("reward", rewards), ("kl", kls)):
        found[name] = round(float(np.mean(values)), 4)
        found[f"{name}_error"] = round(float(np.std(values) / np.sqrt(len(values))), 4)
    return found


def preference_results() -> dict[str, list[dict[str, Any]]]:
    """The results of the runs of the recipe.

    Returns:
        `"untuned"`: how many of the untuned model's stories have each `reward`. `"reward"` and
        `"pairs"`: runs of the two ways to tune, dictionaries with `way`, `beta`, `seed`, the rate
        `lr`, and what `tuned` returns; with the `seconds` of the processor, the `machine` and the
        `date`. `"fast pairs"`: the pairs of one seed at the rate of the policy gradient.

    Example:
        >>> sorted(preference_results())
        ['fast pairs', 'pairs', 'reward', 'untuned']
    """
    return read_results(_FILE)


# Helpers -------------------------------------------------------------------------------------


class _Tuner:
    """An optimiser with its schedule: a step of the model down a loss."""

    def __init__(self, model: Any, steps: int, lr: float) -> None:
        self.optimizer = AdamW(model.parameters(), betas=(0.9, 0.99), weight_decay=0.0)
        self.schedule = CosineSchedule(lr, max(1, steps // 10), steps)
        self.number = 0

    def step(self, loss: Any) -> None:
        self.optimizer.zero_grad()
        loss.backward()
        clip_grad_norm(self.optimizer.params, 1.0)
        self.optimizer.lr = self.schedule(self.number)
        self.optimizer.step()
        self.number += 1


def _log_probs(model: Any, written: WrittenStories) -> np.ndarray:
    """The log-probability of each story, `(n,)`, without a gradient."""
    with no_grad():
        parts = [
            sequence_log_probs(model, written.inputs[at : at + _CHUNK],
                               written.targets[at : at + _CHUNK]).data
            for at in range(0, len(written.inputs), _CHUNK)
        ]  # fmt: skip
    return np.concatenate(parts)


def _untuned(num_stories: int = 10_000) -> list[dict[str, Any]]:
    """How many of the untuned model's stories have each reward."""
    model = load_story_gpt()
    counts: Counter[float] = Counter()
    for chunk in range(num_stories // _CHUNK):
        written = write_stories(model, _CHUNK, np.random.default_rng((999, chunk)))
        counts.update(written.rewards.tolist())
    return [{"reward": reward, "count": counts[reward]} for reward in sorted(counts)]


def _wanted() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The runs of the recipe: their group, the way to tune, and what it is given."""
    for seed in _SEEDS:
        for beta in _BETAS:
            for way, lr in _RATES.items():
                yield way, way, {"beta": beta, "seed": seed, "lr": lr}
    for beta in _BETAS:
        yield "fast pairs", "pairs", {"beta": beta, "seed": 0, "lr": _FAST}


def _make(path: Path) -> None:
    """All runs that are not in a file yet."""
    empty: dict[str, Any] = {group: [] for group in ("untuned", *_RATES, "fast pairs")}
    groups = empty | (read_results(path) if path.exists() else {})
    groups["untuned"] = groups["untuned"] or _untuned()
    write_results(path, groups)
    for group, way, given in _wanted():
        wanted = {"way": way, **given}
        if any(wanted.items() <= run.items() for run in groups[group]):
            continue
        began = time.process_time()
        model = tune_by_reward(**given) if way == "reward" else tune_by_pairs(**given)
        run = {**wanted, **tuned(model, seed=1000 + given["seed"])}
        run["seconds"] = round(time.process_time() - began, 1)
        run["machine"] = f"{platform.machine()}, NumPy {np.__version__}"
        run["date"] = time.strftime("%Y-%m-%d")
        groups[group].append(run)
        write_results(path, groups)
        sys.stdout.write(f"{json.dumps(run)}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    about = "Tune the story GPT to a reward in two ways (an hour or so)."
    stopped = "stopped; what is done is kept, and the same command goes on from there"
    return run_recipe("preferences", about, _make, _FILE, arguments, stopped)


if __name__ == "__main__":
    sys.exit(main())

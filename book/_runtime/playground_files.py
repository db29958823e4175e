"""Write what the playground reads: `make playground`, whose results are committed.

The scripts of `book/_static/playground` are the package's model, tokenizer and grammar once more,
for pages in which no Python runs. What they know comes from the package, as files: the weights of
the story GPT on its way, tuned to answer and tuned to happy endings, linear probes of the finished
one, its tokenizer, the grammar of the stories, and how happy their endings could be at best.
"""

import json
import math
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from tinytorch.inside.probes import LinearProbe
from tinytorch.models.transformer import GPT
from tinytorch.training import weight_files
from tinytorch.training.preferences import frontier
from tinytorch_book.experiments import story_gpt
from tinytorch_book.experiments.answering import load_answering_gpt
from tinytorch_book.experiments.preferences import KINDNESS, tune_by_reward, tuned
from tinytorch_book.experiments.story_questions import question_tokenizer
from tinytorch_book.experiments.what_it_learned import story_beliefs, study_stories, study_stream
from tinytorch_book.stories import StoryGrammar
from tinytorch_book.stories.story_rules import STORY_CAST, STORY_RULES
from tinytorch_book.stories.tilted import TiltedStories, reward_distribution

FOLDER = Path(__file__).resolve().parents[1] / "_static" / "playground"
VERSION = "1"  # of the weights' files; model.js refuses another
ON_THE_WAY = 100, 500, 2000  # steps after which the weights are kept
PROBED = 1500  # stories to which the probes are fitted
RIDGE = 1e-3
CERTAIN = 1e-9  # a probability that is no further from 1, or from another, is the same
BETAS = 2.0, 1.0, 0.5, 0.25  # what a nat of divergence costs a model that wants happy endings
BEST = 12  # stories of each optimum
WARM_UP = 51  # steps whose learning rates are the same in a run of any length


def main(what: list[str]) -> None:
    """Write the files: those named, or all."""
    makers = {
        "weights": write_weights,
        "answering": write_answering,
        "wishes": write_wishes,
        "probes": write_probes,
        "tokenizer": write_tokenizer,
        "grammar": write_grammar,
    }
    for name in what or makers:
        makers[name]()
    for path in sorted(
        path for path in FOLDER.rglob("*") if path.suffix in (".json", ".safetensors")
    ):
        print(f"{path.relative_to(FOLDER)}: {path.stat().st_size:,} bytes")


def write_weights() -> None:
    """The story GPT as it begins, at some steps of its recipe, and as the package has it."""
    save(0, story_gpt.new_story_gpt())
    trainer = story_gpt.train_story_gpt(WARM_UP)
    trainer.schedule.total_steps = story_gpt.STEPS  # the rest of the whole run
    for step in ON_THE_WAY:
        trainer.run(step - trainer.step_number)
        save(f"step-{step}", trainer.model, step=step)
    save(f"step-{story_gpt.STEPS}", story_gpt.load_story_gpt(), step=story_gpt.STEPS)


def write_answering() -> None:
    """The package's model that answers, and the ids of the tokens that say who speaks."""
    tokens = json.dumps(question_tokenizer().special_tokens)
    save("answering", load_answering_gpt(), special_tokens=tokens)


def write_wishes() -> None:
    """The story GPT tuned to happy endings, and what its stories earn, beside the best there is."""
    model, grammar = story_gpt.load_story_gpt(), StoryGrammar()
    curve = frontier(*reward_distribution(grammar, KINDNESS)[::-1], np.geomspace(0.1, 50, 60))
    wishes = [wish(grammar, math.inf, model)]
    for beta in BETAS:
        path = save(f"wish-{beta:g}", tune_by_reward(beta, seed=0))
        weight_files.load_weights(path, model)  # what the page reads is what is measured
        wishes.append(wish(grammar, beta, model))
    about = {"points": KINDNESS, "curve": curve[::-1].round(4).tolist(), "wishes": wishes}
    text = json.dumps(about, indent=1, ensure_ascii=False)
    (FOLDER / "wishes.json").write_text(text + "\n", encoding="utf-8")


def wish(grammar: StoryGrammar, beta: float, model: GPT) -> dict[str, Any]:
    """What the model reaches at a beta, and the optimum, with some of its stories."""
    best = TiltedStories(grammar, KINDNESS, beta)
    return {
        "beta": None if beta == math.inf else beta,
        "tuned": tuned(model),
        "best": {"reward": round(best.reward, 4), "kl": round(best.kl, 4)},
        "stories": [story.strip() for story in islice(best.stories(seed=0), BEST)],
    }


def save(name: str, model: GPT, **facts: Any) -> Path:
    """The weights alone, in half precision, with the sizes and facts that they do not show."""
    weights = {name: array.astype(np.float16) for name, array in model.state_dict().items()}
    facts = {"num_heads": model.num_heads, "max_seq_len": model.max_seq_len, **facts}
    metadata = {"version": VERSION, **{name: str(fact) for name, fact in facts.items()}}
    path = FOLDER / "weights" / f"{name}.safetensors"
    weight_files.save_safetensors(path, weights, metadata)
    return path


def write_probes() -> None:
    """Linear probes of the last stage of the package's story GPT, for what its stories hide."""
    stories = study_stories(PROBED)
    stream = study_stream(story_gpt.load_story_gpt(), stories)[-1]
    tensors = {}
    for name in ("animal", "child"):
        beliefs = story_beliefs(stories, name)
        asked = is_asked(name, beliefs)
        probe = LinearProbe(stream[asked], beliefs[asked], ridge=RIDGE)
        tensors[f"{name}.weight"] = probe.weight.astype(np.float32)  # (d, values)
        tensors[f"{name}.bias"] = probe.bias.astype(np.float32)
    weight_files.save_safetensors(FOLDER / "probes.safetensors", tensors)


def is_asked(name: str, beliefs: np.ndarray) -> np.ndarray:
    """Where a probe is fitted, `(n, seq)`: of the animal from the place on, until it is known."""
    read = ~np.isnan(beliefs[..., 0])
    if name == "child":
        return read
    changed = np.abs(beliefs - beliefs[0, 0]).max(axis=-1) > CERTAIN
    return read & changed & (beliefs.max(axis=-1) < 1 - CERTAIN)


def write_tokenizer() -> None:
    """The tokenizer of the stories, in the package's own format."""
    story_gpt.story_tokenizer().save(FOLDER / "tokenizer.json")


def write_grammar() -> None:
    """The tables of the grammar, from which the oracle's probabilities come."""
    tables = {"rules": STORY_RULES, "cast": STORY_CAST}
    text = json.dumps(tables, indent=1, ensure_ascii=False)
    (FOLDER / "grammar.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    FOLDER.joinpath("weights").mkdir(parents=True, exist_ok=True)
    main(sys.argv[1:])

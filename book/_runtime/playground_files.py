"""Write what the playground reads: `make playground`, whose results are committed.

The scripts of `book/_static/playground` are the package's model, tokenizer and grammar once more,
for pages in which no Python runs. What they know comes from the package, as files: the weights of
the story GPT on its way, linear probes of the finished one, its tokenizer and the grammar of the
stories.
"""

import json
import sys
from pathlib import Path

import numpy as np

from tinytorch.experiments import story_gpt
from tinytorch.experiments.what_it_learned import story_beliefs, study_stories, study_stream
from tinytorch.inside.probes import LinearProbe
from tinytorch.models.transformer import GPT
from tinytorch.stories.story_rules import STORY_CAST, STORY_RULES
from tinytorch.training import checkpoint

FOLDER = Path(__file__).resolve().parents[1] / "_static" / "playground"
VERSION = "1"  # of the weights' files; model.js refuses another
ON_THE_WAY = 100, 500, 2000  # steps after which the weights are kept
PROBED = 1500  # stories to which the probes are fitted
RIDGE = 1e-3
CERTAIN = 1e-9  # a probability that is no further from 1, or from another, is the same
WARM_UP = 51  # steps whose learning rates are the same in a run of any length


def main(what: list[str]) -> None:
    """Write the files: those named, or all."""
    makers = {
        "weights": write_weights,
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
        save(step, trainer.model)
    save(story_gpt.STEPS, story_gpt.load_story_gpt())


def save(step: int, model: GPT) -> None:
    """The weights alone, in half precision, with the sizes that they do not show."""
    weights = {name: array.astype(np.float16) for name, array in model.state_dict().items()}
    sizes = {"num_heads": model.num_heads, "max_seq_len": model.max_seq_len, "step": step}
    metadata = {"version": VERSION, **{name: str(size) for name, size in sizes.items()}}
    path = FOLDER / "weights" / f"step-{step}.safetensors"
    checkpoint.save_safetensors(path, weights, metadata)


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
    checkpoint.save_safetensors(FOLDER / "probes.safetensors", tensors)


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

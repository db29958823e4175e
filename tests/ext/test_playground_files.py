"""The playground's files are what the package makes: weights, probes, tokenizer, wishes."""

import json
import math
import runpy
from pathlib import Path

import numpy as np
import pytest

from tinytorch.inside.probes import LinearProbe, r_squared
from tinytorch.text.tokenization import BPETokenizer
from tinytorch.training import weight_files
from tinytorch.training.evaluation import evaluate
from tinytorch.training.preferences import frontier
from tinytorch_book.experiments import story_gpt
from tinytorch_book.experiments.answering import load_answering_gpt
from tinytorch_book.experiments.preferences import KINDNESS, tuned
from tinytorch_book.experiments.what_it_learned import (
    asked,
    story_beliefs,
    study_stories,
    study_stream,
)
from tinytorch_book.stories import StoryGrammar
from tinytorch_book.stories.tilted import TiltedStories, reward_distribution

FOLDER = Path(__file__).resolve().parents[2] / "book" / "_static" / "playground"
MAKER = FOLDER.parents[1] / "_runtime" / "playground_files.py"


WISHES = json.loads((FOLDER / "wishes.json").read_text(encoding="utf-8"))


def weights(name):
    return weight_files.load_safetensors(FOLDER / "weights" / f"{name}.safetensors")


def test_the_last_weights_are_those_of_the_package():
    kept, _ = weight_files.load_safetensors(story_gpt._FILE)
    expected = weight_files.without_prefix(kept, "model.")
    tensors, metadata = weights("step-4000")
    assert tensors.keys() == expected.keys()
    assert all(tensors[name].tobytes() == expected[name].tobytes() for name in expected)
    assert metadata == {"version": "1", "num_heads": "4", "max_seq_len": "112", "step": "4000"}


def test_the_first_weights_are_those_of_a_new_model():
    tensors, _ = weights("step-0")
    for name, array in story_gpt.new_story_gpt().state_dict().items():
        assert (tensors[name] == array.astype(np.float16)).all(), name


@pytest.mark.parametrize("step", [100, 500, 2000])
def test_the_loss_of_intermediate_weights_is_that_of_the_run(step):
    model, held_out = story_gpt.new_story_gpt(), story_gpt.story_windows()
    model.load_state_dict(weights(f"step-{step}")[0])
    loss = evaluate(model, held_out.inputs, held_out.targets)
    assert loss == pytest.approx(story_gpt.story_gpt_run()[0]["validation"][step - 1], abs=0.01)


def test_the_weights_that_answer_are_those_of_the_package():
    tensors, metadata = weights("answering")
    for name, array in load_answering_gpt().state_dict().items():
        assert (tensors[name] == array).all(), name
    assert json.loads(metadata["special_tokens"])["<|user|>"] == 512


@pytest.mark.slow
@pytest.mark.parametrize("wish", WISHES["wishes"], ids=lambda wish: str(wish["beta"]))
def test_what_is_said_of_a_wish_is_what_its_weights_do_and_what_the_best_is(wish):
    model = story_gpt.load_story_gpt()
    if wish["beta"]:
        model.load_state_dict(weights(f"wish-{wish['beta']:g}")[0])
    found, said = tuned(model, num_stories=200, seed=5), wish["tuned"]
    for name in ("reward", "kl"):
        assert abs(found[name] - said[name]) <= 4 * found[f"{name}_error"], name
    best = TiltedStories(StoryGrammar(), KINDNESS, wish["beta"] or math.inf)
    assert wish["best"] == pytest.approx({"reward": best.reward, "kl": best.kl}, abs=1e-4)
    written = best.stories(seed=0)
    assert wish["stories"] == [next(written).strip() for _ in wish["stories"]]


def test_the_curve_of_the_wishes_is_the_frontier_of_the_points():
    assert WISHES["points"] == KINDNESS
    rewards, chances = reward_distribution(StoryGrammar(), KINDNESS)
    exact = frontier(chances, rewards, np.geomspace(0.05, 100, 400))[::-1]
    nats, points = np.transpose(WISHES["curve"])
    np.testing.assert_allclose(points, np.interp(nats, *exact.T), atol=0.002)
    assert (np.diff(nats) > 0).all() and len(nats) > 30


@pytest.mark.parametrize("name", ["animal", "child"])
def test_a_probe_reads_what_is_hidden_when_it_is_due_and_hardly_a_token_earlier(name):
    """In stories to which it was not fitted: what the page says of it."""
    kept, _ = weight_files.load_safetensors(FOLDER / "probes.safetensors")
    stories = study_stories(80, seed=6)
    beliefs = story_beliefs(stories, name)
    stream = study_stream(story_gpt.load_story_gpt(), stories)[-1]
    for where, least, most in ("needed", 0.9, 1), ("before", -0.1, 0.3):
        at = asked(stories, name, where)
        read = stream[at] @ kept[f"{name}.weight"] + kept[f"{name}.bias"]
        assert least < r_squared(beliefs[at], read) < most


@pytest.mark.slow
def test_a_probe_of_random_position_vectors_does_nearly_as_well():
    """So the probe reads the place, as the page says."""
    model, rng = story_gpt.load_story_gpt(), np.random.default_rng(0)
    fitted, tried = study_stories(200), study_stories(80, seed=6)
    beliefs, stream = story_beliefs(fitted, "animal"), study_stream(model, fitted)[-1]
    maker = runpy.run_path(str(MAKER))
    at = maker["is_asked"]("animal", beliefs)
    posteriors, places = np.unique(beliefs[at].round(9), axis=0, return_inverse=True)
    due = asked(tried, "animal", "needed")
    place = [
        np.abs(posteriors - row).sum(axis=1).argmin() for row in story_beliefs(tried, "animal")[due]
    ]
    real, *controls = (
        r_squared(target[place], probe(study_stream(model, tried)[-1][due]))
        for target in (posteriors, *rng.dirichlet(np.ones(12), size=(5, len(posteriors))))
        for probe in [LinearProbe(stream[at], target[places.ravel()], maker["RIDGE"])]
    )
    assert len(posteriors) == 8 and real > 0.9
    assert min(controls) > 0.75 and max(controls) > real - 0.1


def test_the_tokenizer_is_that_of_the_stories():
    assert BPETokenizer.load(FOLDER / "tokenizer.json").ranks == story_gpt.story_tokenizer().ranks

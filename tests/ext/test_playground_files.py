"""The playground's files are what the package makes: the weights of five steps, the tokenizer."""

from pathlib import Path

import numpy as np
import pytest

from tinytorch.text.tokenization import BPETokenizer
from tinytorch.training import checkpoint, story_gpt
from tinytorch.training.evaluation import evaluate

FOLDER = Path(__file__).resolve().parents[2] / "book" / "_static" / "playground"
FIRST = ["*.js", "*.css", "*.json", "weights/step-4000.safetensors"]  # fetched near the screen


def weights(step):
    return checkpoint.load_safetensors(FOLDER / "weights" / f"step-{step}.safetensors")


def test_the_last_weights_are_those_of_the_package():
    kept, _ = checkpoint.load_safetensors(story_gpt._FILE)
    expected = checkpoint.without_prefix(kept, "model.")
    tensors, metadata = weights(4000)
    assert tensors.keys() == expected.keys()
    assert all(tensors[name].tobytes() == expected[name].tobytes() for name in expected)
    assert metadata == {"version": "1", "num_heads": "4", "max_seq_len": "112", "step": "4000"}


def test_the_first_weights_are_those_of_a_new_model():
    tensors, _ = weights(0)
    for name, array in story_gpt.new_story_gpt().state_dict().items():
        assert (tensors[name] == array.astype(np.float16)).all(), name


@pytest.mark.parametrize("step", [100, 500, 2000])
def test_the_weights_on_the_way_are_as_good_as_the_run_was_there(step):
    model, held_out = story_gpt.new_story_gpt(), story_gpt.story_windows()
    model.load_state_dict(weights(step)[0])
    loss = evaluate(model, held_out.inputs, held_out.targets)
    assert loss == pytest.approx(story_gpt.story_gpt_run()[0]["validation"][step - 1], abs=0.01)


def test_the_tokenizer_is_that_of_the_stories():
    assert BPETokenizer.load(FOLDER / "tokenizer.json").ranks == story_gpt.story_tokenizer().ranks


def test_what_is_fetched_first_is_small():
    size = sum(path.stat().st_size for pattern in FIRST for path in FOLDER.glob(pattern))
    assert size <= 600 * 1024

"""How a page gets the published model: fetched on a machine, shown by the panel in a page."""

import numpy as np
import pytest
from gguf_files import write_gguf
from llama_files import CONFIG, gguf_contents, random_llama

from tinytorch import GPT
from tinytorch_book.experiments import published_model
from tinytorch_book.experiments.published_model import (
    load_published_model,
    published_path,
    same_weights,
)


@pytest.fixture
def path(tmp_path):
    config = {**CONFIG}
    return write_gguf(tmp_path / "some.gguf", *gguf_contents(config, random_llama(config)))


@pytest.fixture(autouse=True)
def not_loaded_yet():
    load_published_model.cache_clear()
    yield
    load_published_model.cache_clear()


def test_on_a_machine_the_fetched_file_is_loaded_once(path, monkeypatch):
    fetched = []
    monkeypatch.setattr(published_model, "published_file", lambda: fetched.append(path) or path)
    model, tokenizer = load_published_model()
    assert load_published_model() == (model, tokenizer) and fetched == [path]
    assert {weight.dtype for weight in model.parameters()} == {np.dtype("float32")}


def test_in_a_page_the_file_is_the_one_that_the_panel_shows(path, monkeypatch):
    monkeypatch.setattr(published_model.sys, "platform", "emscripten")
    monkeypatch.setattr(published_model, "SHOWN", path.parent)
    assert published_path() == path
    assert load_published_model()[0].vocab_size == load_published_model()[0].vocab_size


def test_in_a_page_without_the_model_one_sentence_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(published_model.sys, "platform", "emscripten")
    monkeypatch.setattr(published_model, "SHOWN", tmp_path)
    with pytest.raises(RuntimeError, match="fetch it with the panel at the head of the page"):
        load_published_model()


def test_a_part_of_the_copy_is_exchanged_and_no_weight_is_copied():
    model = GPT(9, 8, 2, 2, pos_encoding="rotary", init_std=0.5, rng=0)
    before, copied = model([[1, 2, 3]]).data, same_weights(model)
    pairs = zip(model.parameters(), copied.parameters(), strict=True)
    assert all(ours is theirs for ours, theirs in pairs)
    for block in copied.blocks:
        block.attention.rotate = None
    assert np.abs(copied([[1, 2, 3]]).data - before).max() > 1e-4
    assert np.array_equal(model([[1, 2, 3]]).data, before)

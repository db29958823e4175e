"""The stored places of words in training are what the package's training gives today."""

import json

import numpy as np
import pytest
from drawings import embeddings, word_vectors


@pytest.mark.slow
def test_the_stored_positions_are_those_that_the_package_computes():
    stored = json.loads(word_vectors.STORED.read_text(encoding="utf-8"))
    found = word_vectors.computed()
    for name in ("words", "kinds", "steps", "of"):
        assert stored[name] == found[name]
    assert np.shape(stored["points"]) == (len(word_vectors.STEPS), 24, 2)
    # Another library of matrix products rounds otherwise; what is seen is the same.
    assert np.allclose(stored["points"], found["points"], rtol=0, atol=1e-3)
    assert np.allclose(stored["same"], found["same"], rtol=0, atol=1)


def test_the_figure_is_told_each_step_with_a_label_for_every_word():
    told = embeddings.words_in_training()
    assert np.shape(told["labels"]) == np.shape(told["points"])
    assert len(told["roles"]) == len(told["words"])

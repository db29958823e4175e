"""One documented source of randomness."""

import json
import subprocess
import sys

import numpy as np
import pytest

from tinytorch import Embedding, default_rng, manual_seed
from tinytorch.core.seeding import default_state, restore_default


def test_manual_seed_repeats_every_draw_that_follows():
    manual_seed(1)
    first = Embedding(5, 3).weight.data
    second = Embedding(5, 3).weight.data
    manual_seed(1)
    np.testing.assert_array_equal(Embedding(5, 3).weight.data, first)
    np.testing.assert_array_equal(Embedding(5, 3).weight.data, second)
    assert (first != second).any()


def test_default_seed_is_zero():
    code = "from tinytorch import default_rng; print(default_rng().integers(10**6))"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert int(printed.stdout) == np.random.default_rng(0).integers(10**6)


def test_generator_is_returned_unchanged():
    rng = np.random.default_rng(4)
    assert default_rng(rng) is rng


@pytest.mark.parametrize("seed", [4, np.int64(4)])
def test_integer_is_a_seed(seed):
    assert default_rng(seed).random() == np.random.default_rng(4).random()


@pytest.mark.parametrize(
    ("rng", "kind"),
    [("7", "str"), (1.0, "float"), (True, "bool"), (np.random.RandomState(0), "RandomState")],
)
def test_anything_else_is_refused(rng, kind):
    with pytest.raises(TypeError) as caught:
        default_rng(rng)
    assert str(caught.value) == (
        f"rng must be a numpy Generator, a seed or None, got {kind}; "
        "make one with numpy.random.default_rng(seed)"
    )


# The state, to keep and to come back to ----------------------------------------------------------


def kept(state):
    """The state after a way through a file."""
    return json.loads(json.dumps(state))


def test_restored_generator_repeats_the_same_draws():
    manual_seed(5).random(3)
    state = kept(default_state())
    first = default_rng().normal(size=4), default_rng().integers(10, size=3)
    manual_seed(6)
    restore_default(state)
    again = default_rng().normal(size=4), default_rng().integers(10, size=3)
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_restored_generator_keeps_its_buffered_half_draw():
    manual_seed(5).integers(10, dtype=np.uint32)  # draws 64 bits and keeps 32 for the next
    state = kept(default_state())
    first = default_rng().integers(2**32, size=3, dtype=np.uint32).tolist()
    restore_default(state)
    assert default_rng().integers(2**32, size=3, dtype=np.uint32).tolist() == first


def test_restored_generator_spawns_the_same_children():
    manual_seed(5).spawn(2)
    state = kept(default_state())
    first = [child.random() for child in default_rng().spawn(2)]
    restore_default(state)
    assert [child.random() for child in default_rng().spawn(2)] == first
    manual_seed(5)
    assert [child.random() for child in default_rng().spawn(2)] != first


def test_a_negative_seed_is_refused():
    with pytest.raises(ValueError, match="a seed must be at least 0, got -1"):
        default_rng(-1)

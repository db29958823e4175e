"""Matrices in fewer bits: which numbers are left, and what stays as it is."""

import numpy as np
import pytest
from gguf_files import random_stored

from tinytorch import GPT
from tinytorch.core.quantization import quantize
from tinytorch.files.gguf import dequantize
from tinytorch_book.experiments.fewer_bits import rounded_blocks


@pytest.fixture
def model():
    return GPT(20, 64, 1, 2, rng=0)


def weight_of(model):
    return model.blocks[0].mlp.linear1.weight.data.T  # (out, in): (256, 64)


@pytest.mark.parametrize(("run", "smallest"), [(16, False), (16, True), (None, False)])
@pytest.mark.parametrize("bits", [2, 4])
def test_each_run_of_an_output_has_its_own_equally_spaced_numbers(model, bits, run, smallest):
    runs = weight_of(model).reshape(-1, run or 64)
    runs *= np.linspace(0.1, 20, len(runs), dtype=np.float32)[:, None]
    weight_of(model)[:] = runs.reshape(256, 64)
    rounded = weight_of(rounded_blocks(model, bits, run, smallest=smallest)).reshape(runs.shape)
    for numbers, new in zip(runs, rounded, strict=True):
        high = numbers.max() if smallest else np.abs(numbers).max()
        low = numbers.min() if smallest else -high
        grid = np.linspace(low, high, 2**bits if smallest else 2**bits - 1)
        nearest = grid[np.abs(numbers[:, None] - grid).argmin(axis=1)]
        assert new == pytest.approx(nearest, abs=1e-5 * float(high - low))


def test_rounding_again_as_a_file_does_changes_nothing_and_equal_numbers_stay(model):
    stored = random_stored("Q4_1", (256, 64))
    halves = np.frombuffer(stored, np.uint8).reshape(-1, 20)[:, 4:]
    full = np.ptp(np.hstack([halves & 15, halves >> 4]), axis=1) == 15  # both ends are used
    weight_of(model)[:] = rows = dequantize(stored, "Q4_1", (256, 64))
    again = weight_of(rounded_blocks(model, 4, 32, smallest=True)).reshape(-1, 32)[full]
    assert full.sum() > 200 and again == pytest.approx(rows.reshape(-1, 32)[full], abs=1e-5)
    for smallest in (False, True):
        weight_of(model)[:] = 0
        assert not weight_of(rounded_blocks(model, 4, 32, smallest=smallest)).any()


def test_all_matrices_of_the_blocks_are_rounded_and_the_rest_is_shared(model):
    before = {name: p.data.copy() for name, p in model.named_parameters()}
    small = dict(rounded_blocks(model, 3, 4).named_parameters())
    for name, p in model.named_parameters():
        assert np.array_equal(p.data, before[name]), "the model itself stays"
        is_rounded = name.startswith("blocks.") and p.ndim == 2
        assert is_rounded is not (small[name] is p), name
        assert not is_rounded or not np.array_equal(small[name].data, p.data), name


def test_what_cannot_be_rounded_is_refused(model):
    for bits, run in ((1, 2), (4, 3), (4, -1)):
        with pytest.raises(ValueError, match=f"got {bits} bits, and runs of {run} in rows of 64"):
            rounded_blocks(model, bits, run)
    with pytest.raises(ValueError, match="load a float32 model; this has int8"):
        rounded_blocks(quantize(model), 4)

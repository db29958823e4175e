"""Saved numbers come back exactly, or not at all."""

import numpy as np
import pytest
from exact_numbers import message, normal

from tinytorch import SGD, AdamW, Parameter, RowSparse
from tinytorch.core.state_dicts import restore

# restore -----------------------------------------------------------------------------------------


def test_restored_arrays_stay_the_same_objects_with_their_dtype():
    single, count = np.zeros(2, dtype=np.float32), np.zeros((), dtype=np.int64)
    saved = {"count": np.int32(3), "single": np.array([0.1, 2.0])}
    restore({"single": single, "count": count}, saved, "Layer")
    assert single.tolist() == [np.float32(0.1), 2.0] and count == 3


def test_every_mismatch_is_named_and_nothing_is_changed():
    own = {
        "right": np.zeros(2),
        "short": np.zeros((2, 3)),
        "whole": np.zeros(2, dtype=np.int64),
        "lost": np.zeros(4),
    }
    saved = {
        "right": np.ones(2),
        "short": np.ones((3, 2)),
        "whole": np.array([0.5, 1.5]),
        "new": np.ones(()),
    }
    assert message(ValueError, lambda: restore(own, saved, "Layer")) == (
        "load_state_dict: Layer does not match:\n"
        "  missing: lost (4,)\n"
        "  unexpected: new ()\n"
        "  shape of short: expected (2, 3), got (3, 2)\n"
        "  dtype of whole: expected int64, got float64"
    )
    assert not any(array.any() for array in own.values())


def test_strings_in_place_of_numbers_are_refused():
    told = message(ValueError, lambda: restore({"w": np.zeros(1)}, {"w": ["1.0"]}, "Layer"))
    assert "dtype of w: expected float64, got <U3" in told


# Optimisers --------------------------------------------------------------------------------------

SHAPES = [(5, 3), (3,)]

OPTIMISERS = {
    "AdamW": lambda params: AdamW(params, lr=0.1, betas=(0.8, 0.9), weight_decay=0.1),
    "SGD with momentum": lambda params: SGD(params, lr=0.1, momentum=0.9, weight_decay=0.1),
    "plain SGD": lambda params: SGD(params, lr=0.1),
}
each = pytest.mark.parametrize("make", OPTIMISERS.values(), ids=OPTIMISERS)


def parameters(dtype=np.float32):
    return [Parameter(normal(*shape), dtype=dtype) for shape in SHAPES]


def go(optimiser, steps, sparse=False):
    """Steps with gradients that depend on the step alone; the table's may be row-sparse."""
    for step in steps:
        table, vector = optimiser.params
        table.grad = normal(*SHAPES[0], seed=step).astype(table.dtype)
        if sparse:
            rows = np.random.default_rng(step).integers(0, SHAPES[0][0], size=5)
            table.grad = RowSparse(rows, table.grad, SHAPES[0])
        vector.grad = normal(*SHAPES[1], seed=step).astype(vector.dtype)
        optimiser.step()


def bits(optimiser):
    return [p.data.tobytes() for p in optimiser.params]


@each
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "row-sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_restored_optimiser_continues_bit_for_bit(make, sparse, dtype):
    through = make(parameters(dtype))
    go(through, range(9), sparse)
    first = make(parameters(dtype))
    go(first, range(4), sparse)
    second = make(parameters(dtype))
    for p, old in zip(second.params, first.params, strict=True):
        p.data[...] = old.data
    second.load_state_dict(first.state_dict())
    go(second, range(4, 9), sparse)
    assert bits(second) == bits(through)
    for name, array in second.state_dict().items():
        assert array.tobytes() == through.state_dict()[name].tobytes(), name


def test_state_holds_every_buffer_of_the_optimiser():
    params = parameters()
    assert {n: a.shape for n, a in OPTIMISERS["AdamW"](params).state_dict().items()} == {
        "steps": (),
        "m.0": (5, 3),
        "m.1": (3,),
        "v.0": (5, 3),
        "v.1": (3,),
    }
    assert [*OPTIMISERS["SGD with momentum"](params).state_dict()] == ["velocity.0", "velocity.1"]
    assert OPTIMISERS["plain SGD"](params).state_dict() == {}


def test_state_of_another_optimiser_is_refused():
    adam, sgd = OPTIMISERS["AdamW"](parameters()), OPTIMISERS["SGD with momentum"](parameters())
    told = message(ValueError, lambda: sgd.load_state_dict(adam.state_dict()))
    assert told.startswith("load_state_dict: SGD does not match:\n  missing: velocity.0 (5, 3)\n")
    assert "  unexpected: steps ()\n" in told

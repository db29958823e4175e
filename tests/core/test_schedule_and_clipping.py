"""How long a step is, and how long at most."""

import math
from itertools import pairwise

import numpy as np
import pytest
from exact_numbers import message
from hypothesis import given
from hypothesis import strategies as st

from tinytorch import CosineSchedule, Parameter, RowSparse, Tensor, clip_grad_norm

# CosineSchedule ----------------------------------------------------------------------------------

LOW, HIGH = 0.1, 0.5
schedule = CosineSchedule(lr=HIGH, warmup_steps=4, total_steps=12, min_lr=LOW)


@pytest.mark.parametrize(
    ("step", "lr"),
    [
        (0, 0.125),  # a quarter of the way up: the first step moves already
        (1, 0.25),
        (3, 0.5),
        (4, 0.5),  # cos 0
        (6, 0.3 + 0.2 * math.sqrt(0.5)),  # cos 45 degrees
        (8, 0.3),  # cos 90 degrees
        (10, 0.3 - 0.2 * math.sqrt(0.5)),
        (11, 0.3 + 0.2 * math.cos(math.pi * 7 / 8)),
        (12, 0.1),
        (13, 0.1),
        (10**9, 0.1),
    ],
)
def test_rate_of_a_step(step, lr):
    assert schedule(step) == pytest.approx(lr, rel=1e-14)


@given(st.integers(0, 30), st.integers(1, 100), st.floats(0, 1), st.floats(0, 1))
def test_rate_rises_then_falls_within_its_bounds(warmup, rest, one, other):
    low, high = sorted((one, other))
    schedule = CosineSchedule(high, warmup, warmup + rest, low)
    rates = [schedule(step) for step in range(warmup + rest + 5)]
    assert all(a <= b * (1 + 1e-14) for a, b in pairwise(rates[:warmup]))
    assert all(a >= b * (1 - 1e-14) for a, b in pairwise(rates[warmup:]))
    assert rates[warmup] == pytest.approx(high, rel=1e-14)
    assert max(rates) <= high * (1 + 1e-14) and min(rates[warmup:]) >= low * (1 - 1e-14)
    assert rates[-5:] == [low] * 5


def test_rates_are_plain_numbers_and_the_repr_is_the_call():
    assert type(schedule(2)) is float
    assert repr(schedule) == "CosineSchedule(lr=0.5, min_lr=0.1, warmup_steps=4, total_steps=12)"
    assert eval(repr(schedule))(7) == schedule(7)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"warmup_steps": 8}, "the warm-up of 8 steps must end before the 8 steps do"),
        ({"warmup_steps": 9}, "the warm-up of 9 steps must end before the 8 steps do"),
        ({"total_steps": 0}, "the warm-up of 0 steps must end before the 0 steps do"),
        ({"warmup_steps": -1}, "warmup_steps must be >= 0, got -1"),
        ({"lr": -1.0}, "lr must be >= 0, got -1.0"),
        ({"lr": float("nan")}, "lr must be >= 0, got nan"),
        ({"min_lr": -0.1}, "min_lr must be >= 0, got -0.1"),
        ({"min_lr": 2.0}, "min_lr 2.0 is above lr 1.0; the schedule decays from lr to min_lr"),
    ],
)
def test_invalid_schedule_is_refused(options, told):
    settings = {"lr": 1.0, "warmup_steps": 0, "total_steps": 8, **options}
    assert message(ValueError, lambda: CosineSchedule(**settings)) == told


# Clipping ----------------------------------------------------------------------------------------


def with_gradient(gradient, dtype=np.float64):
    p = Parameter(np.zeros(np.shape(gradient)), dtype=dtype)
    p.grad = np.array(gradient, dtype=dtype)
    return p


def test_gradients_are_scaled_together_to_the_maximum_norm():
    one, other = with_gradient([[3.0, 0.0]]), with_gradient([4.0])
    assert clip_grad_norm([one, other], max_norm=2.5) == 5.0  # 3, 4, 5
    assert one.grad.tolist() == [[1.5, 0.0]] and other.grad.tolist() == [2.0]


def test_gradients_below_the_limit_are_unchanged():
    gradient = np.random.default_rng(0).normal(size=100).astype(np.float32)
    p = with_gradient(gradient, np.float32)
    before = p.grad
    norm = clip_grad_norm([p], max_norm=100.0)
    assert p.grad is before and before.tobytes() == gradient.tobytes()
    assert clip_grad_norm([p], max_norm=norm) == norm  # exactly at the limit is not above it
    assert p.grad is before


def test_infinite_limit_only_measures():
    p = with_gradient([6.0, 8.0])
    assert clip_grad_norm([p], max_norm=math.inf) == 10.0
    assert p.grad.tolist() == [6.0, 8.0]


def test_parameter_listed_twice_counts_once():
    p = with_gradient([6.0, 8.0])
    assert clip_grad_norm([p, p], max_norm=5.0) == 10.0
    assert p.grad.tolist() == [3.0, 4.0]


def test_norm_of_a_row_sparse_gradient_is_that_of_its_summed_rows():
    table = Parameter(np.zeros((4, 1)))
    table.grad = RowSparse(np.array([2, 0, 2]), np.array([[1.0], [4.0], [2.0]]), (4, 1))
    assert clip_grad_norm([table], max_norm=2.5) == 5.0  # rows 0 and 2 have 4 and 3
    assert isinstance(table.grad, RowSparse)
    assert table.grad.to_dense().ravel().tolist() == [2.0, 0.0, 1.5, 0.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("sparse", [False, True])
def test_non_finite_norm_is_an_error_and_changes_nothing(bad, sparse):
    good = with_gradient([30.0, 40.0])
    ill = with_gradient([[0.0, bad], [1.0, 2.0]])
    if sparse:
        ill.grad = RowSparse(np.array([0, 1]), ill.grad, (2, 2))
    told = message(FloatingPointError, lambda: clip_grad_norm([good, ill], max_norm=1.0))
    assert told == (
        f"the norm of the gradients is {abs(bad)}: a loss or a weight has overflowed; lower the "
        "learning rate, or lengthen the warm-up"
    )
    assert good.grad.tolist() == [30.0, 40.0]
    left = ill.grad.to_dense() if sparse else ill.grad
    np.testing.assert_array_equal(left, [[0.0, bad], [1.0, 2.0]])


@pytest.mark.parametrize("limit", [0, -1.0, math.nan])
def test_limit_must_be_positive(limit):
    told = message(ValueError, lambda: clip_grad_norm([with_gradient([1.0])], limit))
    assert told == f"max_norm must be > 0, got {limit}"


def test_one_tensor_instead_of_a_list_is_refused():
    told = message(TypeError, lambda: clip_grad_norm(Tensor([1.0, 2.0]), max_norm=1.0))
    assert told == "clip_grad_norm takes a list of parameters, got one tensor; write [w]"


@pytest.mark.parametrize("step", [-5, -1, float("nan")])
def test_step_before_the_first_is_refused(step):
    schedule = CosineSchedule(lr=1.0, warmup_steps=2, total_steps=6)
    assert message(ValueError, lambda: schedule(step)) == f"step must be >= 0, got {step}"


def test_settings_that_are_no_numbers_are_named():
    settings = {"lr": 1.0, "warmup_steps": 0, "total_steps": 8}
    for name in settings:
        f = lambda name=name: CosineSchedule(**{**settings, name: "3"})  # noqa: E731
        assert message(TypeError, f) == f"{name} must be a number, got '3'"

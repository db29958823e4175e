"""How long a step is: the learning rate of every step."""

import math
from itertools import pairwise

import pytest
from exact_numbers import message
from hypothesis import given
from hypothesis import strategies as st

from tinytorch import CosineSchedule

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


@pytest.mark.parametrize("step", [-5, -1, float("nan")])
def test_step_before_the_first_is_refused(step):
    schedule = CosineSchedule(lr=1.0, warmup_steps=2, total_steps=6)
    assert message(ValueError, lambda: schedule(step)) == f"step must be >= 0, got {step}"


def test_settings_that_are_no_numbers_are_named():
    settings = {"lr": 1.0, "warmup_steps": 0, "total_steps": 8}
    for name in settings:
        f = lambda name=name: CosineSchedule(**{**settings, name: "3"})  # noqa: E731
        assert message(TypeError, f) == f"{name} must be a number, got '3'"

"""The drawing of "Preferences" says in words what it shows."""

import re

import pytest
from drawings import DRAWINGS, after_preferences


def test_the_words_have_the_numbers_of_the_package():
    world, alt = after_preferences.world(), DRAWINGS["preferences"].alt
    first, second, third = zip(*world["shares"], strict=True)
    shown = [[f"{100 * share:.0f}" for share in row] for row in (first, second)]
    assert all(f"{a}, {b}, {c} and {d} %" in alt for a, b, c, d in shown)
    assert f"{100 * third[-1]:.0f} % of the stories have the reward 2" in alt
    begins = re.search(r"mean reward of ([\d.]+) with no", alt)[1]  # at β 100
    assert float(begins) == pytest.approx(world["curve"][0][1], abs=0.02)


def test_best_of_n_lies_just_below_the_curve():
    world = after_preferences.world()
    for cost, gain in world["best of"]:
        above = [reward for kl, reward in world["curve"] if kl >= cost]
        assert gain < min(above) + 0.02

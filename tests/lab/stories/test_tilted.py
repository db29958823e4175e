"""The best that a reward can make of stories: against all stories of a grammar, listed."""

import math
from itertools import islice

import numpy as np
import pytest
from brute_force import all_stories

from tinytorch_book.stories import StoryGrammar
from tinytorch_book.stories.tilted import TiltedStories, every_story, reward_distribution, reward_of

REWARDS = {
    "a pet": {"cat": 1.0},
    "a pet's pronoun, which tells the pet": {"It": -2.0},
    "what depends on the pet": {"pie": 0.7, "pies": -1.3},
    "words of rules": {"big": 2.0, "The": -0.5},
    "everything": {"cat": 0.3, "pie": 1.1, "tiny": -0.7, "ran": 0.9, "No": 0.4},
    "nothing": {},
}
BETAS = (0.05, 0.5, 3.0, math.inf)


def listed(tiny, points):
    texts, probs = zip(*all_stories(tiny), strict=True)
    return list(texts), np.array(probs), np.array([reward_of(text, points) for text in texts])


def test_every_story_is_that_of_brute_force(tiny):
    assert every_story(tiny) == pytest.approx(dict(all_stories(tiny)))
    with pytest.raises(ValueError, match="more than 5 stories; pass a larger most="):
        every_story(tiny, most=5)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("points", REWARDS.values(), ids=REWARDS)
def test_the_optimum_is_that_of_the_listed_stories(tiny, points, beta):
    _, probs, rewards = listed(tiny, points)
    weights = probs * np.exp(rewards / beta)
    best = weights / weights.sum()
    found = TiltedStories(tiny, points, beta)
    assert found.log_z == pytest.approx(np.log(weights.sum()), abs=1e-10)
    assert found.reward == pytest.approx(best @ rewards, abs=1e-10)
    divergence = best[best > 0] @ np.log(best[best > 0] / probs[best > 0])
    assert found.kl == pytest.approx(divergence, abs=1e-9)


@pytest.mark.parametrize("other", REWARDS.values(), ids=REWARDS)
def test_what_the_optimum_earns_by_other_points(tiny, other):
    points = REWARDS["what depends on the pet"]
    _, probs, rewards = listed(tiny, points)
    weights = probs * np.exp(rewards / 0.4)
    expected = weights @ listed(tiny, other)[2] / weights.sum()
    assert TiltedStories(tiny, points, 0.4).expected(other) == pytest.approx(expected)


@pytest.mark.parametrize("points", REWARDS.values(), ids=REWARDS)
def test_how_probable_each_reward_is(tiny, points):
    _, probs, rewards = listed(tiny, points)
    values, chances = reward_distribution(tiny, points)
    assert values.tolist() == sorted(set(rewards.round(9)))
    for value, chance in zip(values, chances, strict=True):
        assert chance == pytest.approx(probs[np.isclose(rewards, value)].sum())


def test_it_writes_each_story_as_often_as_it_should(tiny):
    points = REWARDS["everything"]
    texts, probs, rewards = listed(tiny, points)
    best = probs * np.exp(rewards / 0.5)
    best /= best.sum()
    written = list(islice(TiltedStories(tiny, points, 0.5).stories(seed=3), 4000))
    assert set(written) <= set(texts)
    shares = np.array([written.count(text) for text in texts]) / 4000
    assert np.abs(shares - best).max() < 4 * np.sqrt(0.25 / 4000)
    assert shares @ rewards == pytest.approx(best @ rewards, abs=0.06)
    assert next(TiltedStories(tiny, points, 0.5).stories(seed=3)) == written[0]


def test_what_cannot_matter_any_more_is_forgotten(tiny):
    assert len(TiltedStories(tiny, {"big": 1.0}, 1.0)._logs) < len(
        TiltedStories(tiny, {"pie": 1.0, "She": 0.5}, 1.0)._logs
    )


def test_the_stories_of_the_book():
    stories, points = StoryGrammar(), {"happy": 1.0, "sad": -0.5, "owl": 1.0}  # "owl" is a child
    values, chances = reward_distribution(stories, points)
    assert chances.sum() == pytest.approx(1)
    for beta in (0.5, 4.0):
        best = TiltedStories(stories, points, beta)
        assert best.log_z == pytest.approx(np.log(chances @ np.exp(values / beta)), abs=1e-9)
        assert best.reward - beta * best.kl == pytest.approx(beta * best.log_z)
    written = list(islice(stories.stories(seed=5), 2000))
    mean = np.mean([reward_of(text, points) for text in written])
    assert mean == pytest.approx(chances @ values, abs=0.06)


@pytest.mark.parametrize("beta", [0, -1.0, math.nan])
def test_a_price_is_above_0(tiny, beta):
    with pytest.raises(ValueError, match="beta must be above 0"):
        TiltedStories(tiny, {}, beta)

"""The staircase: one measure for all the models of the book, and how the steps go down."""

import numpy as np
import pytest

from tinytorch import Embedding, Tensor
from tinytorch_book.experiments.staircase import (
    BEGINNINGS,
    COUNTING_AT_BEST,
    STEPS,
    floor_per_letter,
    nats_per_letter,
    steps_up_to,
    train_on_stories,
    write_on,
)
from tinytorch_book.experiments.story_gpt import load_story_gpt, story_tokenizer
from tinytorch_book.stories import StoryGrammar


@pytest.fixture(scope="module")
def grammar():
    return StoryGrammar()


def forecast(log_probs):
    """A model with the same forecast for every token: log-probabilities `(vocab,)`."""
    return lambda ids: Tensor(np.broadcast_to(log_probs, (*np.shape(ids), len(log_probs))))


def test_every_step_is_lower_than_the_one_before_and_above_the_floor():
    losses = list(STEPS.values())
    assert losses == sorted(losses, reverse=True) and losses[-1] > floor_per_letter()
    assert any(loss > COUNTING_AT_BEST for loss in losses) and losses[-1] < COUNTING_AT_BEST


def test_floor_is_the_oracles_surprise_at_a_hundred_whole_stories(grammar):
    expected = -grammar.log_probs(grammar.generate(100, seed=2)).mean()
    assert floor_per_letter() == pytest.approx(expected, abs=1e-9)


def test_uniform_guessing_is_charged_per_letter(grammar):
    text = grammar.generate(100, seed=2)
    tokens = len(story_tokenizer().encode(text))
    guess = nats_per_letter(forecast(np.zeros(512)))
    assert guess == pytest.approx(tokens * np.log(512) / len(text), rel=1e-6)


def test_steps_come_in_order_up_to_the_requested_one():
    assert list(steps_up_to("one head")) == list(STEPS)[:5]
    assert steps_up_to("trained longer") == STEPS
    with pytest.raises(ValueError, match="no step 'two heads'; its steps are 1 letter"):
        steps_up_to("two heads")


def test_the_story_gpt_is_the_last_step():
    assert nats_per_letter(load_story_gpt()) == pytest.approx(STEPS["trained longer"], abs=5e-4)


def test_training_is_seeded_and_lowers_the_loss():
    tables = [Embedding(512, 512, rng=0) for _ in range(2)]
    new = nats_per_letter(tables[0])
    one, other = (nats_per_letter(train_on_stories(table, steps=60)) for table in tables)
    assert one == other < new - 0.1


def test_a_story_is_written_to_its_end_and_no_further():
    (newline,) = story_tokenizer().encode("\n")
    (full_stop,) = story_tokenizer().encode(".")

    def model(ids):  # a full stop, then the end
        logits = np.full((*ids.shape, 512), -50.0)
        logits[np.arange(len(ids)), -1, np.where(ids[:, -1] == full_stop, newline, full_stop)] = 50
        return Tensor(logits)

    assert [write_on(model, each) for each in BEGINNINGS] == [f"{each}." for each in BEGINNINGS]


def test_a_story_without_an_end_is_cut_off_at_a_window():
    (full_stop,) = story_tokenizer().encode(".")
    text = write_on(forecast(np.where(np.arange(512) == full_stop, 50.0, -50.0)), "Mia was")
    assert len(story_tokenizer().encode("\n" + text)) == 112

"""Writing: greedy and drawn, each row by itself, through a window, with dropout switched off."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import message, stirred, tiny_gpt

from tinytorch import Tensor, manual_seed
from tinytorch.models.generation import choose, generate

PROMPTS = np.array([[3, 1, 4], [1, 5, 9], [2, 6, 5]])


@pytest.fixture(scope="module")
def model():
    return stirred(tiny_gpt())


class Recorder:
    """A model that always finds the same logits, and notes what it was shown."""

    max_seq_len, training = 4, False

    def __init__(self, logits):
        self.logits, self.shown = np.asarray(logits, dtype=float), []

    def __call__(self, ids):
        self.shown.append(np.array(ids))
        return Tensor(np.broadcast_to(self.logits, (*ids.shape, self.logits.size)))

    def eval(self):
        return self


# Choosing ----------------------------------------------------------------------------------------


def test_greedy_takes_the_most_likely_token_every_time(model):
    text = model.generate(PROMPTS, 6, temperature=0).data
    assert text.shape == (3, 9)
    np.testing.assert_array_equal(text[:, :3], PROMPTS)
    for end in range(3, 9):
        best = model(text[:, :end]).data[:, -1].argmax(axis=-1)
        np.testing.assert_array_equal(text[:, end], best)


def test_greedy_does_not_depend_on_the_seed(model):
    texts = [model.generate(PROMPTS, 5, temperature=0, rng=seed).data for seed in (0, 1)]
    np.testing.assert_array_equal(*texts)


def test_seed_decides_the_text(model):
    first, again, other = (model.generate(PROMPTS, 12, rng=seed).data for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_default_generator_makes_it_reproducible_and_does_not_repeat_itself(model):
    manual_seed(5)
    first, second = model.generate(PROMPTS, 12).data, model.generate(PROMPTS, 12).data
    manual_seed(5)
    np.testing.assert_array_equal(model.generate(PROMPTS, 12).data, first)
    assert (first != second).any()


def test_equal_prompts_of_a_batch_are_continued_differently(model):
    text = model.generate([[3, 1, 4]] * 4, 12, rng=0).data
    assert len({tuple(row) for row in text.tolist()}) == 4


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_are_drawn_with_the_probabilities_of_the_softmax(temperature):
    logits = np.array([2.0, 0.0, -1.0, -np.inf])
    rng, n = np.random.default_rng(0), 4000
    drawn = np.bincount([choose(logits, temperature, rng) for _ in range(n)], minlength=4)
    p = np.exp(logits / temperature) / np.exp(logits / temperature).sum()
    # four standard deviations of a share of n draws; what has probability 0 never comes
    assert (np.abs(drawn / n - p) <= 4 * np.sqrt(p * (1 - p) / n)).all()


def test_low_temperature_is_nearly_greedy_and_high_nearly_even():
    logits, rng = np.array([0.0, 1.0, 0.5]), np.random.default_rng(0)
    assert {choose(logits, 0.01, rng) for _ in range(200)} == {1}
    drawn = np.bincount([choose(logits, 1000.0, rng) for _ in range(3000)])
    np.testing.assert_allclose(drawn / 3000, 1 / 3, atol=0.04)


def test_large_logits_do_not_overflow():
    assert (
        choose(np.array([1e30, -1e30, 0.0], dtype=np.float32), 1e-3, np.random.default_rng(0)) == 0
    )


@given(seed=st.integers(0, 10_000), size=st.integers(1, 6))
def test_forbidden_token_is_never_chosen(seed, size):
    rng = np.random.default_rng(seed)
    logits = np.concatenate([rng.normal(size=size), np.full(size, -np.inf)])
    assert choose(rng.permuted(logits), 0.0, rng) >= 0
    order = rng.permutation(2 * size)
    for temperature in (0.0, 0.3, 1.0):
        assert np.isfinite(logits[order][choose(logits[order], temperature, rng)])


@pytest.mark.parametrize(("drawn", "expected"), [(0.0, 1), (0.49, 1), (0.51, 3), (1 - 2**-53, 3)])
def test_ends_of_the_range_choose_tokens_that_are_allowed(drawn, expected):
    class Fixed:
        def random(self):
            return drawn

    assert choose(np.array([-np.inf, 0.0, -np.inf, 0.0, -np.inf]), 1.0, Fixed()) == expected


# Rows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0, 1.0])
def test_first_row_alone_gives_the_same_text_as_in_a_batch(model, temperature):
    batch = model.generate(PROMPTS, 10, temperature=temperature, rng=0).data
    alone = model.generate(PROMPTS[:1], 10, temperature=temperature, rng=0).data
    np.testing.assert_array_equal(alone[0], batch[0])


@pytest.mark.parametrize("changed", [0, 1, 2])
def test_changing_one_prompt_changes_no_other_row(model, changed):
    other = PROMPTS.copy()
    other[changed] = [7, 8, 10]
    texts = [model.generate(p, 10, rng=0).data for p in (PROMPTS, other)]
    rest = [row for row in range(3) if row != changed]
    np.testing.assert_array_equal(texts[0][rest], texts[1][rest])
    assert (texts[0][changed] != texts[1][changed]).any()


def test_more_rows_do_not_change_those_before_them(model):
    few, many = (model.generate(PROMPTS[:n], 10, rng=0).data for n in (2, 3))
    np.testing.assert_array_equal(few, many[:2])


def test_longer_text_begins_with_the_shorter_one(model):
    short, long = (model.generate(PROMPTS, n, rng=0).data for n in (4, 9))
    np.testing.assert_array_equal(long[:, : short.shape[1]], short)


# Shapes and lengths ------------------------------------------------------------------------------


def test_prompt_without_a_batch_axis_gives_a_text_without_one(model):
    text = model.generate([3, 1, 4], 5, rng=0)
    assert isinstance(text, Tensor) and text.shape == (8,)
    np.testing.assert_array_equal(text.data, model.generate([[3, 1, 4]], 5, rng=0).data[0])


def test_nothing_new_is_the_prompt(model):
    text = model.generate(PROMPTS, 0)
    np.testing.assert_array_equal(text.data, PROMPTS)
    assert model.generate([3], 0).data.tolist() == [3]


@pytest.mark.parametrize("kind", [int, np.int32, np.uint8, np.uint64])
def test_ids_are_integers_whatever_kind_the_prompt_has(model, kind):
    text = model.generate(Tensor(PROMPTS.astype(kind)), 3, rng=0)
    assert text.dtype == np.int64
    np.testing.assert_array_equal(text.data, model.generate(PROMPTS, 3, rng=0).data)


def test_prompt_is_not_changed(model):
    prompt = PROMPTS.copy()
    text = model.generate(prompt, 2, rng=0)
    text.data[...] = 0
    model.generate(prompt, 0).data[...] = 0
    np.testing.assert_array_equal(prompt, PROMPTS)


def test_long_text_is_read_through_a_window_over_its_end():
    recorder = Recorder([0.0, 1.0, 0.0])
    text = generate(recorder, [[0, 1, 2, 0, 2, 2]], 3, temperature=0)
    assert text.data.tolist() == [[0, 1, 2, 0, 2, 2, 1, 1, 1]]
    assert [shown.tolist() for shown in recorder.shown] == [
        [[2, 0, 2, 2]],
        [[0, 2, 2, 1]],
        [[2, 2, 1, 1]],
    ]


@pytest.mark.parametrize("kind", ["learned", "sinusoidal", "rotary", "alibi", None])
def test_text_may_grow_beyond_max_seq_len(kind):
    model = stirred(tiny_gpt(max_seq_len=6, pos_encoding=kind))
    text = model.generate(PROMPTS, 10, temperature=0).data
    assert text.shape == (3, 13)
    best = model(text[:, 6:12]).data[:, -1].argmax(axis=-1)
    np.testing.assert_array_equal(text[:, 12], best)
    long_prompt = model.generate(text, 1, temperature=0).data
    np.testing.assert_array_equal(long_prompt[:, :13], text)


# The model afterwards ----------------------------------------------------------------------------


def modes(model):
    return [model.training, model.dropout.training, model.blocks[1].attention.training]


@pytest.mark.parametrize("training", [True, False])
def test_dropout_is_off_meanwhile_and_the_mode_is_as_before(training):
    model = tiny_gpt(dropout=0.5)
    model._set_training(training)
    first, again = (model.generate(PROMPTS, 8, temperature=0).data for _ in range(2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, tiny_gpt().generate(PROMPTS, 8, temperature=0).data)
    assert modes(model) == [training] * 3


@pytest.mark.parametrize("training", [True, False])
def test_mode_is_as_before_after_an_error_too(training):
    model = tiny_gpt(dropout=0.5)
    model._set_training(training)
    with pytest.raises(IndexError, match="token id 99"):
        model.generate([[99]], 3)
    assert modes(model) == [training] * 3


def test_nothing_is_recorded(model):
    class Watched(Recorder):
        def __call__(self, ids):
            result = model(ids)
            self.shown.append(result.requires_grad)
            return result

    watched = Watched([0.0])
    generate(watched, PROMPTS, 3)
    assert watched.shown == [False] * 3
    assert model(PROMPTS).requires_grad  # and recording is on again


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [-1, -0.5, float("nan")])
def test_bad_temperature_is_refused(model, temperature):
    assert message(ValueError, lambda: model.generate([1], 1, temperature=temperature)) == (
        f"temperature must be >= 0, got {temperature}"
    )


@pytest.mark.parametrize("prompt", [[], [[]], 3, [[[1]]], np.zeros((0, 3), dtype=int)])
def test_empty_prompt_and_other_shapes_are_refused(model, prompt):
    assert message(ValueError, lambda: model.generate(prompt, 1)) == (
        "generate: the prompt must be (batch, seq) or (seq,) with at least one token, got "
        f"shape {np.shape(prompt)}"
    )


@pytest.mark.parametrize(("prompt", "kind"), [([1.0], "float64"), ([True], "bool")])
def test_ids_that_are_not_integers_are_refused(model, prompt, kind):
    assert message(TypeError, lambda: model.generate(prompt, 1)) == (
        f"generate: token ids must be integers, got {kind}"
    )


def test_negative_number_of_tokens_is_refused(model):
    assert message(ValueError, lambda: model.generate([1], -1)) == (
        "generate: max_new_tokens must be >= 0, got -1"
    )


def test_id_outside_the_vocabulary_is_refused(model):
    assert message(IndexError, lambda: model.generate([1, 11], 1)) == (
        "token id 11 at (0, 1) is outside 0..10; was another tokenizer used?"
    )

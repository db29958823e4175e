"""Writing: greedy and drawn, cached and not, through a window, to a stop, token by token."""

from functools import partial, wraps
from inspect import signature
from threading import Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import message, stirred, tiny_gpt

from tinytorch import GPT, Tensor, causal_mask
from tinytorch.models import generation
from tinytorch.models.generation import Options, generate, stream
from tinytorch.models.sampling import choose, next_token_probs

PROMPTS = np.array([[3, 1, 4], [1, 5, 9], [2, 6, 5]])


@pytest.fixture(scope="module")
def model():
    return stirred(tiny_gpt())


class Recorder:
    """A model that always finds the same logits, and notes what it was shown."""

    max_seq_len = 4

    def __init__(self, logits):
        self.logits, self.shown = np.asarray(logits, dtype=float), []

    def __call__(self, ids):
        self.shown.append(np.array(ids))
        return Tensor(np.broadcast_to(self.logits, (*ids.shape, self.logits.size)))


class Counter:
    """A model that is sure that the next token is the last one plus 1, modulo 10."""

    max_seq_len = 8

    def __call__(self, ids):
        return Tensor(np.eye(10)[(np.asarray(ids) + 1) % 10])


# Choosing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("filters", [{}, {"top_k": 3}, {"top_p": 0.6}, {"top_k": 4, "top_p": 0.8}])
@pytest.mark.parametrize("temperature", [{}, {"temperature": 0}, {"temperature": 0.7}])
def test_tokens_are_drawn_from_the_documented_probabilities_with_a_generator_per_row(
    model, temperature, filters
):
    options = {**temperature, **filters}
    text = model.generate(PROMPTS, 8, rng=3, **options).data
    for row, own in enumerate(np.random.default_rng(3).spawn(3)):
        for end in range(3, 11):
            logits = model(text[row, :end]).data[-1]
            assert text[row, end] == choose(next_token_probs(logits, **options), own)


# Rows --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", [0, 1, 2])
def test_changing_one_prompt_changes_no_other_row(model, changed):
    other = PROMPTS.copy()
    other[changed] = [7, 8, 10]
    texts = [model.generate(p, 10, rng=0).data for p in (PROMPTS, other)]
    rest = [row for row in range(3) if row != changed]
    np.testing.assert_array_equal(texts[0][rest], texts[1][rest])
    assert (texts[0][changed] != texts[1][changed]).any()


# The window --------------------------------------------------------------------------------------


def test_window_slides_by_half_when_it_is_full():
    recorder = Recorder([0.0, 1.0, 0.0])
    text = generate(recorder, [[0, 1, 2, 0, 2]], 6, temperature=0)
    assert text.data.tolist() == [[0, 1, 2, 0, 2, 1, 1, 1, 1, 1, 1]]
    assert [shown.tolist() for shown in recorder.shown] == [
        [[2, 0, 2]],  # 5 tokens do not fit into 4: the first 2 go
        [[2, 0, 2, 1]],
        [[2, 1, 1]],  # nor do 7 - 2
        [[2, 1, 1, 1]],
        [[1, 1, 1]],
        [[1, 1, 1, 1]],
    ]


@pytest.mark.parametrize(("prompt", "new"), [(8, 2), (9, 1), (20, 1), (3, 7)])
def test_overflow_error_refuses_a_text_that_may_not_fit(prompt, new):
    recorder = Counter()
    said = message(ValueError, lambda: generate(recorder, [[0] * prompt], new, overflow="error"))
    assert said == (
        f"generate: {new} tokens after a prompt of {prompt} exceed max_seq_len 8; ask for at most "
        f"{max(0, 9 - prompt)}, crop the prompt, or pass overflow='slide'"
    )
    with pytest.raises(ValueError):  # also if a stop token might come first
        generate(Counter(), [[0] * prompt], new, overflow="error", stop_tokens=[1])
    with pytest.raises(ValueError):  # at once, before it is asked for a token
        stream(Counter(), [[0] * prompt], new, overflow="error")


@pytest.mark.parametrize(("prompt", "new"), [(8, 1), (3, 6), (20, 0)])
def test_overflow_does_not_matter_for_a_text_that_fits(prompt, new):
    same = [
        generate(Counter(), [[0] * prompt], new, temperature=0, overflow=overflow).data.tolist()
        for overflow in ("error", "slide")
    ]
    assert same == [[[0] * prompt + list(range(1, new + 1))]] * 2


# With and without a cache ------------------------------------------------------------------------

POSITIONS = ["learned", "sinusoidal", "rotary", "alibi", None]


@given(
    window=st.integers(1, 9),
    prompt=st.lists(st.integers(0, 10), min_size=1, max_size=20),
    new=st.integers(0, 20),
    chunk=st.integers(1, 10),
    kind=st.sampled_from(POSITIONS),
)
def test_cached_and_uncached_tokens_agree_for_any_window(window, prompt, new, chunk, kind):
    model = stirred(tiny_gpt(max_seq_len=window, pos_encoding=kind))
    plain = model.generate(prompt, new, rng=0, use_cache=False).data
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generation, "PREFILL", chunk)
        cached = model.generate(prompt, new, rng=0).data
    np.testing.assert_array_equal(cached, plain)


def lengths_read(model, monkeypatch, *args, **options):
    """How many tokens the model was given each time it was called."""
    lengths, forward = [], model.forward

    @wraps(forward)  # and the mark that it reads piece by piece
    def noted(tokens, *rest, **more):
        lengths.append(np.shape(tokens)[-1])
        return forward(tokens, *rest, **more)

    monkeypatch.setattr(model, "forward", noted)
    model.generate(*args, **options)
    return lengths


def test_cached_model_reads_every_token_once_until_the_window_slides(monkeypatch):
    model = tiny_gpt(max_seq_len=8)
    monkeypatch.setattr(generation, "PREFILL", 2)
    found = lengths_read(model, monkeypatch, [[1, 2, 3, 4, 5]], 8)
    assert found == [2, 2, 1, 1, 1, 1, 2, 2, 1, 1, 1, 1]  # 5; 6, 7, 8; 5 of 9 again; 10, 11, 12


@pytest.mark.parametrize(("new", "most"), [(4, 7), (40, 16)])
def test_cache_has_room_for_the_text_alone(monkeypatch, new, most):
    caches = []
    new_cache = GPT.new_cache
    monkeypatch.setattr(GPT, "new_cache", lambda self: caches.append(new_cache(self)) or caches[-1])
    generate(tiny_gpt(), [1, 2, 3], new, temperature=0)
    assert [cache.arrays[0][0].shape[2] for cache in caches] == [most]


def test_long_prompt_makes_no_square_array(monkeypatch):
    from tinytorch.models import gpt_array_forms

    sizes = []
    monkeypatch.setattr(
        gpt_array_forms, "causal_mask", lambda *a: sizes.append(m := causal_mask(*a)) or m
    )
    monkeypatch.setattr(generation, "PREFILL", 8)
    tiny_gpt(max_seq_len=64).generate([[1] * 50], 1)
    assert [mask.shape for mask in sizes] == [(8, 8 * i) for i in range(1, 7)] + [(2, 50)]


def test_only_the_last_position_is_scored():
    model, shapes = tiny_gpt(tie_weights=False), []
    head = model.lm_head.forward
    model.lm_head.forward = lambda x: shapes.append(x.shape) or head(x)
    for use_cache in (True, False):
        model.generate(PROMPTS, 2, use_cache=use_cache)
    assert shapes == [(1, 3, 8)] * 2 + [(3, 1, 8)] * 2  # one position of each of three texts


# Stopping ----------------------------------------------------------------------------------------


def test_stopped_row_repeats_its_stop_token_until_all_have_stopped():
    text = generate(Counter(), [[3], [6], [1]], 9, temperature=0, stop_tokens=[8, 5])
    assert text.data.tolist() == [
        [3, 4, 5, 5, 5],
        [6, 7, 8, 8, 8],
        [1, 2, 3, 4, 5],
    ]


@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("stop", range(11))
def test_stopped_text_is_a_prefix_of_the_unstopped_one(model, stop, use_cache):
    plain = model.generate(PROMPTS, 30, rng=0).data
    text = model.generate(PROMPTS, 30, rng=0, stop_tokens=[stop], use_cache=use_cache).data
    ends = []
    for row, long in zip(text, plain, strict=True):
        where = np.flatnonzero(long[3:] == stop)
        end = 3 + where[0] + 1 if where.size else 33
        np.testing.assert_array_equal(row[:end], long[:end])
        assert (row[end:] == stop).all()
        ends.append(end)
    assert text.shape[1] == max(ends)


# Token by token ----------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", [PROMPTS, PROMPTS[0]])
@pytest.mark.parametrize(
    "options",
    [{}, {"top_k": 3, "use_cache": False}, {"stop_tokens": [1, 2, 3]}],
)
def test_generate_joins_the_tokens_of_stream(model, prompt, options):
    whole = model.generate(prompt, 20, rng=4, **options).data
    pieces = list(stream(model, prompt, 20, rng=4, **options))
    rows = 3 if np.ndim(prompt) == 2 else 1
    assert all(piece.shape == (rows,) for piece in pieces)
    assert all(piece.dtype == np.int64 for piece in pieces)
    new = np.stack(pieces, axis=1)
    np.testing.assert_array_equal(new if np.ndim(prompt) == 2 else new[0], whole[..., 3:])


def test_stream_runs_the_model_only_on_demand():
    recorder = Recorder([0.0, 1.0])
    tokens = stream(recorder, [[0]], 3, temperature=0)
    assert recorder.shown == []
    for calls in (1, 2, 3):
        assert next(tokens).tolist() == [1]
        assert len(recorder.shown) == calls
    assert next(tokens, None) is None and len(recorder.shown) == 3


def test_stream_restores_mode_and_recording_between_tokens():
    model = tiny_gpt(dropout=0.5)
    model.blocks[1].eval()
    before = all_modes(model)
    tokens = stream(model, PROMPTS, 5)
    for _ in range(2):  # and the iterator is left unfinished
        next(tokens)
        assert model(PROMPTS).requires_grad
        assert all_modes(model) == before
    assert len(set(before)) == 2


# The model afterwards ----------------------------------------------------------------------------


def all_modes(model):
    return [part.training for _, part in model.named_modules()]


@pytest.mark.parametrize("training", [True, False])
def test_dropout_is_off_while_generating_and_the_mode_is_restored(training):
    model = tiny_gpt(dropout=0.5)
    model.train(training)
    first, again = (model.generate(PROMPTS, 8, temperature=0).data for _ in range(2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, tiny_gpt().generate(PROMPTS, 8, temperature=0).data)
    assert set(all_modes(model)) == {training}


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "prompt", "options", "said"),
    [
        (ValueError, [], {}, "must be (batch, seq) or (seq,) with at least one token, got shape ("),
        (ValueError, 3, {}, "with at least one token, got shape ()"),
        (ValueError, [[[1]]], {}, "with at least one token, got shape (1, 1, 1)"),
        (ValueError, [[1, 2], [3]], {}, "the texts of a batch must be equally long; crop them"),
        (TypeError, [1.0], {}, "generate: token ids must be integers, got float64"),
        (TypeError, [True], {}, "generate: token ids must be integers, got bool"),
        (TypeError, [1], {"max_new_tokens": 2.5}, "max_new_tokens must be an integer, got 2.5"),
        (ValueError, [1], {"max_new_tokens": -1}, "generate: max_new_tokens must be >= 0, got -1"),
        (ValueError, [1], {"temperature": -1}, "temperature must be >= 0, got -1"),
        (ValueError, [1], {"temperature": float("nan")}, "temperature must be >= 0, got nan"),
        (TypeError, [1], {"temperature": "1"}, "temperature must be a number, got '1'"),
        (ValueError, [1], {"top_k": 0}, "top_k must be at least 1, got 0"),
        (TypeError, [1], {"top_k": 2.0}, "top_k must be an integer, got 2.0"),
        (ValueError, [1], {"top_p": 1.5}, "top_p must be in 0 < top_p <= 1, got 1.5"),
        (TypeError, [1], {"top_p": "0.9"}, "top_p must be a number, got '0.9'"),
        (ValueError, [1], {"overflow": "crop"}, "overflow must be 'slide' or 'error', got 'crop'"),
        (TypeError, [1], {"use_cache": "no"}, "use_cache must be True or False, got 'no'"),
        (TypeError, [1], {"stop_tokens": 5}, "stop_tokens must be ids such as [0], got 5"),
        (TypeError, [1], {"stop_tokens": None}, "stop_tokens must be ids such as [0], got None"),
        (TypeError, [1], {"stop_tokens": [1.5]}, "stop_tokens must be integers, got float64"),
        (IndexError, [1], {"stop_tokens": [3, 11]}, "stop token 11 at (1,) is outside 0..10; was"),
        (TypeError, [1], {"rng": "0"}, "rng must be a numpy Generator, a seed or None, got str; m"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_before_the_first_token(model, error, prompt, options, said):
    options = {"max_new_tokens": 2, **options}
    for write in (stream, generate):
        assert said in message(error, lambda write=write: write(model, prompt, **options))


@pytest.mark.parametrize(
    "stop", [[5], (5,), {5}, range(5, 6), iter([5]), np.array([5]), Tensor([5]), {5: "five"}]
)
def test_stop_tokens_may_be_any_collection_of_ids(stop):
    text = generate(Counter(), [3], 9, temperature=0, stop_tokens=stop)
    assert text.data.tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    ("length", "error", "said"),
    [
        (None, TypeError, "must be an integer, got None"),
        (2.0, TypeError, "must be an integer, got 2.0"),
        (0, ValueError, "must be at least 1, got 0"),
    ],
)
def test_model_without_a_window_is_refused(length, error, said):
    class Endless(Counter):
        max_seq_len = length

    found = message(error, lambda: stream(Endless(), [1], 2))
    assert found == f"generate: max_seq_len of Endless {said}"
    assert "max_seq_len of str must be" in message(TypeError, lambda: stream("model", [1], 2))


@pytest.mark.parametrize("shape", [(2, 10), (1, 3, 10), (2, 0, 10), (2, 3, 0), (2, 3, 1, 10)])
def test_model_that_returns_another_shape_is_refused(shape):
    class Other(Counter):
        def __call__(self, ids):
            return Tensor(np.zeros(shape))

    assert message(ValueError, lambda: generate(Other(), [[1, 2, 3]] * 2, 1)) == (
        "generate: a model must map ids (batch, seq) to logits (batch, seq, vocab); for 2 rows it "
        f"returned shape {shape}"
    )


def test_model_may_return_an_array():
    class Bare(Counter):
        def __call__(self, ids):
            return super().__call__(ids).data

    assert generate(Bare(), [3], 2, temperature=0).data.tolist() == [3, 4, 5]


def test_evaluation_mode_is_not_seen_by_another_thread():
    model = tiny_gpt(dropout=0.5)
    seen = []

    class Watched(Counter):
        def __call__(self, ids):
            thread = Thread(target=lambda: seen.append((model.training, model([1]).requires_grad)))
            thread.start()
            thread.join()
            seen.append((model.training, model([1]).requires_grad))
            return super().__call__(ids)

    generate(Watched(), [3], 1)
    assert seen == [(True, True), (False, False)]


def test_a_misspelt_option_is_named_with_the_function_that_was_called():
    for write in (GPT(5, 8, 1, 2).generate, partial(generate, None)):
        with pytest.raises(TypeError, match=r"^generate\(\) got an unexpected .*'tempratur'"):
            write([1, 2], 5, tempratur=1)


def test_generate_has_the_options_of_stream():
    assert signature(generate).parameters == signature(stream).parameters
    assert [*signature(stream).parameters][3:] == [*Options.__annotations__]

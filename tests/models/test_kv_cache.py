"""The cache: what it keeps, what a model computes with it, and what it refuses."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import LLAMA, message, normal, stirred, tiny_gpt

from tinytorch import GPT, MultiHeadAttention, Tensor, no_grad
from tinytorch.models.kv_cache import KVCache, SlidingWindow

POSITIONS = ["learned", "sinusoidal", "rotary", "alibi", None]
KINDS = [
    *({"pos_encoding": kind} for kind in POSITIONS),
    *({"pos_encoding": kind, "pre_norm": False, "tie_weights": False} for kind in POSITIONS),
    LLAMA,
    {**LLAMA, "pos_encoding": "alibi", "attention": partial(MultiHeadAttention, num_kv_heads=1)},
]
IDS = np.random.default_rng(0).integers(0, 11, size=(3, 16))


def read_in_pieces(model, ids, pieces, cache=None):
    """The logits of every position, the text read piece by piece with a cache."""
    cache = KVCache(len(model.blocks), model.max_seq_len) if cache is None else cache
    found, start = [], 0
    with no_grad():
        for n in pieces:
            found.append(model(ids[:, start : start + n], cache=cache).data)
            start += n
            assert cache.length == start
    return np.concatenate(found, axis=1)


# With a model ------------------------------------------------------------------------------------


@given(
    pieces=st.lists(st.integers(1, 6), min_size=1, max_size=6).filter(lambda x: sum(x) <= 16),
    options=st.sampled_from(KINDS),
    batch=st.integers(1, 3),
)
def test_chunks_of_any_length_give_the_same_logits(pieces, options, batch):
    model, ids = stirred(tiny_gpt(**options)), IDS[:batch, : sum(pieces)]
    cached = read_in_pieces(model, ids, pieces)
    np.testing.assert_allclose(cached, model(ids).data, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("options", KINDS)
def test_last_only_returns_the_last_row(options):
    model = stirred(tiny_gpt(**options))
    whole = model(IDS)
    last = model(IDS, last_only=True)
    assert last.shape == (3, 1, 11)
    np.testing.assert_allclose(last.data[:, 0], whole.data[:, -1], rtol=1e-12, atol=1e-12)
    assert model(IDS[0], last_only=True).shape == (1, 11)


def test_cleared_cache_behaves_like_a_new_one():
    model, cache = stirred(tiny_gpt()), KVCache(2, 16)
    read_in_pieces(model, IDS, [7, 1], cache)
    cache.clear()
    assert (cache.length, cache.nbytes) == (0, 0)
    other = IDS[:2, ::-1]  # another batch
    np.testing.assert_array_equal(
        read_in_pieces(model, other, [4, 1], cache), read_in_pieces(model, other, [4, 1])
    )


def test_failed_forward_leaves_the_cache_unchanged():
    model, cache = stirred(tiny_gpt()), KVCache(2, 16)
    read_in_pieces(model, IDS, [4], cache)
    later, model.blocks[1].forward = model.blocks[1].forward, None  # the second layer fails
    with no_grad(), pytest.raises(TypeError):
        model(IDS[:, :3], cache=cache)
    model.blocks[1].forward = later
    assert cache.length == 4
    with no_grad():
        found = model(IDS[:, 4:6], cache=cache).data
    np.testing.assert_allclose(found, model(IDS[:, :6]).data[:, 4:], rtol=1e-12, atol=1e-12)


# What it keeps -----------------------------------------------------------------------------------


def test_cache_allocates_two_full_length_arrays_per_layer():
    batch, layers, length, d = 3, 4, 20, 12
    model, cache = GPT(11, d, layers, 3, length), KVCache(layers, length)
    assert cache.nbytes == 0
    for _ in range(2):
        with no_grad():
            model(IDS[:, :2], cache=cache)
        assert cache.nbytes == 2 * layers * batch * length * d * 4


def test_keys_are_appended_and_returned_as_views():
    cache = KVCache(2, 5)
    k, v = normal(1, 2, 3, 4), normal(1, 2, 3, 4, seed=1)
    for layer in (0, 1):
        keys, values = cache.extend(layer, k + layer, v)
        np.testing.assert_array_equal(keys, k + layer)
        np.testing.assert_array_equal(values, v)
    assert cache.length == 0  # until all layers have stored theirs
    cache.advance(3)
    new = normal(1, 2, 2, 4, seed=2)
    keys, values = cache.layer(0).extend(Tensor(new, dtype=np.float64), -new)
    np.testing.assert_array_equal(keys, np.concatenate([k, new], axis=2))
    np.testing.assert_array_equal(values, np.concatenate([v, -new], axis=2))
    assert keys.base is not None and keys.base.shape == (1, 2, 5, 4)  # nothing was copied
    assert isinstance(keys, np.ndarray)


# The window --------------------------------------------------------------------------------------


def window_of(length, max_seq_len, cache=None):
    return SlidingWindow(np.arange(2 * length).reshape(2, length), max_seq_len, cache)


@given(prompt=st.integers(1, 40), max_seq_len=st.integers(1, 12), new=st.lists(st.integers(0, 99)))
def test_window_is_the_text_from_the_first_multiple_of_half_at_which_it_fits(
    prompt, max_seq_len, new
):
    window, text = window_of(prompt, max_seq_len), np.arange(2 * prompt).reshape(2, prompt)
    for token in [None, *new]:
        if token is not None:
            window.append(np.array([token, token + 1]))
            text = np.concatenate([text, [[token], [token + 1]]], axis=1)
        start = 0
        while text.shape[1] - start > max_seq_len:
            start += max(1, max_seq_len // 2)
        assert window.start == start
        np.testing.assert_array_equal(window.ids, text[:, start:])


def test_full_window_drops_half_and_clears_its_cache():
    cache = KVCache(1, 6)
    window = window_of(5, 6, cache)
    assert window.unread.tolist() == window.ids.tolist()
    cache.extend(0, *[normal(2, 1, 5, 2)] * 2)
    cache.advance(5)
    window.append(np.array([20, 21]))
    assert window.unread.tolist() == [[20], [21]] and cache.length == 5
    window.append(np.array([30, 31]))
    assert window.ids.tolist() == [[3, 4, 20, 30], [8, 9, 21, 31]]
    assert (window.start, cache.length, cache.nbytes) == (3, 0, 0)
    assert window.unread.tolist() == window.ids.tolist()


# What it refuses ---------------------------------------------------------------------------------

K = normal(1, 2, 3, 4)


def read(ids, cache, model=None):
    """Read ids into a cache that a text of three rows is in."""
    with no_grad():
        tiny_gpt()(IDS[:, :4], cache=cache)
        (model or tiny_gpt())(ids, cache=cache)


@pytest.mark.parametrize(
    ("error", "fails", "said"),
    [
        (ValueError, lambda: tiny_gpt()(IDS, cache=KVCache(2, 16)), "are stored without a gradien"),
        (ValueError, lambda: read(IDS[:2, :1], KVCache(2, 16)), "got float32 (2, 2, 1, 4); clear("),
        (ValueError, lambda: read(IDS[:, :1], KVCache(2, 16), stirred(tiny_gpt())), "got float64"),
        (ValueError, lambda: KVCache(2, 16).extend(0, K[0], K[0]), "must both be (batch, heads, n"),
        (ValueError, lambda: KVCache(2, 16).extend(0, K, K[:, :, :2]), "values (1, 2, 2, 4) must"),
        (IndexError, lambda: KVCache(1, 4).extend(1, K, K), "there is no layer 1 in 0..0; make th"),
        (IndexError, lambda: KVCache(1, 4).layer(-1), "there is no layer -1 in 0..0"),
        (ValueError, lambda: window_of(3, 0), "max_seq_len must be at least 1, got 0"),
        (ValueError, lambda: KVCache(0, 4), "num_layers must be at least 1, got 0"),
        (TypeError, lambda: KVCache(1, 4.0), "max_seq_len must be an integer, got 4.0"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_the_reason(error, fails, said):
    assert said in message(error, fails)


def test_text_beyond_the_end_is_refused_before_anything_is_stored():
    model, cache = tiny_gpt(), KVCache(2, 16)
    read_in_pieces(model, IDS, [14], cache)
    said = (
        "length 3 after 14 exceeds max_seq_len 16; "
        "clear the cache and read the end of the text again"
    )
    with no_grad():
        assert message(ValueError, lambda: model(IDS[:, :3], cache=cache)) == said
        assert message(ValueError, lambda: cache.extend(0, *[normal(3, 2, 3, 4)] * 2)) == said
    assert message(ValueError, lambda: cache.advance(3)) == said
    assert cache.length == 14


@pytest.mark.parametrize("kind", POSITIONS)
def test_larger_cache_does_not_lengthen_the_model(kind):
    model, cache = tiny_gpt(max_seq_len=4, pos_encoding=kind), KVCache(2, 16)
    read_in_pieces(model, IDS, [4], cache)
    with no_grad(), pytest.raises(ValueError, match="length 1 after 4 exceeds max_seq_len 4"):
        model(IDS[:, :1], cache=cache)


def test_layer_that_stored_nothing_is_named():
    class Forgetful(MultiHeadAttention):
        def forward(self, query, mask=None, cache=None):
            return super().forward(query, mask=mask)

    model, cache = tiny_gpt(), KVCache(2, 16)
    model.blocks[1].attention = Forgetful(8, 2)
    with no_grad():
        assert message(ValueError, lambda: model(IDS[:, :3], cache=cache)) == (
            "KVCache: of 3 tokens layer 1 has stored 0, so it cannot look back; call "
            "cache.extend(k, v) once in its forward, or read the whole text without a cache"
        )
    assert cache.length == 0
    said = message(ValueError, lambda: KVCache(1, 3).advance(2))
    assert said.startswith("KVCache: of 2 tokens layer 0 has stored 0, so it cannot look back; ")


def test_forgotten_tokens_are_gone_from_every_layer():
    cache, three = KVCache(num_layers=1, max_seq_len=4), np.ones((1, 1, 3, 2))
    cache.extend(0, three, three)
    cache.advance(3)
    cache.forget(2)
    with pytest.raises(ValueError, match="layer 0 has stored 2"):  # of three
        cache.advance(1)
    keys, _ = cache.extend(0, 5 * three[:, :, :1], three[:, :, :1])
    assert keys[0, 0, :, 0].tolist() == [1, 1, 5]
    cache.advance(1)
    for length in (4, -1):
        with pytest.raises(ValueError, match="keep 0 to 3"):
            cache.forget(length)

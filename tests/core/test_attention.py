"""Attention: the fused operation, its composed twin, the mask convention, and the heads."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from exact_numbers import exact, in_float64, message, normal
from hypothesis import given
from hypothesis import strategies as st

from tinytorch import (
    MultiHeadAttention,
    Tensor,
    causal_mask,
    check_gradients,
    functional,
    scaled_dot_product_attention,
)
from tinytorch.text.embeddings import apply_rotary, create_alibi_bias, create_rotary_embeddings

BLOCKED = -np.inf


# One formula, twice ------------------------------------------------------------------------------


@st.composite
def masked_shapes(draw):
    """Lengths, heads and a mask that blocks any pairs, whole queries included."""
    batch, heads, queries, keys, d = (draw(st.integers(1, 4)) for _ in range(5))
    seed, share = draw(st.integers(0, 999)), draw(st.sampled_from([0.0, 0.3, 0.8, 1.0]))
    blocked = np.random.default_rng(seed).random((batch, heads, queries, keys)) < share
    shapes = [(batch, heads, queries, d), (batch, heads, keys, d), (batch, heads, keys, d)]
    return shapes, np.where(blocked, BLOCKED, 0.0)


@given(case=masked_shapes())
def test_weights_are_probabilities_over_unblocked_keys(case):
    shapes, mask = case
    q, k, v = (normal(*shape, seed=i) for i, shape in enumerate(shapes))
    output, weights = scaled_dot_product_attention(q, k, v, mask)
    assert (weights.data >= 0).all()
    assert (weights.data[np.isneginf(mask)] == 0).all()
    some = ~np.isneginf(mask).all(axis=-1)
    np.testing.assert_allclose(weights.data.sum(axis=-1), some, rtol=1e-6)
    fused = functional.attention(q, k, v, mask=mask)
    np.testing.assert_allclose(fused.data, output.data, rtol=1e-5, atol=1e-6)


def test_scores_are_divided_by_the_root_of_the_head_size():
    q, k = np.full((1, 16), 1.0), np.array([[0.5] * 16, [0.0] * 16])
    _, weights = scaled_dot_product_attention(q, k, np.zeros((2, 1)))
    assert weights.data[0, 0] == pytest.approx(
        1 / (1 + np.exp(-8 / 4))
    )  # 8, not 8 / 4, is saturated
    value = functional.attention(q, k, [[1.0], [0.0]])
    assert value.item() == pytest.approx(1 / (1 + np.exp(-2)))


def test_integer_queries_are_computed_as_floats():
    q, k, v = np.array([[1, 0]]), np.array([[1, 0], [0, 1]]), np.array([[1], [0]])
    expected = 1 / (1 + np.exp(-(2**-0.5)))
    assert functional.attention(q, k, v).item() == pytest.approx(expected)
    assert functional.attention(q, k, v, mask=[[0.0, BLOCKED]]).item() == 1.0


def test_gradients_of_attention_match_finite_differences():
    q, k, v = normal(2, 3, 4), normal(2, 5, 4, seed=1), normal(2, 5, 2, seed=2)
    mask = np.where(normal(3, 5, seed=3) > 0.5, BLOCKED, normal(3, 5, seed=4))
    found = check_gradients(lambda *qkv: functional.attention(*qkv, bias=mask), q, k, v, tol=1e-8)
    assert found, found


# Masks: one convention ---------------------------------------------------------------------------


def test_causal_mask_of_three():
    expected = [[0, BLOCKED, BLOCKED], [0, 0, BLOCKED], [0, 0, 0]]
    assert causal_mask(3).tolist() == expected
    assert causal_mask(3).dtype == np.float32


def test_zero_keeps_and_minus_infinity_blocks():
    q, k, v = np.ones((1, 2)), np.ones((3, 2)), np.array([[3.0], [6.0], [100.0]])
    assert functional.attention(q, k, v, mask=[0.0, 0.0, BLOCKED]).item() == 4.5
    _, weights = scaled_dot_product_attention(q, k, v, [0.0, 0.0, BLOCKED])
    assert weights.data.tolist() == [[0.5, 0.5, 0.0]]


def test_bias_is_added_to_the_scores_after_they_are_scaled():
    _, weights = scaled_dot_product_attention(
        np.zeros((1, 4)), np.zeros((2, 4)), [[1], [2]], bias=[0, 1]
    )
    assert weights.data[0, 1] == pytest.approx(1 / (1 + np.exp(-1)))


@pytest.mark.parametrize("shape", [(), (4,), (3, 1), (3, 4), (2, 1, 1, 4), (1, 3, 4), (2, 5, 3, 4)])
def test_mask_broadcasts_over_batch_heads_queries_and_keys(shape):
    mask = np.where(normal(*shape, seed=5) > 0.7, BLOCKED, 0.0)
    q, k, v = normal(2, 5, 3, 4), normal(2, 5, 4, 4, seed=1), normal(2, 5, 4, 4, seed=2)
    full = functional.attention(q, k, v, mask=np.broadcast_to(mask, (2, 5, 3, 4)))
    np.testing.assert_array_equal(functional.attention(q, k, v, mask=mask).data, full.data)


@pytest.mark.parametrize("with_weights", [False, True])
def test_fully_masked_query_returns_zeros_and_passes_no_gradient(with_weights):
    mask = np.array([[0.0, 0.0, 0.0], [BLOCKED] * 3])
    q, k, v = exact(2, 4), exact(3, 4, seed=1), exact(3, 2, seed=2)
    if with_weights:
        result, weights = scaled_dot_product_attention(q, k, v, mask)
        assert weights.data[1].tolist() == [0, 0, 0]
    else:
        result = functional.attention(q, k, v, mask=mask)
    assert result.data[1].tolist() == [0, 0] and (result.data[0] != 0).all()
    result.backward([[0.0, 0.0], [5.0, -7.0]])  # upstream only at the query that sees nothing
    for operand in (q, k, v):
        assert (operand.grad == 0).all()


# Dropout -----------------------------------------------------------------------------------------


def test_dropout_is_active_only_in_training():
    layer, x = MultiHeadAttention(8, 2, dropout_prob=0.5, rng=0), normal(1, 6, 8)
    assert np.abs(layer(x).data - layer(x).data).max() > 1e-3  # another choice each time
    layer.eval()
    sure = layer(x).data
    np.testing.assert_array_equal(layer(x).data, sure)
    layer.dropout_prob = 0.0
    np.testing.assert_array_equal(layer.train()(x).data, sure)


# Heads -------------------------------------------------------------------------------------------


def by_loops(layer, query, key, value, mask=None):
    """Multi-head attention as the paper writes it: each head by itself, then side by side."""
    p = {name: parameter.data for name, parameter in layer.named_parameters()}
    q, k, v = (
        x @ p[f"{name}_proj.weight"] + p[f"{name}_proj.bias"]
        for name, x in (("q", query), ("k", key), ("v", value))
    )
    d, result = layer.embed_dim // layer.num_heads, np.empty_like(q)
    for b in range(len(q)):
        for h in range(layer.num_heads):
            own = slice(h * d, (h + 1) * d)
            for i in range(q.shape[1]):
                scores = np.array([q[b, i, own] @ row for row in k[b, :, own]]) / d**0.5
                if mask is not None:
                    scores = scores + (mask[h, i] if mask.ndim == 3 else mask[i])
                weights = np.exp(scores) / np.exp(scores).sum()
                result[b, i, own] = weights @ v[b, :, own]
    return result @ p["out_proj.weight"] + p["out_proj.bias"]


def random_layer(embed_dim, num_heads, **options):
    layer = in_float64(MultiHeadAttention(embed_dim, num_heads, rng=1, **options))
    for i, p in enumerate(layer.parameters()):  # biases too
        p.data[...] = normal(*p.shape, seed=100 + i) / (embed_dim**0.5)
    return layer


@given(
    sizes=st.tuples(*[st.integers(1, 3)] * 3),
    queries=st.integers(1, 5),
    keys=st.integers(1, 5),
    kind=st.sampled_from(["none", "keys", "heads"]),
)
def test_cross_attention_matches_a_loop_over_heads(sizes, queries, keys, kind):
    batch, num_heads, head_dim = sizes
    d = num_heads * head_dim
    layer = random_layer(d, num_heads)
    query, key, value = (normal(batch, n, d, seed=i) for i, n in enumerate((queries, keys, keys)))
    shape = {"none": None, "keys": (queries, keys), "heads": (num_heads, queries, keys)}[kind]
    mask = None if shape is None else np.where(normal(*shape, seed=8) > 0.5, BLOCKED, 0.0)
    if mask is not None:
        mask[..., 0] = 0  # every query sees a key
    tensors = [Tensor(x, dtype=np.float64) for x in (query, key, value)]
    result = layer(*tensors, mask=mask[None] if kind == "heads" else mask)
    assert result.shape == (batch, queries, d)
    expected = by_loops(layer, query, key, value, mask)
    np.testing.assert_allclose(result.data, expected, rtol=1e-11, atol=1e-13)


def test_without_key_and_value_it_is_self_attention():
    layer, x, memory = random_layer(6, 2), exact(2, 3, 6), exact(2, 5, 6, seed=1)
    np.testing.assert_array_equal(layer(x).data, layer(x, x, x).data)
    np.testing.assert_array_equal(layer(x, memory).data, layer(x, memory, memory).data)
    np.testing.assert_array_equal(
        layer.forward(x, value=memory[:, :3]).data, layer(x, x, memory[:, :3]).data
    )


def test_gradients_of_every_parameter_and_of_all_three_inputs():
    layer = random_layer(4, 2)
    query, key, value = normal(2, 3, 4), normal(2, 4, 4, seed=1), normal(2, 4, 4, seed=2)
    found = check_gradients(layer, query, key, value, tol=1e-8)
    assert found and found.count == 4 * (16 + 4) + 24 + 32 + 32, found


def test_parameters_have_documented_names_and_sizes():
    layer = MultiHeadAttention(512, 8)
    names = [name for name, _ in layer.named_parameters()]
    assert names == [f"{x}_proj.{y}" for x in ("q", "k", "v", "out") for y in ("weight", "bias")]
    assert sum(p.size for p in layer.parameters()) == 1_050_624


def test_one_seed_draws_the_four_projections_differently():
    layer = MultiHeadAttention(8, 2, rng=0)
    weights = [p.data for p in layer.parameters() if p.ndim == 2]
    for i, weight in enumerate(weights):
        assert not any((weight == other).all() for other in weights[:i])
    again = MultiHeadAttention(8, 2, rng=0)
    np.testing.assert_array_equal(again.q_proj.weight.data, layer.q_proj.weight.data)


# Grouped queries ---------------------------------------------------------------------------------


def grouped_and_its_twin(num_kv_heads, num_heads=4, **options):
    """A layer with shared keys and values, and one with a copy of them for every head."""
    layer = random_layer(8, num_heads, num_kv_heads=num_kv_heads, **options)
    twin = random_layer(8, num_heads, **options)
    head = 8 // num_heads
    state = layer.state_dict()
    for name in ("k_proj.weight", "k_proj.bias", "v_proj.weight", "v_proj.bias"):
        heads = np.split(state[name], num_kv_heads, axis=-1)
        copies = [heads[h * num_kv_heads // num_heads] for h in range(num_heads)]
        state[name] = np.concatenate(copies, axis=-1)
        assert state[name].shape[-1] == num_heads * head
    twin.load_state_dict(state)
    return layer, twin


@pytest.mark.parametrize("num_kv_heads", [1, 2, 4])
@pytest.mark.parametrize(
    "mask", [None, causal_mask(5), np.where(normal(2, 4, 5, 5) > 1, BLOCKED, 0)]
)
def test_heads_of_a_group_share_keys_and_values(num_kv_heads, mask):
    layer, twin = grouped_and_its_twin(num_kv_heads, bias=create_alibi_bias(4, 5))
    assert layer.k_proj.weight.shape == layer.v_proj.weight.shape == (8, 2 * num_kv_heads)
    x = exact(2, 5, 8)
    np.testing.assert_allclose(layer(x, mask=mask).data, twin(x, mask=mask).data, rtol=1e-12)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_bias_that_is_nan_or_infinity_is_refused(number):
    x, bias = np.ones((1, 2, 4)), np.array([[0.0, number], [0.0, -np.inf]])
    said = "attention: a bias holds numbers or -inf, but this one has nan or inf"
    for given_bias in (bias, bias.tolist(), Tensor(bias, requires_grad=True)):
        for attend in (functional.attention, scaled_dot_product_attention):
            if attend is scaled_dot_product_attention or not isinstance(given_bias, Tensor):
                call = partial(attend, x, x, x, bias=given_bias)
                assert message(ValueError, call) == said
    layer = MultiHeadAttention(4, 2, bias=np.stack([bias, bias]))
    assert message(ValueError, lambda: layer(x)) == said


def test_projections_without_a_bias():
    layer = MultiHeadAttention(8, 4, num_kv_heads=2, projection_bias=False)
    shapes = {name: p.shape for name, p in layer.named_parameters()}
    assert shapes == {
        "q_proj.weight": (8, 8),
        "k_proj.weight": (8, 4),
        "v_proj.weight": (8, 4),
        "out_proj.weight": (8, 8),
    }


# Positions inside attention ----------------------------------------------------------------------


def rotary_layer(embed_dim=8, num_heads=2):
    cos, sin = create_rotary_embeddings(64, embed_dim // num_heads)
    return random_layer(embed_dim, num_heads, rotate=lambda x: apply_rotary(x, cos, sin))


def alibi_layer(embed_dim=8, num_heads=2, length=64):
    return random_layer(embed_dim, num_heads, bias=create_alibi_bias(num_heads, length))


def window_mask(length, start):
    """Causal, and nothing before `start` is seen."""
    mask = causal_mask(length)
    mask[:, :start] = BLOCKED
    return mask


@pytest.mark.parametrize("make", [rotary_layer, alibi_layer])
def test_relative_positions_make_attention_depend_on_distances_only(make):
    layer, text = make(), normal(1, 5, 8)
    here = layer(Tensor(text, dtype=np.float64), mask=causal_mask(5)).data
    later = np.concatenate([normal(1, 20, 8, seed=1), text], axis=1)
    there = layer(Tensor(later, dtype=np.float64), mask=window_mask(25, 20)).data[:, 20:]
    # the rotary tables are float32: seven digits of every angle's sine and cosine
    np.testing.assert_allclose(there, here, atol=1e-6)


class Kept:
    """The least that a layer needs of a cache."""

    def __init__(self):
        self.stored, self.length = [], 0

    def extend(self, k, v):
        self.stored.append((k.data, v.data))
        self.length += k.shape[2]
        return tuple(np.concatenate(parts, axis=2) for parts in zip(*self.stored, strict=True))


def rotary_from(embed_dim=8, num_heads=2):
    cos, sin = create_rotary_embeddings(64, embed_dim // num_heads)
    turn = lambda x, start=0: apply_rotary(x, cos, sin, start=start)  # noqa: E731
    return random_layer(embed_dim, num_heads, rotate=turn)


@pytest.mark.parametrize("make", [rotary_from, alibi_layer, lambda: random_layer(8, 2)])
@pytest.mark.parametrize("pieces", [[5], [1, 1, 1, 1, 1], [2, 3], [3, 1, 1]])
def test_cached_attention_in_chunks_matches_one_pass(make, pieces):
    layer, x, cache, found = make(), exact(2, 5, 8), Kept(), []
    for n in pieces:
        past = cache.length
        found.append(layer(x[:, past : past + n], mask=causal_mask(n, past), cache=cache).data)
    whole = layer(x, mask=causal_mask(5)).data
    np.testing.assert_allclose(np.concatenate(found, axis=1), whole, rtol=1e-12, atol=1e-13)


# Bad input ---------------------------------------------------------------------------------------

ONES, MIXED = np.ones, MultiHeadAttention
attend, by_steps, KEEP = functional.attention, scaled_dot_product_attention, np.tri(2, dtype=bool)
biased = MultiHeadAttention(4, 2, bias=create_alibi_bias(2, 5))


@pytest.mark.parametrize(
    ("error", "fails", "said"),
    [
        (ValueError, lambda: attend(ONES((2, 4)), ONES((3, 5)), ONES((3, 4))), "must have the sam"),
        (ValueError, lambda: attend(ONES((2, 4)), ONES((5, 4)), ONES((6, 4))), "5 keys (5, 4) nee"),
        (ValueError, lambda: by_steps(ONES(4), ONES((3, 4)), ONES((3, 4))), "need two axes"),
        (TypeError, lambda: attend(*[ONES((2, 4))] * 3, mask=KEEP), "0 keeps and -inf blocks; got"),
        (TypeError, lambda: by_steps(*[ONES((2, 4))] * 3, KEEP), "got Booleans, convert with np.w"),
        (TypeError, lambda: biased(ONES((1, 2, 4)), mask=KEEP), "got Booleans"),
        (ValueError, lambda: attend(*[ONES((2, 4))] * 3, dropout=1.0), "must be in 0 <= dropout <"),
        (ValueError, lambda: MIXED(4, 2, dropout_prob=-0.1), "must be in 0 <= dropout_prob < 1, g"),
        (ValueError, lambda: MIXED(10, 3), "3 heads do not divide embed_dim 10; each head gets em"),
        (ValueError, lambda: MIXED(4, 0), "num_heads must be at least 1, got 0"),
        (TypeError, lambda: MIXED(4, 2.0), "num_heads must be an integer, got 2.0"),
        (ValueError, lambda: MIXED(8, 4, num_kv_heads=3), "num_kv_heads 3 does not divide num_hea"),
        (ValueError, lambda: MIXED(8, 4, num_kv_heads=0), "num_kv_heads must be at least 1, got 0"),
        (TypeError, lambda: MIXED(8, 4, projection_bias=None), "projection_bias must be True or F"),
        (ValueError, lambda: biased(ONES((1, 6, 4))), "6 positions exceed the bias, which is (2"),
        (ValueError, lambda: biased(ONES((1, 2, 4)), ONES((1, 6, 4))), "6 positions exceed the bi"),
        (ValueError, lambda: MIXED(4, 2)(*[ONES((1, 2, 4))] * 2, cache=Kept()), "pass no key and"),
        (ValueError, lambda: causal_mask(0), "seq_len must be at least 1, got 0"),
        (ValueError, lambda: causal_mask(2, -1), "past must be >= 0, got -1"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_the_reason(error, fails, said):
    assert said in message(error, fails)


ONES = np.ones


@pytest.mark.parametrize("f", [functional.attention, scaled_dot_product_attention])
@pytest.mark.parametrize("shape", [(3, 3), (2,), (2, 1, 3), (7, 2, 3)])
def test_mask_that_does_not_broadcast_is_refused(f, shape):
    q, kv = ONES((2, 4)), ONES((3, 4))
    assert message(ValueError, lambda: f(q, kv, kv, mask=np.zeros(shape))) == (
        f"attention: mask {shape} does not broadcast to the scores (2, 3)"
    )


@pytest.mark.parametrize("shape", [(5, 4), (1, 5, 6), (4,), (1, 2, 5, 4)])
def test_input_of_the_wrong_shape_is_refused_by_its_name(shape):
    layer, x = MultiHeadAttention(4, 2), ONES((1, 5, 4))
    for name in ("query", "key", "value"):
        inputs = {"query": x, "key": x, "value": x, name: ONES(shape)}
        assert message(ValueError, lambda inputs=inputs: layer(**inputs)) == (
            f"MultiHeadAttention: {name} must be (batch, seq, 4), got shape {shape}"
        )


# What it costs -----------------------------------------------------------------------------------


def bytes_of_attention(length, f=functional.attention):
    """The peak of the memory taken by one attention of `length`, and what its graph keeps."""
    q, k, v = (Tensor(normal(length, 8, seed=i), requires_grad=True) for i in range(3))
    mask = causal_mask(length)
    tracemalloc.start()
    result = f(q, k, v, mask=mask)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.requires_grad
    return peak, kept


def test_causal_mask_halves_the_memory_kept_for_backward():
    square = 1024**2 * 4
    peak, kept = bytes_of_attention(1024)
    assert 0.5 * square < kept < 0.6 * square
    assert peak < 0.8 * square  # checking the mask takes Booleans of its size
    peak, kept = bytes_of_attention(1024, lambda *qkv, mask: functional.attention(*qkv))
    assert square <= kept < 1.1 * square
    assert peak < 1.2 * square


# The fused operation and the one that can be read -------------------------------------------------


def outcome(f, arrays, upstream=None):
    """The value and the gradients of `f` at these very arrays, not at copies of them."""
    tensors = [Tensor(0.0, requires_grad=True) for _ in arrays]
    for tensor, array in zip(tensors, arrays, strict=True):
        tensor.data = array
    result = f(*tensors)
    if upstream is None:
        upstream = normal(*result.shape, seed=9).astype(result.dtype)
    result.backward(upstream)
    return [result.data, *(tensor.grad for tensor in tensors)]


def fused(mask=None, **options):
    return lambda q, k, v: functional.attention(q, k, v, mask=mask, **options)


def composed(mask=None, bias=None):
    return lambda q, k, v: scaled_dot_product_attention(q, k, v, mask, bias)[0]


def assert_same(found, expected, tolerance=1e-12):
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def sevenths(*shape):
    """Numbers to add that block pairs here and there and move the others."""
    return np.where(normal(*shape, seed=5) > 0.6, BLOCKED, normal(*shape, seed=6))


def without_sight(*queries, length=7):
    mask = causal_mask(length)
    mask[list(queries)] = BLOCKED
    return mask


HEADS = [(3, 2, 7, 4)] * 3
LATE = [(3, 2, 3, 4), (3, 2, 7, 4), (3, 2, 7, 4)]  # three queries after four cached keys
TABLES = {
    "none": (HEADS, None),
    "causal": (HEADS, causal_mask(7)),
    "causal with a past": (LATE, causal_mask(3, past=4)),
    "one query": ([(3, 2, 1, 4), *HEADS[1:]], None),
    "alibi": (HEADS, create_alibi_bias(2, 7) + causal_mask(7)),
    "each text its own": (HEADS, sevenths(3, 1, 7, 7)),
    "each text and head its own": (HEADS, sevenths(3, 2, 7, 7)),
    "keys alone": (HEADS, sevenths(7)),
    "queries alone": (HEADS, np.where(normal(7, 1) > 0, BLOCKED, 0.0)),
    "one number": (HEADS, np.array(-0.5)),
    "first queries see nothing": (HEADS, without_sight(0, 1, 2)),
    "queries in the middle see nothing": (HEADS, without_sight(3, 4)),
    "nothing is seen": (HEADS, np.full((7, 7), BLOCKED)),
    "a window": (HEADS, np.where(np.tri(7, k=-3) > 0, BLOCKED, causal_mask(7))),
    "only the last key": (HEADS, np.where(np.arange(7) == 6, 0.0, BLOCKED)),
    "no batch": ([(7, 4)] * 3, causal_mask(7)),
    "one head for all": ([(3, 2, 7, 4), (3, 1, 7, 4), (3, 1, 7, 5)], causal_mask(7)),
    "one text of keys for all": ([(3, 2, 7, 4), (2, 7, 4), (7, 5)], sevenths(3, 1, 7, 7)),
    "one query for all": ([(1, 4), (3, 2, 7, 4), (3, 2, 7, 5)], sevenths(2, 1, 7)),
    "axes that cross": ([(3, 1, 7, 4), (1, 2, 7, 4), (3, 2, 7, 5)], sevenths(2, 7, 7)),
    "more values than scores": ([(2, 7, 4), (2, 7, 4), (3, 2, 7, 5)], sevenths(2, 7, 7)),
    "values of one for each head": ([(2, 7, 4), (1, 7, 4), (3, 1, 7, 5)], causal_mask(7)),
}


@pytest.mark.parametrize("case", TABLES)
def test_fused_attention_matches_the_readable_form(case):
    shapes, table = TABLES[case]
    arrays = [normal(*shape, seed=i) for i, shape in enumerate(shapes)]
    assert_same(outcome(fused(bias=table), arrays), outcome(composed(bias=table), arrays))


@pytest.mark.parametrize("layout", ["F", "heads split", "spaced"])
def test_attention_accepts_any_memory_layout(layout):
    lay = {
        "F": np.asfortranarray,
        "heads split": lambda a: np.ascontiguousarray(a.swapaxes(1, 2)).swapaxes(1, 2),
        "spaced": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    }[layout]
    arrays = [normal(*shape, seed=i) for i, shape in enumerate(HEADS)]
    bias = np.asfortranarray(sevenths(2, 7, 7))
    expected = outcome(composed(bias=bias), arrays)
    upstream = lay(normal(*expected[0].shape, seed=9))
    assert_same(outcome(fused(bias=bias), list(map(lay, arrays)), upstream), expected)


def test_chunked_dropout_matches_dropout_of_the_whole_table():
    shapes, mask = TABLES["values of one for each head"]
    kept = (np.random.default_rng(3).random((2, 7, 7)) >= 0.5) * 2.0

    def by_hand(q, k, v):
        _, weights = scaled_dot_product_attention(q, k, v, mask)
        return (weights * kept) @ v

    arrays = [normal(*shape, seed=i) for i, shape in enumerate(shapes)]
    assert_same(outcome(fused(mask, dropout=0.5, rng=3), arrays), outcome(by_hand, arrays))

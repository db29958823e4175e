"""Tokens and positions as vectors."""

import numpy as np
import pytest
from exact_numbers import message
from hypothesis import given
from hypothesis import strategies as st

from tinytorch import Tensor
from tinytorch.text.embeddings import (
    Embedding,
    EmbeddingLayer,
    PositionalEncoding,
    alibi_slopes,
    apply_rotary,
    create_alibi_bias,
    create_rotary_embeddings,
    create_sinusoidal_embeddings,
)


def table(layer, rows):
    """Replace the weights of an Embedding by numbers that can be read."""
    layer.load_state_dict({"weight": np.array(rows, dtype=np.float32)})
    return layer


# Embedding ---------------------------------------------------------------------------------------


def test_embedding_is_initialised_xavier_uniform():
    weight = Embedding(300, 100, rng=0).weight.data
    limit = np.sqrt(6 / 400)
    assert weight.dtype == np.float32
    assert 0.99 * limit < np.abs(weight).max() <= limit
    assert abs(weight.mean()) < 0.002
    assert weight.std() == pytest.approx(limit / np.sqrt(3), rel=0.01)


def test_gradient_of_a_repeated_token_is_summed():
    layer = Embedding(5, 2)
    layer([[3, 1, 3], [3, 0, 1]]).backward(
        [[[1, 10], [2, 20], [3, 30]], [[4, 40], [5, 50], [6, 60]]]
    )
    assert layer.weight.grad.tolist() == [[5, 50], [8, 80], [0, 0], [8, 80], [0, 0]]


# Learned positions -------------------------------------------------------------------------------


def test_first_positions_are_added_to_every_sequence_of_the_batch():
    layer = PositionalEncoding(3, 2)
    layer.load_state_dict({"position_embeddings": np.array([[1, 2], [3, 4], [5, 6]])})
    y = layer(Tensor([[[10.0, 10.0], [20.0, 20.0]], [[0.0, 0.0], [0.0, 0.0]]]))
    assert y.data.tolist() == [[[11, 12], [23, 24]], [[1, 2], [3, 4]]]


def test_position_gradient_is_summed_over_the_batch_and_zero_past_the_sequence():
    layer, x = PositionalEncoding(3, 1), Tensor(np.zeros((2, 2, 1)), requires_grad=True)
    layer(x).backward([[[1], [2]], [[10], [20]]])
    assert layer.position_embeddings.grad.tolist() == [[11], [22], [0]]
    assert x.grad.tolist() == [[[1], [2]], [[10], [20]]]


def test_two_axes_are_refused_with_a_remedy():
    assert message(ValueError, lambda: PositionalEncoding(16, 4)(np.zeros((3, 4)))) == (
        "PositionalEncoding: expected (batch, seq, 4), got shape (3, 4); "
        "add a batch axis with x.reshape(1, *x.shape)"
    )


def test_start_shifts_the_added_positions():
    layer = PositionalEncoding(6, 2)
    table = layer.position_embeddings.data
    np.testing.assert_array_equal(layer(np.zeros((1, 2, 2)), start=3).data[0], table[3:5])
    assert message(ValueError, lambda: layer(np.zeros((1, 2, 2)), start=5)) == (
        "length 2 after 5 exceeds max_seq_len 6; clear the cache and read the end of the text again"
    )
    assert message(ValueError, lambda: layer(np.zeros((1, 2, 2)), start=-1)) == (
        "start must be >= 0, got -1"
    )


# Sinusoids ---------------------------------------------------------------------------------------


def test_sinusoid_table_is_the_formula_of_the_paper():
    d, made = 6, create_sinusoidal_embeddings(max_seq_len=50, embed_dim=6)
    for pos in (0, 1, 7, 49):
        for i in range(d // 2):
            angle = pos / 10000 ** (2 * i / d)
            assert made.data[pos, 2 * i] == pytest.approx(np.sin(angle), abs=1e-6)
            assert made.data[pos, 2 * i + 1] == pytest.approx(np.cos(angle), abs=1e-6)


def test_odd_width_leaves_out_the_last_cosine():
    made = create_sinusoidal_embeddings(4, 5).data
    angles = np.arange(4)[:, None] / 10000 ** (np.array([0, 2, 4]) / 5)
    np.testing.assert_allclose(made[:, 0::2], np.sin(angles), atol=1e-6)
    np.testing.assert_allclose(made[:, 1::2], np.cos(angles[:, :2]), atol=1e-6)
    np.testing.assert_allclose(
        create_sinusoidal_embeddings(3, 1).data[:, 0], np.sin(np.arange(3)), atol=1e-6
    )


# Rotary ------------------------------------------------------------------------------------------


def test_rotary_tables_are_cosine_and_sine_of_position_times_frequency():
    cos, sin = create_rotary_embeddings(3, 4)
    np.testing.assert_allclose(cos, np.cos([[0, 0], [1, 0.01], [2, 0.02]]), atol=1e-7)
    np.testing.assert_allclose(sin, np.sin([[0, 0], [1, 0.01], [2, 0.02]]), atol=1e-7)
    assert cos.dtype == sin.dtype == np.float32


def test_rotary_base_sets_the_slowest_rotation():
    _, sin = create_rotary_embeddings(2, 4, base=100.0)
    np.testing.assert_allclose(sin[1], np.sin([1, 0.1]), atol=1e-7)


def test_rotary_rotates_neighbouring_pairs():
    cos, sin = create_rotary_embeddings(2, 4)
    turned = apply_rotary([[1.0, 0.0, 0.0, 1.0]] * 2, cos, sin).data
    np.testing.assert_allclose(turned[0], [1, 0, 0, 1], atol=1e-7)
    np.testing.assert_allclose(
        turned[1], [np.cos(1), np.sin(1), -np.sin(0.01), np.cos(0.01)], atol=1e-7
    )


@given(first=st.integers(0, 40), second=st.integers(0, 40), shift=st.integers(0, 20))
def test_product_of_rotated_vectors_depends_on_their_distance_only(first, second, shift):
    q, k = np.random.default_rng(0).normal(size=(2, 8))
    cos, sin = (t.astype(np.float64) for t in create_rotary_embeddings(64, 8))

    def at(x, position):
        row = slice(position, position + 1)
        return apply_rotary(Tensor(x[None], dtype=np.float64), cos[row], sin[row]).data[0]

    here = at(q, first) @ at(k, second)
    there = at(q, first + shift) @ at(k, second + shift)
    assert here == pytest.approx(there, abs=1e-5)


def test_rotary_from_a_later_start_matches_the_end_of_the_full_table():
    cos, sin = create_rotary_embeddings(8, 4)
    x = np.random.default_rng(0).normal(size=(2, 8, 4))
    whole = apply_rotary(x, cos, sin).data
    np.testing.assert_array_equal(apply_rotary(x[:, 5:], cos, sin, start=5).data, whole[:, 5:])
    assert message(ValueError, lambda: apply_rotary(x, cos, sin, start=1)) == (
        "apply_rotary: operands of shape (2, 8, 4) and (8, 2) and (8, 2): length 8 after 1 exceeds "
        "max_seq_len 8; clear the cache and read the end of the text again"
    )


# ALiBi -------------------------------------------------------------------------------------------


def test_slopes_of_eight_heads_halve_from_one_half():
    assert alibi_slopes(8).tolist() == [2.0**-i for i in range(1, 9)]


def test_slopes_of_twelve_heads_are_those_of_eight_and_every_other_one_of_sixteen():
    expected = [2.0**-i for i in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]
    np.testing.assert_allclose(alibi_slopes(12), expected, rtol=1e-6)


def test_bias_is_minus_slope_times_distance():
    bias = create_alibi_bias(8, 4)
    assert bias[0].tolist() == [
        [0, -0.5, -1, -1.5],
        [-0.5, 0, -0.5, -1],
        [-1, -0.5, 0, -0.5],
        [-1.5, -1, -0.5, 0],
    ]
    assert bias[7, 3, 0] == -3 * 2**-8 and bias.dtype == np.float32


# Tokens and positions together -------------------------------------------------------------------


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("pos_encoding", ["learned", "sinusoidal", None])
def test_layer_is_scaled_tokens_plus_positions(pos_encoding, scale):
    layer = EmbeddingLayer(10, 4, 8, pos_encoding, scale, rng=0)
    ids = np.array([[3, 1, 4], [1, 5, 9]])
    expected = layer.token_embedding.weight.data[ids] * (2.0 if scale else 1.0)  # sqrt(4)
    if pos_encoding == "learned":
        expected = expected + layer.pos_encoding.position_embeddings.data[:3]
    elif pos_encoding == "sinusoidal":
        expected = expected + create_sinusoidal_embeddings(3, 4).data
    np.testing.assert_allclose(layer(ids).data, expected, rtol=1e-6)


def test_scaling_by_sqrt_d_scales_the_token_gradient_and_not_that_of_the_positions():
    layer = EmbeddingLayer(3, 9, 2, scale_embeddings=True)
    layer([0]).sum().backward()
    assert layer.token_embedding.weight.grad[0].tolist() == [3.0] * 9
    assert layer.pos_encoding.position_embeddings.grad[0].tolist() == [1.0] * 9


def test_one_seed_does_not_draw_both_tables_alike():
    layer = EmbeddingLayer(8, 4, 8, rng=0)
    token, place = layer.token_embedding.weight.data, layer.pos_encoding.position_embeddings.data
    assert (np.abs(token - place) > 1e-3).all()
    again = EmbeddingLayer(8, 4, 8, rng=0)
    np.testing.assert_array_equal(again.pos_encoding.position_embeddings.data, place)


# Bad input ---------------------------------------------------------------------------------------

TABLES, LAYER = create_rotary_embeddings(4, 6), EmbeddingLayer(10, 4, 128)


@pytest.mark.parametrize(
    ("error", "fails", "said"),
    [
        (IndexError, lambda: Embedding(65, 2)([[3, 65]]), "token id 65 at (0, 1) is outside 0..64"),
        (IndexError, lambda: Embedding(65, 2)([-2]), "token id -2 at (0,) is outside 0..64"),
        (TypeError, lambda: Embedding(65, 2)(Tensor([1.0])), "token ids must be integers, got flo"),
        (ValueError, lambda: Embedding(0, 8), "vocab_size must be at least 1, got 0"),
        (TypeError, lambda: Embedding(8, 2.5), "embed_dim must be an integer, got 2.5"),
        (ValueError, lambda: PositionalEncoding(16, 4)(np.zeros((1, 3, 5))), "(batch, seq, 4), go"),
        (ValueError, lambda: PositionalEncoding(9, 4)(np.zeros((1, 10, 4))), "max_seq_len 9; crop"),
        (ValueError, lambda: create_sinusoidal_embeddings(0, 8), "max_seq_len must be at least 1"),
        (ValueError, lambda: create_rotary_embeddings(4, 3), "rotate pairs: head_dim must be even"),
        (ValueError, lambda: apply_rotary(np.ones((2, 8)), *TABLES), "expected (..., seq, 6), got"),
        (ValueError, lambda: apply_rotary(np.ones((5, 6)), *TABLES), "length 5 exceeds max_seq_le"),
        (ValueError, lambda: alibi_slopes(0), "num_heads must be at least 1, got 0"),
        (ValueError, lambda: EmbeddingLayer(10, 4, pos_encoding="rotary"), "or None, got 'rotary'"),
        (ValueError, lambda: LAYER(np.zeros((2, 130), int)), "exceeds max_seq_len 128; crop ids["),
        (ValueError, lambda: LAYER(3), "ids must be (seq,) or (batch, seq), got shape ()"),
        (IndexError, lambda: LAYER([[1, 10]]), "token id 10 at (0, 1) is outside 0..9"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_the_reason(error, fails, said):
    assert said in message(error, fails)

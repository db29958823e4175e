"""Tokens and positions as vectors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tinytorch import RowSparse, Tensor, check_gradients, manual_seed
from tinytorch.text.embeddings import (
    Embedding,
    EmbeddingLayer,
    PositionalEncoding,
    alibi_slopes,
    apply_rotary,
    check_length,
    create_alibi_bias,
    create_rotary_embeddings,
    create_sinusoidal_embeddings,
)


def message(error, f):
    with pytest.raises(error) as caught:
        f()
    return str(caught.value)


def table(layer, rows):
    """Replace the weights of an Embedding by numbers that can be read."""
    layer.load_state_dict({"weight": np.array(rows, dtype=np.float32)})
    return layer


# Embedding ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("layer", [Embedding(5, 3), Embedding(vocab_size=5, embed_dim=3)])
def test_embedding_takes_its_sizes_by_position_and_by_name(layer):
    assert layer.weight.shape == (5, 3) and (layer.vocab_size, layer.embed_dim) == (5, 3)
    assert [name for name, _ in layer.named_parameters()] == ["weight"]


@pytest.mark.parametrize(
    "kind",
    [
        list,
        tuple,
        np.array,
        Tensor,
        lambda ids: np.array(ids, np.uint8),
        lambda ids: Tensor(np.array(ids, np.int32)),
    ],
)
def test_ids_may_be_a_list_a_tuple_an_array_or_a_tensor(kind):
    layer = table(Embedding(3, 2), [[0, 1], [10, 11], [20, 21]])
    assert layer(kind([2, 0, 2])).data.tolist() == [[20, 21], [0, 1], [20, 21]]


def test_ids_of_a_sequence_and_of_a_batch():
    layer = table(Embedding(3, 2), [[0, 1], [10, 11], [20, 21]])
    assert layer([1, 2]).data.tolist() == [[10, 11], [20, 21]]
    assert layer([[1], [2]]).data.tolist() == [[[10, 11]], [[20, 21]]]
    assert layer(1).data.tolist() == [10, 11]


def test_embedding_starts_xavier_uniform():
    weight = Embedding(300, 100, rng=0).weight.data
    limit = np.sqrt(6 / 400)
    assert weight.dtype == np.float32
    assert 0.99 * limit < np.abs(weight).max() <= limit
    assert abs(weight.mean()) < 0.002
    assert weight.std() == pytest.approx(limit / np.sqrt(3), rel=0.01)


def test_lookup_equals_a_product_with_one_hot_vectors():
    layer, ids = Embedding(6, 4, rng=0), [5, 0, 5]
    np.testing.assert_array_equal(
        layer(ids).data, np.eye(6, dtype=np.float32)[ids] @ layer.weight.data
    )


def test_gradient_of_a_repeated_token_is_summed():
    layer = Embedding(5, 2)
    layer([[3, 1, 3], [3, 0, 1]]).backward(
        [[[1, 10], [2, 20], [3, 30]], [[4, 40], [5, 50], [6, 60]]]
    )
    assert layer.weight.grad.tolist() == [[5, 50], [8, 80], [0, 0], [8, 80], [0, 0]]


def test_sparse_gradient_equals_the_dense_one():
    ids = np.random.default_rng(0).integers(0, 10, size=(4, 6))
    upstream = np.random.default_rng(1).normal(size=(4, 6, 3))
    sparse, dense = Embedding(10, 3, sparse=True), Embedding(10, 3)
    sparse(ids).backward(upstream)
    dense(ids).backward(upstream)
    assert isinstance(sparse.weight.grad, RowSparse)
    assert isinstance(dense.weight.grad, np.ndarray)
    np.testing.assert_allclose(sparse.weight.grad.to_dense(), dense.weight.grad, rtol=1e-6)


def test_sparse_gradient_holds_a_row_for_each_token_and_not_for_the_vocabulary():
    layer = Embedding(100_000, 2, sparse=True, rng=0)
    layer([7, 99_999, 7]).sum().backward()
    assert layer.weight.grad.values.shape == (3, 2)
    assert layer.weight.grad.coalesce().rows.tolist() == [7, 99_999]


def test_sparse_gradients_of_two_batches_add_up():
    layer = Embedding(4, 1, sparse=True)
    layer([1, 2]).sum().backward()
    layer([2, 3]).sum().backward()
    assert isinstance(layer.weight.grad, RowSparse)
    assert layer.weight.grad.to_dense().tolist() == [[0], [1], [2], [1]]


@pytest.mark.parametrize("sparse", [False, True])
def test_embedding_gradient_by_finite_differences(sparse):
    assert check_gradients(Embedding(4, 3, sparse=sparse, rng=0), [[1, 1, 3], [0, 1, 3]], tol=1e-8)


def test_ids_are_left_as_they_were():
    ids = np.array([1, 2, 1])
    Embedding(4, 2)(ids).sum().backward()
    assert ids.tolist() == [1, 2, 1]


def test_id_outside_the_vocabulary_is_named_with_its_place_and_the_range():
    ids = np.zeros((2, 4), dtype=int)
    ids[0, 3] = 65
    assert message(IndexError, lambda: Embedding(65, 2)(ids)) == (
        "token id 65 at (0, 3) is outside 0..64; was another tokenizer used?"
    )


def test_negative_id_is_refused():
    assert message(IndexError, lambda: Embedding(65, 2)(Tensor([[3, -2]]))) == (
        "token id -2 at (0, 1) is outside 0..64; was another tokenizer used?"
    )


@pytest.mark.parametrize("ids", [[0.0, 1.0], np.array([0.0]), Tensor([[1.0]])])
def test_float_ids_are_refused(ids):
    told = message(TypeError, lambda: Embedding(65, 2)(ids))
    assert told.startswith("token ids must be integers, got float")
    assert told.endswith("; convert with ids.astype(numpy.int64)")


@pytest.mark.parametrize(
    ("sizes", "error", "told"),
    [
        ((0, 8), ValueError, "vocab_size must be at least 1, got 0"),
        ((8, -1), ValueError, "embed_dim must be at least 1, got -1"),
        ((8, 2.5), TypeError, "embed_dim must be an integer, got 2.5"),
        (("8", 2), TypeError, "vocab_size must be an integer, got '8'"),
    ],
)
def test_impossible_table_is_refused(sizes, error, told):
    assert message(error, lambda: Embedding(*sizes)) == told


# Learned positions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "layer", [PositionalEncoding(16, 4), PositionalEncoding(max_seq_len=16, embed_dim=4)]
)
def test_positional_encoding_takes_its_sizes_by_position_and_by_name(layer):
    assert layer.position_embeddings.shape == (16, 4)
    assert [name for name, _ in layer.named_parameters()] == ["position_embeddings"]


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


def test_positional_encoding_gradient_by_finite_differences():
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    assert check_gradients(PositionalEncoding(5, 4, rng=0), x, tol=1e-8)


def test_positional_encoding_of_two_axes_says_how_to_add_the_third():
    assert message(ValueError, lambda: PositionalEncoding(16, 4)(np.zeros((3, 4)))) == (
        "PositionalEncoding: expected (batch, seq, 4), got shape (3, 4); "
        "add a batch axis with x.reshape(1, *x.shape)"
    )


def test_positional_encoding_of_the_wrong_width_is_refused():
    assert message(ValueError, lambda: PositionalEncoding(16, 4)(np.zeros((1, 3, 5)))) == (
        "PositionalEncoding: expected (batch, seq, 4), got shape (1, 3, 5)"
    )


def test_later_start_adds_the_later_positions():
    layer = PositionalEncoding(6, 2)
    table = layer.position_embeddings.data
    np.testing.assert_array_equal(layer(np.zeros((1, 2, 2)), start=3).data[0], table[3:5])
    assert message(ValueError, lambda: layer(np.zeros((1, 2, 2)), start=5)) == (
        "length 2 after 5 exceeds max_seq_len 6; clear the cache and read the end of the text again"
    )
    assert message(ValueError, lambda: layer(np.zeros((1, 2, 2)), start=-1)) == (
        "start must be >= 0, got -1"
    )


def test_sequence_of_the_full_length_fits_and_one_longer_does_not():
    layer = PositionalEncoding(128, 4)
    assert layer(np.zeros((1, 128, 4))).shape == (1, 128, 4)
    assert message(ValueError, lambda: layer(np.zeros((1, 130, 4)))) == (
        "length 130 exceeds max_seq_len 128; crop ids[:, -128:]"
    )
    assert message(ValueError, lambda: check_length(129, 128)) == (
        "length 129 exceeds max_seq_len 128; crop ids[:, -128:]"
    )


# Sinusoids ---------------------------------------------------------------------------------------


def test_sinusoid_table_of_width_eight_at_positions_zero_and_one():
    rows = create_sinusoidal_embeddings(2, 8).data.round(2).tolist()
    assert rows[0] == [0, 1, 0, 1, 0, 1, 0, 1]
    assert rows[1] == pytest.approx([0.84, 0.54, 0.10, 1.00, 0.01, 1.00, 0.00, 1.00])


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


def test_sinusoid_table_is_not_learned():
    made = create_sinusoidal_embeddings(2, 4)
    assert isinstance(made, Tensor) and made.dtype == np.float32 and not made.requires_grad


@given(shift=st.integers(0, 40))
def test_shift_of_the_position_is_one_rotation_for_all_positions(shift):
    made = create_sinusoidal_embeddings(100, 8).data.astype(np.float64)
    angles = shift / 10000 ** (np.arange(0, 8, 2) / 8)
    sin, cos = made[:60, 0::2], made[:60, 1::2]
    np.testing.assert_allclose(
        made[shift : shift + 60, 0::2], sin * np.cos(angles) + cos * np.sin(angles), atol=1e-6
    )
    np.testing.assert_allclose(
        made[shift : shift + 60, 1::2], cos * np.cos(angles) - sin * np.sin(angles), atol=1e-6
    )


def test_product_of_two_sinusoid_rows_depends_on_their_distance_alone():
    made = create_sinusoidal_embeddings(64, 16).data.astype(np.float64)
    products = made @ made.T
    for distance in (0, 1, 13):
        along = np.diagonal(products, distance)
        np.testing.assert_allclose(along, along[0], atol=1e-5)
    assert products[0, 0] == pytest.approx(8.0)


def test_impossible_sinusoid_table_is_refused():
    assert message(ValueError, lambda: create_sinusoidal_embeddings(0, 8)) == (
        "max_seq_len must be at least 1, got 0"
    )


# Rotary ------------------------------------------------------------------------------------------


def test_rotary_tables_are_cosine_and_sine_of_position_times_frequency():
    cos, sin = create_rotary_embeddings(3, 4)
    np.testing.assert_allclose(cos, np.cos([[0, 0], [1, 0.01], [2, 0.02]]), atol=1e-7)
    np.testing.assert_allclose(sin, np.sin([[0, 0], [1, 0.01], [2, 0.02]]), atol=1e-7)
    assert cos.dtype == sin.dtype == np.float32


def test_rotary_base_sets_the_slowest_turn():
    _, sin = create_rotary_embeddings(2, 4, base=100.0)
    np.testing.assert_allclose(sin[1], np.sin([1, 0.1]), atol=1e-7)


def test_rotary_turns_neighbouring_pairs():
    cos, sin = create_rotary_embeddings(2, 4)
    turned = apply_rotary([[1.0, 0.0, 0.0, 1.0]] * 2, cos, sin).data
    np.testing.assert_allclose(turned[0], [1, 0, 0, 1], atol=1e-7)
    np.testing.assert_allclose(
        turned[1], [np.cos(1), np.sin(1), -np.sin(0.01), np.cos(0.01)], atol=1e-7
    )


def test_rotary_of_integers_is_not_truncated():
    cos, sin = create_rotary_embeddings(2, 2)
    np.testing.assert_allclose(
        apply_rotary([[1, 0], [1, 0]], cos, sin).data[1], [np.cos(1), np.sin(1)], atol=1e-7
    )


@given(first=st.integers(0, 40), second=st.integers(0, 40), shift=st.integers(0, 20))
def test_product_of_turned_vectors_depends_on_their_distance_alone(first, second, shift):
    q, k = np.random.default_rng(0).normal(size=(2, 8))
    cos, sin = (t.astype(np.float64) for t in create_rotary_embeddings(64, 8))

    def at(x, position):
        row = slice(position, position + 1)
        return apply_rotary(Tensor(x[None], dtype=np.float64), cos[row], sin[row]).data[0]

    here = at(q, first) @ at(k, second)
    there = at(q, first + shift) @ at(k, second + shift)
    assert here == pytest.approx(there, abs=1e-5)


def test_rotary_keeps_the_norm():
    x = np.random.default_rng(0).normal(size=(2, 3, 10, 8))
    turned = apply_rotary(x, *create_rotary_embeddings(16, 8)).data
    np.testing.assert_allclose(
        np.linalg.norm(turned, axis=-1), np.linalg.norm(x, axis=-1), rtol=1e-5
    )
    np.testing.assert_allclose(turned[..., 0, :], x[..., 0, :], rtol=1e-6)  # position 0 stays


def test_rotary_gradient_turns_back():
    cos, sin = create_rotary_embeddings(5, 4)
    x = Tensor(np.random.default_rng(0).normal(size=(5, 4)), requires_grad=True)
    apply_rotary(x, cos, sin).backward(apply_rotary(np.ones((5, 4)), cos, sin).data)
    np.testing.assert_allclose(x.grad, np.ones((5, 4)), rtol=1e-5)


def test_rotary_gradient_by_finite_differences():
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    cos, sin = create_rotary_embeddings(8, 4)
    assert check_gradients(lambda x: apply_rotary(x, cos, sin), x, tol=1e-8)


def test_rotary_of_an_odd_width_is_refused():
    assert message(ValueError, lambda: create_rotary_embeddings(4, 3)) == (
        "rotary embeddings rotate pairs: head_dim must be even, got 3"
    )


def test_rotary_of_the_wrong_width_is_refused():
    tables = create_rotary_embeddings(4, 6)
    assert message(ValueError, lambda: apply_rotary(np.ones((2, 8)), *tables)) == (
        "apply_rotary: expected (..., seq, 6), got shape (2, 8)"
    )


def test_rotary_from_a_later_start_is_the_end_of_the_whole():
    cos, sin = create_rotary_embeddings(8, 4)
    x = np.random.default_rng(0).normal(size=(2, 8, 4))
    whole = apply_rotary(x, cos, sin).data
    np.testing.assert_array_equal(apply_rotary(x[:, 5:], cos, sin, start=5).data, whole[:, 5:])
    assert message(ValueError, lambda: apply_rotary(x, cos, sin, start=1)) == (
        "apply_rotary: operands of shape (2, 8, 4) and (8, 2) and (8, 2): length 8 after 1 exceeds "
        "max_seq_len 8; clear the cache and read the end of the text again"
    )


def test_rotary_of_a_sequence_longer_than_its_tables_is_refused():
    tables = create_rotary_embeddings(4, 2)
    told = message(ValueError, lambda: apply_rotary(np.ones((5, 2)), *tables))
    assert "length 5 exceeds max_seq_len 4" in told


# ALiBi -------------------------------------------------------------------------------------------


def test_slopes_of_eight_heads_halve_from_one_half():
    assert alibi_slopes(8).tolist() == [2.0**-i for i in range(1, 9)]


def test_slopes_of_twelve_heads_are_those_of_eight_and_every_other_one_of_sixteen():
    expected = [2.0**-i for i in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]
    np.testing.assert_allclose(alibi_slopes(12), expected, rtol=1e-6)


def test_slopes_of_sixteen_heads_begin_at_one_over_the_root_of_two():
    np.testing.assert_allclose(alibi_slopes(16)[[0, 1, 15]], [2**-0.5, 0.5, 2**-8], rtol=1e-6)


@pytest.mark.parametrize("heads", range(1, 40))
def test_every_number_of_heads_has_that_many_different_slopes(heads):
    slopes = alibi_slopes(heads)
    assert len(set(slopes.tolist())) == heads and (slopes > 0).all() and (slopes < 1).all()


def test_bias_is_minus_slope_times_distance():
    bias = create_alibi_bias(8, 4)
    assert bias[0].tolist() == [
        [0, -0.5, -1, -1.5],
        [-0.5, 0, -0.5, -1],
        [-1, -0.5, 0, -0.5],
        [-1.5, -1, -0.5, 0],
    ]
    assert bias[7, 3, 0] == -3 * 2**-8 and bias.dtype == np.float32


def test_alibi_without_heads_is_refused():
    assert message(ValueError, lambda: alibi_slopes(0)) == "num_heads must be at least 1, got 0"


# Tokens and positions together -------------------------------------------------------------------


def test_layer_takes_its_settings_by_position():
    layer = EmbeddingLayer(10, 4, 32, "sinusoidal", True)
    assert (layer.vocab_size, layer.embed_dim, layer.max_seq_len) == (10, 4, 32)
    assert layer.scale_embeddings and isinstance(layer.pos_encoding, Tensor)


def test_layer_takes_its_settings_by_name_and_has_its_defaults():
    layer = EmbeddingLayer(vocab_size=10, embed_dim=4)
    assert layer.max_seq_len == 512 and not layer.scale_embeddings
    assert isinstance(layer.pos_encoding, PositionalEncoding)
    assert isinstance(layer.token_embedding, Embedding)


@pytest.mark.parametrize(
    ("pos_encoding", "names"),
    [
        ("learned", ["token_embedding.weight", "pos_encoding.position_embeddings"]),
        ("sinusoidal", ["token_embedding.weight"]),
        (None, ["token_embedding.weight"]),
    ],
)
def test_layer_learns_two_tables_with_learned_positions_and_one_without(pos_encoding, names):
    layer = EmbeddingLayer(10, 4, pos_encoding=pos_encoding)
    assert [name for name, _ in layer.named_parameters()] == names
    assert len(layer.parameters()) == len(names)


def test_parameter_count_is_a_vector_for_each_token_and_each_position():
    layer = EmbeddingLayer(1000, 64, max_seq_len=128)
    assert sum(p.size for p in layer.parameters()) == 64_000 + 8_192


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


@pytest.mark.parametrize("pos_encoding", ["learned", "sinusoidal", None])
def test_single_sequence_gives_what_it_gives_in_a_batch(pos_encoding):
    layer = EmbeddingLayer(10, 4, 8, pos_encoding)
    alone, batched = layer([3, 1, 4]), layer([[3, 1, 4]])
    assert alone.shape == (3, 4)
    np.testing.assert_array_equal(alone.data, batched.data[0])


@pytest.mark.parametrize("ids", [[3, 1, 4], [[3, 1, 4], [1, 5, 9]]])
@pytest.mark.parametrize("pos_encoding", ["learned", "sinusoidal", None])
def test_layer_gradient_by_finite_differences(pos_encoding, ids):
    layer = EmbeddingLayer(10, 2, 4, pos_encoding, scale_embeddings=True, rng=0)
    assert check_gradients(layer, ids, tol=1e-8)


def test_scaling_by_sqrt_d_scales_the_token_gradient_and_not_that_of_the_positions():
    layer = EmbeddingLayer(3, 9, 2, scale_embeddings=True)
    layer([0]).sum().backward()
    assert layer.token_embedding.weight.grad[0].tolist() == [3.0] * 9
    assert layer.pos_encoding.position_embeddings.grad[0].tolist() == [1.0] * 9


@pytest.mark.parametrize("pos_encoding", ["learned", "sinusoidal", None])
@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_empty_sequences_give_empty_results(pos_encoding, shape):
    layer = EmbeddingLayer(10, 4, 8, pos_encoding)
    assert layer(np.zeros(shape, dtype=int)).shape == (*shape, 4)


def test_one_seed_does_not_draw_both_tables_alike():
    layer = EmbeddingLayer(8, 4, 8, rng=0)
    token, place = layer.token_embedding.weight.data, layer.pos_encoding.position_embeddings.data
    assert (np.abs(token - place) > 1e-3).all()
    again = EmbeddingLayer(8, 4, 8, rng=0)
    np.testing.assert_array_equal(again.pos_encoding.position_embeddings.data, place)


def test_manual_seed_repeats_the_whole_layer():
    manual_seed(1)
    first = EmbeddingLayer(8, 4).state_dict()
    manual_seed(1)
    for name, array in EmbeddingLayer(8, 4).state_dict().items():
        np.testing.assert_array_equal(array, first[name])


def test_sinusoidal_layer_follows_its_table_and_not_its_training():
    layer = EmbeddingLayer(10, 4, 8, "sinusoidal")
    before = layer.pos_encoding.data.copy()
    layer([1, 2]).sum().backward()
    assert layer.pos_encoding.grad is None
    np.testing.assert_array_equal(layer.pos_encoding.data, before)


def test_unknown_positions_are_refused():
    assert message(ValueError, lambda: EmbeddingLayer(10, 4, pos_encoding="rotary")) == (
        "pos_encoding must be 'learned', 'sinusoidal' or None, got 'rotary'"
    )


@pytest.mark.parametrize("pos_encoding", ["learned", "sinusoidal"])
def test_sequence_longer_than_the_positions_is_refused(pos_encoding):
    layer = EmbeddingLayer(10, 4, 128, pos_encoding)
    assert message(ValueError, lambda: layer(np.zeros((2, 130), dtype=int))) == (
        "length 130 exceeds max_seq_len 128; crop ids[:, -128:]"
    )


def test_without_positions_any_length_goes():
    assert EmbeddingLayer(10, 4, 2, None)(np.zeros(100, dtype=int)).shape == (100, 4)


@pytest.mark.parametrize(("ids", "shape"), [(3, "()"), ([[[1]]], "(1, 1, 1)")])
def test_ids_of_another_number_of_axes_are_refused(ids, shape):
    assert message(ValueError, lambda: EmbeddingLayer(10, 4)(ids)) == (
        f"EmbeddingLayer: ids must be (seq,) or (batch, seq), got shape {shape}"
    )


def test_layer_names_a_wrong_id_like_its_table():
    assert message(IndexError, lambda: EmbeddingLayer(10, 4)([[1, 10]])) == (
        "token id 10 at (0, 1) is outside 0..9; was another tokenizer used?"
    )
    assert message(TypeError, lambda: EmbeddingLayer(10, 4)([1.0])) == (
        "token ids must be integers, got float64; convert with ids.astype(numpy.int64)"
    )

"""The fused operations by numbers known in advance, at their edges, and in any layout of memory."""

import math

import numpy as np
import pytest
from exact_numbers import message

from tinytorch import RowSparse, Tensor, functional
from tinytorch.core import kernels

# The same functions composed of ops, one node a step ---------------------------------------------


def linear(x, weight, bias=None):
    return x @ weight if bias is None else x @ weight + bias


def layer_norm(x, gamma, beta, *, eps):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / (x.var(axis=-1, keepdims=True) + eps).sqrt() * gamma + beta


def gelu(x):
    return 0.5 * x * (1 + (np.sqrt(2 / np.pi) * (x + 0.044715 * x * x * x)).tanh())


TWINS = {"gelu": gelu, "layer_norm": layer_norm, "linear": linear}


# Layers ------------------------------------------------------------------------------------------


def test_layer_norm_is_invariant_to_scale_and_shift():
    x = np.array([[1.0, 2.0, 4.0]])
    once = functional.layer_norm(x, np.ones(3), np.zeros(3), eps=0.0)
    moved = functional.layer_norm(100 * x + 7, np.ones(3), np.zeros(3), eps=0.0)
    np.testing.assert_allclose(once.data, moved.data, rtol=1e-6)


def test_embedding_sums_the_gradient_of_a_repeated_token():
    weight = Tensor(np.zeros((4, 2)), requires_grad=True)
    functional.embedding(weight, [1, 3, 1, 1]).backward([[1, 10], [2, 20], [3, 30], [4, 40]])
    assert weight.grad.tolist() == [[0, 0], [8, 80], [0, 0], [2, 20]]


def test_sparse_embedding_gradient_keeps_rows_in_order_until_summed():
    weight = Tensor(np.zeros((4, 1)), requires_grad=True)
    functional.embedding(weight, [3, 1, 3], sparse=True).backward([[1], [2], [5]])
    assert isinstance(weight.grad, RowSparse)
    assert weight.grad.rows.tolist() == [3, 1, 3]
    assert weight.grad.to_dense().tolist() == [[0], [2], [0], [6]]


def test_sparse_gradient_becomes_dense_behind_a_computed_table():
    base = Tensor(np.ones((3, 1)), requires_grad=True)
    functional.embedding(base * 2, [1, 1], sparse=True).sum().backward()
    assert base.grad.tolist() == [[0], [4], [0]]


def test_table_used_sparsely_and_densely_gets_the_sum_of_both():
    weight = Tensor([[1.0], [2.0]], requires_grad=True)
    (functional.embedding(weight, [1], sparse=True).sum() + (weight * 10).sum()).backward()
    assert weight.grad.tolist() == [[10], [11]]


def test_dropout_keeps_the_expected_value():
    y = functional.dropout(np.ones(100_000), p=0.25, rng=0)
    assert set(np.unique(y.data)) == {0.0, np.float32(1 / 0.75)}
    assert y.data.mean() == pytest.approx(1.0, abs=0.005)
    assert (y.data == 0).mean() == pytest.approx(0.25, abs=0.005)


def test_dropped_elements_get_no_gradient():
    x = Tensor(np.ones(8), requires_grad=True)
    y = functional.dropout(x, p=0.5, rng=0)
    y.sum().backward()
    assert x.grad.tolist() == y.data.tolist()


# Activations -------------------------------------------------------------------------------------


def test_relu_gradient_at_zero_is_zero():
    x = Tensor([-1.0, 0.0, 2.0], requires_grad=True)
    functional.relu(x).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 1.0]


def test_relu_does_not_hide_a_nan():
    assert np.isnan(functional.relu([np.nan]).data[0])


def test_sigmoid_of_a_very_negative_number_is_small_and_not_zero():
    y = functional.sigmoid(Tensor([-20.0, 20.0]))
    np.testing.assert_allclose(y.data, [2.0611537e-9, 1.0], rtol=1e-6)


def test_gelu_is_within_half_a_thousandth_of_x_times_the_normal_distribution():
    x = np.linspace(-5, 5, 201)
    exact = np.array([v * 0.5 * math.erfc(-v / 2**0.5) for v in x])
    assert np.abs(functional.gelu(Tensor(x, dtype=np.float64)).data - exact).max() < 5e-4


# Losses ------------------------------------------------------------------------------------------


def test_cross_entropy_gradient_is_probability_minus_one_hot_over_positions():
    logits = Tensor(np.zeros((2, 4)), requires_grad=True)
    functional.cross_entropy(logits, [1, 3]).backward()
    assert logits.grad.tolist() == [[0.125, -0.375, 0.125, 0.125], [0.125, 0.125, 0.125, -0.375]]


def test_mse_gradient_is_two_errors_over_n():
    prediction = Tensor([1.0, 2.0], requires_grad=True)
    target = Tensor([1.0, 4.0], requires_grad=True)
    functional.mse(prediction, target).backward()
    assert prediction.grad.tolist() == [0.0, -2.0] and target.grad.tolist() == [0.0, 2.0]


# Bad input ---------------------------------------------------------------------------------------

TABLE, ONES, f = np.ones((65, 2)), np.ones((2, 4)), functional
FORBIDDEN = [[0.0, 1.0], [-np.inf, -np.inf]]


@pytest.mark.parametrize(
    ("error", "fails", "said"),
    [
        (IndexError, lambda: f.embedding(TABLE, [[0, 65]]), "id 65 at (0, 1) is outside 0..64;"),
        (IndexError, lambda: f.embedding(TABLE, [0, -1]), "token id -1 at (1,) is outside"),
        (IndexError, lambda: f.embedding(TABLE, 65), "token id 65 is outside"),
        (TypeError, lambda: f.embedding(TABLE, [1.0]), "must be integers, got float64; convert"),
        (TypeError, lambda: f.embedding(TABLE, Tensor([1.0])), "must be integers, got float32"),
        (TypeError, lambda: f.embedding(TABLE, [True]), "must be integers, got bool"),
        (IndexError, lambda: f.cross_entropy(ONES, [0, 4]), "target 4 at (1,) is outside 0..3"),
        (TypeError, lambda: f.cross_entropy(ONES, [1.0, 2.0]), "targets must be integers, got flo"),
        (ValueError, lambda: f.cross_entropy(ONES, [[0], [1]]), "of shape (2,), got (2, 1)"),
        (ValueError, lambda: f.cross_entropy(ONES[:0], np.zeros(0, int)), "no position to average"),
        (ValueError, lambda: f.mse(np.ones((3, 1)), np.ones(3)), "(3, 1) and target (3,) must"),
        (ValueError, lambda: f.mse(np.zeros(0), np.zeros(0)), "shape (0,) has no elements"),
        (ValueError, lambda: f.linear(ONES, np.ones((3, 2))), "(2, 4) does not fit weight (3"),
        (ValueError, lambda: f.layer_norm(ONES, np.ones(3), np.ones(3)), "does not fit gamma (3,)"),
        (ValueError, lambda: f.dropout(ONES, p=1.0), "p must be in 0 <= p < 1, got 1.0"),
        (ValueError, lambda: f.dropout(ONES, p=-0.1), "p must be in 0 <= p < 1, got -0.1"),
        (ValueError, lambda: f.log_softmax(FORBIDDEN), "a row is -inf everywhere"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_the_reason(error, fails, said):
    assert said in message(error, fails)


# Together ----------------------------------------------------------------------------------------


def test_layer_norm_keeps_the_precision_of_a_float64_shift():
    beta = Tensor([1e-12, 0.0], dtype=np.float64)
    y = functional.layer_norm(np.zeros((1, 2), np.float32), np.ones(2, np.float32), beta)
    assert y.data.tolist() == [[1e-12, 0.0]]


def test_gelu_computes_tanh_once(monkeypatch):
    sizes = []
    monkeypatch.setattr(kernels, "tanh", lambda x, *out: sizes.append(x.size) or np.tanh(x, *out))
    functional.gelu(Tensor(np.ones(100_000), requires_grad=True)).sum().backward()
    assert sum(sizes) == 100_000


def test_heads_are_merged_without_a_copy():
    q, k, v = (Tensor(np.ones((2, 3, 5, 4))) for _ in range(3))
    mixed = functional.attention(q, k, v)
    merged = functional.merge_heads(mixed)
    assert np.shares_memory(merged.data, mixed.data)


# The same numbers however the arrays lie in memory ------------------------------------------------


def spaced(array):
    """The same numbers, every other element of a larger array."""
    return np.repeat(array, 2, axis=-1)[..., ::2]


def turned(array):
    """The same numbers, stored from the last to the first."""
    return array[..., ::-1].copy()[..., ::-1]


LAYOUTS = {"C": np.ascontiguousarray, "F": np.asfortranarray, "spaced": spaced, "turned": turned}
SHAPES = {"gelu": [(4, 3, 6)], "layer_norm": [(4, 3, 6), (6,), (6,)]}
SHAPES["linear"] = [(4, 3, 6), (6, 5), (5,)]
LARGE = {"gelu": [(3, 257, 129)], "layer_norm": [(7, 100, 100), (100,), (100,)]}
LARGE["linear"] = [(7, 100, 100), (100, 3), (3,)]
SETTINGS = {"layer_norm": {"eps": 1e-5}}
each = pytest.mark.parametrize("name", SHAPES)


def random_arrays(shapes, dtype=np.float64):
    return [
        np.random.default_rng((i, *shape)).normal(size=shape).astype(dtype)
        for i, shape in enumerate(shapes)
    ]


def upstream_of(value):
    return np.random.default_rng(9).normal(size=value.shape).astype(value.dtype)


def run(f, arrays, upstream=None, **settings):
    """The value and the gradients of `f` at these very arrays, not at copies of them."""
    tensors = [Tensor(0.0, requires_grad=True) for _ in arrays]
    for tensor, array in zip(tensors, arrays, strict=True):
        tensor.data = array
    result = f(*tensors, **settings)
    result.backward(upstream_of(result) if upstream is None else upstream)
    return [result.data, *(tensor.grad for tensor in tensors)]


def assert_same(found, expected, tolerance):
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@each
@pytest.mark.parametrize("layout", LAYOUTS)
def test_fused_form_matches_its_twin_for_any_memory_layout(name, layout):
    arrays, settings = random_arrays(SHAPES[name]), SETTINGS.get(name, {})
    expected = run(TWINS[name], arrays, **settings)
    upstream = LAYOUTS[layout](upstream_of(expected[0]))
    laid = [LAYOUTS[layout](a) for a in arrays]
    assert_same(run(getattr(functional, name), laid, upstream, **settings), expected, 1e-12)


@each
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2e-5), (np.float64, 1e-11)])
def test_fused_form_matches_its_twin_for_large_arrays(name, dtype, tolerance):
    arrays, settings = random_arrays(LARGE[name], dtype), SETTINGS.get(name, {})
    found = run(getattr(functional, name), arrays, **settings)
    assert {array.dtype for array in found} == {np.dtype(dtype)}
    wide = [array.astype(np.float64) for array in arrays]
    upstream = upstream_of(found[0]).astype(np.float64)
    expected = run(TWINS[name], wide, upstream, **settings)
    sizes = [max(1.0, np.abs(array).max()) for array in expected]
    assert_same(
        [a / size for a, size in zip(found, sizes, strict=True)],
        [a / size for a, size in zip(expected, sizes, strict=True)],
        tolerance,
    )


@pytest.mark.parametrize(
    ("x", "bias", "dtype"),
    [
        (np.ones((1, 1), np.float32), Tensor([1e-12], dtype=np.float64), np.float64),
        (np.ones((1, 1), np.int64), Tensor([0.5]), np.float32),
    ],
)
def test_linear_keeps_the_precision_of_its_bias(x, bias, dtype):
    value = functional.linear(x, np.ones((1, 1), x.dtype), bias)
    assert value.dtype == dtype and value.data.item() == 1 + bias.item()

"""The fused operations: each equals its composed twin, and does the right thing at the edges."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from primitive_examples import EXAMPLES

from tinytorch import RowSparse, Tensor, check_gradients, functional, ops
from tinytorch.core import products
from tinytorch.core.seeding import default_rng


def message(error, f):
    with pytest.raises(error) as caught:
        f()
    return str(caught.value)


# The twins: the same functions composed of ops, one node a step ----------------------------------


def linear(x, weight, bias=None):
    return x @ weight if bias is None else x @ weight + bias


def embedding(weight, ids, *, sparse):
    return weight[ids]


def layer_norm(x, gamma, beta, *, eps):
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / (x.var(axis=-1, keepdims=True) + eps).sqrt() * gamma + beta


def dropout(x, *, p, rng):
    kept = default_rng(rng).random(x.shape) >= p
    return ops.where(x / (1 - p), 0.0, condition=kept)


def attention(q, k, v, *, mask, bias, dropout, rng):
    scores = q @ k.transpose() / math.sqrt(q.shape[-1])
    for shift in (mask, bias):
        scores = scores if shift is None else scores + shift
    weights = functional.softmax(scores)
    if dropout:
        kept = default_rng(rng).random(weights.shape) >= dropout
        weights = ops.where(weights / (1 - dropout), 0.0, condition=kept)
    return weights @ v


def relu(x):
    return ops.maximum(x, 0.0)


def sigmoid(x):
    return 1 / (1 + (-x).exp())


def gelu(x):
    return 0.5 * x * (1 + (np.sqrt(2 / np.pi) * (x + 0.044715 * x * x * x)).tanh())


def softmax(x, *, axis):
    e = x.exp()
    return e / e.sum(axis=axis, keepdims=True)


def log_softmax(x, *, axis):
    return x - x.exp().sum(axis=axis, keepdims=True).log()


def cross_entropy(logits, targets):
    rows = log_softmax(logits, axis=-1).reshape(-1, logits.shape[-1])
    return -rows[np.arange(targets.size), targets.data.reshape(-1)].mean()


def mse(prediction, target):
    return ((prediction - target) ** 2).mean()


def apply_rotary(x, cos, sin, start):
    cos, sin = (table.data[start : start + x.shape[-2]] for table in (cos, sin))
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = ops.stack(even * cos - odd * sin, even * sin + odd * cos, axis=-1)
    return turned.reshape(*x.shape)


def split_heads(x, num_heads):
    batch, seq, d = x.shape
    return x.reshape(batch, seq, num_heads, d // num_heads).permute(0, 2, 1, 3)


def merge_heads(x):
    batch, heads, seq, head_dim = x.shape
    return x.permute(0, 2, 1, 3).reshape(batch, seq, heads * head_dim)


TWINS = {
    "linear": linear,
    "embedding": embedding,
    "layer_norm": layer_norm,
    "dropout": dropout,
    "attention": attention,
    "split_heads": split_heads,
    "merge_heads": merge_heads,
    "relu": relu,
    "sigmoid": sigmoid,
    "gelu": gelu,
    "softmax": softmax,
    "log_softmax": log_softmax,
    "cross_entropy": cross_entropy,
    "mse": mse,
    "apply_rotary": apply_rotary,
}


def test_every_fused_operation_has_a_twin():
    assert set(TWINS) == {*functional.__all__, "apply_rotary"}


@pytest.mark.parametrize("name", sorted(TWINS))
@given(data=st.data())
def test_fused_operation_equals_its_composed_twin(name, data):
    operands, settings = data.draw(EXAMPLES[name].inputs)
    example, outcomes = EXAMPLES[name], []
    learned = example.learned(operands)
    for f in (example.operation, TWINS[name]):
        tensors = [Tensor(a, i in learned, dtype=a.dtype) for i, a in enumerate(operands)]
        result = f(*tensors, **settings)
        result.backward(np.random.default_rng(2).normal(size=result.shape))
        grads = [tensors[i].grad for i in learned]
        dense = [g.to_dense() if isinstance(g, RowSparse) else g for g in grads]
        outcomes.append([result.data, *dense])
    for fused, composed in zip(*outcomes, strict=True):
        np.testing.assert_allclose(fused, composed, rtol=max(example.rtol, 1e-11), atol=1e-12)


# Softmax and its logarithm -----------------------------------------------------------------------


def test_softmax_of_one_two_three_halved():
    y = functional.softmax(np.array([1.0, 2.0, 3.0]) / 2)
    assert y.data.round(2).tolist() == pytest.approx([0.19, 0.31, 0.51])


def test_softmax_of_large_numbers_does_not_overflow():
    assert functional.softmax([1000.0, 1000.0]).data.tolist() == [0.5, 0.5]
    assert functional.log_softmax([1000.0, 0.0]).data.tolist() == [0.0, -1000.0]


def test_softmax_gives_what_is_forbidden_nothing():
    assert functional.softmax([0.0, -np.inf, 0.0]).data.tolist() == [0.5, 0.0, 0.5]


def test_row_in_which_everything_is_forbidden_gives_zeros_and_no_gradient():
    x = Tensor([[-np.inf, -np.inf], [0.0, 0.0]], requires_grad=True)
    y = functional.softmax(x)
    y.backward([[1.0, 2.0], [1.0, 3.0]])
    assert y.data.tolist() == [[0.0, 0.0], [0.5, 0.5]]
    assert x.grad.tolist() == [[0.0, 0.0], [-0.5, 0.5]]


def test_softmax_gradient_of_equal_upstream_is_zero():
    x = Tensor([0.3, -1.0, 2.0], requires_grad=True)
    functional.softmax(x).sum().backward()
    assert np.abs(x.grad).max() < 1e-7


# Layers ------------------------------------------------------------------------------------------


def test_layer_norm_forgets_scale_and_shift_of_its_input():
    x = np.array([[1.0, 2.0, 4.0]])
    once = functional.layer_norm(x, np.ones(3), np.zeros(3), eps=0.0)
    moved = functional.layer_norm(100 * x + 7, np.ones(3), np.zeros(3), eps=0.0)
    np.testing.assert_allclose(once.data, moved.data, rtol=1e-6)


def test_layer_norm_of_a_constant_row_is_beta():
    y = functional.layer_norm([[5.0, 5.0]], [2.0, 2.0], [0.5, -0.5])
    assert y.data.tolist() == [[0.5, -0.5]]


def test_layer_norm_input_gradient_has_no_mean_and_nothing_along_the_output():
    x = Tensor([[1.0, 2.0, 4.0, -3.0]], requires_grad=True, dtype=np.float64)
    y = functional.layer_norm(x, np.ones(4), np.zeros(4), eps=0.0)
    y.backward([[0.3, -1.0, 2.0, 0.7]])
    assert abs(x.grad.sum()) < 1e-15
    assert abs((x.grad * y.data).sum()) < 1e-15


def test_embedding_sums_the_gradient_of_a_token_that_comes_three_times():
    weight = Tensor(np.zeros((4, 2)), requires_grad=True)
    functional.embedding(weight, [1, 3, 1, 1]).backward([[1, 10], [2, 20], [3, 30], [4, 40]])
    assert weight.grad.tolist() == [[0, 0], [8, 80], [0, 0], [2, 20]]


def test_sparse_embedding_gradient_lists_the_rows_as_they_came_and_sums_on_demand():
    weight = Tensor(np.zeros((4, 1)), requires_grad=True)
    functional.embedding(weight, [3, 1, 3], sparse=True).backward([[1], [2], [5]])
    assert isinstance(weight.grad, RowSparse)
    assert weight.grad.rows.tolist() == [3, 1, 3]
    assert weight.grad.to_dense().tolist() == [[0], [2], [0], [6]]


def test_sparse_gradient_passes_on_densely_to_what_the_table_was_computed_from():
    base = Tensor(np.ones((3, 1)), requires_grad=True)
    functional.embedding(base * 2, [1, 1], sparse=True).sum().backward()
    assert base.grad.tolist() == [[0], [4], [0]]


def test_table_used_sparsely_and_densely_gets_the_sum_of_both():
    weight = Tensor([[1.0], [2.0]], requires_grad=True)
    (functional.embedding(weight, [1], sparse=True).sum() + (weight * 10).sum()).backward()
    assert weight.grad.tolist() == [[10], [11]]


def test_two_sparse_gradients_of_one_sum_share_no_memory():
    first, second = (Tensor(np.ones((3, 2)), requires_grad=True) for _ in range(2))
    ids = np.array([1, 2])
    y = functional.embedding(first, ids, sparse=True) + functional.embedding(
        second, ids, sparse=True
    )
    y.sum().backward()
    assert not np.shares_memory(first.grad.values, second.grad.values)
    assert not np.shares_memory(first.grad.rows, ids)


def test_dropout_keeps_the_expected_value():
    y = functional.dropout(np.ones(100_000), p=0.25, rng=0)
    assert set(np.unique(y.data)) == {0.0, np.float32(1 / 0.75)}
    assert y.data.mean() == pytest.approx(1.0, abs=0.005)
    assert (y.data == 0).mean() == pytest.approx(0.25, abs=0.005)


def test_dropout_sends_no_gradient_through_what_it_dropped():
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


def test_sigmoid_does_not_overflow():
    assert functional.sigmoid([-1000.0, 1000.0]).data.tolist() == [0.0, 1.0]


def test_sigmoid_slope_at_zero_is_a_quarter():
    x = Tensor([0.0], requires_grad=True)
    functional.sigmoid(x).backward()
    assert x.grad.tolist() == [0.25]


def test_gelu_is_the_identity_far_right_and_zero_far_left():
    assert functional.gelu([-100.0, 0.0, 100.0]).data.tolist() == [0.0, 0.0, 100.0]


def test_gelu_is_within_half_a_thousandth_of_x_times_the_normal_distribution():
    x = np.linspace(-5, 5, 201)
    exact = np.array([v * 0.5 * math.erfc(-v / 2**0.5) for v in x])
    assert np.abs(functional.gelu(Tensor(x, dtype=np.float64)).data - exact).max() < 5e-4


# Losses ------------------------------------------------------------------------------------------


def test_cross_entropy_of_a_uniform_guess_is_the_log_of_the_number_of_classes():
    assert functional.cross_entropy(np.zeros((2, 65)), [3, 64]).item() == pytest.approx(np.log(65))


def test_cross_entropy_gradient_is_probability_minus_one_hot_over_positions():
    logits = Tensor(np.zeros((2, 4)), requires_grad=True)
    functional.cross_entropy(logits, [1, 3]).backward()
    assert logits.grad.tolist() == [[0.125, -0.375, 0.125, 0.125], [0.125, 0.125, 0.125, -0.375]]


def test_cross_entropy_of_sequences_is_that_of_their_positions():
    logits = np.random.default_rng(0).normal(size=(2, 3, 5))
    targets = np.array([[0, 1, 2], [3, 4, 0]])
    batched = functional.cross_entropy(logits, targets).item()
    flat = functional.cross_entropy(logits.reshape(6, 5), targets.reshape(6)).item()
    assert batched == pytest.approx(flat)


def test_cross_entropy_of_a_sure_and_wrong_guess_is_finite():
    assert functional.cross_entropy([[1000.0, 0.0]], [1]).item() == 1000.0


def test_mse_gradient_is_two_errors_over_n():
    prediction = Tensor([1.0, 2.0], requires_grad=True)
    target = Tensor([1.0, 4.0], requires_grad=True)
    functional.mse(prediction, target).backward()
    assert prediction.grad.tolist() == [0.0, -2.0] and target.grad.tolist() == [0.0, 2.0]


# Bad input ---------------------------------------------------------------------------------------


def test_token_id_too_large_is_named_with_its_place_and_the_range():
    ids = np.zeros((2, 4), dtype=int)
    ids[0, 3] = 65
    assert message(IndexError, lambda: functional.embedding(np.ones((65, 2)), ids)) == (
        "token id 65 at (0, 3) is outside 0..64; was another tokenizer used?"
    )


def test_negative_token_id_is_refused_and_does_not_count_from_the_end():
    assert message(IndexError, lambda: functional.embedding(np.ones((65, 2)), [0, -1])) == (
        "token id -1 at (1,) is outside 0..64; was another tokenizer used?"
    )


def test_single_token_id_out_of_range_has_no_place():
    assert message(IndexError, lambda: functional.embedding(np.ones((65, 2)), 65)) == (
        "token id 65 is outside 0..64; was another tokenizer used?"
    )


@pytest.mark.parametrize("ids", [[1.0], np.array([1.0]), Tensor([1.0])])
def test_float_token_ids_are_refused_even_when_whole(ids):
    told = message(TypeError, lambda: functional.embedding(np.ones((65, 2)), ids))
    dtype = "float32" if isinstance(ids, Tensor) else "float64"
    assert told == (
        f"token ids must be integers, got {dtype}; convert with ids.astype(numpy.int64)"
    )


def test_boolean_token_ids_are_refused():
    assert message(TypeError, lambda: functional.embedding(np.ones((65, 2)), [True])) == (
        "token ids must be integers, got bool; convert with ids.astype(numpy.int64)"
    )


def test_target_out_of_range_is_named():
    assert message(IndexError, lambda: functional.cross_entropy(np.zeros((2, 3)), [0, 3])) == (
        "target 3 at (1,) is outside 0..2; there are 3 classes; "
        "ignore_index= names a target that stands for none"
    )


def test_float_targets_are_refused():
    assert message(TypeError, lambda: functional.cross_entropy(np.zeros((1, 3)), [1.0])) == (
        "targets must be integers, got float64; convert with ids.astype(numpy.int64)"
    )


def test_targets_of_the_wrong_shape_are_refused():
    assert message(ValueError, lambda: functional.cross_entropy(np.zeros((2, 3)), [[0], [1]])) == (
        "cross_entropy: logits (2, 3) need targets of shape (2,), got (2, 1)"
    )


def test_mse_does_not_broadcast():
    assert message(ValueError, lambda: functional.mse(np.ones((3, 1)), np.ones(3))) == (
        "mse: prediction (3, 1) and target (3,) must have the same shape"
    )


def test_linear_input_of_the_wrong_width_is_refused():
    assert message(ValueError, lambda: functional.linear(np.ones((2, 4)), np.ones((3, 2)))) == (
        "linear: input (2, 4) does not fit weight (3, 2); the last axis must have length 3"
    )


def test_layer_norm_input_of_the_wrong_width_is_refused():
    x, gamma, beta = np.ones((2, 4)), np.ones(3), np.zeros(3)
    assert message(ValueError, lambda: functional.layer_norm(x, gamma, beta)) == (
        "layer_norm: input (2, 4) does not fit gamma (3,); the last axis must have length 3"
    )


@pytest.mark.parametrize("p", [-0.1, 1.0, 2.0])
def test_dropout_probability_outside_its_range_is_refused(p):
    assert message(ValueError, lambda: functional.dropout([1.0], p=p)) == (
        f"dropout: p must be in 0 <= p < 1, got {p}"
    )


# Together ----------------------------------------------------------------------------------------


def test_whole_small_network_has_the_gradients_of_finite_differences():
    rng = np.random.default_rng(0)
    table, w, gamma = rng.normal(size=(5, 4)), rng.normal(size=(4, 5)), rng.normal(size=4)

    def loss(table, w, gamma):
        x = functional.embedding(table, [[0, 2, 2], [4, 0, 1]])
        x = functional.gelu(functional.layer_norm(x, gamma, np.zeros(4)))
        return functional.cross_entropy(functional.linear(x, w), [[2, 2, 4], [0, 1, 3]])

    found = check_gradients(loss, table, w, gamma, tol=1e-8)
    assert found and found.count == 44


def test_losses_of_nothing_are_errors():
    with pytest.raises(ValueError, match=r"mse: shape \(0,\) has no elements"):
        functional.mse(np.zeros(0), np.zeros(0))
    with pytest.raises(
        ValueError, match=r"cross_entropy: logits \(0, 3\) hold no position that counts"
    ):
        functional.cross_entropy(np.zeros((0, 3)), np.zeros(0, dtype=int))


def test_log_softmax_refuses_a_row_without_probabilities():
    with pytest.raises(ValueError, match="log_softmax: a row is -inf everywhere"):
        functional.log_softmax([[0.0, 1.0], [-np.inf, -np.inf]])


def test_layer_norm_keeps_the_precision_of_a_float64_shift():
    beta = Tensor([1e-12, 0.0], dtype=np.float64)
    y = functional.layer_norm(np.zeros((1, 2), np.float32), np.ones(2, np.float32), beta)
    assert y.data.tolist() == [[1e-12, 0.0]]


def test_gelu_calls_for_its_tanh_once(monkeypatch):
    sizes = []
    monkeypatch.setattr(products, "tanh", lambda x: sizes.append(x.size) or np.tanh(x))
    functional.gelu(Tensor(np.ones(100_000), requires_grad=True)).sum().backward()
    assert sum(sizes) == 100_000


def test_heads_are_merged_without_a_copy():
    q, k, v = (Tensor(np.ones((2, 3, 5, 4))) for _ in range(3))
    mixed = functional.attention(q, k, v)
    merged = functional.merge_heads(mixed)
    assert np.shares_memory(merged.data, mixed.data)


def test_linear_keeps_the_precision_of_a_float64_bias():
    bias = Tensor([1e-12], dtype=np.float64)
    assert functional.linear(Tensor([[1.0]]), Tensor([[0.0]]), bias).data[0, 0] == 1e-12


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


def locked(array):
    array.flags.writeable = False
    return array


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
def test_arrays_of_any_layout_give_the_twin(name, layout):
    arrays, settings = random_arrays(SHAPES[name]), SETTINGS.get(name, {})
    expected = run(TWINS[name], arrays, **settings)
    upstream = LAYOUTS[layout](upstream_of(expected[0]))
    laid = [LAYOUTS[layout](a) for a in arrays]
    assert_same(run(getattr(functional, name), laid, upstream, **settings), expected, 1e-12)


@each
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2e-5), (np.float64, 1e-11)])
def test_large_arrays_give_the_twin(name, dtype, tolerance):
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


@each
@pytest.mark.parametrize("first", [(6,), (1, 6), (0, 6), (2, 0, 6)])
def test_single_rows_and_none_at_all_give_the_twin(name, first):
    arrays, settings = random_arrays([first, *SHAPES[name][1:]]), SETTINGS.get(name, {})
    found = run(getattr(functional, name), arrays, **settings)
    assert_same(found, run(TWINS[name], arrays, **settings), 1e-12)


def test_gelu_of_a_single_number_has_its_value_and_slope():
    x = Tensor(1.5, requires_grad=True, dtype=np.float64)
    functional.gelu(x).backward()
    s = math.tanh(math.sqrt(2 / math.pi) * (1.5 + 0.044715 * 1.5**3))
    inner = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * 1.5**2)
    assert functional.gelu(x).item() == pytest.approx(0.75 * (1 + s), rel=1e-14)
    assert x.grad.shape == () and x.grad == pytest.approx(
        0.5 * (1 + s) + 0.75 * (1 - s * s) * inner, rel=1e-14
    )


@each
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.int16])
def test_integers_count_as_the_numbers_they_are(name, dtype):
    whole = np.random.default_rng(0).integers(-5, 6, size=SHAPES[name][0]).astype(dtype)
    others, settings = random_arrays(SHAPES[name][1:]), SETTINGS.get(name, {})
    f = getattr(functional, name)
    found = f(whole, *others, **settings)
    expected = f(Tensor(whole, dtype=np.float64), *others, **settings)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.data, expected.data, rtol=1e-5, atol=1e-6)


@each
def test_operands_and_upstream_gradient_may_be_locked_and_stay(name):
    arrays, settings = random_arrays(SHAPES[name]), SETTINGS.get(name, {})
    before = [array.copy() for array in arrays]
    upstream = upstream_of(TWINS[name](*map(Tensor, arrays), **settings)).astype(np.float64)
    run(getattr(functional, name), list(map(locked, arrays)), locked(upstream), **settings)
    for array, old in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, old)


@each
def test_result_and_gradients_stand_in_memory_of_their_own(name):
    arrays, settings = random_arrays(SHAPES[name]), SETTINGS.get(name, {})
    f = getattr(functional, name)
    upstream = upstream_of(run(f, arrays, **settings)[0])
    everything = [*arrays, upstream, *run(f, arrays, upstream, **settings)]
    for i, array in enumerate(everything):
        assert not any(np.shares_memory(array, other) for other in everything[:i])


@each
def test_result_and_gradients_that_are_kept_outlive_the_next_step(name):
    settings, f = SETTINGS.get(name, {}), getattr(functional, name)
    kept = run(f, random_arrays(LARGE[name], np.float32), **settings)
    copies = [array.copy() for array in kept]
    for factor in (2, -3):  # other numbers of the same shapes: a buffer used again would show them
        run(f, [factor * a for a in random_arrays(LARGE[name], np.float32)], **settings)
    for array, copy in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
@given(data=st.data())
def test_upstream_gradient_of_the_user_is_neither_changed_nor_kept(name, data):
    operands, settings = data.draw(EXAMPLES[name].inputs)
    learned = EXAMPLES[name].learned(operands)
    tensors = [Tensor(a, i in learned, dtype=a.dtype) for i, a in enumerate(operands)]
    result = EXAMPLES[name].operation(*tensors, **settings)
    upstream = locked(np.asarray(upstream_of(result)))
    result.backward(upstream)  # writing into it would raise
    for i in learned:
        grad = tensors[i].grad
        array = grad.values if isinstance(grad, RowSparse) else grad
        assert not np.shares_memory(array, upstream)


def test_upstream_gradient_that_a_leaf_keeps_is_a_copy():
    x, upstream = Tensor([1.0, 2.0], requires_grad=True), np.array([3.0, 4.0], dtype=np.float32)
    x.backward(upstream)
    upstream[:] = 0
    assert x.grad.tolist() == [3.0, 4.0]


def test_gelu_of_small_integers_does_not_overflow():
    found = functional.gelu(np.array([12, 100], dtype=np.int8))
    np.testing.assert_allclose(found.data, [12, 100])


def test_layer_norm_of_integers_is_not_cut_to_integers():
    found = functional.layer_norm([[1, 2, 3]], [1, 1, 1], [0, 0, 0], eps=0.0)
    np.testing.assert_allclose(found.data, [[-1.2247, 0, 1.2247]], atol=1e-4)


@pytest.mark.parametrize(
    ("x", "bias", "dtype"),
    [
        (np.ones((1, 1), np.float32), Tensor([1e-12], dtype=np.float64), np.float64),
        (np.ones((1, 1), np.int64), Tensor([0.5]), np.float32),
    ],
)
def test_bias_of_linear_may_need_more_precision_than_the_product(x, bias, dtype):
    value = functional.linear(x, np.ones((1, 1), x.dtype), bias)
    assert value.dtype == dtype and value.data.item() == 1 + bias.item()

"""Optimisers: every step compared with arithmetic on the page."""

import numpy as np
import pytest
from exact_numbers import message

from tinytorch import SGD, Adam, AdamW, Parameter, RowSparse, Tensor
from tinytorch.core.optimizers import only_matrices


def parameter(values, gradient=None):
    p = Parameter(values, dtype=np.float64)
    p.grad = None if gradient is None else np.array(gradient, dtype=np.float64)
    return p


def rows(numbers, values, shape):
    return RowSparse(np.array(numbers), np.array(values, dtype=np.float64), shape)


# SGD ---------------------------------------------------------------------------------------------


def test_sgd_with_momentum_keeps_part_of_the_last_step():
    w = parameter([1.0], gradient=[1.0])
    optimiser = SGD([w], lr=0.1, momentum=0.5)
    optimiser.step()  # v = 1
    assert w.data[0] == pytest.approx(0.9)
    optimiser.step()  # v = 0.5 * 1 + 1 = 1.5
    assert w.data[0] == pytest.approx(0.75)
    w.grad = np.array([0.0])
    optimiser.step()  # v = 0.75: it rolls on
    assert w.data[0] == pytest.approx(0.675)


# AdamW -------------------------------------------------------------------------------------------


def test_weight_decay_applies_to_selected_parameters_only():
    matrix, bias = parameter([[2.0]], gradient=[[0.0]]), parameter([2.0], gradient=[0.0])
    AdamW([matrix, bias], lr=0.1, weight_decay=0.5, decay=only_matrices).step()
    assert matrix.data[0, 0] == pytest.approx(1.9) and bias.data[0] == 2.0


# Both --------------------------------------------------------------------------------------------

BOTH = [lambda params: SGD(params, lr=0.5), lambda params: AdamW(params, lr=0.5)]
both = pytest.mark.parametrize("make", BOTH, ids=["SGD", "AdamW"])


@both
def test_parameter_without_a_gradient_is_unchanged(make):
    moved, still = parameter([1.0], gradient=[1.0]), parameter([3.0])
    make([moved, still]).step()
    assert moved.data[0] < 1.0 and still.data[0] == 3.0


@both
def test_step_keeps_the_array_and_its_dtype(make):
    w = Parameter([1.0])
    array, w.grad = w.data, np.ones(1, dtype=np.float32)
    make([w]).step()
    assert w.data is array and array.dtype == np.float32


@both
def test_parameter_listed_twice_is_updated_once(make):
    once, twice = parameter([1.0], gradient=[1.0]), parameter([1.0], gradient=[1.0])
    make([once]).step()
    make([twice, twice]).step()
    assert once.data[0] == twice.data[0]


# Row-sparse gradients ----------------------------------------------------------------------------

SHAPE = (4, 2)
SPARSE = ([2, 0, 2], [[1.0, 2.0], [3.0, 4.0], [10.0, 20.0]])


def table():
    return parameter(np.arange(1.0, 9.0).reshape(SHAPE))


def test_repeated_rows_are_summed_before_the_step():
    w = table()
    w.grad = rows(*SPARSE, SHAPE)
    SGD([w], lr=1.0).step()
    assert (w.data - table().data).tolist() == [[-3, -4], [0, 0], [-11, -22], [0, 0]]


@pytest.mark.parametrize(
    "make",
    [
        lambda p: SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1),
        lambda p: AdamW(p, lr=0.1, weight_decay=0.1),
    ],
    ids=["SGD", "AdamW"],
)
def test_untouched_rows_are_unchanged_despite_momentum_and_decay(make):
    w = Parameter(np.random.default_rng(0).normal(size=SHAPE))
    before = w.data.copy()
    optimiser = make([w])
    for _ in range(5):
        w.grad = rows([2, 2], [[1.0, 1.0], [0.5, 0.5]], SHAPE)
        optimiser.step()
    assert w.data[[0, 1, 3]].tobytes() == before[[0, 1, 3]].tobytes()
    assert (w.data[2] != before[2]).all()


def test_lazy_adamw_leaves_untouched_rows_unlike_dense_adamw():
    lazy, dense = table(), table()
    optimisers = [AdamW([w], lr=0.1, weight_decay=0.0) for w in (lazy, dense)]
    for touched in (1, 3):
        lazy.grad = rows([touched], [[1.0, 1.0]], SHAPE)
        dense.grad = lazy.grad.to_dense()
        for optimiser in optimisers:
            optimiser.step()
    after_one = table().data[1] - 0.1
    np.testing.assert_allclose(lazy.data[1], after_one, rtol=1e-6)
    assert (dense.data[1] < after_one - 0.01).all()  # it rolls on what it remembers


def test_lazy_sgd_keeps_the_momentum_of_a_row_until_it_is_touched_again():
    w = parameter(np.zeros(SHAPE))
    optimiser = SGD([w], lr=1.0, momentum=0.5)
    for touched in (1, 3, 1):
        w.grad = rows([touched], [[1.0, 1.0]], SHAPE)
        optimiser.step()
    assert w.data[1].tolist() == [-2.5, -2.5]  # 1, then 0.5 * 1 + 1


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda w: SGD([w], lr=-0.1), "lr must be >= 0, got -0.1"),
        (lambda w: SGD([w], lr=float("nan")), "lr must be >= 0, got nan"),
        (lambda w: SGD([w], 0.1, momentum=1.0), "momentum must be in 0 <= momentum < 1, got 1.0"),
        (lambda w: SGD([w], 0.1, weight_decay=-1), "weight_decay must be >= 0, got -1"),
        (lambda w: AdamW([w], betas=(1.0, 0.9)), "beta1 must be in 0 <= beta1 < 1, got 1.0"),
        (lambda w: AdamW([w], betas=(0.9,)), "betas must be two numbers, got (0.9,)"),
        (lambda w: AdamW([w], betas=(0.9, -1)), "beta2 must be in 0 <= beta2 < 1, got -1"),
        (lambda w: AdamW([w], eps=-1e-8), "eps must be >= 0, got -1e-08"),
        (lambda w: SGD([w * 2], 0.1), "was computed from others; pass those instead"),
        (lambda w: SGD([], lr=0.1), "an optimiser needs at least one parameter; got an empty list"),
    ],
)
def test_setting_outside_its_range_is_refused(make, told):
    assert message(ValueError, lambda: make(parameter([1.0]))).endswith(told)


def test_tensor_without_requires_grad_cannot_be_optimised():
    assert message(TypeError, lambda: SGD([Tensor([1.0])], lr=0.1)) == (
        "an optimiser updates tensors that require a gradient, got Tensor([1.]); "
        "model.trainable_parameters() are those that do"
    )


def test_single_tensor_instead_of_a_list_is_refused():
    assert message(TypeError, lambda: SGD(Parameter([1.0, 2.0]), lr=0.1)) == (
        "an optimiser takes a list of parameters, got one tensor; write [w]"
    )


# In pieces: AdamW element by element -------------------------------------------------------------

SETTINGS = {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.2}


def by_elements(w, gradients, touched=...):
    """AdamW as its paper writes it, in float64; rows that no gradient touches rest."""
    w = np.array(w, dtype=np.float64)
    m, v = np.zeros_like(w), np.zeros_like(w)
    (beta1, beta2), lr = SETTINGS["betas"], SETTINGS["lr"]
    for t, g in enumerate(gradients, start=1):
        m[touched] = beta1 * m[touched] + (1 - beta1) * g
        v[touched] = beta2 * v[touched] + (1 - beta2) * g**2
        m_hat, v_hat = m[touched] / (1 - beta1**t), v[touched] / (1 - beta2**t)
        pulled = w[touched] - lr * SETTINGS["weight_decay"] * w[touched]
        w[touched] = pulled - lr * m_hat / (np.sqrt(v_hat) + SETTINGS["eps"])
    return w, m, v


LAYOUTS = {
    "C": lambda a: a.copy(),
    "F": lambda a: np.array(a, order="F"),
    "transposed": lambda a: a.T.copy().T,
    "spaced": lambda a: np.repeat(a, 2, axis=-1)[..., ::2] if a.ndim else a.copy(),
    "turned": lambda a: a[::-1].copy()[::-1] if a.ndim else a.copy(),
}


def locked(array):
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("gradient_layout", LAYOUTS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(), (1,), (11,), (5, 3), (2, 3, 4), (0, 3)])
def test_adamw_updates_each_element_for_any_memory_layout(shape, layout, gradient_layout):
    rng = np.random.default_rng(0)
    start, *gradients = (np.asarray(rng.normal(size=shape)) for _ in range(4))
    w = Parameter(0.0, dtype=np.float64)
    w.data = LAYOUTS[layout](start)
    optimiser = AdamW([w], **SETTINGS)
    arrays = w.data, optimiser.m[0], optimiser.v[0]
    for g in gradients:
        w.grad = locked(LAYOUTS[gradient_layout](g))
        optimiser.step()
        np.testing.assert_array_equal(w.grad, g)
    assert w.data is arrays[0] and optimiser.m[0] is arrays[1] and optimiser.v[0] is arrays[2]
    for array, expected in zip(arrays, by_elements(start, gradients), strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_adamw_updates_each_element_of_sparse_rows(layout):
    rng = np.random.default_rng(0)
    start, gradients = rng.normal(size=(9, 3)), [rng.normal(size=(4, 3)) for _ in range(3)]
    w = Parameter(0.0, dtype=np.float64)
    w.data = LAYOUTS[layout](start)
    optimiser = AdamW([w], **SETTINGS)
    arrays = w.data, optimiser.m[0], optimiser.v[0]
    for g in gradients:
        w.grad = RowSparse(locked(np.array([7, 0, 8, 3])), locked(g), (9, 3))
        optimiser.step()
    assert w.data is arrays[0] and optimiser.m[0] is arrays[1] and optimiser.v[0] is arrays[2]
    for array, expected in zip(arrays, by_elements(start, gradients, [7, 0, 8, 3]), strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-12, atol=1e-14)


def test_adam_without_decay_is_adamw_without_decay():
    one, other = table(), table()
    one.grad = other.grad = np.random.default_rng(0).normal(size=SHAPE)
    optimisers = Adam([one], lr=0.1), AdamW([other], lr=0.1, weight_decay=0.0)
    for optimiser in optimisers:
        optimiser.step()
    np.testing.assert_array_equal(one.data, other.data)


def test_decay_of_adam_is_part_of_the_gradient():
    w, g = np.array([2.0, -4.0]), np.array([0.5, 0.0])
    decayed, added = Parameter(w, dtype=np.float64), Parameter(w, dtype=np.float64)
    one, other = Adam([decayed], lr=0.1, weight_decay=0.3), Adam([added], lr=0.1)
    for _ in range(4):
        decayed.grad, added.grad = g, g + 0.3 * added.data
        one.step()
        other.step()
    np.testing.assert_array_equal(decayed.data, added.data)


@pytest.mark.parametrize("kind", [Adam, AdamW])
@pytest.mark.parametrize("name", ["lr", "eps", "weight_decay"])
def test_option_of_the_wrong_type_is_named(kind, name):
    assert message(TypeError, lambda: kind([table()], **{name: "0.1"})) == (
        f"{name} must be a number, got '0.1'"
    )

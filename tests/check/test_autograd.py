"""The checks of the chapter on automatic differentiation: right answers pass, wrong ones do not."""

import tracemalloc

import numpy as np
import pytest

from tinytorch import Tensor, primitive
from tinytorch.check import autograd as check


def failed_at(report):
    """The claim that a report stopped at."""
    assert not report
    return report.cases[-1].claim


# softplus ------------------------------------------------------------------------------------


@primitive
def softplus(x):
    y = np.logaddexp(0, x)
    return y, lambda g: g * np.exp(x - y)


def test_softplus_is_solved():
    assert check.autograd_softplus(softplus)


def test_softplus_stub_is_not():
    report = check.autograd_softplus(primitive(lambda x: ...))
    assert failed_at(report) == "is log 2 at zero"
    assert "nothing yet" in repr(report)
    assert "write the body" in repr(check.autograd_softplus(primitive(lambda x: None)))


def test_softplus_without_its_decorator_is_not_solved():
    assert failed_at(check.autograd_softplus(softplus.__wrapped__)) == "is log 2 at zero"


def test_softplus_that_returns_no_pullback_is_not_solved():
    assert failed_at(check.autograd_softplus(primitive(lambda x: x))) == "is log 2 at zero"


def test_softplus_hard_coded_is_not_solved():
    constant = primitive(lambda x: (np.full(x.shape, np.log(2)), lambda g: g / 2))
    assert failed_at(check.autograd_softplus(constant)).startswith("is log(1 + exp(x))")


def test_softplus_whose_pullback_is_its_own_value_is_not_solved():
    @primitive
    def wrong(x):
        y = np.logaddexp(0, x)
        return y, lambda g: g * y

    assert failed_at(check.autograd_softplus(wrong)) == "has slope one half at zero"


def test_softplus_that_forgets_the_incoming_gradient_is_not_solved():
    @primitive
    def wrong(x):
        return np.logaddexp(0, x), lambda g: 1 / (1 + np.exp(-x))

    assert "gradient that comes in" in failed_at(check.autograd_softplus(wrong))


def test_softplus_that_overflows_is_not_solved():
    @primitive
    def naive(x):
        return np.log(1 + np.exp(x)), lambda g: g / (1 + np.exp(-x))

    assert "does not overflow" in failed_at(check.autograd_softplus(naive))


def test_softplus_whose_slope_overflows_is_not_solved():
    @primitive
    def naive(x):
        return np.logaddexp(0, x), lambda g: g * np.exp(x) / (1 + np.exp(x))

    assert "slope of 1 at 1000" in failed_at(check.autograd_softplus(naive))


# undo_broadcast ------------------------------------------------------------------------------


def undo_broadcast(g, shape):
    while g.ndim > len(shape):
        g = g.sum(axis=0)
    for axis, length in enumerate(shape):
        if length == 1:
            g = g.sum(axis=axis, keepdims=True)
    return g


def test_undo_broadcast_is_solved():
    assert check.autograd_undo_broadcast(undo_broadcast)


def test_undo_broadcast_stub_is_not():
    assert not check.autograd_undo_broadcast(lambda g, shape: ...)


@pytest.mark.parametrize(
    ("wrong", "claim"),
    [
        (lambda g, shape: g, "sums over an axis that was added"),
        (lambda g, shape: np.ones(shape), "leaves a gradient alone"),
        (
            lambda g, shape: g if g.shape == shape else g.mean(axis=0),
            "sums over an axis that was added",
        ),
        (
            lambda g, shape: g if g.shape == shape else g.sum(axis=0),
            "sums over an axis that was stretched",
        ),
        (
            lambda g, shape: g if g.shape == shape else g.sum(axis=g.ndim - len(shape) - 1),
            "sums over an axis that was stretched",
        ),
    ],
)
def test_undo_broadcast_gone_wrong_is_not_solved(wrong, claim):
    assert failed_at(check.autograd_undo_broadcast(wrong)).startswith(claim)


def test_undo_broadcast_that_drops_stretched_axes_is_not_solved():
    def wrong(g, shape):
        axes = tuple(i for i, n in enumerate(shape) if n == 1)
        return g.sum(axis=0) if g.ndim > len(shape) else g.sum(axis=axes)

    assert "was stretched, and keeps it" in failed_at(check.autograd_undo_broadcast(wrong))


# record --------------------------------------------------------------------------------------


def gradients(record, result):
    found = {result: 1.0}
    for name, parents in reversed(record):
        for parent, slope in parents if name in found else []:
            found[parent] = found.get(parent, 0.0) + slope * found[name]
    return found


def test_record_is_solved():
    assert check.autograd_record(gradients)


def test_record_stub_is_not():
    report = check.autograd_record(lambda record, result: ...)
    assert failed_at(report) == "multiplies along a path"


def test_record_that_overwrites_is_not_solved():
    def wrong(record, result):
        found = {result: 1.0}
        for name, parents in reversed(record):
            for parent, slope in parents if name in found else []:
                found[parent] = slope * found[name]
        return found

    assert "uses a value twice" in failed_at(check.autograd_record(wrong))


def test_record_that_sums_only_within_one_operation_is_not_solved():
    def wrong(record, result):
        found = {result: 1.0}
        for name, parents in reversed(record):
            if name in found:
                for parent in {p for p, _ in parents}:
                    found[parent] = sum(s for p, s in parents if p == parent) * found[name]
        return found

    assert failed_at(check.autograd_record(wrong)) == "adds where two operations use a value"


def test_record_read_forwards_is_not_solved():
    def wrong(record, result):
        return gradients(record[::-1], result)

    assert failed_at(check.autograd_record(wrong)) == "multiplies along a path"


def test_record_that_lists_unrelated_names_is_not_solved():
    def wrong(record, result):
        found = {p: 0.0 for _, parents in record for p, _ in parents}
        found |= {name: 0.0 for name, _ in record} | gradients(record, result)
        return found

    assert "does not depend on" in failed_at(check.autograd_record(wrong))


def test_record_oracle_agrees_with_the_package_on_the_toy():
    w, x, b = (Tensor([v], requires_grad=True) for v in (2.0, 3.0, -4.0))
    m = w * x
    (m * (m + b)).backward()
    record = [
        ("m", [("w", 3.0), ("x", 2.0)]),
        ("s", [("m", 1.0), ("b", 1.0)]),
        ("y", [("m", 2.0), ("s", 6.0)]),
    ]
    found = check._gradients_by_paths(record, "y")
    assert [found[n] for n in "wxb"] == [w.grad[0], x.grad[0], b.grad[0]] == [24.0, 16.0, 6.0]


# swish ---------------------------------------------------------------------------------------


def swish_with(pullback_of):
    @primitive
    def swish(x):
        s = 1 / (1 + np.exp(-x))
        return x * s, pullback_of(x, s)

    return swish


def test_swish_is_solved():
    assert check.autograd_swish(swish_with(lambda x, s: lambda g: g * (s + x * s * (1 - s))))


def test_swish_as_it_stands_in_the_stub_is_not():
    stub = swish_with(lambda x, s: lambda g: g * x * s * (1 - s))
    assert failed_at(check.autograd_swish(stub)) == "has slope one half at zero"


def test_swish_left_empty_is_not_solved():
    assert not check.autograd_swish(primitive(lambda x: ...))


@pytest.mark.parametrize(
    ("pullback_of", "claim"),
    [
        (lambda x, s: lambda g: g * s * (1 - s), "has slope one half at zero"),
        (lambda x, s: lambda g: g / 2, "has slope 1 far to the right"),
        (lambda x, s: lambda g: s + g * x * s * (1 - s), "multiplies both paths"),
        (lambda x, s: lambda g: g * s, "is right for a table"),
    ],
)
def test_swish_gone_wrong_is_not_solved(pullback_of, claim):
    assert failed_at(check.autograd_swish(swish_with(pullback_of))).startswith(claim)


@pytest.mark.parametrize(
    ("pullback_of", "hint"),
    [
        (lambda x, s: lambda g: g * x * s * (1 - s), "as well as the one through the logistic"),
        (lambda x, s: lambda g: g * (s + s * (1 - s)), "carries the factor x"),
        (lambda x, s: lambda g: g * s * (1 - s), "two terms"),
    ],
)
def test_swish_hint_fits_the_mistake(pullback_of, hint):
    assert hint in check.autograd_swish(swish_with(pullback_of)).cases[-1].hint


def test_swish_that_changes_its_argument_is_not_solved():
    @primitive
    def spoiling(x):
        s = 1 / (1 + np.exp(-x))
        slope = s + x * s * (1 - s)
        x *= s
        return x, lambda g: g * slope

    assert "no longer what it was" in check.autograd_swish(spoiling).cases[-1].came


# costs ---------------------------------------------------------------------------------------


def costs(layers, batch, width):
    return 2 * layers * width * width, 8 * layers * batch * width


def test_costs_is_solved():
    assert check.autograd_costs(costs)


def test_costs_stub_is_not():
    assert "nothing yet" in repr(check.autograd_costs(lambda layers, batch, width: ...))


@pytest.mark.parametrize(
    ("wrong", "claim"),
    [
        (lambda n, b, w: (n * w * w + 1, 8 * n * b * w), "runs a model of four weights"),
        (lambda n, b, w: (2 * n * b * w, 8 * n * b * w), "runs a model of four weights"),
        (lambda n, b, w: (2 * w * w, 8 * n * b * w), "counts every weight"),
        (lambda n, b, w: (2 * n * w * w, 4 * n * b * w), "keeps two numbers"),
        (lambda n, b, w: (2 * n * w * w, 2 * n * b * w), "keeps two numbers"),
        (lambda n, b, w: (2 * n * w * w, 8 * n * w * w), "grows with layers"),
        (lambda n, b, w: 2 * n * w * w, "runs a model of four weights"),
        (lambda n, b, w: (8, 48), "counts every weight"),
    ],
)
def test_costs_gone_wrong_is_not_solved(wrong, claim):
    assert failed_at(check.autograd_costs(wrong)).startswith(claim)


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (lambda n, b, w: (n * w * w + 1, 8 * n * b * w), "not in the middle"),
        (lambda n, b, w: (n * w * w, 8 * n * b * w), "above and below"),
        (lambda n, b, w: costs(n, b, w)[::-1], "First the number of runs"),
        (lambda n, b, w: (2 * b * n * w * w, 8 * n * b * w), "the whole batch at once"),
    ],
)
def test_costs_hint_fits_the_mistake(wrong, hint):
    assert hint in check.autograd_costs(wrong).cases[-1].hint


def test_costs_are_not_told_before_they_are_predicted():
    assert "expected" not in repr(check.autograd_costs(lambda n, b, w: (0, 0)))


def test_a_single_cost_is_told_to_be_no_pair():
    report = check.autograd_costs(lambda n, b, w: 2 * n * w * w)
    assert report.cases[-1].came == "8, which is no pair (runs, bytes)"


def test_costs_expects_the_memory_that_the_package_keeps():
    layers, batch, width = 6, 128, 256
    weights = [Tensor(np.eye(width), requires_grad=True) for _ in range(layers)]
    first = h = Tensor(np.ones((batch, width)))
    tracemalloc.start()
    for weight in weights:
        h = (h @ weight).tanh()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert first is not h
    assert held == pytest.approx(costs(layers, batch, width)[1], rel=0.01)

"""What the checks of the chapter on automatic differentiation rest on, and what they say."""

import numpy as np
import pytest

from tinytorch import Tensor, primitive
from tinytorch_book.exercises import autograd as check


def test_a_decorated_stub_is_recognised():
    report = check.autograd_softplus(primitive(lambda x: ...))
    assert report.cases[-1].claim == "is log 2 at zero" and report.untouched
    got = check.autograd_softplus(primitive(lambda x: None)).cases[-1].got
    assert "write the body" in got


@primitive
def changes_x(x):
    y = np.logaddexp(0, x)
    x -= y
    return y, lambda g: g * np.exp(x)


@primitive
def changes_g(x):
    slope = 1 / (1 + np.exp(-x))
    return np.logaddexp(0, x), lambda g: np.multiply(g, slope, out=g)


@pytest.mark.parametrize(("wrong", "what"), [(changes_x, "x"), (changes_g, "g")])
def test_an_array_that_a_primitive_changes_is_named(wrong, what):
    got = check.autograd_softplus(wrong).cases[-1].got
    assert f"but `{what}` is no longer what it was" in got


def test_the_reference_for_a_record_agrees_with_the_package_on_the_toy():
    w, x, b = (Tensor([v], requires_grad=True) for v in (2.0, 3.0, -4.0))
    m = w * x
    (m * (m + b)).backward()
    record = [
        ("m", [("w", 3.0), ("x", 2.0)]),
        ("s", [("m", 1.0), ("b", 1.0)]),
        ("y", [("m", 2.0), ("s", 6.0)]),
    ]
    found = check._gradients(record, "y")
    assert [found[n] for n in "wxb"] == [w.grad[0], x.grad[0], b.grad[0]] == [24.0, 16.0, 6.0]

"""Softmax and its logarithm: sums, masked entries and empty axes."""

import numpy as np
import pytest

from tinytorch import Softmax, Tensor, functional


def test_softmax_sums_to_one_along_its_axis():
    x = np.random.default_rng(0).normal(size=(3, 4))
    np.testing.assert_allclose(Softmax(axis=0)(x).sum(axis=0).data, np.ones(4), rtol=1e-6)
    np.testing.assert_allclose(Softmax()(x).sum(axis=1).data, np.ones(3), rtol=1e-6)


def test_softmax_of_an_empty_axis_is_refused():
    for f in (functional.softmax, functional.log_softmax):
        with pytest.raises(ValueError, match=r"softmax: shape \(2, 0\) has nothing to choose"):
            f(np.zeros((2, 0)))
        assert f(np.zeros((0, 2))).shape == (0, 2)


def test_softmax_gives_masked_entries_zero():
    assert functional.softmax([0.0, -np.inf, 0.0]).data.tolist() == [0.5, 0.0, 0.5]


def test_fully_masked_row_gives_zeros_and_no_gradient():
    x = Tensor([[-np.inf, -np.inf], [0.0, 0.0]], requires_grad=True)
    y = functional.softmax(x)
    y.backward([[1.0, 2.0], [1.0, 3.0]])
    assert y.data.tolist() == [[0.0, 0.0], [0.5, 0.5]]
    assert x.grad.tolist() == [[0.0, 0.0], [-0.5, 0.5]]

"""Optimisers over several steps against PyTorch, given the same gradients."""

import numpy as np
import pytest
import torch
from compare import DTYPES, TOLERANCE, array

from tinytorch import SGD, Adam, AdamW, Parameter, RowSparse

SHAPE, STEPS = (6, 4), 20


def trained(make, gradients, dtype):
    """Where our parameter is after the steps."""
    w = Parameter(array(*SHAPE), dtype=dtype)
    optimiser = make([w])
    for gradient in gradients:
        w.grad = gradient
        optimiser.step()
    return w.data


def trained_by_torch(make, gradients, dtype):
    """Where theirs is."""
    w = torch.nn.Parameter(torch.tensor(array(*SHAPE).astype(dtype)))
    optimiser = make([w])
    for gradient in gradients:
        w.grad = gradient if torch.is_tensor(gradient) else torch.tensor(gradient)
        optimiser.step()
    return w.detach().numpy()


def dense_gradients(dtype):
    return [array(*SHAPE, seed=10 + step).astype(dtype) for step in range(STEPS)]


def sparse_gradients(dtype):
    """Rows of a table, some of them twice: ours and theirs."""
    ours, theirs = [], []
    for step in range(STEPS):
        rows = np.random.default_rng(step).integers(0, SHAPE[0], size=4)
        values = array(4, SHAPE[1], seed=10 + step).astype(dtype)
        ours.append(RowSparse(rows, values, SHAPE))
        index = torch.tensor(rows)[None]
        theirs.append(
            torch.sparse_coo_tensor(index, torch.tensor(values), SHAPE, check_invariants=True)
        )
    return ours, theirs


CASES = {
    "Adam": (lambda p: Adam(p, lr=0.1), lambda p: torch.optim.Adam(p, lr=0.1)),
    "Adam with decay": (
        lambda p: Adam(p, lr=0.1, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.3),
        lambda p: torch.optim.Adam(p, lr=0.1, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.3),
    ),
    "SGD": (lambda p: SGD(p, lr=0.1), lambda p: torch.optim.SGD(p, lr=0.1)),
    "SGD with momentum": (
        lambda p: SGD(p, lr=0.1, momentum=0.9),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    ),
    "SGD with decay": (
        lambda p: SGD(p, lr=0.1, weight_decay=0.2),
        lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.2),
    ),
    "SGD with both": (
        lambda p: SGD(p, lr=0.1, momentum=0.5, weight_decay=0.2),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.5, weight_decay=0.2),
    ),
    "AdamW": (AdamW, torch.optim.AdamW),
    "AdamW with settings": (
        lambda p: AdamW(p, lr=0.1, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.3),
        lambda p: torch.optim.AdamW(p, lr=0.1, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.3),
    ),
    "AdamW without decay is Adam": (
        lambda p: AdamW(p, lr=0.1, weight_decay=0.0),
        lambda p: torch.optim.Adam(p, lr=0.1),
    ),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_twenty_steps_give_the_same_parameters(name, dtype):
    ours, theirs = CASES[name]
    gradients = dense_gradients(dtype)
    tolerance = TOLERANCE[np.dtype(dtype)]
    if dtype == np.float32:  # rounding of twenty steps adds up
        tolerance = {"rtol": 5e-5, "atol": 5e-6}
    np.testing.assert_allclose(
        trained(ours, gradients, dtype), trained_by_torch(theirs, gradients, dtype), **tolerance
    )


def test_sparse_sgd_agrees():
    ours, theirs = sparse_gradients(np.float64)
    np.testing.assert_allclose(
        trained(lambda p: SGD(p, lr=0.1), ours, np.float64),
        trained_by_torch(lambda p: torch.optim.SGD(p, lr=0.1), theirs, np.float64),
        rtol=1e-12,
    )


def test_lazy_adamw_without_decay_is_sparse_adam():
    # one difference: SparseAdam adds eps before the bias correction of the root, we after it (as
    # AdamW does): eps so small that neither shows
    ours, theirs = sparse_gradients(np.float64)
    np.testing.assert_allclose(
        trained(lambda p: AdamW(p, lr=0.1, eps=1e-30, weight_decay=0.0), ours, np.float64),
        trained_by_torch(
            lambda p: torch.optim.SparseAdam(p, lr=0.1, eps=1e-30), theirs, np.float64
        ),
        rtol=1e-10,
    )

"""Every operation, its value and its gradients, against PyTorch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as tf
from compare import DTYPES, agree, array

from tinytorch import Tensor, causal_mask, functional, ops
from tinytorch.text import embeddings

MASK = array(3, 4, seed=7) > 0
IDS = np.array([[1, 4, 1], [0, 1, 4]])
TARGETS = np.array([[1, 0, 3], [2, 2, 1]])


def rotary_by_complex_numbers(x):
    """Pairs as complex numbers, turned by a product: the way the paper defines it (section 3.2)."""
    *lead, seq, d = x.shape
    theta = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angles = torch.outer(torch.arange(seq, dtype=torch.float64), theta)
    turn = torch.polar(torch.ones_like(angles), angles).to(torch.complex128)
    pairs = torch.view_as_complex(x.reshape(*lead, seq, d // 2, 2).to(torch.float64))
    return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)


def exact_tables(seq, d):
    """Rotary tables in float64: the package's own are float32, which float64 parity would see."""
    angles = np.arange(seq)[:, None] * 10000.0 ** (-np.arange(0, d, 2) / d)
    return np.cos(angles), np.sin(angles)


A, B, POSITIVE = array(3, 4), array(3, 4, seed=2), array(3, 4, low=0.5)
ROW, COLUMN, NUMBER = array(4, seed=3), array(3, 1, seed=4), array(seed=5)
CUBE = array(2, 3, 4, seed=6)
QKV = [array(2, 3, 5, 4, seed=seed) for seed in (11, 12, 13)]
# some pairs blocked, the others moved a little; every query keeps its own key
ADDED = np.where(array(2, 3, 5, 5, seed=14) + 3 * np.eye(5) > -0.3, array(5, 5), -np.inf)

# name: (ours, theirs, operands)
CASES = {
    "abs": (ops.abs, torch.abs, [A]),
    "add": (ops.add, torch.add, [A, B]),
    "add a row": (ops.add, torch.add, [A, ROW]),
    "add a column": (lambda x, y: x + y, torch.add, [COLUMN, A]),
    "add a row and a column": (ops.add, torch.add, [COLUMN, ROW]),
    "cast": (
        lambda x: x.astype(np.float32) * 2,
        lambda x: x.to(torch.float32) * 2,
        [A.astype(np.float32)],
    ),
    "clip": (lambda x: x.clip(-0.5, 0.5), lambda x: x.clamp(-0.5, 0.5), [A]),
    "clip at its bounds": (lambda x: x.clip(0, 1), lambda x: x.clamp(0, 1), [np.array([0.0, 1.0])]),
    "clip from below": (lambda x: x.clip(min=0.1), lambda x: x.clamp(min=0.1), [A]),
    "concatenate": (
        lambda x, y: ops.concatenate(x, y, axis=0),
        lambda x, y: torch.cat([x, y]),
        [A, B],
    ),
    "cos": (ops.cos, torch.cos, [A]),
    "div": (ops.div, torch.div, [A, POSITIVE]),
    "div by a row": (ops.div, torch.div, [CUBE, array(4, low=0.5)]),
    "exp": (ops.exp, torch.exp, [A]),
    "getitem: slices": (lambda x: x[1:, ::2], lambda x: x[1:, ::2], [A]),
    "getitem: repeated rows": (lambda x: x[[2, 0, 2]], lambda x: x[[2, 0, 2]], [A]),
    "getitem: a mask": (lambda x: x[MASK], lambda x: x[torch.tensor(MASK)], [A]),
    "getitem: pairs": (lambda x: x[[0, 0, 2], [1, 1, 3]], lambda x: x[[0, 0, 2], [1, 1, 3]], [A]),
    "getitem: ellipsis and new axis": (
        lambda x: x[..., None, 1],
        lambda x: x[..., None, 1],
        [CUBE],
    ),
    "log": (ops.log, torch.log, [POSITIVE]),
    "matmul": (ops.matmul, torch.matmul, [A, array(4, 5)]),
    "matmul of vectors": (ops.matmul, torch.matmul, [ROW, array(4, seed=9)]),
    "matmul with a vector": (ops.matmul, torch.matmul, [CUBE, ROW]),
    "matmul from a vector": (ops.matmul, torch.matmul, [ROW, array(2, 4, 3)]),
    "matmul of batches": (ops.matmul, torch.matmul, [CUBE, array(2, 4, 5)]),
    "matmul with broadcast batches": (
        ops.matmul,
        torch.matmul,
        [array(2, 1, 3, 4), array(5, 4, 2)],
    ),
    "matmul of a batch with a matrix": (ops.matmul, torch.matmul, [CUBE, array(4, 5)]),
    "max": (ops.max, torch.amax, [A]),
    "max over an axis": (lambda x: x.max(axis=1), lambda x: torch.amax(x, 1), [CUBE]),
    "max over a tie": (lambda x: x.max(axis=1), lambda x: torch.amax(x, 1), [np.ones((2, 3))]),
    "maximum": (ops.maximum, torch.maximum, [A, B]),
    "maximum of equals": (ops.maximum, torch.maximum, [A, A]),
    "mean": (ops.mean, torch.mean, [A]),
    "mean over two axes": (lambda x: x.mean(axis=(0, 2)), lambda x: x.mean((0, 2)), [CUBE]),
    "min": (ops.min, torch.amin, [A]),
    "min over two axes": (lambda x: x.min(axis=(0, -1)), lambda x: torch.amin(x, (0, -1)), [CUBE]),
    "mul": (ops.mul, torch.mul, [A, B]),
    "mul by a number": (ops.mul, torch.mul, [A, NUMBER]),
    "neg": (ops.neg, torch.neg, [A]),
    "permute": (lambda x: x.permute(2, 0, 1), lambda x: x.permute(2, 0, 1), [CUBE]),
    "power": (lambda x: x**2.5, lambda x: x**2.5, [POSITIVE]),
    "power of minus one": (lambda x: x**-1, lambda x: x**-1, [POSITIVE]),
    "power of two": (lambda x: x**2, lambda x: x**2, [A]),
    "power of zero": (lambda x: x**0, lambda x: x**0, [np.zeros(3)]),
    "reshape": (lambda x: x.reshape(4, -1), lambda x: x.reshape(4, -1), [CUBE]),
    "sin": (ops.sin, torch.sin, [A]),
    "sqrt": (ops.sqrt, torch.sqrt, [POSITIVE]),
    "stack": (
        lambda x, y: ops.stack(x, y, axis=1),
        lambda x, y: torch.stack([x, y], dim=1),
        [A, B],
    ),
    "reshape: squeeze": (lambda x: x.squeeze(), torch.squeeze, [COLUMN]),
    "reshape: squeeze an axis": (lambda x: x.squeeze(-1), lambda x: x.squeeze(-1), [COLUMN]),
    "std": (lambda x: x.std(axis=1), lambda x: x.std(1, correction=0), [CUBE]),
    "std of all": (ops.std, lambda x: x.std(correction=0), [A]),
    "std of equals": (ops.std, lambda x: x.std(correction=0), [np.ones(3)]),
    "sub": (ops.sub, torch.sub, [A, ROW]),
    "sum": (ops.sum, torch.sum, [A]),
    "sum over an axis": (
        lambda x: x.sum(axis=-2, keepdims=True),
        lambda x: x.sum(-2, keepdim=True),
        [CUBE],
    ),
    "tanh": (ops.tanh, torch.tanh, [A]),
    "transpose": (lambda x: x.transpose(0, -1), lambda x: x.transpose(0, -1), [CUBE]),
    "reshape: unsqueeze": (lambda x: x.unsqueeze(1), lambda x: x.unsqueeze(1), [CUBE]),
    "reshape: flatten": (lambda x: x.flatten(1), lambda x: x.flatten(1), [CUBE]),
    "reshape: ravel": (lambda x: x.ravel(), torch.ravel, [CUBE]),
    "var": (
        lambda x: x.var(axis=1),
        lambda x: x.var(1, correction=0),
        [CUBE],
    ),
    "where": (
        lambda x, y: ops.where(x, y, condition=MASK),
        lambda x, y: torch.where(torch.tensor(MASK), x, y),
        [A, ROW],
    ),
    # the fused ones
    "apply_rotary": (
        lambda x: embeddings.apply_rotary(x, *exact_tables(16, 8)),
        rotary_by_complex_numbers,
        [array(2, 3, 10, 8)],
    ),
    "attention": (functional.attention, tf.scaled_dot_product_attention, QKV),
    "attention, causal": (
        lambda q, k, v: functional.attention(q, k, v, mask=causal_mask(5)),
        lambda q, k, v: tf.scaled_dot_product_attention(q, k, v, is_causal=True),
        QKV,
    ),
    "attention with a bias for each batch and head": (
        lambda q, k, v: functional.attention(q, k, v, bias=ADDED),
        lambda q, k, v: tf.scaled_dot_product_attention(
            q, k, v, attn_mask=torch.tensor(ADDED, dtype=q.dtype)
        ),
        QKV,
    ),
    "attention of other lengths": (
        functional.attention,
        tf.scaled_dot_product_attention,
        [array(2, 3, 4), array(2, 6, 4, seed=1), array(2, 6, 5, seed=2)],
    ),
    "cross_entropy": (
        lambda x: functional.cross_entropy(x, TARGETS),
        lambda x: tf.cross_entropy(x.reshape(6, 4), torch.tensor(TARGETS).reshape(6)),
        [array(2, 3, 4)],
    ),
    "cross_entropy of large logits": (
        lambda x: functional.cross_entropy(x * 100, [1, 0]),
        lambda x: tf.cross_entropy(x * 100, torch.tensor([1, 0])),
        [array(2, 4)],
    ),
    "dropout of nothing": (
        lambda x: functional.dropout(x, p=0.0),
        lambda x: tf.dropout(x, 0.0),
        [A],
    ),
    "embedding": (
        lambda w: functional.embedding(w, IDS),
        lambda w: tf.embedding(torch.tensor(IDS), w),
        [array(5, 3)],
    ),
    "embedding, sparse": (
        lambda w: functional.embedding(w, IDS, sparse=True),
        lambda w: tf.embedding(torch.tensor(IDS), w, sparse=True),
        [array(5, 3)],
    ),
    "gelu": (functional.gelu, lambda x: tf.gelu(x, approximate="tanh"), [3 * A]),
    "layer_norm": (
        functional.layer_norm,
        lambda x, gamma, beta: tf.layer_norm(x, (4,), gamma, beta),
        [CUBE, ROW, array(4, seed=8)],
    ),
    "layer_norm with a large eps": (
        lambda x, gamma, beta: functional.layer_norm(x, gamma, beta, eps=0.1),
        lambda x, gamma, beta: tf.layer_norm(x, (4,), gamma, beta, eps=0.1),
        [A, ROW, array(4, seed=8)],
    ),
    "linear": (
        functional.linear,
        lambda x, w, b: tf.linear(x, w.T, b),
        [CUBE, array(4, 5), array(5)],
    ),
    "linear without a bias": (
        functional.linear,
        lambda x, w: tf.linear(x, w.T),
        [CUBE, array(4, 5)],
    ),
    "log_softmax": (functional.log_softmax, lambda x: tf.log_softmax(x, -1), [5 * A]),
    "log_softmax over rows": (
        lambda x: functional.log_softmax(x, axis=0),
        lambda x: tf.log_softmax(x, 0),
        [A],
    ),
    "merge_heads": (functional.merge_heads, lambda x: x.transpose(1, 2).flatten(2), [QKV[0]]),
    "mse": (functional.mse, tf.mse_loss, [A, B]),
    "relu": (functional.relu, tf.relu, [A]),
    "relu of zero": (functional.relu, tf.relu, [np.zeros(3)]),
    "sigmoid": (functional.sigmoid, torch.sigmoid, [10 * A]),
    "softmax": (functional.softmax, lambda x: tf.softmax(x, -1), [5 * A]),
    "softmax over rows": (lambda x: functional.softmax(x, axis=0), lambda x: tf.softmax(x, 0), [A]),
    "split_heads": (
        lambda x: functional.split_heads(x, num_heads=2),
        lambda x: x.unflatten(2, (2, 2)).transpose(1, 2),
        [CUBE],
    ),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CASES)
def test_value_and_gradients_agree(name, dtype):
    ours, theirs, operands = CASES[name]
    agree(ours, theirs, operands, dtype)


def test_every_operation_is_compared():
    compared = {name.split()[0].strip(":,") for name in CASES}
    operations = {name for name, value in vars(ops).items() if hasattr(value, "__wrapped__")}
    assert {*operations - {"primitive"}, *functional.__all__, "apply_rotary"} <= compared


def test_softmax_with_blocked_positions_agrees():
    x = np.array([[0.0, -np.inf, 1.0], [-np.inf, 2.0, -np.inf]])
    agree(functional.softmax, lambda t: tf.softmax(t, -1), [x], np.float64)


def test_row_sparse_gradient_names_the_same_rows_as_torch_does():
    ours = Tensor(array(5, 3), requires_grad=True)
    theirs = torch.tensor(ours.data, requires_grad=True)
    functional.embedding(ours, IDS, sparse=True).sum().backward()
    tf.embedding(torch.tensor(IDS), theirs, sparse=True).sum().backward()
    expected = theirs.grad.coalesce()
    assert ours.grad.coalesce().rows.tolist() == expected.indices()[0].tolist()
    np.testing.assert_allclose(ours.grad.coalesce().values, expected.values().numpy(), rtol=1e-6)

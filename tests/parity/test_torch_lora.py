"""LoRA beside one written by hand in PyTorch: forward, gradients, steps of AdamW, and the merge."""

import numpy as np
import pytest
import torch
from compare import TOLERANCE, array, assert_close

from tinytorch import AdamW, Linear, Module, Tensor
from tinytorch.models.lora import LoRALinear, add_lora, merge_lora

SHAPES = [(6, 4, 2, 16.0), (5, 9, 3, 1.0), (8, 8, 8, 4.0)]


class TorchLoRA(torch.nn.Module):
    """Hu et al., 2021, section 4.1, with PyTorch's own layer, whose weight is `(out, in)`."""

    def __init__(self, ours):
        super().__init__()
        W, b, A, B = (
            torch.tensor(p.data) for p in (ours.linear.weight, ours.linear.bias, ours.A, ours.B)
        )
        rows, columns = W.shape
        self.base = torch.nn.Linear(rows, columns, dtype=W.dtype).requires_grad_(False)
        self.base.weight.data, self.base.bias.data = W.T.contiguous(), b
        self.down, self.up = (
            torch.nn.Parameter(A.T.contiguous()),
            torch.nn.Parameter(B.T.contiguous()),
        )
        self.scale = ours.alpha / ours.rank

    def forward(self, x):
        thin = torch.nn.functional.linear(x, self.down)
        return self.base(x) + self.scale * torch.nn.functional.linear(thin, self.up)


def pair(rows, columns, rank, alpha, dtype=np.float64):
    """The same layer here and there, with no matrix of zeros."""
    linear = Linear(rows, columns, rng=0)
    for p, seed in ((linear.weight, 1), (linear.bias, 2)):
        p.data = array(*p.shape, seed=seed).astype(dtype)
    ours = LoRALinear(linear, rank, alpha, rng=0)
    ours.B.data = array(*ours.B.shape, seed=3).astype(dtype)
    return ours, TorchLoRA(ours)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_forward_and_all_gradients(shape, dtype):
    ours, theirs = pair(*shape, dtype)
    x = Tensor(array(3, 7, shape[0]), requires_grad=True, dtype=dtype)
    torch_x = torch.tensor(x.data, requires_grad=True)
    result, expected = ours(x), theirs(torch_x)
    assert_close(result.data, expected, "forward")
    upstream = array(*result.shape, seed=1).astype(dtype)
    result.backward(upstream)
    expected.backward(torch.tensor(upstream))
    # float32: sums over 21 rows, scaled by up to 8
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == np.float32 else None
    for own, other, name in (
        (x.grad, torch_x.grad, "x"),
        (ours.A.grad, theirs.down.grad.T, "A"),
        (ours.B.grad, theirs.up.grad.T, "B"),
    ):
        assert_close(own, other, name, tolerance or TOLERANCE[np.dtype(dtype)])
    assert ours.linear.weight.grad is None and theirs.base.weight.grad is None


def test_twenty_steps_of_adamw_give_the_same_matrices():
    ours, theirs = pair(6, 4, 2, 16.0)
    optimiser = AdamW(ours.trainable_parameters(), lr=0.02, weight_decay=0.1)
    other = torch.optim.AdamW([theirs.down, theirs.up], lr=0.02, weight_decay=0.1)
    x, target = array(10, 6), array(10, 4, seed=9)
    for _ in range(20):
        optimiser.zero_grad()
        other.zero_grad()
        error = ours(Tensor(x, dtype=np.float64)) - Tensor(target, dtype=np.float64)
        (error * error).mean().backward()
        ((theirs(torch.tensor(x)) - torch.tensor(target)) ** 2).mean().backward()
        optimiser.step()
        other.step()
    assert_close(ours.A.data, theirs.down.T, "A", {"rtol": 1e-9, "atol": 1e-10})
    assert_close(ours.B.data, theirs.up.T, "B", {"rtol": 1e-9, "atol": 1e-10})


class Holder(Module):
    """A model of one layer."""

    def __init__(self, layer):
        self.only = layer


def test_the_merged_weight_is_that_of_pytorch():
    ours, theirs = pair(6, 4, 2, 16.0)
    model = add_lora(Holder(ours.linear), 2, 16.0, targets=["only"])
    model.only.A.data, model.only.B.data = ours.A.data, ours.B.data
    merged = merge_lora(model).only
    with torch.no_grad():
        expected = theirs.base.weight.T + theirs.scale * theirs.down.T @ theirs.up.T
    assert_close(merged.weight.data, expected, "merged weight")

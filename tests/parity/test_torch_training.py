"""Schedules, clipping, groups of weight decay and a whole training run against PyTorch."""

import math
import warnings

import numpy as np
import pytest
import torch
from compare import DTYPES, array

from tinytorch import (
    AdamW,
    Batches,
    CosineSchedule,
    Embedding,
    LayerNorm,
    Linear,
    Parameter,
    RowSparse,
    Sequential,
    Trainer,
    clip_grad_norm,
)
from tinytorch.core.optimizers import only_matrices

CLOSE = {np.float32: {"rtol": 1e-6, "atol": 1e-6}, np.float64: {"rtol": 1e-12, "atol": 1e-12}}

# Schedule ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("warmup", "total", "low"), [(5, 40, 0.0), (1, 9, 0.02), (10, 11, 0.1)])
def test_schedule_is_a_linear_warm_up_followed_by_cosine_annealing(warmup, total, low):
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
    parts = [
        torch.optim.lr_scheduler.LinearLR(optimiser, 1 / warmup, 1.0, warmup - 1),
        torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, total - warmup, low),
    ]
    theirs = torch.optim.lr_scheduler.SequentialLR(optimiser, parts, milestones=[warmup])
    ours = CosineSchedule(0.3, warmup, total, low)
    for step in range(total + 1):
        assert ours(step) == pytest.approx(optimiser.param_groups[0]["lr"], abs=1e-12), step
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's parts step each other in a deprecated way
            optimiser.step()
            theirs.step()


# Clipping ----------------------------------------------------------------------------------------

SHAPES = [(6, 4), (4,), (3, 2, 5), (1,)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("max_norm", [0.01, 1.0, 1000.0])
def test_clipping_agrees_in_norm_and_gradients(dtype, max_norm):
    ours = [Parameter(np.zeros(shape), dtype=dtype) for shape in SHAPES]
    theirs = [torch.nn.Parameter(torch.tensor(p.data)) for p in ours]
    for i in (0, 1, 2):  # the last has no gradient
        ours[i].grad = array(*SHAPES[i], seed=i).astype(dtype)
        theirs[i].grad = torch.tensor(ours[i].grad)
    norm = clip_grad_norm(ours, max_norm)
    expected = torch.nn.utils.clip_grad_norm_(theirs, max_norm)
    assert norm == pytest.approx(expected.item(), rel=1e-6 if dtype == np.float32 else 1e-12)
    for i in (0, 1, 2):  # PyTorch divides by norm + 1e-6
        np.testing.assert_allclose(ours[i].grad, theirs[i].grad, rtol=1e-5)
    assert ours[3].grad is None and theirs[3].grad is None


def test_row_sparse_gradient_with_repeats_is_clipped_like_its_dense_form():
    ours = Parameter(np.zeros((6, 4)), dtype=np.float64)
    ours.grad = RowSparse(np.array([5, 1, 5, 5]), array(4, 4), (6, 4))
    theirs = torch.nn.Parameter(torch.zeros(6, 4, dtype=torch.float64))
    theirs.grad = torch.tensor(ours.grad.to_dense())
    norm = clip_grad_norm([ours], 0.5)
    assert norm == pytest.approx(torch.nn.utils.clip_grad_norm_([theirs], 0.5).item(), rel=1e-12)
    np.testing.assert_allclose(ours.grad.to_dense(), theirs.grad, rtol=1e-5)


# Groups of weight decay --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_decay_of_matrices_alone_is_two_parameter_groups(dtype):
    ours = [Parameter(array(*shape), dtype=dtype) for shape in SHAPES]
    theirs = [torch.nn.Parameter(torch.tensor(p.data)) for p in ours]
    settings = {"lr": 0.05, "betas": (0.9, 0.99), "eps": 1e-8}
    mine = AdamW(ours, weight_decay=0.3, decay=only_matrices, **settings)
    matrices = [p for p in theirs if p.ndim >= 2]
    vectors = [p for p in theirs if p.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": 0.3},
        {"params": vectors, "weight_decay": 0.0},
    ]
    other = torch.optim.AdamW(groups, **settings)
    for step in range(20):
        for own, their in zip(ours, theirs, strict=True):
            own.grad = array(*own.shape, seed=step).astype(dtype)
            their.grad = torch.tensor(own.grad)
        mine.step()
        other.step()
    for own, their in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(own.data, their.detach().numpy(), **CLOSE[dtype])


# A whole run -------------------------------------------------------------------------------------


class TorchBigram(torch.nn.Module):
    """A model small enough to be the same in both: a table, a norm and a linear layer."""

    def __init__(self, vocab_size, embed_dim):
        super().__init__()
        self.table = torch.nn.Embedding(vocab_size, embed_dim)
        self.norm = torch.nn.LayerNorm(embed_dim)
        self.head = torch.nn.Linear(embed_dim, vocab_size)

    def forward(self, ids):
        return self.head(self.norm(self.table(ids)))


def the_same_in_torch(model, vocab_size, embed_dim):
    twin = TorchBigram(vocab_size, embed_dim).double()
    table, norm, head = model.layers
    with torch.no_grad():
        twin.table.weight.copy_(torch.tensor(table.weight.data))
        twin.norm.weight.copy_(torch.tensor(norm.gamma.data))
        twin.norm.bias.copy_(torch.tensor(norm.beta.data))
        twin.head.weight.copy_(torch.tensor(head.weight.data.T))
        twin.head.bias.copy_(torch.tensor(head.bias.data))
    return twin


def test_losses_norms_and_rates_of_a_run_are_those_of_a_loop_in_pytorch():
    model = Sequential(Embedding(7, 6, rng=0), LayerNorm(6), Linear(6, 7, rng=1))
    for p in model.parameters():
        p.data = p.data.astype(np.float64)
    twin = the_same_in_torch(model, 7, 6)
    batches = Batches(np.random.default_rng(0).integers(7, size=99), batch_size=3, seq_len=5)
    trainer = Trainer(
        model,
        batches,
        schedule=CosineSchedule(0.1, warmup_steps=3, total_steps=15, min_lr=0.01),
        clip=0.4,
        accumulate=2,
        progress=False,
    )
    history = trainer.run(20)

    groups = [
        {"params": [p for p in twin.parameters() if p.ndim >= 2], "weight_decay": 0.1},
        {"params": [p for p in twin.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, betas=(0.9, 0.99))
    for step, record in enumerate(history):
        if step < 3:
            lr = 0.1 * (step + 1) / 3
        else:
            lr = 0.055 + 0.045 * math.cos(math.pi * min(1.0, (step - 3) / 12))
        for group in optimiser.param_groups:
            group["lr"] = lr
        # the two batches of a step, read as one
        pairs = zip(batches[2 * step], batches[2 * step + 1], strict=True)
        inputs, targets = (torch.tensor(np.concatenate(pair)) for pair in pairs)
        loss = torch.nn.functional.cross_entropy(twin(inputs).flatten(0, 1), targets.flatten())
        optimiser.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(twin.parameters(), math.inf)
        for p in twin.parameters():
            p.grad *= min(1.0, 0.4 / norm.item())  # PyTorch's own clipping divides by norm + 1e-6
        optimiser.step()
        assert record["loss"] == pytest.approx(loss.item(), rel=1e-10), step
        assert record["grad_norm"] == pytest.approx(norm.item(), rel=1e-9), step
        assert record["lr"] == pytest.approx(lr, rel=1e-12), step
    np.testing.assert_allclose(model.layers[2].weight.data.T, twin.head.weight.detach(), atol=1e-9)
    assert max(record["grad_norm"] for record in history) > 0.4  # it was clipped

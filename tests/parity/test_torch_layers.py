"""Every layer, forward and the gradients of its input and parameters, against PyTorch."""

import numpy as np
import pytest
import torch
from compare import array, assert_close, load
from torch import nn

from tinytorch import (
    GELU,
    CrossEntropyLoss,
    Embedding,
    EmbeddingLayer,
    LayerNorm,
    Linear,
    ReLU,
    RMSNorm,
    Sigmoid,
    Softmax,
    SwiGLU,
    Tanh,
    Tensor,
)

BOTH = {"weight": "weight", "bias": "bias"}
IDS = np.array([[3, 1, 4, 1], [5, 9, 2, 6]])


def compare(layer, reference, x, names):
    """The same weights, input and upstream gradient for both; everything that comes must agree."""
    load(layer, reference, names)
    ours = Tensor(x, requires_grad=x.dtype.kind == "f")
    theirs = torch.tensor(ours.data, requires_grad=ours.requires_grad)
    result, expected = layer(ours), reference(theirs)
    assert_close(result.data, expected, "forward")
    upstream = array(*result.shape, seed=1).astype(np.float32)
    result.backward(upstream)
    expected.backward(torch.tensor(upstream))
    if ours.requires_grad:
        assert_close(ours.grad, theirs.grad, "gradient of the input")
    own, other = dict(layer.named_parameters()), dict(reference.named_parameters())
    assert set(own) == set(names)
    for name, there in names.items():
        grad = other[there].grad
        is_linear = isinstance(reference, nn.Linear) and there == "weight"
        assert_close(own[name].grad, grad.T if is_linear else grad, f"gradient of {name}")


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignore_index", [None, -100, 2])
def test_cross_entropy_with_every_option(reduction, weighted, ignore_index):
    weight = np.array([0.5, 2.0, 0.0, 1.25, 3.0], dtype=np.float32) if weighted else None
    targets = np.array([[0, 2, 4], [3, 1, 1]])
    if ignore_index is not None:
        targets[0, 2] = targets[1, 1] = ignore_index
    logits = array(2, 3, 5).astype(np.float32)
    ours = Tensor(logits, requires_grad=True)
    theirs = torch.tensor(logits, requires_grad=True)
    result = CrossEntropyLoss(weight, ignore_index, reduction)(ours, targets)
    expected = nn.CrossEntropyLoss(
        weight=None if weight is None else torch.tensor(weight),
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
    )(theirs.movedim(-1, 1), torch.tensor(targets))
    assert_close(result.data, expected, "loss")
    upstream = array(*result.shape, seed=1).astype(np.float32)
    result.backward(upstream)
    expected.backward(torch.tensor(upstream))
    assert_close(ours.grad, theirs.grad, "gradient of the logits")


@pytest.mark.parametrize("shape", [(6,), (5, 6), (2, 5, 6)])
def test_linear(shape):
    compare(Linear(6, 3), nn.Linear(6, 3), array(*shape), BOTH)


@pytest.mark.parametrize("shape", [(6,), (5, 6), (2, 5, 6)])
def test_layer_norm(shape):
    layer = LayerNorm(6)
    layer.load_state_dict({"gamma": array(6, seed=2), "beta": array(6, seed=3)})
    compare(layer, nn.LayerNorm(6), array(*shape), {"gamma": "weight", "beta": "bias"})


def test_layer_norm_has_the_same_eps():
    assert LayerNorm(6).eps == nn.LayerNorm(6).eps
    nearly_constant = 1 + 1e-3 * array(5, 6)
    ours = LayerNorm(6)(nearly_constant).data
    theirs = nn.LayerNorm(6)(torch.tensor(nearly_constant, dtype=torch.float32))
    assert_close(ours, theirs, "forward", {"rtol": 1e-3, "atol": 1e-4})  # most digits cancel


@pytest.mark.parametrize("eps", [1e-5, 0.5])
@pytest.mark.parametrize("shape", [(6,), (5, 6), (2, 5, 6)])
def test_rms_norm(shape, eps):
    layer = RMSNorm(6, eps)
    layer.load_state_dict({"gamma": array(6, seed=2)})
    compare(layer, nn.RMSNorm(6, eps), array(*shape), {"gamma": "weight"})


def test_swiglu():
    layer = SwiGLU(6, 10, rng=0)
    gate, up, down = (
        torch.tensor(x.weight.data.T, requires_grad=True)
        for x in (layer.gate, layer.linear1, layer.linear2)
    )
    x = Tensor(array(5, 6), requires_grad=True)
    y = torch.tensor(x.data, requires_grad=True)
    result, expected = layer(x), (nn.functional.silu(y @ gate.T) * (y @ up.T)) @ down.T
    assert_close(result.data, expected, "forward")
    (result * result).sum().backward()
    (expected * expected).sum().backward()
    assert_close(x.grad, y.grad, "gradient of the input")
    for own, other in ((layer.gate, gate), (layer.linear1, up), (layer.linear2, down)):
        assert_close(own.weight.grad, other.grad.T, "gradient of a matrix")


@pytest.mark.parametrize("sparse", [False, True])
def test_embedding(sparse):
    layer, reference = Embedding(10, 4, sparse=sparse), nn.Embedding(10, 4, sparse=sparse)
    compare(layer, reference, IDS, {"weight": "weight"})
    assert reference.weight.grad.is_sparse == sparse


@pytest.mark.parametrize(
    ("layer", "reference"),
    [
        (ReLU(), nn.ReLU()),
        (GELU(), nn.GELU(approximate="tanh")),
        (Tanh(), nn.Tanh()),
        (Sigmoid(), nn.Sigmoid()),
        (Softmax(), nn.Softmax(dim=-1)),
        (Softmax(axis=0), nn.Softmax(dim=0)),
    ],
)
def test_activation(layer, reference):
    compare(layer, reference, 3 * array(5, 6), {})


class TorchEmbeddingLayer(nn.Module):
    """Token and position tables added, as in nanoGPT; learned or sinusoidal positions, scaling."""

    def __init__(self, pos_encoding, scale):
        super().__init__()
        self.tok, self.scale = nn.Embedding(10, 6), 6**0.5 if scale else 1.0
        self.pos = nn.Embedding(8, 6) if pos_encoding == "learned" else None
        place = torch.arange(8)[:, None]
        angles = place * torch.exp(torch.arange(0, 6, 2) * (-torch.log(torch.tensor(1e4)) / 6))
        self.table = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
        self.kind = pos_encoding

    def forward(self, ids):
        x = self.tok(ids) * self.scale
        if self.kind == "learned":
            return x + self.pos(torch.arange(ids.shape[-1]))
        return x if self.kind is None else x + self.table[: ids.shape[-1]]


@pytest.mark.parametrize("ids", [IDS, IDS[0]])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("pos_encoding", ["learned", "sinusoidal", None])
def test_embedding_layer(pos_encoding, scale, ids):
    names = {"token_embedding.weight": "tok.weight"}
    if pos_encoding == "learned":
        names["pos_encoding.position_embeddings"] = "pos.weight"
    layer = EmbeddingLayer(10, 6, 8, pos_encoding, scale)
    compare(layer, TorchEmbeddingLayer(pos_encoding, scale), ids, names)

"""Multi-head attention, the MLP and the block in both orders, values and gradients, in PyTorch."""

import numpy as np
import pytest
import torch
import torch.nn.functional as tf
from compare import DTYPES, TOLERANCE, array, assert_close
from torch import nn

from tinytorch import (
    MultiHeadAttention,
    Tensor,
    TransformerBlock,
    causal_mask,
    scaled_dot_product_attention,
)
from tinytorch.models.transformer import PostNormBlock
from tinytorch.text.embeddings import apply_rotary, create_alibi_bias, create_rotary_embeddings

D, HEADS, T, KEYS = 12, 3, 5, 7
MASK = np.where(array(T, KEYS) > 0.3, -np.inf, 0.0)


def stirred(layer, dtype):
    """The layer in that dtype with every parameter away from zero, one and small scores."""
    for i, p in enumerate(layer.parameters()):
        p.data = (p.data + 0.3 * array(*p.shape, seed=50 + i)).astype(dtype)
    return layer


def pack(by_name, kind):
    """Our three projections as the one that PyTorch has, (out, in)."""
    return np.concatenate([by_name[f"{x}_proj.{kind}"].T for x in "qkv"])


def torch_attention(layer, dtype):
    """`nn.MultiheadAttention` with the weights of `layer`."""
    reference = nn.MultiheadAttention(D, HEADS, batch_first=True).to(torch.tensor(dtype(0)).dtype)
    state = layer.state_dict()
    reference.load_state_dict(
        {
            "in_proj_weight": torch.tensor(pack(state, "weight")),
            "in_proj_bias": torch.tensor(pack(state, "bias")),
            "out_proj.weight": torch.tensor(state["out_proj.weight"].T.copy()),
            "out_proj.bias": torch.tensor(state["out_proj.bias"]),
        }
    )
    return reference


def run_both(ours, theirs, f, reference, arrays, dtype):
    """Value and input gradients of both; afterwards both hold the gradients of their parameters."""
    own = [Tensor(a, requires_grad=True, dtype=dtype) for a in arrays]
    other = [torch.tensor(t.data, requires_grad=True) for t in own]
    result, expected = f(ours, *own), reference(theirs, *other)
    assert_close(result.data, expected, "value")
    g = array(*result.shape, seed=9).astype(dtype)
    result.backward(g)
    expected.backward(torch.tensor(g))
    for i, (x, y) in enumerate(zip(own, other, strict=True)):
        assert_close(x.grad, y.grad, f"gradient of input {i}", tolerance(dtype))


def tolerance(dtype):
    """As everywhere, but wider for gradients in float32, which are sums over the whole batch."""
    usual = TOLERANCE[np.dtype(dtype)]
    return usual if dtype == np.float64 else {"rtol": 2e-5, "atol": 2e-5}


def assert_attention_gradients(layer, reference, dtype):
    grads = {name: p.grad for name, p in layer.named_parameters()}
    for ours, theirs in (
        (pack(grads, "weight"), reference.in_proj_weight),
        (pack(grads, "bias"), reference.in_proj_bias),
        (grads["out_proj.weight"].T, reference.out_proj.weight),
        (grads["out_proj.bias"], reference.out_proj.bias),
    ):
        assert_close(ours, theirs.grad, "gradient of a projection", tolerance(dtype))


SELF, CROSS = [(2, T, D)], [(2, T, D), (2, KEYS, D), (2, KEYS, D)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shapes", "mask"),
    [(SELF, None), (SELF, causal_mask(T)), (CROSS, None), (CROSS, MASK), (CROSS[:2], MASK)],
    ids=["self", "causal", "cross", "cross masked", "cross with keys as values"],
)
def test_multi_head_attention(shapes, mask, dtype):
    layer = stirred(MultiHeadAttention(D, HEADS, rng=0), dtype)
    reference = torch_attention(layer, dtype)
    added = None if mask is None else torch.tensor(mask.astype(dtype))

    def theirs(module, query, key=None, value=None):
        key = query if key is None else key
        value = key if value is None else value
        return module(query, key, value, attn_mask=added, need_weights=False)[0]

    arrays = [array(*shape, seed=i) for i, shape in enumerate(shapes)]
    run_both(layer, reference, lambda f, *x: f(*x, mask=mask), theirs, arrays, dtype)
    assert_attention_gradients(layer, reference, dtype)


def test_one_mask_for_each_text_and_head():
    mask = np.where(array(2, HEADS, T, T, seed=3) > 0.8, -np.inf, 0.0)
    mask[..., 0] = 0  # every query sees a key
    layer = stirred(MultiHeadAttention(D, HEADS, rng=0), np.float64)
    reference = torch_attention(layer, np.float64)
    added = torch.tensor(mask.reshape(2 * HEADS, T, T))  # its convention has one axis for both
    run_both(
        layer,
        reference,
        lambda f, x: f(x, mask=mask),
        lambda f, x: f(x, x, x, attn_mask=added, need_weights=False)[0],
        [array(2, T, D)],
        np.float64,
    )
    assert_attention_gradients(layer, reference, np.float64)


def test_weights_are_those_that_torch_returns():
    layer = stirred(MultiHeadAttention(D, 1, rng=0), np.float64)
    reference = nn.MultiheadAttention(D, 1, batch_first=True).double()
    state = layer.state_dict()
    with torch.no_grad():
        reference.in_proj_weight.copy_(torch.tensor(pack(state, "weight")))
        reference.in_proj_bias.copy_(torch.tensor(pack(state, "bias")))
    x = Tensor(array(2, T, D), dtype=np.float64)
    q, k, v = layer.q_proj(x), layer.k_proj(x), layer.v_proj(x)
    _, weights = scaled_dot_product_attention(q, k, v, causal_mask(T))
    y, mask = torch.tensor(x.data), torch.tensor(causal_mask(T)).double()
    _, expected = reference(y, y, y, attn_mask=mask)
    assert_close(weights.data, expected, "weights")


# With positions inside ---------------------------------------------------------------------------


def composed(layer, x, turn=lambda x: x, bias=None):
    """Our layer's formula on torch tensors: split, turn, `scaled_dot_product_attention`, merge."""
    p = {name: torch.tensor(q.data) for name, q in layer.named_parameters()}

    def split(name):
        y = x @ p[f"{name}_proj.weight"] + p[f"{name}_proj.bias"]
        return y.unflatten(-1, (HEADS, D // HEADS)).transpose(1, 2)

    mask = torch.tensor(causal_mask(T)).to(x.dtype)
    mask = mask if bias is None else mask + torch.tensor(bias).to(x.dtype)
    mixed = tf.scaled_dot_product_attention(
        turn(split("q")), turn(split("k")), split("v"), attn_mask=mask
    )
    return mixed.transpose(1, 2).flatten(-2) @ p["out_proj.weight"] + p["out_proj.bias"]


def test_rotary_layer():
    cos, sin = create_rotary_embeddings(16, D // HEADS)

    def turned(x):
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
        angles = torch.complex(torch.tensor(cos).double(), torch.tensor(sin).double())
        return torch.view_as_real(pairs * angles[: x.shape[-2]]).flatten(-2)

    layer = MultiHeadAttention(D, HEADS, rotate=lambda x: apply_rotary(x, cos, sin), rng=0)
    run_both(
        stirred(layer, np.float64),
        None,
        lambda f, x: f(x, mask=causal_mask(T)),
        lambda _, x: composed(layer, x, turn=turned),
        [array(2, T, D)],
        np.float64,
    )


def test_alibi_layer():
    bias = create_alibi_bias(HEADS, 16)
    layer = MultiHeadAttention(D, HEADS, bias=bias, rng=0)
    run_both(
        stirred(layer, np.float64),
        None,
        lambda f, x: f(x, mask=causal_mask(T)),
        lambda _, x: composed(layer, x, bias=bias[:, :T, :T]),
        [array(2, T, D)],
        np.float64,
    )


# MLP and block -----------------------------------------------------------------------------------


class TorchMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x):
        return self.linear2(tf.gelu(self.linear1(x), approximate="tanh"))


class TorchBlock(nn.Module):
    """The block of GPT-2, or with `pre_norm=False` that of the first transformer."""

    def __init__(self, pre_norm):
        super().__init__()
        self.ln1, self.ln2, self.mlp = nn.LayerNorm(D), nn.LayerNorm(D), TorchMLP()
        self.attention = nn.MultiheadAttention(D, HEADS, batch_first=True)
        self.pre_norm = pre_norm

    def forward(self, x):
        mask = torch.tensor(causal_mask(T)).to(x.dtype)

        def look(y):
            return self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]

        if self.pre_norm:
            x = x + look(self.ln1(x))
            return x + self.mlp(self.ln2(x))
        x = self.ln1(x + look(x))
        return self.ln2(x + self.mlp(x))


THEIR_NAMES = {"gamma": "weight", "beta": "bias", "weight": "weight", "bias": "bias"}


def mlp_and_norms(layer):
    """Of all but the attention: our name, their name, and whether theirs is transposed."""
    for name, p in layer.named_parameters():
        if "attention" not in name:
            *path, last = name.split(".")
            yield name, ".".join([*path, THEIR_NAMES[last]]), p.ndim == 2


def copy_into(reference, layer):
    own, other = layer.state_dict(), reference.state_dict()
    for ours, theirs, transposed in mlp_and_norms(layer):
        other[theirs] = torch.tensor(own[ours].T.copy() if transposed else own[ours])
    reference.load_state_dict(other)


def assert_gradients(layer, reference, dtype):
    own, other = dict(layer.named_parameters()), dict(reference.named_parameters())
    for ours, theirs, transposed in mlp_and_norms(layer):
        grad = own[ours].grad.T if transposed else own[ours].grad
        assert_close(grad, other[theirs].grad, f"gradient of {ours}", tolerance(dtype))


def call(f, x):
    return f(x)


BLOCKS = {True: TransformerBlock, False: PostNormBlock}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pre_norm", [True, False])
def test_block(pre_norm, dtype):
    layer = stirred(BLOCKS[pre_norm](D, HEADS, dropout_prob=0.0), dtype)
    reference = TorchBlock(pre_norm).to(torch.tensor(dtype(0)).dtype)
    copy_into(reference, layer)
    reference.attention.load_state_dict(torch_attention(layer.attention, dtype).state_dict())
    run_both(
        layer, reference, lambda f, x: f(x, mask=causal_mask(T)), call, [array(2, T, D)], dtype
    )
    assert_gradients(layer, reference, dtype)
    assert_attention_gradients(layer.attention, reference.attention, dtype)

"""The MLP and the block: what they compute, in which order, and how parts are replaced."""

import numpy as np
import pytest
from own_parts import MINE
from tiny_models import exact, in_float64, message, normal, stirred

from tinytorch import (
    MLP,
    LayerNorm,
    MultiHeadAttention,
    TransformerBlock,
    causal_mask,
    check_gradients,
)
from tinytorch.models.kv_cache import KVCache
from tinytorch.models.transformer import PostNormBlock

ORDERS = [TransformerBlock, PostNormBlock]


def size(module):
    return sum(p.size for p in module.parameters())


# MLP ---------------------------------------------------------------------------------------------


def test_mlp_is_linear_activation_linear():
    mlp, x = stirred(MLP(4, rng=0)).eval(), exact(2, 3, 4)
    p = {name: parameter.data for name, parameter in mlp.named_parameters()}
    hidden = x.data @ p["linear1.weight"] + p["linear1.bias"]
    bent = hidden / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (hidden + 0.044715 * hidden**3)))
    expected = bent @ p["linear2.weight"] + p["linear2.bias"]
    np.testing.assert_allclose(mlp(x).data, expected, rtol=1e-12, atol=1e-14)


def test_dropout_of_mlp_applies_only_in_training():
    mlp, x = MLP(8, dropout_prob=0.5), np.ones((100, 8))
    assert (mlp(x).data == 0).mean() == pytest.approx(0.5, abs=0.06)
    mlp.eval()
    assert (mlp(x).data != 0).all()
    assert MLP(8).dropout.p == 0.1


# Numbers of parameters, by hand ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "count"),
    [
        (MLP(512), 2_099_712),
        (TransformerBlock(64, 4), 49_984),
        (TransformerBlock(512, 8), 3_152_384),
    ],
)
def test_number_of_parameters(module, count):
    assert size(module) == count


# The order of a block ----------------------------------------------------------------------------


def test_pre_norm_block_matches_its_two_lines():
    block, x, mask = stirred(TransformerBlock(8, 2)).eval(), exact(2, 5, 8), causal_mask(5)
    y = x + block.attention(block.ln1(x), mask=mask)
    y = y + block.mlp(block.ln2(y))
    np.testing.assert_array_equal(block(x, mask=mask).data, y.data)


def test_post_norm_block_matches_its_two_lines():
    block = stirred(PostNormBlock(8, 2)).eval()
    x, mask = exact(2, 5, 8), causal_mask(5)
    y = block.ln1(x + block.attention(x, mask=mask))
    y = block.ln2(y + block.mlp(y))
    np.testing.assert_array_equal(block(x, mask=mask).data, y.data)


@pytest.mark.parametrize("order", ORDERS)
def test_block_gradients(order):
    block = stirred(order(4, 2, mlp_ratio=2)).eval()
    found = check_gradients(block, normal(1, 3, 4), tol=1e-7)
    assert found and found.count == 4 * 20 + 2 * 32 + 8 + 4 + 16 + 12, found


def silent(block):
    """The block with both branches writing zeros."""
    for layer in (block.attention.out_proj, block.mlp.linear2):
        layer.weight.data[...], layer.bias.data[...] = 0, 0
    return block


def test_dropout_of_a_block_applies_to_weights_and_to_both_branches():
    block = TransformerBlock(8, 2, dropout_prob=0.25)
    assert [block.attention.dropout_prob, block.dropout.p, block.mlp.dropout.p] == [0.25] * 3
    # with half of it dropped and the MLP silent, a branch that was dropped leaves x as it was
    block, x = silent(TransformerBlock(8, 2, dropout_prob=0.5)), np.ones((4, 50, 8))
    block.attention.out_proj.bias.data[...] = 1
    assert (block(x).data == 1).mean() == pytest.approx(0.5, abs=0.06)
    assert set(np.unique(block(x).data)) == {1.0, 3.0}  # 1 + 0 and 1 + 1 / 0.5


# Parts are passed in -----------------------------------------------------------------------------


@pytest.mark.parametrize("which", [["norm"], ["attention"], ["mlp"], ["norm", "attention", "mlp"]])
def test_custom_parts_load_our_weights_and_agree(which):
    ours = stirred(TransformerBlock(8, 2, dropout_prob=0))
    own = TransformerBlock(8, 2, dropout_prob=0, **{part: MINE[part] for part in which})
    assert list(own.state_dict()) == list(ours.state_dict())
    in_float64(own).load_state_dict(ours.state_dict())
    results = []
    for block in (ours, own):
        x = exact(2, 5, 8)
        y = block(x, mask=causal_mask(5))
        y.backward(normal(2, 5, 8, seed=9))
        results.append([y.data, x.grad, *(p.grad for p in block.parameters())])
    for first, second in zip(*results, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-10, atol=1e-12)


def test_parts_are_made_with_the_documented_arguments():
    calls = []

    def recorded(name, part):
        return lambda *args: calls.append((name, args)) or part(*args)

    TransformerBlock(
        8, 2, 3, 0.25,
        norm=recorded("norm", LayerNorm),
        attention=recorded("attention", MultiHeadAttention),
        mlp=recorded("mlp", MLP),
    )  # fmt: skip
    assert calls == [
        ("norm", (8,)),
        ("attention", (8, 2, 0.25)),
        ("norm", (8,)),
        ("mlp", (8, 24, 0.25)),
    ]


@pytest.mark.parametrize("order", ORDERS)
def test_cache_is_passed_to_attention_only_if_given(order):
    given = []

    class Noting(MultiHeadAttention):
        def forward(self, query, **options):
            given.append(options)
            return super().forward(query)

    block, x, layer = order(8, 2, attention=Noting), normal(1, 3, 8), KVCache(1, 4).layer(0)
    block(x)
    block(x, None)
    block(x, mask=None, cache=layer)
    assert given == [{"mask": None}, {"mask": None}, {"mask": None, "cache": layer}]


def test_constructor_arguments_are_attributes():
    mlp, block = MLP(8, 6, 0.25), TransformerBlock(8, 2, 3, 0.25)
    assert (mlp.embed_dim, mlp.hidden_dim, mlp.dropout_prob) == (8, 6, 0.25)
    assert (MLP(8).hidden_dim, MLP(8).dropout_prob) == (32, 0.1)
    sizes = (block.embed_dim, block.num_heads, block.mlp_ratio, block.dropout_prob)
    assert sizes == (8, 2, 3, 0.25)
    assert block.mlp.hidden_dim == 24


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "fails", "said"),
    [
        (ValueError, lambda: MLP(0), "embed_dim must be at least 1, got 0"),
        (ValueError, lambda: MLP(4, 0), "hidden_dim must be at least 1, got 0"),
        (TypeError, lambda: MLP(4, 8.0), "hidden_dim must be an integer, got 8.0"),
        (ValueError, lambda: MLP(4, dropout_prob=1.0), "Dropout: p must be in 0 <= p < 1, got 1.0"),
        (ValueError, lambda: TransformerBlock(0, 1), "embed_dim must be at least 1, got 0"),
        (TypeError, lambda: TransformerBlock(4, 2, 2.5), "mlp_ratio must be an integer, got 2.5"),
        (TypeError, lambda: TransformerBlock(4, 2, norm=3), "norm must be a class or a function t"),
        (TypeError, lambda: TransformerBlock(4, 2, attention=3), "attention must be a class or a"),
        (TypeError, lambda: TransformerBlock(4, 2, mlp=3), "mlp must be a class or a function"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_the_reason(error, fails, said):
    assert said in message(error, fails)

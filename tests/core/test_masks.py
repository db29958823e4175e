"""Masks that can be read in two ways are refused, wherever one is taken."""

import numpy as np
import pytest

from tinytorch import MultiHeadAttention, Tensor, causal_mask, functional
from tinytorch import scaled_dot_product_attention as readable

RULE = "attention: a mask is added to the scores, 0 keeps and -inf blocks; got "
REMEDY = (
    "If 1 means keep, convert with np.where(mask, 0.0, -np.inf); numbers that only weaken a pair, "
    "as ALiBi's do, are passed as bias="
)


def takers(mask):
    """Everything that takes a mask, called on three tokens."""
    x = np.random.default_rng(0).normal(size=(1, 3, 4))
    return [
        lambda: functional.attention(x, x, x, mask=mask),
        lambda: readable(x, x, x, mask),
        lambda: MultiHeadAttention(4, 2)(x, mask=mask),
        lambda: MultiHeadAttention(4, 2, bias=np.zeros((2, 3, 3)))(x, mask=mask),
    ]


@pytest.mark.parametrize(
    ("mask", "said"),
    [
        (np.tril(np.ones((3, 3))), "1.0 at (0, 0)"),
        (np.tril(np.ones((3, 3), dtype=int)), "1 at (0, 0)"),
        (np.triu(np.ones((3, 3)), k=1), "1.0 at (0, 1)"),
        (np.ones((3, 3)), "1.0 at (0, 0)"),
        (Tensor(np.tril(np.ones((3, 3)))), "1.0 at (0, 0)"),
        ([0.0, -1.0, 0.0], "-1.0 at (1,)"),
        (np.array(0.5), "0.5 at ()"),
        ([[0.0, np.inf, 0.0]], "inf at (0, 1)"),
        (np.full((3, 1), np.nan), "nan at (0, 0)"),
    ],
)
def test_mask_with_invalid_values_is_refused_everywhere(mask, said):
    for f in takers(mask):
        with pytest.raises(ValueError) as caught:
            f()
        assert str(caught.value) == f"{RULE}{said}. {REMEDY}"


def test_mask_per_text_is_not_broadcast_over_heads():
    x, masks = np.ones((2, 3, 4)), np.zeros((2, 3, 3))  # two texts, two heads
    q = np.ones((2, 2, 3, 4))
    for f in (
        lambda: MultiHeadAttention(4, 2)(x, mask=masks),
        lambda: functional.attention(q, q, q, mask=masks),
        lambda: readable(q, q, q, masks),
    ):
        with pytest.raises(ValueError, match=r"it would be taken for one mask a head") as caught:
            f()
        assert "write mask[:, None] for one a text, mask[None] for one a head" in str(caught.value)


def test_mask_per_text_needs_an_axis_for_heads():
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    layer = MultiHeadAttention(4, 2, rng=0)
    masks = np.stack([causal_mask(3), np.zeros((3, 3))])
    both = layer(x, mask=masks[:, None]).data
    for i in range(2):
        np.testing.assert_allclose(both[i], layer(x[i : i + 1], mask=masks[i]).data[0], rtol=1e-5)


@pytest.mark.parametrize("name", ["mask", "bias"])
def test_mask_or_bias_that_requires_a_gradient_is_refused(name):
    x, learned = np.ones((3, 4)), Tensor(np.zeros((3, 3)), requires_grad=True)
    with pytest.raises(TypeError, match=f"the {name} gets no gradient here"):
        functional.attention(x, x, x, **{name: learned})


def test_bias_can_be_learned_in_the_readable_form():
    x = np.random.default_rng(0).normal(size=(3, 4))
    learned = Tensor(np.zeros((3, 3)), requires_grad=True)
    output, _ = readable(x, x, x, causal_mask(3), bias=learned)
    output.backward(x)
    assert (learned.grad[2] != 0).all() and (learned.grad[0] == 0).all()


def test_bias_that_does_not_broadcast_is_refused():
    x = np.ones((3, 4))
    for f in (functional.attention, readable):
        with pytest.raises(ValueError, match=r"bias \(2, 3\) does not broadcast to the scores"):
            f(x, x, x, bias=np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"bias must be \(2, T, T\), one table a head, got shape"):
        MultiHeadAttention(4, 2, bias=np.zeros((3, 3)))


def test_empty_batch_is_allowed_and_empty_keys_are_refused():
    none = Tensor(np.ones((0, 3, 4)), requires_grad=True)
    layer = MultiHeadAttention(4, 2)
    result = layer(none, mask=causal_mask(3))
    assert result.shape == (0, 3, 4)
    result.sum().backward()
    assert none.grad.shape == (0, 3, 4) and (layer.q_proj.weight.grad == 0).all()
    for shape in [(0, 4), (3, 0)]:
        x = np.ones(shape)
        with pytest.raises(ValueError, match="need at least one key of at least one number"):
            functional.attention(x, x, x)

"""Weights in blocks: decoded as the format says, number by number, and multiplied as others are."""

import numpy as np
import pytest
from gguf_files import random_stored

from tinytorch import Embedding, Linear, no_grad
from tinytorch.core import array_forms, kernels
from tinytorch.core.block_formats import BLOCK, BLOCKS, decode_blocks
from tinytorch.core.block_weights import BlockEmbedding, BlockLinear
from tinytorch.core.quantization import quantize
from tinytorch.models.weight_tying import tied_logits


def stored(kind, rows, blocks):
    """The bytes of a random matrix, `(rows, bytes)`."""
    content = random_stored(kind, (rows, blocks * BLOCK))
    return np.frombuffer(content, np.uint8).reshape(rows, -1)


def number(block, kind, i):
    """One number of a block, from its bytes."""
    scale, rest = block[:2].view("<f2")[0].astype(np.float32), block[2:]
    if kind == "Q8_0":
        return scale * rest.view(np.int8)[i]
    smallest = np.float32(0)
    if kind.endswith("1"):
        smallest, rest = rest[:2].view("<f2")[0].astype(np.float32), rest[2:]
    fifth = 0
    if kind.startswith("Q5"):
        fifth, rest = int(rest[:4].view("<u4")[0]) >> i & 1, rest[4:]
    q = int(rest[i % 16]) >> 4 * (i // 16) & 15 | fifth << 4
    return scale * np.float32(q - {"Q4_0": 8, "Q5_0": 16}.get(kind, 0)) + smallest


@pytest.mark.parametrize("kind", BLOCKS)
def test_each_number_is_what_the_bytes_of_its_block_say(kind):
    size = BLOCKS[kind].itemsize
    rows = stored(kind, 6, 2).reshape(2, 3, -1)
    found = decode_blocks(rows, kind)
    assert found.dtype == np.float32 and found.shape == (2, 3, 2 * BLOCK)
    blocks = rows.reshape(-1, size)
    by_hand = [[number(block, kind, i) for i in range(BLOCK)] for block in blocks]
    np.testing.assert_array_equal(found.reshape(-1, BLOCK), by_hand)


def test_rows_may_lie_apart_in_memory():
    rows = stored("Q4_1", 4, 3)
    np.testing.assert_array_equal(
        decode_blocks(rows[::2], "Q4_1"), decode_blocks(rows, "Q4_1")[::2]
    )


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("shape", [(64,), (1, 64), (2, 5, 64)])
def test_block_linear_does_what_a_linear_does(kind, shape, monkeypatch):
    monkeypatch.setattr(kernels, "BLOCK", 3 * 64)  # three rows at a time
    rows = stored(kind, 7, 2)
    layer, plain = BlockLinear(rows, kind), Linear(64, 7, bias=False)
    plain.weight.data = decode_blocks(rows, kind).T
    assert (layer.in_features, layer.out_features) == (64, 7)
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    np.testing.assert_allclose(layer(x).data, plain(x).data, rtol=1e-5, atol=1e-5)
    if len(shape) < 3:
        np.testing.assert_array_equal(array_forms.reader(layer)(x), layer(x).data)


def test_block_embedding_looks_up_and_scores_as_an_embedding():
    rows = stored("Q8_0", 9, 2)
    table, plain = BlockEmbedding(rows, "Q8_0"), Embedding(9, 64)
    plain.weight.data = decode_blocks(rows, "Q8_0")
    np.testing.assert_array_equal(table([[0, 8], [3, 3]]).data, plain([[0, 8], [3, 3]]).data)
    np.testing.assert_array_equal(table(4).data, plain(4).data)
    x = np.random.default_rng(1).normal(size=(2, 64)).astype(np.float32)
    expected = tied_logits(x, plain).data
    np.testing.assert_allclose(table.scores(x).data, expected, rtol=1e-5, atol=1e-4)
    with pytest.raises(IndexError, match="token id"):
        table([9])


def test_weights_in_blocks_do_not_learn_and_are_not_quantized_again():
    layer = BlockLinear(stored("Q4_0", 3, 1), "Q4_0")
    x = Linear(32, 32, rng=0)(np.ones((1, 32)))
    with pytest.raises(RuntimeError, match="passes no gradient on"):
        layer(x).sum().backward()
    assert quantize(layer).weight.data is layer.weight.data
    with no_grad():
        assert not layer(x).requires_grad


@pytest.mark.parametrize(
    ("rows", "kind", "told"),
    [
        (np.zeros((2, 20), np.uint8), "Q6_K", "kind must be"),
        (np.zeros((2, 21), np.uint8), "Q4_1", "blocks of 20 bytes"),
        (np.zeros(20, np.uint8), "Q4_1", r"expected uint8 \(rows, bytes\)"),
        (np.zeros((2, 20), np.int8), "Q4_1", "got int8"),
        (np.full((1, 20), 0x7C, np.uint8), "Q4_1", None),
        (np.full((1, 34), 0x7C, np.uint8), "Q8_0", None),
    ],
)
def test_bytes_that_are_no_weights_are_refused(rows, kind, told):
    if told is None:  # a scale of 0x7C7C, NaN
        told = "not finite; load another file"
    for make in (BlockLinear, BlockEmbedding):
        with pytest.raises(ValueError, match=told):
            make(rows, kind)


def test_an_input_of_another_length_is_refused():
    for shape in ((2, 64), ()):
        with pytest.raises(ValueError, match="last axis must have length 32"):
            BlockLinear(stored("Q4_1", 3, 1), "Q4_1")(np.zeros(shape))

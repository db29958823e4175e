"""Weights in fewer bits: rounded as the docstring says, and read as before."""

import numpy as np
import pytest
from exact_numbers import widened

from tinytorch import Embedding, Linear, Module, Parameter, Tensor
from tinytorch.core import kernels
from tinytorch.core.quantization import (
    Constant,
    QuantizedEmbedding,
    QuantizedLinear,
    quantize,
    quantize_rows,
)
from tinytorch.models.weight_tying import tied_logits
from tinytorch.training.weight_files import load_weights, save_weights

KINDS = ("int8", "float16")


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


# Rows ----------------------------------------------------------------------------------------


def test_rounding_error_of_a_row_is_at_most_half_its_scale(monkeypatch):
    monkeypatch.setattr(kernels, "BLOCK", 1000)
    matrix = normal(64, 300) * np.geomspace(1e-6, 1e6, 64, dtype=np.float32)[:, None]
    q, scales = quantize_rows(matrix)
    assert q.dtype == np.int8 and scales.dtype == np.float32
    np.testing.assert_allclose(scales, np.abs(matrix).max(axis=1) / 127, rtol=1e-6)
    error = np.abs(matrix - q * scales[:, None].astype(np.float64)).max(axis=1) / scales
    assert (error <= 0.5001).all() and (error > 0.45).all()
    assert (np.abs(q).max(axis=1) == 127).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_non_finite_number_is_refused_with_its_row(wrong, dtype, monkeypatch):
    monkeypatch.setattr(kernels, "BLOCK", 4)
    matrix = normal(7, 2).astype(dtype)
    matrix[5, 1] = wrong
    with pytest.raises(ValueError, match="row 5 holds a number that is not finite"):
        quantize_rows(matrix)


def test_only_a_matrix_can_be_quantized():
    with pytest.raises(ValueError, match=r"expected \(rows, columns\), got shape \(3,\)"):
        quantize_rows(np.ones(3))


# Layers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("bias", [True, False])
def test_quantized_linear_multiplies_by_its_stored_numbers(dtype, bias):
    layer = Linear(300, 40, bias=bias, rng=0)
    if bias:
        layer.bias.data[...] = normal(40)
    small, x = quantize(layer, dtype), normal(2, 3, 300)
    assert isinstance(small, QuantizedLinear) and small.weight.dtype == dtype
    expected = x @ widened(small) + (layer.bias.data if bias else 0)
    np.testing.assert_allclose(small(x).data, expected, rtol=1e-4, atol=1e-5)
    assert small(x).shape == (2, 3, 40) and small(x).dtype == np.float32


@pytest.mark.parametrize("dtype", KINDS)
def test_quantized_embedding_uses_its_stored_numbers(dtype):
    small = quantize(Embedding(40, 300, rng=0), dtype)
    ids, x = np.array([[3, 39], [0, 3]]), normal(2, 3, 300)
    assert isinstance(small, QuantizedEmbedding) and small.weight.dtype == dtype
    np.testing.assert_allclose(small(ids).data, widened(small)[ids], rtol=1e-6)
    assert small(ids).dtype == np.float32 and small(Tensor(ids)).shape == (2, 2, 300)
    np.testing.assert_allclose(
        tied_logits(Tensor(x), small).data, x @ widened(small).T, rtol=1e-4, atol=1e-5
    )


def test_input_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match=r"input \(2, 3\) does not fit weight \(4, 5\); the last"):
        quantize(Linear(4, 5))(normal(2, 3))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((np.ones((2, 3)), np.ones(2)), r"got float64, \(2, 3\)"),
        ((np.ones((2, 3), np.int8),), r"got int8, \(2, 3\)"),
        ((np.ones((2, 3), np.float16), np.ones(2)), r"got float16, \(2, 3\)"),
        ((np.ones(3, np.int8), np.ones(3)), r"got int8, \(3,\)"),
        ((np.ones((2, 3), np.int8), np.ones(3)), r"2 rows need as many scales, got \(3,\)"),
    ],
)
@pytest.mark.parametrize("kind", [QuantizedLinear, QuantizedEmbedding])
def test_quantized_layer_takes_int8_with_row_scales_or_float16(kind, arguments, told):
    with pytest.raises(ValueError, match=rf"{kind.__name__}: .*{told}"):
        kind(*arguments)


def test_non_finite_float16_weight_is_refused():
    with pytest.raises(ValueError, match="the weight holds a number that is not finite"):
        QuantizedLinear(np.float16([[1, np.inf]]))


def test_weight_beyond_float16_is_refused():
    layer = Linear(2, 2)
    layer.weight.data[0, 0] = 1e5
    with pytest.raises(ValueError, match="up to 65504, and a weight is 100000"):
        quantize(layer, "float16")


def test_layer_with_a_custom_forward_stays_float32():
    class Doubled(Linear):
        def forward(self, x):
            return super().forward(x) * 2

    small = quantize(Doubled(3, 2, rng=0))
    assert type(small) is Doubled and small.weight.dtype == np.float32
    assert np.array_equal(small(np.ones((1, 3))).data, Doubled(3, 2, rng=0)(np.ones((1, 3))).data)


def test_unknown_dtype_is_refused():
    with pytest.raises(ValueError, match="quantize: dtype must be 'int8' or 'float16', got 'int4'"):
        quantize(Linear(2, 2), "int4")


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("layer", [Linear(3, 3), Embedding(4, 3)], ids=["linear", "scores"])
def test_no_gradient_passes_through_a_quantized_layer(layer, dtype):
    x, small = Tensor(normal(2, 3), requires_grad=True), quantize(layer, dtype)
    y = small(x) if isinstance(layer, Linear) else small.scores(x)
    with pytest.raises(RuntimeError, match="passes no gradient on; train the float32 model"):
        y.sum().backward()


@pytest.mark.parametrize(
    ("saved", "loading"), [("int8", None), (None, "int8"), ("int8", "float16")]
)
def test_weights_of_another_dtype_are_refused(tmp_path, saved, loading):
    made, into = (quantize(Linear(4, 3), d) if d else Linear(4, 3) for d in (saved, loading))
    before = into.state_dict()
    save_weights(tmp_path / "weights.safetensors", made)
    with pytest.raises(ValueError, match=r"weight"):
        load_weights(tmp_path / "weights.safetensors", into)
    assert all(np.array_equal(before[name], p.data) for name, p in into.named_parameters())


def test_constants_are_saved_but_never_trained():
    class Masked(Module):
        def __init__(self):
            self.mask, self.weight = Constant(np.int8([1, 0])), Parameter([1.0, 2.0])

    module = Masked()
    assert [name for name, _ in module.named_parameters()] == ["mask", "weight"]
    assert module.state_dict()["mask"].dtype == np.int8
    assert not module.mask.requires_grad and module.weight.requires_grad

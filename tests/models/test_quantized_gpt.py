"""A GPT whose matrices are stored in fewer bits reads, writes and is saved like any other."""

import numpy as np
import pytest
from exact_numbers import widened
from own_parts import MINE
from tiny_models import LLAMA, stirred

from tinytorch import GPT, AdamW, functional
from tinytorch.core.quantization import quantize
from tinytorch.training.weight_files import load_weights, save_weights

KINDS = ("int8", "float16")


def gpt(**options):
    """A GPT in float32 whose weights are large enough that all parts matter."""
    model = stirred(GPT(50, 32, 2, **{"num_heads": 4, "max_seq_len": 16, "rng": 0, **options}))
    for p in model.parameters():
        p.data = p.data.astype(np.float32)
    return model


# Models --------------------------------------------------------------------------------------

OPTIONS = [
    {},
    {"tie_weights": False},
    {"pos_encoding": "rotary"},
    {"pos_encoding": "sinusoidal", "pre_norm": False},
    LLAMA,
    MINE,
]
NAMES = ["tied", "untied", "rotary", "post-norm", "llama", "own parts"]


@pytest.mark.parametrize("options", OPTIONS, ids=NAMES)
@pytest.mark.parametrize("dtype", KINDS)
def test_a_quantized_model_matches_its_dequantized_weights(dtype, options):
    """The oracle is the model itself, with the rounded weights put back into it."""
    model = gpt(**options)
    small = quantize(model, dtype)
    assert type(small) is GPT and not small.training
    replaced = [n for n, p in small.named_parameters() if p.dtype == dtype]
    matrices = sum(name.endswith("weight") for name, _ in model.named_parameters())
    assert len(replaced) == matrices >= 13
    modules = dict(small.named_modules())
    own = dict(model.named_parameters())
    for name in replaced:
        own[name].data[...] = widened(modules[name.removesuffix(".weight")])
    ids = np.random.default_rng(1).integers(0, 50, (2, 9))
    expected = model.eval()(ids).data
    np.testing.assert_allclose(small(ids).data, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", KINDS)
def test_norms_biases_and_learned_positions_are_not_quantized(dtype):
    model = gpt()
    own, kept = dict(model.named_parameters()), dict(quantize(model, dtype).named_parameters())
    same = [name for name in kept if kept[name].dtype == np.float32 and name in own]
    assert "position_embedding.position_embeddings" in same and len(same) == 23
    for name in same:
        assert np.array_equal(kept[name].data, own[name].data)
        assert not np.shares_memory(kept[name].data, own[name].data)


def test_an_already_quantized_part_is_reused():
    small = quantize(gpt())
    again = quantize(small, "float16")
    assert again.token_embedding is small.token_embedding and again.ln_f is not small.ln_f


# No training ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", KINDS)
def test_training_a_quantized_model_is_refused(dtype):
    small = quantize(gpt(), dtype)
    for parameter in small.parameters():
        with pytest.raises(RuntimeError, match="does not learn: train the float32 model"):
            parameter.requires_grad = True
        assert not parameter.requires_grad
    with pytest.raises(TypeError, match=r"that require a gradient, got Constant\(.*not learn"):
        AdamW(small.parameters(), lr=1e-3)
    with pytest.raises(RuntimeError, match="does not depend on anything that requires a gradient"):
        functional.cross_entropy(small([[1, 2]]), [[2, 3]]).backward()


# In a file -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", KINDS)
def test_a_quantized_model_is_saved_and_loaded_like_any_other(tmp_path, dtype):
    small, path = quantize(gpt(), dtype), tmp_path / "small.safetensors"
    save_weights(path, small, {"made by": "seed 0"})
    other = quantize(GPT(50, 32, 2, 4, max_seq_len=16, rng=1), dtype)
    assert load_weights(path, other) == {"made by": "seed 0"}
    ids = [[3, 1, 4, 1, 5]]
    assert np.array_equal(other(ids).data, small(ids).data)

"""What is read on arrays is what `forward` computes: the logits, for every option of a model."""

from functools import partial

import numpy as np
import pytest
from own_parts import MINE
from tiny_models import IDS, LLAMA, assert_both_forms_agree, stirred, tiny_gpt

from tinytorch import MLP, LayerNorm, MultiHeadAttention, RMSNorm, SwiGLU, no_grad
from tinytorch.core import graph
from tinytorch.core.array_forms import maker
from tinytorch.core.hooks import hooks
from tinytorch.core.module import Module
from tinytorch.core.positions import Rotary
from tinytorch.core.quantization import quantize
from tinytorch.models.generation import logits_of
from tinytorch.models.lora import EVERY_LINEAR, add_lora, merge_lora

DTYPES = (np.float32, np.float64)


class Same(Module):
    """A part that returns its input: the very array, which nobody may change."""

    def __init__(self, *sizes):
        pass

    def forward(self, x):
        return x


def heads(kv_heads=None, **options):
    return partial(MultiHeadAttention, num_kv_heads=kv_heads, **options)


def alibi(n, **options):
    return {"num_heads": n, "embed_dim": 2 * n, "pos_encoding": "alibi", **options}


MODELS = {
    "one layer": {"num_layers": 1},
    "heads of one number": {"num_heads": 8},
    "dropout": {"dropout": 0.5},
    "untied": {"tie_weights": False},
    "post-norm": {"pre_norm": False},
    "no projection bias": {"attention": heads(projection_bias=False)},
    "eps 0": {"norm": partial(LayerNorm, eps=0.0)},
    "eps of NumPy": {"norm": partial(LayerNorm, eps=np.float64(1e-3))},
    "rms norm, eps of NumPy": {"norm": partial(RMSNorm, eps=np.float64(1e-3))},
    "no norm": {"norm": Same},
    **{str(kind): {"pos_encoding": kind} for kind in ("learned", "sinusoidal", "rotary", None)},
    "rotary, base 20": {"pos_encoding": "rotary", "rotary_base": 20.0},
    "rotary, base 10": {"pos_encoding": None, "attention": heads(rotate=Rotary(9, 4, 10.0))},
    **{f"alibi, {n} heads": alibi(n) for n in (1, 2, 3, 6, 8)},
    **{f"alibi, {n} heads of keys for 8": alibi(8, attention=heads(n)) for n in (1, 2, 4)},
    "own bias": {"attention": heads(bias=np.random.default_rng(5).normal(size=(2, 9, 9)))},
    "one head of keys": {"num_heads": 4, "attention": heads(1)},
    "swiglu": {"mlp": SwiGLU},
    "own norm and mlp": {"norm": MINE["norm"], "mlp": MINE["mlp"]},
    "llama": LLAMA,
    "llama with alibi": {**LLAMA, "pos_encoding": "alibi"},
}


def gpt(dtype=np.float64, change=lambda model: model, **options):
    """A GPT in whose logits every part matters."""
    model = stirred(change(tiny_gpt(max_seq_len=9, **options)))
    for p in model.parameters():
        p.data = p.data.astype(dtype)
    return model


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", MODELS.values(), ids=MODELS)
def test_array_form_of_a_model_matches_forward(options, dtype):
    model = gpt(dtype, **options)
    assert maker(model) and model.new_cache().num_layers == len(model.blocks)
    assert_both_forms_agree(model)


PATHS = (
    *("dropout", "ln_f", "blocks.0.ln1", "blocks.1.ln2", "blocks.0.mlp", "blocks.1.dropout"),
    *(f"blocks.0.attention.{name}_proj" for name in ("q", "k", "v", "out")),
    *(f"blocks.1.mlp.{name}" for name in ("linear1", "linear2", "gate", "dropout")),
)


@pytest.mark.parametrize("pre_norm", [True, False])
@pytest.mark.parametrize("mlp", [MLP, SwiGLU])
@pytest.mark.parametrize("path", PATHS)
def test_a_part_that_returns_its_input_changes_no_other(path, mlp, pre_norm):
    def put(model):
        owner, _, name = path.rpartition(".")
        setattr(dict(model.named_modules())[owner], name, Same())
        return model

    model = gpt(change=put, mlp=lambda d, *_: mlp(d, d, 0.0), pre_norm=pre_norm)
    assert_both_forms_agree(model, ways=["chunks"])


ADAPTED = {
    "lora": partial(add_lora, rank=2, targets=EVERY_LINEAR, rng=0),
    "lora, alpha of NumPy": partial(add_lora, rank=1, alpha=np.float64(3), rng=0),
    "merged": lambda model: merge_lora(stirred(add_lora(model, 2, targets=EVERY_LINEAR, rng=0))),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", [{}, {**LLAMA, "pre_norm": False}], ids=["gpt", "llama"])
@pytest.mark.parametrize("change", ADAPTED.values(), ids=ADAPTED)
def test_array_form_of_an_adapted_model_matches_forward(change, options, dtype):
    assert_both_forms_agree(gpt(dtype, change, **options))


@pytest.mark.parametrize("bits", ["int8", "float16"])
@pytest.mark.parametrize("name", ["learned", "untied", "llama", "alibi, 8 heads", "post-norm"])
def test_array_form_of_a_quantized_model_matches_forward(name, bits):
    assert_both_forms_agree(quantize(gpt(np.float32, **MODELS[name]), bits))


@pytest.mark.parametrize("change", [lambda model: model, ADAPTED["lora"]], ids=["plain", "lora"])
@pytest.mark.parametrize("name", ["untied", "llama", "post-norm"])
def test_both_forms_agree_on_the_dtype_whichever_parameter_is_wide(name, change):
    model = gpt(np.float32, change, num_layers=1, **MODELS[name])
    for p in model.parameters():
        narrow, p.data = p.data, p.data.astype(float)
        assert_both_forms_agree(model, ways=["chunks"])
        p.data = narrow


# While it writes ---------------------------------------------------------------------------------


def options(model):
    """What is no parameter: `eps`, `alpha`, a bias and a rotation."""
    for _, part in model.named_modules():
        for name in {"eps", "alpha"} & vars(part).keys():
            setattr(part, name, 0.3)
        if getattr(part, "bias", None) is not None and isinstance(part, MultiHeadAttention):
            part.bias = part.bias * 3
        if getattr(part, "rotate", None) is not None:
            part.rotate = Rotary(9, part.head_dim)
            part.rotate.sin = -part.rotate.sin


CHANGES = {
    "in place": lambda model: [np.copyto(p.data, p.data[::-1].copy()) for p in model.parameters()],
    "assigned": lambda model: [setattr(p, "data", p.data[::-1].copy()) for p in model.parameters()],
    "options": options,
}


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("name", ["learned", "llama", "llama with alibi", "post-norm"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_between_two_tokens_applies_from_the_next(change, name, rows):
    """The oracle is `forward` with a cache of its own."""
    model, unchanged = (gpt(change=ADAPTED["lora"], **MODELS[name]).eval() for _ in range(2))
    caches = model.new_cache(), model.new_cache()
    read, moved = logits_of(model, caches[0]), []
    with no_grad():
        for i, new in enumerate(IDS[:rows, :9].T):
            found, expected = read(new[:, None]), model(new[:, None], cache=caches[1]).data[:, -1]
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11, err_msg=f"{i}")
            before = unchanged(IDS[:rows, : i + 1]).data[:, -1]
            moved.append(np.abs(found - before).max() > 1e-3)
            if i == 4:
                change(model)
    assert moved == [False] * 5 + [True] * 4


@pytest.mark.parametrize("part", ["", "blocks.0.mlp", "blocks.1.attention.q_proj", "dropout"])
def test_hooks_see_and_change_what_is_read(part):
    model = gpt()
    with hooks(model, after={part: lambda x: x * 0.5}), no_grad():
        assert_both_forms_agree(model, ways=["chunks"])
        hooked = logits_of(model, model.new_cache())(IDS[:, :5])
    plain = logits_of(model, model.new_cache())(IDS[:, :5])
    assert np.abs(hooked - plain).max() > 1e-3


# The mechanism -----------------------------------------------------------------------------------


def test_reading_a_token_creates_no_tensor(monkeypatch):
    model = gpt()
    read = logits_of(model, model.new_cache())
    read(np.array([[1, 2, 3]]))
    made = []
    monkeypatch.setattr(graph, "_new", lambda kind: made.append(kind) or object.__new__(kind))
    read(np.array([[4]]))
    assert not made
    model([[1]])
    assert made

"""What is read on arrays is what `forward` computes: the logits, for every option of a model."""

import sys
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
from both_forms import IDS, assert_both_forms_agree
from own_parts import MINE
from tiny_models import LLAMA, stirred, tiny_gpt

from tinytorch import (
    MLP,
    LayerNorm,
    MultiHeadAttention,
    Parameter,
    RMSNorm,
    SwiGLU,
    Tensor,
    functional,
    no_grad,
)
from tinytorch.core import array_forms, tracing
from tinytorch.core.array_forms import maker, reader
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


class Relu(MLP):
    """An MLP with another activation."""

    def forward(self, x):
        return self.linear2(functional.relu(self.linear1(x)))


def heads(kv_heads=None, **options):
    return partial(MultiHeadAttention, num_kv_heads=kv_heads, **options)


def square(kind):
    """An MLP as wide as the model, so that each of its layers may be `Same`."""
    return lambda d, hidden_dim, dropout: kind(d, d, dropout)


def alibi(num_heads, head_dim=2, **options):
    return {
        "num_heads": num_heads,
        "embed_dim": num_heads * head_dim,
        "pos_encoding": "alibi",
        **options,
    }


MODELS = {
    "one layer": {"num_layers": 1},
    "one head": {"num_heads": 1},
    "heads of one number": {"num_heads": 8},
    "three heads": {"num_heads": 3, "embed_dim": 12},
    "dropout": {"dropout": 0.5},
    "untied": {"tie_weights": False},
    "post-norm": {"pre_norm": False},
    "no projection bias": {"attention": heads(projection_bias=False)},
    # norms
    "norm, eps 0.01": {"norm": partial(LayerNorm, eps=1e-2)},
    "norm, eps of NumPy": {"norm": partial(LayerNorm, eps=np.float64(1e-3))},
    "norm, eps 0": {"norm": partial(LayerNorm, eps=0.0)},
    "post-norm, eps 0.1": {"norm": partial(LayerNorm, eps=0.1), "pre_norm": False},
    "rms norm": {"norm": RMSNorm},
    "rms norm, eps 0.01": {"norm": partial(RMSNorm, eps=1e-2)},
    "rms norm, eps of NumPy": {"norm": partial(RMSNorm, eps=np.float64(1e-3))},
    "own norm": {"norm": MINE["norm"]},
    "no norm": {"norm": Same},
    # positions
    **{str(kind): {"pos_encoding": kind} for kind in ("learned", "sinusoidal", "rotary", None)},
    **{
        f"rotary, base {base}": {
            "pos_encoding": None,
            "attention": heads(rotate=Rotary(9, 4, base)),
        }
        for base in (10.0, 5e5)
    },
    **{f"alibi, {n} heads": alibi(n) for n in (1, 2, 3, 6, 8)},
    "alibi, post-norm": alibi(8, pre_norm=False),
    "a bias without a pattern": {
        "attention": heads(bias=np.random.default_rng(5).normal(size=(2, 9, 9)).astype("f"))
    },
    # shared keys
    **{
        f"{kind}, {n} heads of keys for 4": {
            "pos_encoding": kind,
            "num_heads": 4,
            "attention": heads(n),
        }
        for n in (1, 2)
        for kind in ("learned", "rotary")
    },
    **{f"alibi, {n} heads of keys for 8": alibi(8, attention=heads(n)) for n in (1, 2, 4)},
    # MLPs
    "swiglu": {"mlp": SwiGLU},
    "relu": {"mlp": Relu},
    "llama": LLAMA,
    "llama with alibi": {**LLAMA, "pos_encoding": "alibi"},
    "no mlp": {"mlp": Same},
    "own norm and mlp": {"norm": MINE["norm"], "mlp": MINE["mlp"]},
}
SMALL = {"max_seq_len": 9}


def gpt(dtype=np.float64, change=lambda model: model, **options):
    """A GPT in whose logits every part matters."""
    model = stirred(change(tiny_gpt(**SMALL, **options)))
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

    model = gpt(change=put, mlp=square(mlp), pre_norm=pre_norm)
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


# While it writes ---------------------------------------------------------------------------------


def in_place(model):
    for p in model.parameters():
        p.data[...] = p.data[::-1].copy()


def assigned(model):
    for p in model.parameters():
        p.data = p.data[::-1].copy()


def replaced(model):
    for _, part in model.named_modules():
        for name, p in list(vars(part).items()):
            if isinstance(p, Parameter):
                setattr(part, name, Parameter(p.data[::-1].copy(), dtype=p.dtype))


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


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("name", ["learned", "llama", "llama with alibi", "post-norm"])
@pytest.mark.parametrize("change", [in_place, assigned, replaced, options])
def test_a_change_between_two_tokens_applies_from_the_next(change, name, rows):
    """The oracle is `forward` with a cache of its own."""
    model = gpt(change=ADAPTED["lora"], **MODELS[name]).eval()
    caches = model.new_cache(), model.new_cache()
    read, moved = logits_of(model, caches[0]), []
    with no_grad():
        for i, new in enumerate(IDS[:rows, :9].T):
            found, expected = read(new[:, None]), model(new[:, None], cache=caches[1]).data[:, -1]
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11, err_msg=f"{i}")
            moved.append(np.abs(found - unchanged(name, rows, i)).max() > 1e-3)
            if i == 4:
                change(model)
    assert moved == [False] * 5 + [True] * 4


def unchanged(name, rows, i):
    with no_grad():
        model = gpt(change=ADAPTED["lora"], **MODELS[name]).eval()
        return model(IDS[:rows, : i + 1]).data[:, -1]


@pytest.mark.parametrize("hook", [lambda x: x, lambda x: x * 0.5], ids=["same", "halved"])
@pytest.mark.parametrize("part", ["", "blocks.0.mlp", "blocks.1.attention.q_proj", "dropout"])
@pytest.mark.parametrize("first", [True, False], ids=["open first", "opened later"])
def test_hooks_apply_to_the_tokens_that_are_read_while_they_are_open(first, part, hook):
    model = gpt().eval()
    caches = model.new_cache(), model.new_cache()
    read = None
    for i, new in enumerate(IDS[:, :9].T):
        is_open = (i // 3 % 2 == 0) == first
        with hooks(model, after={part: hook}) if is_open else nullcontext(), no_grad():
            read = read or logits_of(model, caches[0])
            found, expected = read(new[:, None]), model(new[:, None], cache=caches[1]).data[:, -1]
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11, err_msg=f"{i}")


@pytest.mark.parametrize("norm", [LayerNorm, RMSNorm])
def test_both_forms_of_a_norm_without_eps_divide_zeros_by_zero(norm):
    x, part = np.zeros((2, 4), np.float32), norm(4, eps=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = [part(Tensor(x)).data[0], reader(part)(x)[0], reader(part)(x[0])]
    assert np.isnan(found).all()


# The mechanism -----------------------------------------------------------------------------------


def test_an_inherited_forward_uses_the_array_form_and_an_own_one_does_not():
    class Named(LayerNorm):
        name = "own"

    class Twice(LayerNorm):
        def forward(self, x):
            return super().forward(x) * 2

    assert maker(Named(2)) is maker(LayerNorm(2)) is not None
    assert maker(Twice(2)) is None
    x = np.array([[1.0, 3.0]], dtype=np.float32)
    assert reader(Twice(2))(x).round(3).tolist() == [[-2.0, 2.0]]


def test_reading_a_token_creates_no_tensor(monkeypatch):
    model = gpt()
    read = logits_of(model, model.new_cache())
    read(np.array([[1, 2, 3]]))
    made = []
    monkeypatch.setattr(tracing, "_new", lambda kind: made.append(kind) or object.__new__(kind))
    read(np.array([[4]]))
    assert not made
    model([[1]])
    assert made


def test_every_array_form_is_compared_with_its_forward():
    compared = {
        "Linear", "LayerNorm", "Dropout", "MultiHeadAttention", "Embedding", "PositionalEncoding",
        "MLP", "TransformerBlock", "PostNormBlock", "GPT", "RMSNorm", "SwiGLU", "LoRALinear",
    }  # fmt: skip
    ours = [f for f in array_forms._makers if f.__module__.startswith("tinytorch.")]
    names = {forward.__qualname__.split(".")[0]: forward.__module__ for forward in ours}
    # what an example of a docstring has registered is not in its module
    assert {n for n, module in names.items() if hasattr(sys.modules[module], n)} == compared

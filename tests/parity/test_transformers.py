"""Our GPT with the weights of `GPT2LMHeadModel`: logits, loss, every gradient, greedy text.

The reference is made at random (nothing is downloaded), with weights large enough that every part
of the model matters. Both compute the same formulas, so that nothing but rounding and the order of
the additions differs. Measured against the largest number of an array, the worst error is 4e-15 in
float64 and 2e-6 in float32; the tolerances, 1e-12 and 2e-5, leave room for another machine's order.
A wrong formula, or an epsilon of 1e-6 instead of 1e-5 in a norm, is far outside of the first.
"""

import numpy as np
import pytest
import torch
from compare import assert_same_text
from transformers import GPT2Config, GPT2LMHeadModel

from tinytorch import GPT, functional

V, D, LAYERS, HEADS, T = 61, 24, 3, 4, 16
IDS = np.random.default_rng(0).integers(0, V, size=(3, 12))
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-12}

# ours: (theirs, which third of it); Conv1D keeps its weights as we do, (in, out)
IN_A_BLOCK = {
    "ln1.gamma": ("ln_1.weight", None),
    "ln1.beta": ("ln_1.bias", None),
    **{
        f"attention.{x}_proj.{kind}": (f"attn.c_attn.{kind}", i)
        for i, x in enumerate("qkv")
        for kind in ("weight", "bias")
    },
    "attention.out_proj.weight": ("attn.c_proj.weight", None),
    "attention.out_proj.bias": ("attn.c_proj.bias", None),
    "ln2.gamma": ("ln_2.weight", None),
    "ln2.beta": ("ln_2.bias", None),
    "mlp.linear1.weight": ("mlp.c_fc.weight", None),
    "mlp.linear1.bias": ("mlp.c_fc.bias", None),
    "mlp.linear2.weight": ("mlp.c_proj.weight", None),
    "mlp.linear2.bias": ("mlp.c_proj.bias", None),
}
OUTSIDE = {
    "token_embedding.weight": ("transformer.wte.weight", None),
    "position_embedding.position_embeddings": ("transformer.wpe.weight", None),
    "ln_f.gamma": ("transformer.ln_f.weight", None),
    "ln_f.beta": ("transformer.ln_f.bias", None),
}
NAMES = {
    **OUTSIDE,
    **{
        f"blocks.{i}.{ours}": (f"transformer.h.{i}.{theirs}", third)
        for i in range(LAYERS)
        for ours, (theirs, third) in IN_A_BLOCK.items()
    },
}


def part(array, third):
    """One of the three projections that GPT-2 keeps side by side in `c_attn`."""
    return array if third is None else np.split(array, 3, axis=-1)[third]


def reference_model(dtype, tied=True):
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=V, n_positions=T, n_embd=D, n_layer=LAYERS, n_head=HEADS,
        initializer_range=0.25, tie_word_embeddings=tied,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim == 1:  # biases and norms start at zeros and ones: any mistake would be hidden
                p += 0.2 * torch.randn_like(p)
    return model.to(torch.float64 if dtype is np.float64 else torch.float32)


def ours_from(reference, dtype, tied=True):
    model = GPT(V, D, LAYERS, HEADS, T, tie_weights=tied)
    theirs = {name: value.numpy() for name, value in reference.state_dict().items()}
    state = {name: part(theirs[other], third) for name, (other, third) in NAMES.items()}
    if not tied:
        state["lm_head.weight"] = theirs["lm_head.weight"].T
    for p in model.parameters():
        p.data = p.data.astype(dtype)
    model.load_state_dict(state)  # strict: every parameter has a partner
    return model


def assert_near(ours, theirs, what, dtype):
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, what
    error = np.abs(ours - theirs).max() / np.abs(theirs).max()
    assert error < TOLERANCE[dtype], f"{what}: off by {error:.1e} of the largest"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("tied", [True, False])
def test_logits_loss_and_every_gradient(tied, dtype):
    reference = reference_model(dtype, tied)
    model = ours_from(reference, dtype, tied)
    logits = model(IDS)
    loss = functional.cross_entropy(logits[:, :-1], IDS[:, 1:])
    ids = torch.tensor(IDS)
    expected = reference(ids, labels=ids)  # it shifts the labels by itself
    assert_near(logits.data, expected.logits.detach().numpy(), "logits", dtype)
    # transformers computes the loss in float32 whatever the model: seven digits
    assert loss.item() == pytest.approx(expected.loss.item(), rel=1e-6)

    shifted = torch.nn.functional.cross_entropy(
        expected.logits[:, :-1].reshape(-1, V), ids[:, 1:].reshape(-1)
    )
    assert loss.item() == pytest.approx(shifted.item(), rel=TOLERANCE[dtype] / 10)
    loss.backward()
    shifted.backward()
    grads = {name: p.grad.numpy() for name, p in reference.named_parameters()}
    own = dict(model.named_parameters())
    for name, (other, third) in NAMES.items():
        theirs = part(grads[other], third)
        if name.endswith("k_proj.bias"):  # zero in exact arithmetic, so only rounding is left
            scale = np.abs(grads[other]).max()
            assert np.abs(own.pop(name).grad).max() < TOLERANCE[dtype] * scale
            assert np.abs(theirs).max() < TOLERANCE[dtype] * scale
        else:
            assert_near(own.pop(name).grad, theirs, f"gradient of {name}", dtype)
    if not tied:
        head = own.pop("lm_head.weight").grad
        assert_near(head, grads["lm_head.weight"].T, "gradient of lm_head", dtype)
    assert not own  # every parameter was compared


@pytest.mark.parametrize("tied", [True, False])
def test_greedy_text_is_the_same(tied):
    reference = reference_model(np.float64, tied).eval()
    model = ours_from(reference, np.float64, tied)
    prompts = np.random.default_rng(1).integers(0, V, size=(20, 4))
    assert_same_text(model, reference, prompts, T, least=1e-6)


def test_initial_weights_have_the_deviations_of_transformers():
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=200, n_positions=64, n_embd=96, n_layer=8, n_head=4)
    theirs = {name: p.detach().numpy() for name, p in GPT2LMHeadModel(config).named_parameters()}
    model = GPT(200, 96, 8, 4, 64, rng=0)
    own = dict(model.named_parameters())
    for ours, (other, third) in NAMES.items():
        array = part(theirs[other], third)
        if array.ndim == 1:
            np.testing.assert_array_equal(own[ours].data, array)
        else:
            assert own[ours].data.std() == pytest.approx(array.std(), rel=0.05), ours

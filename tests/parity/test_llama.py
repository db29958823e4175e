"""Our GPT of today's parts with the weights of `LlamaForCausalLM`: logits, gradients, greedy text.

The reference is made at random, as in `test_transformers.py`. The hub's files hold the rows of
`q_proj` and `k_proj` in another order than ours: their rotation takes the pairs (i, i + d/2) of a
head, ours the neighbours (2i, 2i + 1). The layer computes the same with its rows permuted.

`transformers` normalises in float32 whatever the model, and its rotary tables are float32 as ours
are. So the worst error is some 1e-6 of the largest number, and the tolerance is 2e-5.
"""

from functools import partial

import numpy as np
import pytest
import torch
from compare import assert_same_text
from transformers import LlamaConfig, LlamaForCausalLM

from tinytorch import GPT, MultiHeadAttention, RMSNorm, SwiGLU, functional
from tinytorch.core.positions import Rotary

V, D, HIDDEN, LAYERS, HEADS, T = 61, 24, 40, 3, 4, 16
IDS = np.random.default_rng(0).integers(0, V, size=(3, 12))
TOLERANCE = 2e-5

IN_A_BLOCK = {
    "ln1.gamma": "input_layernorm.weight",
    "attention.q_proj.weight": "self_attn.q_proj.weight",
    "attention.k_proj.weight": "self_attn.k_proj.weight",
    "attention.v_proj.weight": "self_attn.v_proj.weight",
    "attention.out_proj.weight": "self_attn.o_proj.weight",
    "ln2.gamma": "post_attention_layernorm.weight",
    "mlp.gate.weight": "mlp.gate_proj.weight",
    "mlp.linear1.weight": "mlp.up_proj.weight",
    "mlp.linear2.weight": "mlp.down_proj.weight",
}
NAMES = {
    "token_embedding.weight": "model.embed_tokens.weight",
    "ln_f.gamma": "model.norm.weight",
    **{
        f"blocks.{i}.{ours}": f"model.layers.{i}.{theirs}"
        for i in range(LAYERS)
        for ours, theirs in IN_A_BLOCK.items()
    },
}


def as_ours(name, array):
    """A matrix or vector of theirs as our layer `name` keeps it."""
    if name.endswith(("q_proj.weight", "k_proj.weight")):
        head_dim = D // HEADS
        halves = array.reshape(-1, 2, head_dim // 2, D)  # (heads, halves, pairs, in)
        array = halves.swapaxes(1, 2).reshape(array.shape)  # the pairs become neighbours
    return array.T if array.ndim == 2 and name != "token_embedding.weight" else array


def reference_model(kv_heads, tied, base=10000.0):
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=V, hidden_size=D, intermediate_size=HIDDEN, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=kv_heads, max_position_embeddings=T,
        rms_norm_eps=1e-5, initializer_range=0.25, tie_word_embeddings=tied,
        rope_parameters={"rope_type": "default", "rope_theta": base},
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim == 1:  # the scales start at ones: a mistake would be hidden
                p += 0.2 * torch.randn_like(p)
    return model.eval()


def ours_from(reference, kv_heads, tied, base=10000.0):
    attention = partial(MultiHeadAttention, num_kv_heads=kv_heads, projection_bias=False)
    options = {"pos_encoding": "rotary", "attention": attention}
    if base != 10000.0:
        rotate = Rotary(T, D // HEADS, base)
        options = {"pos_encoding": None, "attention": partial(attention, rotate=rotate)}
    model = GPT(
        V, D, LAYERS, HEADS, T, tie_weights=tied, norm=RMSNorm,
        mlp=lambda d, _, dropout: SwiGLU(d, HIDDEN, dropout), **options,
    )  # fmt: skip
    theirs = {name: value.numpy() for name, value in reference.state_dict().items()}
    state = {name: as_ours(name, theirs[other]) for name, other in NAMES.items()}
    if not tied:
        state["lm_head.weight"] = theirs["lm_head.weight"].T
    model.load_state_dict(state)  # strict: every parameter has a partner
    return model


def assert_near(ours, theirs, what):
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, what
    error = np.abs(ours - theirs).max() / np.abs(theirs).max()
    assert error < TOLERANCE, f"{what}: off by {error:.1e} of the largest"


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_logits_and_every_gradient(kv_heads, tied):
    reference = reference_model(kv_heads, tied)
    model = ours_from(reference, kv_heads, tied)
    ids = torch.tensor(IDS)
    logits, expected = model(IDS), reference(ids).logits
    assert_near(logits.data, expected.detach().numpy(), "logits")
    assert np.abs(logits.data - expected.detach().numpy()).max() < 1e-4

    loss = functional.cross_entropy(logits[:, :-1], IDS[:, 1:])
    shifted = torch.nn.functional.cross_entropy(
        expected[:, :-1].reshape(-1, V), ids[:, 1:].reshape(-1)
    )
    assert loss.item() == pytest.approx(shifted.item(), rel=1e-6)
    loss.backward()
    shifted.backward()
    grads = {name: p.grad.numpy() for name, p in reference.named_parameters()}
    own = dict(model.named_parameters())
    for name, other in NAMES.items():
        theirs = as_ours(name, grads[other])
        assert_near(own.pop(name).grad, theirs, f"gradient of {name}")
    if not tied:
        head = own.pop("lm_head.weight").grad
        assert_near(head, grads["lm_head.weight"].T, "gradient of lm_head")
    assert not own  # every parameter was compared


def test_logits_with_another_rotary_base():
    reference = reference_model(2, True, base=500000.0)
    expected = reference(torch.tensor(IDS)).logits.detach().numpy()
    assert_near(ours_from(reference, 2, True, 500000.0)(IDS).data, expected, "logits")
    assert np.abs(ours_from(reference, 2, True)(IDS).data - expected).max() > 0.01


@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_greedy_text_is_the_same(kv_heads, tied, use_cache):
    reference = reference_model(kv_heads, tied)
    model = ours_from(reference, kv_heads, tied)
    prompts = np.random.default_rng(1).integers(0, V, size=(20, 4))
    assert_same_text(model, reference, prompts, T, least=1e-4, use_cache=use_cache)


@pytest.mark.parametrize("tied", [True, False])
def test_numbers_of_parameters_agree(tied):
    reference = reference_model(2, tied)
    ours = ours_from(reference, 2, tied).num_parameters()
    assert ours["total"] == reference.num_parameters()

"""`load_llama` beside transformers: the same files, the same logits, gradients and greedy text.

The files are those of `save_pretrained`, of models made at random as in `test_transformers.py`, and
the same weights in GGUF. The hub's files hold the rows of `q_proj` and `k_proj` in another order
than ours: their rotation takes the pairs (i, i + d/2) of a head, ours the neighbours (2i, 2i + 1).
The gradients of the layer are permuted alike.

`transformers` normalises in float32 whatever the model, and its rotary tables are float32 as ours
are. So the worst error is some 1e-6 of the largest number, and the tolerance is 2e-5.

The last tests need SmolLM2's own file, in the build's cache or where the variable SMOLLM2 says.
"""

import json

import numpy as np
import pytest
import torch
from compare import assert_same_text
from gguf import GGUFReader, dequantize
from gguf_files import write_gguf
from llama_files import IN_GGUF, SIZES, chat_tokenizer, gguf_contents
from smollm2_file import smollm2_file
from transformers import LlamaConfig, LlamaForCausalLM

from tinytorch import functional, no_grad
from tinytorch.models.llama import chat_template, load_llama
from tinytorch.text.chat import IM_END, chatml_prompt, chatml_system

V, D, HIDDEN, LAYERS, HEADS, T = 263, 24, 40, 3, 4, 16
IDS = np.random.default_rng(0).integers(0, V, size=(3, 12))
TOLERANCE = 2e-5
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}  # fmt: skip

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


def reference_model(kv_heads=2, tied=True, base=10000.0, **rope):
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=V, hidden_size=D, intermediate_size=HIDDEN, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, num_key_value_heads=kv_heads, max_position_embeddings=T,
        rms_norm_eps=1e-3, initializer_range=0.25, tie_word_embeddings=tied,
        rope_parameters={"rope_type": "default", "rope_theta": base, **rope},
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim == 1:  # the scales start at ones: a mistake would be hidden
                p += 0.2 * torch.randn_like(p)
    return model.eval()


def ours_from(reference, folder, shard="1GB"):
    """Our model from the files that transformers saves."""
    reference.save_pretrained(folder, max_shard_size=shard)
    assert (folder / "model.safetensors").exists() is (shard == "1GB")
    (folder / "tokenizer.json").write_text(json.dumps(chat_tokenizer()))
    return load_llama(folder)[0]


def assert_near(ours, theirs, what):
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, what
    error = np.abs(ours - theirs).max() / np.abs(theirs).max()
    assert error < TOLERANCE, f"{what}: off by {error:.1e} of the largest"


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_logits_and_every_gradient(kv_heads, tied, tmp_path):
    reference = reference_model(kv_heads, tied)
    model = ours_from(reference, tmp_path)
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


def logits(model):
    with no_grad():
        return model(IDS).data


@pytest.mark.parametrize("rope", [{"base": 500000.0}, {"base": 100.0}, {"base": 100.0, **LLAMA3}])
def test_logits_with_another_rotation(rope, tmp_path):
    reference = reference_model(**rope)
    expected = reference(torch.tensor(IDS)).logits.detach().numpy()
    assert_near(logits(ours_from(reference, tmp_path)), expected, "logits")
    config = json.loads((tmp_path / "config.json").read_text())
    config["rope_parameters"] = {"rope_theta": 100.0 if "rope_type" in rope else 10000.0}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert np.abs(logits(load_llama(tmp_path)[0]) - expected).max() > 0.01


@pytest.mark.parametrize(
    "said", [{}, {"rope_theta": 50.0}, {"rope_theta": 7.0, "rope_parameters": {"rope_theta": 50.0}}]
)
def test_what_a_config_leaves_out_is_as_in_transformers(said, tmp_path):
    ours_from(reference_model(4, tied=False), tmp_path)
    path = tmp_path / "config.json"
    sizes = "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers"
    sizes += "num_attention_heads", "max_position_embeddings", "model_type"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**{name: config[name] for name in sizes}, **said}))
    read = LlamaForCausalLM.from_pretrained(tmp_path)
    assert_near(
        logits(load_llama(tmp_path)[0]), read(torch.tensor(IDS)).logits.detach().numpy(), ""
    )


@pytest.mark.parametrize("shard", ["1GB", "20KB"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_logits_of_other_dtypes_and_of_several_files(dtype, shard, tmp_path):
    found = logits(ours_from(reference_model().to(dtype), tmp_path, shard))
    read = LlamaForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    assert_near(found, read(torch.tensor(IDS)).logits.detach().numpy(), "logits")


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_a_gguf_of_the_same_weights_is_the_same_model(kv_heads, tied, tmp_path):
    reference = reference_model(kv_heads, tied)
    model = ours_from(reference, tmp_path)
    config = {**reference.config.to_dict(), "rope_theta": 10000.0}
    tensors = {n: p.detach().numpy() for n, p in reference.named_parameters()}
    path = write_gguf(tmp_path / "model.gguf", *gguf_contents(config, tensors))
    np.testing.assert_array_equal(logits(load_llama(path)[0]), logits(model))


@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_greedy_text_is_the_same(kv_heads, tied, use_cache, tmp_path):
    reference = reference_model(kv_heads, tied)
    model = ours_from(reference, tmp_path)
    prompts = np.random.default_rng(1).integers(0, V, size=(20, 4))
    assert_same_text(model, reference, prompts, T, least=1e-4, use_cache=use_cache)


@pytest.mark.parametrize("tied", [True, False])
def test_numbers_of_parameters_agree(tied, tmp_path):
    reference = reference_model(2, tied)
    ours = ours_from(reference, tmp_path).num_parameters()
    assert ours["total"] == reference.num_parameters()


# The published file ------------------------------------------------------------------------------

QUESTIONS = """What is the capital of France?
Write two sentences about a dog who lost a drum.
What is 3 + 4?
Why is the sky blue?
List three fruits.
Translate "good morning" into Spanish.
Who wrote Hamlet?
Say the alphabet.
What is the opposite of hot?
How many legs does a spider have?
Tell me a joke.
What should I cook with eggs and rice?
Name a planet with rings.
Write a poem of four lines about rain.
What is a prime number?
Is the earth flat?
Give me the plural of mouse.
How do bees make honey?
Wer bist du?
Count from 1 to 10.""".splitlines()


@pytest.fixture(scope="module")
def published():
    path = smollm2_file()
    model, tokenizer = load_llama(path)
    return model, tokenizer, read_by_gguf(path), chatml_system(chat_template(path))


def read_by_gguf(path):
    """The same file as the `gguf` package decodes it, in the model of transformers."""
    reader = GGUFReader(path)
    sizes = {n: reader.get_field(f"llama.{key}").contents() for n, key in SIZES.items()}
    theirs = LlamaForCausalLM(LlamaConfig(**sizes, tie_word_embeddings=True))
    hub, state = {gguf: name for name, gguf in IN_GGUF.items()}, {}
    for tensor in reader.tensors:
        array = dequantize(tensor.data, tensor.tensor_type)
        *block, part = tensor.name.removesuffix(".weight").split(".")
        if part in ("attn_q", "attn_k"):  # as the hub has it: first numbers of all pairs first
            pairs = array.reshape(-1, 32, 2, array.shape[1])
            array = pairs.swapaxes(1, 2).reshape(array.shape)
        place = f"model.layers.{block[1]}." if block else ""
        state[f"{place}{hub[part]}.weight"] = torch.tensor(array)
    theirs.load_state_dict({**state, "lm_head.weight": state["model.embed_tokens.weight"]})
    return theirs.eval()


def test_smollm2_writes_what_it_writes_in_transformers(published):
    model, tokenizer, theirs, system = published
    end, ties = tokenizer.special_tokens[IM_END], 0
    for question in QUESTIONS:
        prompt = chatml_prompt(tokenizer, [{"role": "user", "content": question}], system)
        text = model.generate(prompt, 64, temperature=0, stop_tokens=[end]).data
        with no_grad(), torch.no_grad():
            ours = model(text[:-1]).data
            expected = theirs(torch.tensor(text[None, :-1])).logits[0].numpy()
        assert np.abs(ours - expected).max() < 3e-4, question
        there = expected[len(prompt) - 1 :]  # the scores of each token that was written
        written = np.take_along_axis(there, text[len(prompt) :, None], 1)[:, 0]
        behind = there.max(axis=1) - written
        assert behind.max() < 1e-3, question  # another token is at most as likely as this one
        ties += int((behind > 0).sum())
    assert ties <= 2

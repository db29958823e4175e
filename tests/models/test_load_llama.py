"""Llamas read from folders and GGUF files: small random ones, and what is refused.

That they compute what transformers does is in tests/parity/test_llama.py.
"""

import io
import json
import tracemalloc

import numpy as np
import pytest
from gguf_files import random_stored, write_gguf
from llama_files import CONFIG, gguf_contents, random_llama, write_llama

from tinytorch import no_grad
from tinytorch.core.quantization import quantize
from tinytorch.models import llama
from tinytorch.models.llama import __main__ as command
from tinytorch.models.llama import chat_template, load_llama, stream_answer, verify, verifying
from tinytorch.text.chat import _CHATML, chatml_prompt

IDS = np.random.default_rng(1).integers(0, 261, (2, 20))
UNTIED = {**CONFIG, "tie_word_embeddings": False}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 32}  # fmt: skip
TEMPLATE = f"{_CHATML[0]}{_CHATML[1]}You play the drum.{_CHATML[2]}{_CHATML[3]}"
HELLO = [{"role": "user", "content": "Hello"}]


def logits(path, **options):
    with no_grad():
        return load_llama(path, **options)[0](IDS).data


# Weights -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [CONFIG, UNTIED])
def test_every_weight_is_loaded_into_its_parameter(tmp_path, config):
    tensors = random_llama(config)
    model, tokenizer = load_llama(write_llama(tmp_path / "model", config, tensors))
    halves = [0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15]  # of four heads of 4
    layer, names = tensors["model.layers.1.self_attn.q_proj.weight"], dict(model.named_parameters())
    block = model.blocks[1]
    np.testing.assert_array_equal(block.attention.q_proj.weight.data, layer[halves].T)
    for part, name in (
        (block.attention.v_proj.weight, "layers.1.self_attn.v_proj"),
        (block.attention.out_proj.weight, "layers.1.self_attn.o_proj"),
        (block.mlp.linear1.weight, "layers.1.mlp.up_proj"),
        (block.mlp.gate.weight, "layers.1.mlp.gate_proj"),
        (block.mlp.linear2.weight, "layers.1.mlp.down_proj"),
        (block.ln1.gamma, "layers.1.input_layernorm"),
        (block.ln2.gamma, "layers.1.post_attention_layernorm"),
        (model.ln_f.gamma, "norm"),
    ):
        np.testing.assert_array_equal(part.data, tensors[f"model.{name}.weight"].T)
    table = tensors["model.embed_tokens.weight"]
    np.testing.assert_array_equal(model.token_embedding.weight.data, table)
    assert len(names) == len(tensors) and (model.lm_head is None) is (config is CONFIG)
    assert (model.max_seq_len, model.rotary_base, model.ln_f.eps) == (64, 500.0, 1e-3)
    assert tokenizer.encode("to<|im_end|>", "all") == [83, 78, 260]


@pytest.mark.parametrize("config", [CONFIG, UNTIED])
def test_a_gguf_is_the_same_model(tmp_path, config):
    folder, file = (write_llama(tmp_path / name, config) for name in ("m", "m.gguf"))
    np.testing.assert_array_equal(logits(file), logits(str(folder)))
    (one, first), (two, second) = load_llama(folder), load_llama(file)
    assert one.num_parameters() == two.num_parameters()
    text = "to do\nto<|im_start|>"
    assert first.encode(text, "all") == second.encode(text, "all")


def test_weights_in_blocks_are_decoded(tmp_path):
    config = {**CONFIG, "hidden_size": 32, "intermediate_size": 64}
    metadata, tensors = gguf_contents(config, random_llama(config))
    kinds = ["Q4_0", "Q4_1", "Q8_0", "F16", "BF16", "Q5_1"]
    for i, (name, array) in enumerate(tensors.items()):
        if array.ndim == 2:
            kind = kinds[i % len(kinds)]
            tensors[name] = kind, array.shape, random_stored(kind, array.shape, i)
    path = write_gguf(tmp_path / "m.gguf", metadata, tensors)
    found = logits(path)
    with llama.loading.GGUF(path) as file:
        decoded = {name: file.read(name) for name in tensors}
    again = logits(write_gguf(tmp_path / "float32.gguf", metadata, decoded))
    np.testing.assert_array_equal(found, again)
    assert np.isfinite(found).all() and found.std() > 1e-3
    model = load_llama(path, dtype="stored")[0]
    np.testing.assert_allclose(model(IDS).data, found, rtol=0, atol=1e-5 * np.abs(found).max())
    assert model.num_parameters() == load_llama(path)[0].num_parameters(), "not their bytes"
    kept = model.token_embedding, model.blocks[0].attention.k_proj, model.blocks[1].mlp.linear2
    for part in kept:
        assert part.weight.data.dtype == np.uint8
        assert not part.weight.data.flags.writeable, "the file's own bytes"
    with pytest.raises(ValueError, match="'stored' keeps the blocks of a GGUF; a folder has none"):
        load_llama(write_llama(tmp_path / "folder"), dtype="stored")


def test_slower_pairs_are_the_same_in_both_kinds_of_file(tmp_path):
    folder = write_llama(tmp_path / "m", {**CONFIG, "rope_scaling": LLAMA3})
    metadata, tensors = gguf_contents(CONFIG, random_llama())
    # wavelengths 6.28 and 140.5 in texts of 32: 5.1 waves are kept, 0.23 are slowed down by 4
    tensors["rope_freqs.weight"] = np.float32([1, 4])
    path = write_gguf(tmp_path / "m.gguf", metadata, tensors)
    np.testing.assert_allclose(logits(folder), logits(path), atol=1e-5)
    assert np.abs(logits(path) - logits(write_llama(tmp_path / "plain"))).max() > 0.01


def test_a_tied_head_may_be_stored_once_more_but_not_as_another(tmp_path):
    tensors = random_llama()
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = np.ones(2, np.float32)
    head = tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"].copy()
    load_llama(write_llama(tmp_path / "m", CONFIG, tensors))
    head[260, 15] += 1
    with pytest.raises(ValueError, match=r"not the token table, .* tie_word_embeddings: false"):
        load_llama(write_llama(tmp_path / "m", CONFIG, tensors))


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_loading_with_fewer_bits_matches_quantize(tmp_path, dtype):
    path = write_llama(tmp_path / "m.gguf")
    model = quantize(load_llama(path)[0], dtype)
    with no_grad():
        np.testing.assert_array_equal(logits(path, dtype=dtype), model(IDS).data)
    with pytest.raises(ValueError, match="dtype must be 'float32', 'float16', 'int8' or 'stored'"):
        load_llama(path, dtype="int4")


# What is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"model_type": "mistral"}, "model_type is 'mistral', and this model supports only 'llam"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        ({"attention_bias": True}, "attention_bias is True"),
        ({"mlp_bias": True}, "mlp_bias is True"),
        ({"head_dim": 8}, "head_dim is 8, and this model supports only 4"),
        ({"num_attention_heads": 3}, "num_attention_heads must divide hidden_size"),
        ({"num_key_value_heads": 3}, "num_kv_heads"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000, and at most 1000"),
        ({"max_position_embeddings": 10**9}, "max_position_embeddings is 1000000000, and at most"),
        ({"rms_norm_eps": "small"}, "rms_norm_eps must be a small number, got 'small'"),
        ({"rope_theta": 0}, "base must be a number above 0, got 0"),
        ({"rope_theta": "much"}, "rotary_base must be a number, got 'much'"),
        ({"rope_scaling": {"type": "linear", "factor": 2}}, "rope_type is 'linear', .* 'llama3'"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "rope_type is 'yarn'"),
        ({"rope_scaling": {**LLAMA3, "factor": None}}, "factor must be a number, got None"),
        ({"rope_scaling": {**LLAMA3, "high_freq_factor": 1}}, "factor, low_freq.* do not fit: 4"),
        ({"rope_scaling": "llama3"}, "rope_scaling must be an object"),
        ({"vocab_size": 260}, "it has 261 tokens, but the model has 260"),
        ({"intermediate_size": 20}, r"_proj.weight' is of float32 and shape .* asks for"),
        ({"num_hidden_layers": 1}, r"'model\.layers\.1\..*' is not a weight of this model"),
        ({"num_hidden_layers": 3}, r"missing weights: 9, among them model\.layers\.2\."),
        ({"tie_word_embeddings": False}, r"missing weights: 1, among them lm_head\.weight"),
    ],
)
def test_an_unsupported_config_is_refused(tmp_path, changed, match):
    folder = write_llama(tmp_path / "model")
    (folder / "config.json").write_text(json.dumps({**CONFIG, **changed}))
    with pytest.raises(ValueError, match=match) as error:
        load_llama(folder)
    assert str(folder) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"general.architecture": "qwen2"}, "general.architecture is 'qwen2', .* only 'llama'"),
        ({"llama.block_count": -1}, "llama.block_count must be an integer of at least 1, got -1"),
        ({"llama.attention.head_count": [4, 4]}, r"head_count must be an integer .* got \[4, 4\]"),
        ({"llama.rope.dimension_count": 2}, "llama.rope.dimension_count is 2"),
        ({"llama.rope.scaling.type": "yarn"}, "llama.rope.scaling.type is 'yarn'"),
        ({"llama.expert_count": 8}, "llama.expert_count is 8"),
        ({"tokenizer.ggml.model": "llama"}, "as a tokenizer: its tokenizer.ggml.model is 'llama'"),
        ({"llama.feed_forward_length": 20}, "but its metadata asks for"),
    ],
)
def test_unsupported_metadata_are_refused(tmp_path, changed, match):
    metadata, tensors = gguf_contents(CONFIG, random_llama())
    path = write_gguf(tmp_path / "m.gguf", metadata | changed, tensors)
    with pytest.raises(ValueError, match=match) as error:
        load_llama(path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "tensor", "match"),
    [
        ("blk.0.attn_q.bias", np.zeros(16), r"'blk\.0\.attn_q\.bias' is not a weight"),
        ("blk.1.ffn_up.weight", None, r"missing weights: 1, among them blk\.1\.ffn_up\.weight"),
        ("output_norm.weight", np.zeros(17), r"shape \(17,\), but its metadata asks for \(16,\)"),
        ("blk.1.ffn_norm.weight", ("Q6_K", (256,), bytes(210)), "the kind Q6_K, .* in one of F32"),
    ],
)
def test_other_tensors_are_refused_before_any_is_read(tmp_path, name, tensor, match):
    config = {**CONFIG, "vocab_size": 20_000}
    metadata, tensors = gguf_contents(config, random_llama(config))
    tensors = {key: value for key, value in {**tensors, name: tensor}.items() if value is not None}
    path = write_gguf(tmp_path / "m.gguf", metadata, tensors)
    tracemalloc.start()
    with pytest.raises(ValueError, match=match):
        load_llama(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * path.stat().st_size


def test_what_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file '.*gone\.gguf'"):
        load_llama(tmp_path / "gone.gguf")
    with pytest.raises(FileNotFoundError, match="published names are smollm2-135m-instruct"):
        load_llama(tmp_path / "gone")
    folder = write_llama(tmp_path / "m")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"no file '.*tokenizer\.json'"):
        load_llama(folder)


# Answers -----------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    metadata, tensors = gguf_contents(CONFIG, random_llama())
    metadata["tokenizer.chat_template"] = TEMPLATE
    return write_gguf(tmp_path / "m.gguf", metadata, tensors)


def test_the_chat_template_is_read(file, tmp_path):
    assert chat_template(file) == TEMPLATE
    assert chat_template(write_llama(tmp_path / "none.gguf")) is None
    folder = write_llama(tmp_path / "m")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    assert chat_template(folder) == TEMPLATE
    (folder / "chat_template.jinja").write_text("{{ other }}")
    assert chat_template(folder) == "{{ other }}"


def test_an_answer_ends_before_its_special_token(file):
    class Reciting:
        max_seq_len, vocab_size = 100, 261

        def __call__(self, ids):
            told, (new, length) = tokenizer.encode("é.<|im_end|>x", "all"), ids.shape
            return np.eye(261)[[[0] * (length - 1) + [told[length - start]]]] * np.ones((new, 1, 1))

    _, tokenizer = load_llama(file)
    start = len(chatml_prompt(tokenizer, HELLO))
    assert list(stream_answer(Reciting(), tokenizer, HELLO, temperature=0)) == ["é", "."]
    assert list(stream_answer(Reciting(), tokenizer, HELLO, None, 2, temperature=0)) == ["é"]


def test_the_command_answers_as_the_function_does(file, capsys, monkeypatch):
    model, tokenizer = load_llama(file)
    options = {"temperature": 0.8, "rng": 3}
    line = [f"--source={file}", "--max-tokens=5", "--temperature=0.8", "--seed=3"]
    for extra, system in (([], "You play the drum."), (["--system=Be brief."], "Be brief.")):
        expected = "".join(stream_answer(model, tokenizer, HELLO, system, 5, **options))
        assert command.main(["Hello", *line, *extra]) == 0
        assert capsys.readouterr() == (f"{expected}\n", "")


def test_a_conversation_goes_on_with_what_was_said(file, capsys, monkeypatch):
    model, tokenizer = load_llama(file)
    monkeypatch.setattr("sys.stdin", io.StringIO("And you?\n\n"))
    said, written = [*HELLO], []
    for question in ("And you?", None):
        pieces = stream_answer(model, tokenizer, said, "You play the drum.", 5, temperature=0)
        written.append("".join(pieces))
        said.append({"role": "assistant", "content": written[-1]})
        said.append({"role": "user", "content": question})
    assert command.main(["Hello", "--chat", f"--source={file}", "--max-tokens=5"]) == 0
    assert capsys.readouterr().out == f"{written[0]}\n> {written[1]}\n> > \n"


def test_the_published_file_is_verified_by_its_hash_and_its_answer(file, capsys, monkeypatch):
    model, tokenizer = load_llama(file)
    asked = [{"role": "user", "content": verifying.QUESTION}]
    answer = "".join(stream_answer(model, tokenizer, asked, "You play the drum.", temperature=0))
    ((name, known),) = llama.PUBLISHED.items()
    monkeypatch.setattr(verifying, "published_file", lambda name, **_: file)
    with pytest.raises(ValueError, match="its SHA-256 is not the published one; delete it"):
        verify()
    monkeypatch.setitem(llama.PUBLISHED, name, known._replace(sha256=verifying.sha256_of(file)))
    assert command.main(["--verify"]) == 1
    assert "the known answer is 'The capital of France is Paris.'" in capsys.readouterr().err
    monkeypatch.setattr(verifying, "_ANSWER", answer)
    assert command.main(["--verify"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"{verifying.QUESTION}\n{answer}\n\nVerified: ") and err == ""


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ([], "arguments are required: QUESTION, or --chat or --verify without one"),
        (["Hello", "--verify"], "argument --verify: not allowed with argument QUESTION or --chat"),
        (["--chat", "--verify"], "argument --verify: not allowed with argument QUESTION or --chat"),
        (["--verify", "--source=."], "argument --verify: it is for smollm2-135m-instruct, not"),
    ],
)
def test_a_bad_option_says_what_is_allowed(capsys, options, match):
    with pytest.raises(SystemExit) as end:
        command.main(options)
    assert end.value.code == 2 and match in capsys.readouterr().err

"""The published GPT-2 read from a folder or an address: small random ones in the hub's layout.

That they compute what transformers does is in tests/parity/test_gpt2_parity.py.
"""

import json
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hub_folders import CONFIG, random_weights, safetensors_bytes, tokenizer_json, write_folder
from unruly_server import unruly_server

from tinytorch import GPT, BPETokenizer, no_grad
from tinytorch.core.quantization import quantize
from tinytorch.files import downloads
from tinytorch.files.safetensors import save_safetensors
from tinytorch.models import gpt2
from tinytorch.models.gpt2 import (
    PUBLISHED,
    compare,
    load_gpt2,
    published_tensors,
    stream_text,
    verify,
)
from tinytorch.models.gpt2 import __main__ as command
from tinytorch.training.weight_files import save_weights

IDS = np.random.default_rng(1).integers(0, 259, (2, 20))


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path / "model")


def logits(folder, **options):
    with no_grad():
        return load_gpt2(folder, progress=None, **options)[0](IDS).data


def twin(config=CONFIG, **options):
    """The same model built by hand: every tensor put where it belongs."""
    tensors, d = random_weights(config), config["n_embd"]
    model = GPT(config["vocab_size"], d, config["n_layer"], config["n_head"], 24, **options)
    model.token_embedding.weight.data[...] = tensors["wte.weight"]
    model.position_embedding.position_embeddings.data[...] = tensors["wpe.weight"]
    for i, block in enumerate(model.blocks):
        a, m = block.attention, block.mlp
        for layer, name, columns in (
            (a.q_proj, "attn.c_attn", slice(0, d)),
            (a.k_proj, "attn.c_attn", slice(d, 2 * d)),
            (a.v_proj, "attn.c_attn", slice(2 * d, 3 * d)),
            (a.out_proj, "attn.c_proj", slice(None)),
            (m.linear1, "mlp.c_fc", slice(None)),
            (m.linear2, "mlp.c_proj", slice(None)),
        ):
            layer.weight.data[...] = tensors[f"h.{i}.{name}.weight"][:, columns]
            layer.bias.data[...] = tensors[f"h.{i}.{name}.bias"][columns]
        for norm, name in ((block.ln1, f"h.{i}.ln_1"), (block.ln2, f"h.{i}.ln_2")):
            norm.gamma.data[...] = tensors[f"{name}.weight"]
            norm.beta.data[...] = tensors[f"{name}.bias"]
    model.ln_f.gamma.data[...] = tensors["ln_f.weight"]
    model.ln_f.beta.data[...] = tensors["ln_f.bias"]
    return model


# Weights -----------------------------------------------------------------------------------------


def test_every_weight_is_loaded_into_its_parameter(folder):
    expected = twin()
    with no_grad():
        np.testing.assert_array_equal(logits(folder), expected(IDS).data)
    model, tokenizer = load_gpt2(str(folder), progress=None)
    assert type(model) is GPT and isinstance(tokenizer, BPETokenizer)
    assert model.num_parameters() == expected.num_parameters()
    assert (model.max_seq_len, model.vocab_size, model.tie_weights) == (24, 259, True)
    assert tokenizer.encode("to do to") == [83, 78, 220, 67, 78, 257]


def test_sharded_files_are_one_model(folder):
    expected = logits(folder)
    tensors = random_weights()
    names = sorted(tensors)
    parts = {"model-1-of-2.safetensors": names[::2], "model-2-of-2.safetensors": names[1::2]}
    for file, some in parts.items():
        content = safetensors_bytes({name: tensors[name] for name in some})
        (folder / file).write_bytes(content)
    where = {name: file for file, some in parts.items() for name in some}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    (folder / "model.safetensors").unlink()
    np.testing.assert_array_equal(logits(folder), expected)


def test_an_untied_head_is_transposed(tmp_path):
    tensors = random_weights()
    tensors["lm_head.weight"] = np.random.default_rng(5).normal(size=(259, 12)).astype(np.float32)
    folder = write_folder(tmp_path / "m", {**CONFIG, "tie_word_embeddings": False}, tensors)
    model, _ = load_gpt2(folder)
    np.testing.assert_array_equal(model.lm_head.weight.data, tensors["lm_head.weight"].T)


@pytest.mark.parametrize("tied", [{}, {"tie_word_embeddings": True}])
@pytest.mark.parametrize("name", ["lm_head.weight", "transformer.lm_head.weight"])
def test_a_tied_head_may_be_stored_once_more_but_not_as_another(tmp_path, tied, name):
    tensors = random_weights()
    head = tensors[name] = tensors["wte.weight"].copy()
    load_gpt2(write_folder(tmp_path / "m", CONFIG | tied, tensors))
    for other in (head + (head == head[258, 11]), head[:-1]):
        with pytest.raises(ValueError, match=r"not the token table, .* tie_word_embeddings: false"):
            load_gpt2(write_folder(tmp_path / "m", CONFIG | tied, {**tensors, name: other}))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_changes_nothing(folder, encoding):
    model, tokenizer = logits(folder), load_gpt2(folder)[1]
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "one.safetensors"}}')
    (folder / "model.safetensors").rename(folder / "one.safetensors")
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json()))
    for path in folder.glob("*.[jt]*"):
        path.write_bytes(path.read_text("utf-8").encode(encoding))
    for _ in range(2):  # from two files, then from one
        np.testing.assert_array_equal(logits(folder), model)
        assert load_gpt2(folder)[1].ranks == tokenizer.ranks
        (folder / "merges.txt").unlink(missing_ok=True)


def test_int8_weights_are_read_as_written(tmp_path, folder):
    first, _ = load_gpt2(folder, dtype="int8")
    kept = write_folder(tmp_path / "kept")
    save_weights(kept / "model.safetensors", first)
    again, _ = load_gpt2(kept, dtype="int8")
    assert [(name, p.dtype) for name, p in again.named_parameters()] == [
        (name, p.dtype) for name, p in first.named_parameters()
    ]
    np.testing.assert_array_equal(again(IDS).data, first(IDS).data)
    assert (
        again.generate(IDS[0], 5, rng=0).data.tolist()
        == first.generate(IDS[0], 5, rng=0).data.tolist()
    )
    for dtype in ("float32", "float16"):
        with pytest.raises(ValueError, match="kept in 8 bits; ask for the dtype int8"):
            load_gpt2(kept, dtype=dtype)


def test_mismatched_int8_weights_are_refused(tmp_path, folder):
    small, _ = load_gpt2(folder, dtype="int8")
    kept = write_folder(tmp_path / "kept", {**CONFIG, "n_positions": 25})
    save_weights(kept / "model.safetensors", small)
    with pytest.raises(ValueError, match=r"position.*float32 of \(25, 12\); got float32 of \(24"):
        load_gpt2(kept, dtype="int8")
    arrays = {name: p.data for name, p in small.named_parameters()}
    scales = arrays.pop("blocks.1.mlp.linear2.weight.scales")
    write_folder(kept)
    save_safetensors(kept / "model.safetensors", arrays)
    with pytest.raises(
        ValueError, match=r"linear2.weight.scales', float32 of \(48,\); there is none"
    ):
        load_gpt2(kept, dtype="int8")
    arrays |= {"blocks.1.mlp.linear2.weight.scales": scales, "more": scales}
    save_safetensors(kept / "model.safetensors", arrays)
    with pytest.raises(ValueError, match="'more' is not a weight of this model"):
        load_gpt2(kept, dtype="int8")


def test_weights_are_memory_mapped_where_possible(tmp_path):
    config = {**CONFIG, "n_embd": 96, "n_inner": 768, "vocab_size": 4000}
    mapped = write_folder(tmp_path / "mapped", config)
    askew = write_folder(tmp_path / "askew", config, spaces=1)
    peaks = []
    for folder in (mapped, askew):
        tracemalloc.start()
        load_gpt2(folder, progress=None)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    size = (mapped / "model.safetensors").stat().st_size
    assert peaks[0] < 0.5 * size < size < peaks[1]
    np.testing.assert_array_equal(logits(mapped), logits(askew))


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_loading_with_fewer_bits_matches_quantize(folder, dtype):
    model, _ = load_gpt2(folder, dtype=dtype)
    assert model.blocks[0].mlp.linear1.weight.dtype == model.token_embedding.weight.dtype == dtype
    with no_grad():
        np.testing.assert_array_equal(model(IDS).data, quantize(twin(), dtype)(IDS).data)
        assert 0 < np.abs(model(IDS).data - twin()(IDS).data).max() < 0.5


# What is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"model_type": "llama"}, "model_type is 'llama', and this model supports only 'gpt2'"),
        ({"model_type": None}, "model_type is None"),
        ({"activation_function": "relu"}, "'relu', and this model supports only 'gelu_new'"),
        ({"scale_attn_by_inverse_layer_idx": True}, "supports only False"),
        ({"n_layer": 0}, "n_layer must be an integer of at least 1, got 0"),
        ({"n_head": True}, "n_head must be an integer of at least 1, got True"),
        ({"n_head": 5}, "n_head 5 does not divide n_embd 12"),
        ({"n_inner": 1.5}, "n_inner must be an integer"),
        ({"layer_norm_epsilon": -1}, "layer_norm_epsilon must be a small number, got -1"),
        ({"vocab_size": 258}, "tokenizer has 259 tokens, but the model of 258"),
        ({"n_embd": 9, "n_head": 3}, "' is of float32 and shape .* asks for"),
        ({"n_layer": 1}, r"'h\.1\..*' is not a weight of this model"),
        ({"n_layer": 3}, r"missing weights: 12, among them h\.2\."),
        ({"tie_word_embeddings": False}, r"missing weights: 1, among them lm_head\.weight"),
    ],
)
def test_an_unsupported_config_is_refused(tmp_path, changed, match):
    folder = write_folder(tmp_path / "model")
    (folder / "config.json").write_text(json.dumps({**CONFIG, **changed}))
    with pytest.raises(ValueError, match=match):
        load_gpt2(folder)


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("config.json", b"[]", r"config\.json: it is list, not an object"),
        ("config.json", b"{}", "has no 'model_type'"),
        ("config.json", b"{", r"config\.json: it is incomplete"),
        ("vocab.json", b"{", r"cannot read '.*vocab\.json' as a tokenizer"),
        ("vocab.json", b"[" + b"0," * 2_000_001, r"vocab\.json' as a tokenizer: the JSON has"),
        ("merges.txt", b"a b\n", r"a merge makes 'ab', which has no id"),
        ("model.safetensors", b"{", r"model\.safetensors: it declares"),
    ],
)
def test_a_damaged_file_is_named(folder, name, content, match):
    (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match=match):
        load_gpt2(folder)


@pytest.mark.parametrize(
    ("index", "match"),
    [
        (b"{}", "does not say which file has which weight"),
        (b"[]", "does not say which file has which weight"),
        (b'{"weight_map": {"a": 5}}', "does not say which file"),
        (b'{"weight_map": {"a": "../b.safetensors"}}', "is not the name of a safetensors file"),
        (b'{"weight_map": {"a": "b.bin"}}', "is not the name of a safetensors file"),
    ],
)
def test_an_index_names_files_beside_it(folder, index, match):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_bytes(index)
    with pytest.raises(ValueError, match=match):
        load_gpt2(folder)


def test_a_tokenizer_json_is_read_in_place_of_two_files(folder):
    _, two = load_gpt2(folder)
    (folder / "merges.txt").unlink()
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json()))
    _, one = load_gpt2(folder)
    assert (one.ranks, one.special_tokens) == (two.ranks, two.special_tokens)
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match=r"cannot read '.*tokenizer\.json' as a tokenizer"):
        load_gpt2(folder)


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "merges.txt", "model.safetensors"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=rf"there is no file '.*{name}'"):
        load_gpt2(folder)


def test_integer_weights_are_refused(tmp_path):
    tensors = random_weights()
    tensors["wte.weight"] = tensors["wte.weight"].astype(np.int64)
    with pytest.raises(ValueError, match=r"'wte\.weight' is of int64"):
        load_gpt2(write_folder(tmp_path / "m", tensors=tensors))


def test_invalid_names_dtypes_and_revisions_are_refused(folder):
    with pytest.raises(FileNotFoundError, match="published names are gpt2, gpt2-medium"):
        load_gpt2("gpt3")
    with pytest.raises(ValueError, match=r"dtype must be .*'int8'"):
        load_gpt2(folder, dtype="int4")
    with pytest.raises(ValueError, match="goes with a published name"):
        load_gpt2(folder, revision="main")
    with pytest.raises(ValueError, match=r"a commit, a branch or a tag, got '\.\./x'"):
        load_gpt2("gpt2", revision="../x")
    with pytest.raises(ValueError, match=r"name must be 'gpt2', .* or 'gpt2-xl', got 'gpt3'"):
        published_tensors("gpt3")


# Addresses ---------------------------------------------------------------------------------------


@pytest.fixture
def server(folder, monkeypatch):
    monkeypatch.setattr(downloads, "_sleep", lambda seconds: None)
    with unruly_server() as server:
        for file in folder.iterdir():
            server.files[f"/hub/{file.name}"] = file.read_bytes()
        yield server


def test_an_address_is_fetched_once_in_pieces(server, folder, tmp_path):
    cache = tmp_path / "cache"
    server.faults = [None, None, None, ("break", 900)]
    told = []
    load_gpt2(server.url + "/hub/", cache_dir=cache, progress=lambda *state: told.append(state))
    assert ("/hub/model.safetensors", "bytes=900-") in server.requests
    size = (folder / "model.safetensors").stat().st_size
    assert ("model.safetensors", 0, size) in told and ("model.safetensors", size, size) in told
    server.requests.clear()
    found = logits(server.url + "/hub", cache_dir=cache)
    np.testing.assert_array_equal(found, logits(folder))
    assert server.requests == []


def test_a_published_name_is_fetched_at_its_commit_and_kept(server, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("tinytorch.models.gpt2.hub_files.ADDRESS", server.url + "/{}/resolve/{}")
    commit = PUBLISHED["gpt2-medium"][0]
    for name in ("config.json", "vocab.json", "merges.txt", "model.safetensors"):
        content = server.files[f"/hub/{name}"]
        server.files[f"/gpt2-medium/resolve/{commit}/{name}"] = content
        server.files[f"/gpt2/resolve/{PUBLISHED['gpt2'][0]}/{name}"] = content
        server.files[f"/gpt2/resolve/main/{name}"] = content
    cache = {"cache_dir": tmp_path / "cache"}
    np.testing.assert_array_equal(logits("gpt2-medium", **cache), logits(folder))
    assert (tmp_path / "cache" / f"gpt2-medium-{commit}" / "model.safetensors").is_file()
    with pytest.raises(
        ConnectionError, match=r"vocab\.json.* bytes, not 1,042,301.*a different file"
    ):
        logits("gpt2", **cache)
    np.testing.assert_array_equal(logits("gpt2", **cache, revision="main"), logits(folder))


def test_the_published_names_are_pinned_to_commits():
    assert list(PUBLISHED) == ["gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"]
    for commit, files in PUBLISHED.values():
        assert len(commit) == 40 and set(commit) <= set("0123456789abcdef")
        for size, sha256 in files.values():
            assert len(sha256) == 64 and (size is None or size > 0)


# Writing -----------------------------------------------------------------------------------------


class Reciting:
    """A model that is sure of the next token of one text."""

    max_seq_len = 100

    def __init__(self, ids, vocab_size):
        self.ids, self.vocab_size = ids, vocab_size

    def __call__(self, ids):
        scores = np.zeros((1, ids.shape[1], self.vocab_size), np.float32)
        scores[0, -1, self.ids[ids.shape[1]]] = 1
        return scores


def test_only_whole_characters_are_written(folder):
    _, tokenizer = load_gpt2(folder)
    ids = tokenizer.encode("a é👩 b")
    model = Reciting(ids, 259)
    pieces = list(stream_text(model, tokenizer, "a", len(ids) - 1, temperature=0))
    assert pieces == [" ", "é", "👩", " ", "b"]
    cut = list(stream_text(model, tokenizer, "a", 4, temperature=0))  # in the middle of a character
    assert cut == [" ", "é", "\ufffd"]


def test_the_text_ends_before_the_end_of_the_document(folder):
    _, tokenizer = load_gpt2(folder)
    ids = tokenizer.encode("ab<|endoftext|>c", "all")
    assert list(stream_text(Reciting(ids, 259), tokenizer, "a", 9, temperature=0)) == ["b"]


def test_an_empty_prompt_begins_a_document(folder):
    model, tokenizer = load_gpt2(folder)
    same = stream_text(model, tokenizer, "<|endoftext|>", 5, rng=0)
    assert list(stream_text(model, tokenizer, "", 5, rng=0)) == list(same)
    with pytest.raises(ValueError, match="the prompt is empty"):
        stream_text(model, BPETokenizer(tokenizer.ranks), "")


# What the published weights are known to write ----------------------------------------------------

# tests/models/gpt2/test_modeling_gpt2.py of huggingface/transformers, test_lm_generate_gpt2
KNOWN = [464, 3290, 373, 1043, 287, 257, 2214, 1474, 262, 16246, 286,
         2688, 290, 2688, 27262, 13, 198, 198, 464, 3290]  # fmt: skip


class Small(Reciting):
    """A stand-in for GPT-2 small, in all its sizes."""

    embed_dim, num_layers, num_heads, max_seq_len = 768, 12, 12, 1024

    def __init__(self, ids=KNOWN):
        super().__init__(ids, 50257)


def test_a_model_that_writes_the_known_text_is_verified():
    assert verify(Small()) == KNOWN


@pytest.mark.parametrize("position", range(2, 20))
def test_the_first_wrong_token_is_named(position):
    ids = [*KNOWN]
    ids[position] = 7
    match = f"writes token {KNOWN[position]} at position {position}, and this model 7"
    with pytest.raises(ValueError, match=match):
        verify(Small(ids))


@pytest.mark.parametrize("size", ["embed_dim", "num_layers", "num_heads", "max_seq_len"])
def test_a_model_of_another_shape_is_not_verified(size):
    model = Small()
    setattr(model, size, 5)
    with pytest.raises(ValueError, match=f"of GPT-2 small alone, whose {size} is .* model's is 5"):
        verify(model)


BYTES = BPETokenizer({bytes([byte]): byte for byte in range(256)})


def reciting(text):
    model = Reciting([*text.encode(), *bytes(100)], 256)
    model.max_seq_len = 200
    return model


def test_a_model_that_writes_a_known_text_is_told_so():
    for beginning, goes_on, _ in gpt2.KNOWN:
        model = reciting(beginning + goes_on)
        (found,) = (each for each in compare(model, BYTES) if each.beginning == beginning)
        assert found.written == found.expected == goes_on
        assert found.same == found.tokens == len(goes_on)
        assert str(found).endswith(
            f"{goes_on}\n  {len(goes_on)} of {len(goes_on)} tokens as expected"
        )


def test_the_tokens_before_the_first_other_one_are_counted():
    beginning, goes_on, _ = gpt2.KNOWN[0]
    other = goes_on.replace("field", "feeld")
    found = next(compare(reciting(beginning + other), BYTES))
    assert (found.same, found.tokens, found.written) == (17, len(goes_on), other)
    assert str(found).endswith(f"17 of {len(goes_on)} tokens as expected, which was {goes_on!r}")


# The command line --------------------------------------------------------------------------------


def test_the_command_writes_the_same_text_as_the_function(folder, capsys):
    model, tokenizer = load_gpt2(folder)
    options = {"temperature": 0.8, "top_k": 40, "top_p": 0.9}
    expected = "".join(stream_text(model, tokenizer, "Once", 12, rng=3, **options))
    line = ["Once", "--tokens=12", "--temperature=0.8", "--top-k=40", "--top-p=0.9", "--seed=3"]
    assert command.main([*line, f"--source={folder}"]) == 0
    assert capsys.readouterr() == (f"Once{expected}\n", "")


def test_the_command_verifies_and_shows_the_text(monkeypatch, capsys):
    letters = {bytes([byte]): byte for byte in range(256)}
    words = {f" {i}".encode(): i for i in KNOWN if i > 255}
    tokenizer = BPETokenizer({**letters, **words})
    monkeypatch.setattr(command, "load_gpt2", lambda source, **_: (Small(), tokenizer))
    assert command.main(["--verify"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(" 464 3290 373 1043 287") and err == ""
    assert out.endswith("\nVerified: these are the tokens that transformers' own test states for "
                        "GPT-2 small.\n")  # fmt: skip
    monkeypatch.setattr(command, "load_gpt2", lambda source, **_: (Small(KNOWN[::-1]), tokenizer))
    assert command.main(["--verify"]) == 1
    out, err = capsys.readouterr()
    assert out == "" and "at position 2" in err


def test_the_command_verifies_a_folder(folder, capsys):
    assert command.main(["--verify", f"--source={folder}"]) == 1
    assert "of GPT-2 small alone, whose vocab_size is 50257" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["A", "--tokens=0"], "argument --tokens: '0' is not an integer of at least 1"),
        (["A", "--tokens=many"], "'many' is not an integer of at least 1"),
        (["A", "--temperature=-1"], "'-1' is not a number of at least 0"),
        (["A", "--temperature=hot"], "'hot' is not a number of at least 0"),
        (["A", "--top-k=0"], "argument --top-k: '0' is not an integer of at least 1"),
        (["A", "--top-p=2"], "argument --top-p: '2' is not a number from 0 to 1, excluding 0"),
        (["A", "--seed=-1"], "argument --seed: '-1' is not an integer of at least 0"),
        (["A", "--dtype=int4"], "choose from"),
        (["A", "more"], "unrecognized arguments: more"),
        (["A", "--revision=main", "--source=."], "--revision: it goes with a published name"),
        (["A", "--verify"], "argument --verify: not allowed with argument PROMPT"),
        ([], "arguments are required: PROMPT, or --verify without one"),
        (["--verify", "--source=gpt2-xl"], "it is for gpt2, the small model, not gpt2-xl"),
    ],
)
def test_a_bad_option_says_what_is_allowed(capsys, options, match):
    with pytest.raises(SystemExit) as end:
        command.main(options)
    assert end.value.code == 2 and match in capsys.readouterr().err


def test_a_missing_network_is_reported_without_a_traceback(tmp_path):
    line = "Once --source=http://127.0.0.1:1/hub --cache-dir".split()
    done = subprocess.run(
        [sys.executable, "-m", "tinytorch.models.gpt2", *line, tmp_path],
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 1 and done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert "there is no connection to it" in line and "look at the network" in line


def test_a_missing_folder_is_named(capsys):
    assert command.main(["Once", "--source=no-such-folder"]) == 1
    assert "there is no folder 'no-such-folder'" in capsys.readouterr().err

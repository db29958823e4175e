"""`load_gpt2` beside transformers: the same files, the same logits, the same text.

The files are those of `save_pretrained`, with random weights large enough that every part matters;
a server on this machine does to them what servers do. The vocabulary is GPT-2's own, which
`make parity` fetches: every string has the ids that tiktoken gives it with the same ranks.
"""

import hashlib
import json

import numpy as np
import pytest
import tiktoken
import torch
from _ext.live import pinned_downloads
from compare import assert_same_text
from hub_folders import tokenizer_files
from tiktoken.load import data_gym_to_mergeable_bpe_ranks
from tiktoken_ext.openai_public import r50k_pat_str
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

from tinytorch import no_grad
from tinytorch.models import gpt2
from tinytorch.models.gpt2 import load_gpt2, stream_text
from tinytorch.text.corpus import book_prose
from tinytorch.text.tokenization import BPETokenizer

V, T = 259, 32
IDS = np.random.default_rng(0).integers(0, V, size=(3, 20))
FORMATS = ["float32", "float16", "sharded", "untied"]


def reference(kind):
    """A random model of transformers, every number of which matters."""
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=V, n_positions=T, n_embd=24, n_layer=3, n_head=4, initializer_range=0.25,
        layer_norm_epsilon=1e-3, bos_token_id=None, eos_token_id=None,
        n_inner=40 if kind == "sharded" else None, tie_word_embeddings=kind != "untied",
    )  # fmt: skip
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            if p.ndim == 1:
                p += 0.2 * torch.randn_like(p)
    return model.half() if kind == "float16" else model


@pytest.fixture(scope="module", params=FORMATS)
def saved(request, tmp_path_factory):
    """The model, in float32, and the folder into which transformers has written it."""
    folder = tmp_path_factory.mktemp(request.param)
    model = reference(request.param)
    model.save_pretrained(folder, max_shard_size="20KB" if request.param == "sharded" else "1GB")
    for name, content in tokenizer_files().items():
        (folder / name).write_bytes(content)
    assert (folder / "model.safetensors").exists() is (request.param != "sharded")
    return model.float(), folder


def assert_same_model(ours, theirs):
    with no_grad(), torch.no_grad():
        expected = theirs(torch.tensor(IDS)).logits.numpy()
        np.testing.assert_allclose(ours(IDS).data, expected, rtol=0, atol=1e-4)
    assert np.abs(expected).max() > 3


def test_logits_are_those_of_transformers(saved):
    assert_same_model(load_gpt2(saved[1])[0], saved[0])


def test_greedy_text_is_that_of_transformers(saved):
    theirs, folder = saved
    model, tokenizer = load_gpt2(folder)
    assert_same_text(model, theirs, IDS[:, :4], T, least=1e-4)
    written = stream_text(model, tokenizer, "to", T - 1, temperature=0)
    ids = model.generate(tokenizer.encode("to"), T - 1, temperature=0, stop_tokens=[258]).data
    assert "to" + "".join(written) == tokenizer.decode(ids).removesuffix("<|endoftext|>")


# The vocabulary ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def vocabulary():
    assert pinned_downloads.missing("gpt2") == [], "run `make parity`, which fetches it"
    return [pinned_downloads.folder("gpt2") / name for name in ("encoder.json", "vocab.bpe")]


def strings(count, ranks):
    """Prose cut anywhere with signs strewn in, characters of one script, and tokens at random."""
    rng = np.random.default_rng(0)
    prose, tokens = book_prose(), list(ranks)
    signs = [
        *"éüßñ日本語가나עבאر🙂👩🏽‍🚀½²Ⅷ_'\"\\\t\n\r\x1c\x85\xa0\u3000\u200b\x00",
        "'ll",
        "'S",
        "  ",
        "\r\n",
    ]
    blocks = [(0x20, 0x7F), (0xA0, 0x250), (0x370, 0x530), (0x900, 0xE00), (0x3040, 0xA000)]
    for number in range(count):
        start, length = rng.integers(len(prose) - 300), rng.integers(1, 300)
        if number % 4 == 2:
            some = rng.integers(len(tokens), size=length % 60)
            yield b"".join([tokens[i] for i in some]).decode(errors="ignore")
            continue
        if number % 4 == 3:  # characters of one script
            low, high = blocks[rng.integers(len(blocks))]
            yield "".join(map(chr, rng.integers(low, high, length % 60)))
            continue
        text = list(prose[start : start + length])
        for _ in range(rng.integers(0, 6)):
            text.insert(rng.integers(len(text) + 1), signs[rng.integers(len(signs))])
        yield "".join(text)


def test_20_000_strings_have_the_ids_of_tiktoken(vocabulary, monkeypatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")  # or it would keep a copy
    encoder, merges = vocabulary
    ranks = data_gym_to_mergeable_bpe_ranks(str(merges), str(encoder))
    end = {"<|endoftext|>": 50256}
    theirs = tiktoken.Encoding(
        "gpt2", pat_str=r50k_pat_str, mergeable_ranks=ranks, special_tokens=end
    )
    ours = BPETokenizer.from_gpt2_files(encoder, merges)
    assert ours.ranks == ranks and ours.special_tokens == end and ours.vocab_size == 50257
    used, total = set(), 0
    for text in strings(20_000, ranks):
        ids = ours.encode_ordinary(text)
        assert ids == theirs.encode_ordinary(text), text
        assert ours.decode(ids) == text
        used.update(ids)
        total += 1
    assert total == 20_000 and len(used) > 40_000


def test_known_texts_have_the_tokens_that_are_stated_for_them(vocabulary):
    tokenizer = BPETokenizer.from_gpt2_files(*vocabulary)
    counts = []
    for beginning, goes_on, _ in gpt2.KNOWN:
        ids = tokenizer.encode(beginning) + tokenizer.encode(goes_on)
        assert ids == tokenizer.encode(beginning + goes_on), "the cut splits no token"
        counts.append(len(tokenizer.encode(goes_on)))
    assert counts == [18, 13, 13, 17]
    beginning, goes_on, _ = gpt2.KNOWN[0]  # the one whose ids the test states
    assert tokenizer.encode(beginning) == [464, 3290]
    ids = "373 1043 287 257 2214 1474 262 16246 286 2688 290 2688 27262 13 198 198 464 3290"
    assert tokenizer.encode(goes_on) == [*map(int, ids.split())]


def test_vocabulary_matches_the_published_names(vocabulary):
    for path, name in zip(vocabulary, ("vocab.json", "merges.txt"), strict=True):
        content = path.read_bytes()
        for published in ("gpt2", "gpt2-xl"):
            known = gpt2.PUBLISHED[published][1][name]
            assert known == (len(content), hashlib.sha256(content).hexdigest())


def test_tokenizer_json_saved_by_transformers_gives_the_same_ids(vocabulary, tmp_path):
    for path, name in zip(vocabulary, ("vocab.json", "merges.txt"), strict=True):
        (tmp_path / name).write_bytes(path.read_bytes())
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    theirs.save_pretrained(tmp_path / "saved")
    assert not (tmp_path / "saved" / "vocab.json").exists()
    ours = BPETokenizer.from_tokenizer_json(tmp_path / "saved" / "tokenizer.json")
    for text in strings(2000, ours.ranks):
        assert ours.encode_ordinary(text) == theirs.encode(text), text


def test_a_model_of_full_vocabulary_uses_the_tokenizer_of_gpt2(vocabulary, tmp_path):
    config = GPT2Config(n_positions=16, n_embd=8, n_layer=1, n_head=2)
    theirs = GPT2LMHeadModel(config).eval()
    theirs.save_pretrained(tmp_path)
    for path, name in zip(vocabulary, ("vocab.json", "merges.txt"), strict=True):
        (tmp_path / name).write_bytes(path.read_bytes())
    assert json.loads((tmp_path / "config.json").read_text())["vocab_size"] == 50257
    model, tokenizer = load_gpt2(tmp_path)
    ids = tokenizer.encode("Once upon a time")
    assert ids == [7454, 2402, 257, 640]
    with no_grad(), torch.no_grad():
        expected = theirs(torch.tensor([ids])).logits.numpy()
        np.testing.assert_allclose(model([ids]).data, expected, rtol=0, atol=1e-4)

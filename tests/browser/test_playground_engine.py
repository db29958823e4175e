"""The playground's own engine beside the package: tokens, scores, attention, lens and sampling.

No page is built for this: the modules and files of `book/_static/playground` are enough.
"""

import base64
import json
import math
import random

import numpy as np
import pytest
from chromium import ROOT, serve

from tinytorch.core.activations import softmax_array
from tinytorch.core.masks import causal_mask
from tinytorch.core.positions import Rotary
from tinytorch.models import sampling
from tinytorch.stories import StoryGrammar
from tinytorch.text.tokenization import BPETokenizer, split_like_gpt2
from tinytorch.training import story_gpt
from tinytorch.training.checkpoint import load_safetensors, load_weights

pytestmark = [pytest.mark.browser, pytest.mark.slow]
FOLDER = ROOT / "book" / "_static" / "playground"
STEPS = 0, 100, 500, 2000, 4000
LENGTH = story_gpt.SEQ_LEN

LOAD = """async (steps) => {
  const [{ readSafetensors }, { Tokenizer, splitLikeGpt2 }, { Model }, sampling] = await Promise.all(
    ["safetensors", "tokenizer", "model", "sampling"].map((name) => import(`/${name}.js`)),
  );
  const file = (path) => fetch(`/${path}`);
  const models = {};
  for (const step of steps) {
    const { tensors, metadata } = readSafetensors(await (await file(`weights/step-${step}.safetensors`)).arrayBuffer());
    models[step] = new Model(tensors, metadata);
  }
  const tokenizer = new Tokenizer(await (await file("tokenizer.json")).json());
  const encoded = (arrays) => new Promise((done) => {
    const files = new FileReader();
    files.addEventListener("load", () => done(files.result.split(",")[1]));
    files.readAsDataURL(new Blob(arrays));
  });
  // the lens of every layer, whose last are the logits, and attention, end to end
  const everything = (reading) => {
    const { numLayers, numHeads } = reading.model, upTo = (n) => [...Array(n).keys()];
    return [
      ...upTo(numLayers + 1).flatMap((layer) => upTo(reading.length).map((at) => reading.lens(layer, at))),
      ...upTo(numLayers).flatMap((layer) => upTo(numHeads).map((head) => reading.attention(layer, head))),
    ];
  };
  Object.assign(globalThis, { readSafetensors, splitLikeGpt2, Model, sampling, models, tokenizer, encoded, everything });
}"""


@pytest.fixture(scope="module")
def page(browser):
    """A page that has loaded the engine and nothing else."""
    server, address = serve(FOLDER)
    page = browser.new_page()
    page.goto(f"{address}tokenizer.json")
    page.evaluate(LOAD, STEPS)
    yield page
    page.close()
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def tokenizer():
    return story_gpt.story_tokenizer()


def model_at(step):
    """The package's model with the weights of a step, from the file that the page reads."""
    model = story_gpt.new_story_gpt()
    load_weights(FOLDER / "weights" / f"step-{step}.safetensors", model)
    return model.eval()


def beginnings():
    """300 texts: cuts of stories anywhere, slips of the pen, what no story is, and other scripts."""
    rng = random.Random(0)
    stories = StoryGrammar().generate(60, seed=2)
    lines = stories.splitlines()
    texts = [
        "",
        " ",
        "  ",
        "\n",
        "O",
        "'s",
        "I'll",
        "Once upon a time",
        "once upon a time",
        stories,
    ]
    texts += [
        "🦊",
        "a🦊b",
        "👩‍👩‍👧",
        "Ünï’s çödé",
        "ẞß ǅ",
        "e\u0301",
        "日本語のお話",
        "Жила-была лиса",
        "كان يا ما كان",
    ]
    texts += [
        "२३ Ⅷ ½ 10",
        "x\u00a0\u2003y\u3000",
        "\t a\r\n b ",
        "\ufeffOnce",
        "_a_1",
        "\x00\x1c\x85",
        "!'s 's!",
        "aaaa" * 50,
    ]
    texts += [line[: rng.randrange(len(line) + 1)] for line in rng.choices(lines, k=120)]
    while len(texts) < 200:  # several stories, one after the other
        start, size = rng.randrange(len(stories)), rng.randrange(600)
        texts.append(stories[start : start + size])
    while len(texts) < 300:
        line = rng.choice(lines)
        at = rng.randrange(len(line))
        slip = rng.choice(
            ["", "q", " ", "  ", "é", "🦊", "7", "'", "\n", line[at] * 2, rng.choice(lines)]
        )
        texts.append((line[:at] + slip + line[at + 1 :])[: rng.randrange(20, 400)])
    return texts


def read_by_parts(model, ids, broken):
    """Lens and attention of a model from which something is taken away, put together anew.

    The parts are the package's; they are joined here as the chapters do it, on whole matrices.
    """
    (T, d, heads), silent = (len(ids), model.embed_dim, model.num_heads), broken.get("head")
    x = model.token_embedding.weight.data[ids]  # (T, d)
    streams, attention = [x], np.zeros((model.num_layers, heads, T, T))
    for layer, block in enumerate(model.blocks):
        if broken.get("block") != layer:
            part, seen = block.attention, block.ln1(x).data
            projections = part.q_proj, part.k_proj, part.v_proj
            by_head = (T, heads, d // heads)
            q, k, v = (y(seen).data.reshape(by_head).swapaxes(0, 1) for y in projections)
            if not broken.get("positions"):
                q, k = (Rotary(T, d // heads)(y).data for y in (q, k))
            scores = q @ k.swapaxes(1, 2) / (1 if broken.get("scale") else math.sqrt(d // heads))
            weights = softmax_array(scores if broken.get("mask") else scores + causal_mask(T), -1)
            mixed = weights @ v  # (heads, T, d / heads)
            if silent and silent[0] == layer:
                mixed[silent[1]] = 0
            looked = part.out_proj(mixed.swapaxes(0, 1).reshape(T, d)).data
            x = looked if broken.get("residual") else x + looked
            thought = block.mlp(block.ln2(x)).data
            x = thought if broken.get("residual") else x + thought
            attention[layer] = weights
        streams.append(x)
    ends = np.stack(streams)  # (layers + 1, T, d)
    ends = ends if broken.get("norm") else model.ln_f(ends).data
    return ends @ model.token_embedding.weight.data.T, attention


def read_in_page(page, step, ids, broken=None):
    """Lens and attention as the engine has them."""
    read = "([step, ids, broken]) => encoded(everything(models[step].read(ids, broken)))"
    text = page.evaluate(read, [step, ids, broken or {}])
    numbers, T = np.frombuffer(base64.b64decode(text), np.float32), len(ids)
    lens, attention = np.split(numbers, [3 * T * story_gpt.VOCAB_SIZE])
    return lens.reshape(3, T, -1), attention.reshape(2, 4, T, T)


def assert_same(page, step, ids, broken=None):
    lens, attention = read_in_page(page, step, ids, broken)
    expected_lens, expected_attention = read_by_parts(model_at(step), ids, broken or {})
    assert np.abs(lens - expected_lens).max() <= 1e-4 * max(1, np.abs(expected_lens).max() / 100)
    assert np.abs(attention - expected_attention).max() <= 1e-5
    return lens


def test_tokens_are_those_of_the_package(page, tokenizer):
    texts = beginnings()
    assert len(texts) == 300 and len(set(texts)) > 250
    expected = [tokenizer.encode(text) for text in texts]
    assert (
        page.evaluate("(texts) => texts.map((text) => tokenizer.encode(text))", texts) == expected
    )
    assert page.evaluate("(texts) => texts.map(splitLikeGpt2)", texts) == list(
        map(split_like_gpt2, texts)
    )
    assert page.evaluate("(ids) => ids.map((row) => tokenizer.decode(row))", expected) == texts


def test_parts_of_characters_are_decoded_as_by_the_package(page, tokenizer):
    rng = random.Random(0)
    rows = [[rng.randrange(512) for _ in range(20)] for _ in range(100)]
    decoded = page.evaluate("(rows) => rows.map((row) => tokenizer.decode(row))", rows)
    assert decoded == [tokenizer.decode(row) for row in rows]
    assert page.evaluate("() => tokenizer.pieces(' fox 🦊')") == [
        " fox",
        " ",
        "\\xf0",
        "\\x9f",
        "\\xa6",
        "\\x8a",
    ]


@pytest.mark.parametrize("step", STEPS)
def test_scores_lens_and_attention_are_those_of_the_package(page, tokenizer, step):
    model = model_at(step)
    texts = beginnings()
    for text in texts if step == STEPS[-1] else texts[:: len(STEPS)]:
        ids = tokenizer.encode("\n" + text)[:LENGTH]
        lens = assert_same(page, step, ids)
        assert np.abs(lens[-1] - model(ids).data).max() <= 1e-4

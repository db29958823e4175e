"""The playground's own engine beside the package: tokens, scores, attention, lens and sampling.

No page is built for this: the modules and files of `book/_static/playground` are enough.
"""

import base64
import itertools
import math
import random
from unittest.mock import Mock

import numpy as np
import pytest
from served_pages import ROOT

from tinytorch.core.activations import softmax_array
from tinytorch.core.masks import causal_mask
from tinytorch.core.positions import Rotary
from tinytorch.experiments import story_gpt
from tinytorch.inside.probes import LinearProbe
from tinytorch.inside.stream import residual_stream
from tinytorch.models import sampling
from tinytorch.stories import StoryGrammar
from tinytorch.text.tokenization import split_like_gpt2
from tinytorch.training import checkpoint

pytestmark = [pytest.mark.browser, pytest.mark.slow]
FOLDER = ROOT / "book" / "_static" / "playground"
STEPS = 0, 100, 500, 2000, 4000
BROKEN = [
    {"positions": True},
    {"mask": True},
    {"scale": True},
    {"residual": True},
    {"norm": True},
    {"block": 0},
    {"block": 1},
    *({"head": [layer, head]} for layer in range(2) for head in range(4)),
    {"positions": True, "mask": True, "scale": True, "head": [1, 2], "norm": True},
    {"residual": True, "block": 0, "head": [1, 0]},
]
LOAD = """async (steps) => {
  const names = ["safetensors", "tokenizer", "model", "sampling"];
  const modules = await Promise.all(names.map((name) => import(`/${name}.js`)));
  Object.assign(globalThis, ...modules, { models: {} });
  globalThis.fetched = async (path) => (await fetch(path)).arrayBuffer();
  globalThis.loaded = (file) => {
    const { tensors, metadata } = readSafetensors(file);
    return new Model(tensors, metadata);
  };
  for (const step of steps) {
    models[step] = loaded(await fetched(`weights/step-${step}.safetensors`));
  }
  globalThis.tokenizer = new Tokenizer(await (await fetch("tokenizer.json")).json());
  const upTo = (n) => [...Array(n).keys()];
  // the lens of every layer, whose last are the scores, and attention, end to end
  globalThis.everything = (reading) => {
    const { numLayers, numHeads } = reading.model;
    const lens = (layer) => upTo(reading.length).map((at) => reading.lens(layer, at));
    const heads = (layer) => upTo(numHeads).map((head) => reading.attention(layer, head));
    return [...upTo(numLayers + 1).flatMap(lens), ...upTo(numLayers).flatMap(heads)];
  };
  globalThis.encoded = (arrays) => new Promise((done) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => done(reader.result.split(",")[1]));
    reader.readAsDataURL(new Blob(arrays));
  });
}"""


@pytest.fixture(scope="module")
def page(playground_files):
    """A page that has loaded the engine and nothing else."""
    playground_files.evaluate(LOAD, STEPS)
    return playground_files


@pytest.fixture(scope="module")
def tokenizer():
    return story_gpt.story_tokenizer()


def model_at(step):
    """The package's model with the weights of a step, from the file that the page reads."""
    model = story_gpt.new_story_gpt()
    checkpoint.load_weights(FOLDER / "weights" / f"step-{step}.safetensors", model)
    return model.eval()


OF_ALL_KINDS = """
|Once upon a time|once upon a time|O|'s|I'll|!'s 's!|_a_1|Once  upon|fox\U0001f98afox|\U0001f98a
|\U0001f469\u200d\U0001f469\u200d\U0001f467|Ünï’s çödé|ẞß ǅ|e\u0301|日本語のお話|Жила-была лиса
|كان يا ما كان|२३ Ⅷ ½ 10|x\xa0\u2003y\u3000|\ufeffOnce|\x00\x1c\x85|\t a\r b | ||   """
SLIPS = ["", "q", " ", "  ", "é", "\U0001f98a", "7", "'", "\n", "Once upon a time"]


def beginnings():
    """300 texts: of all kinds, cuts of stories anywhere, stories with a slip, several stories."""
    rng = random.Random(0)
    stories = StoryGrammar().generate(60, seed=2)
    lines = stories.splitlines()
    texts = [*OF_ALL_KINDS.replace("\n", "").split("|"), "\n", "a" * 300, "high" * 60]
    texts += [line[: rng.randrange(len(line) + 1)] for line in rng.choices(lines, k=100)]
    while len(texts) < 200:
        line, slip = rng.choice(lines), rng.choice(SLIPS)
        at = rng.randrange(len(line))
        texts.append((line[:at] + slip + line[at + 1 :])[: rng.randrange(at, len(line) + 1)])
    while len(texts) < 300:
        start = rng.randrange(len(stories))
        texts.append(stories[start : start + rng.randrange(600)])
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
    rounding = max(1e-4, 3e-6 * np.abs(expected_lens).max())  # without the norm some exceed 100
    np.testing.assert_allclose(lens, expected_lens, rtol=1e-5, atol=rounding)
    np.testing.assert_allclose(attention, expected_attention, rtol=0, atol=1e-5)
    return lens[-1]


# The same as the package ---------------------------------------------------------------------


def test_tokens_are_those_of_the_package(page, tokenizer):
    texts = beginnings()
    assert len(texts) == 300
    ids = [tokenizer.encode(text) for text in texts]
    assert page.evaluate("(texts) => texts.map((text) => tokenizer.encode(text))", texts) == ids
    words = [split_like_gpt2(text) for text in texts]
    assert page.evaluate("(texts) => texts.map(splitLikeGpt2)", texts) == words
    assert page.evaluate("(rows) => rows.map((ids) => tokenizer.decode(ids))", ids) == texts


def test_parts_of_characters_are_decoded_as_by_the_package(page, tokenizer):
    rows = np.random.default_rng(0).integers(512, size=(100, 20)).tolist()
    decoded = page.evaluate("(rows) => rows.map((ids) => tokenizer.decode(ids))", rows)
    assert decoded == [tokenizer.decode(ids) for ids in rows]
    shown = [" fox", " ", r"\xf0", r"\x9f", r"\xa6", r"\x8a"]
    assert page.evaluate("() => tokenizer.pieces(' fox \U0001f98a')") == shown


@pytest.mark.parametrize("step", STEPS)
def test_scores_lens_and_attention_are_those_of_the_package(page, tokenizer, step):
    model = model_at(step)
    for text in beginnings()[:: 1 if step == STEPS[-1] else 12]:
        ids = tokenizer.encode("\n" + text)[: story_gpt.SEQ_LEN]
        logits = assert_same(page, step, ids)
        np.testing.assert_allclose(logits, model(ids).data, rtol=0, atol=1e-4)


@pytest.mark.parametrize("step", [100, 4000])
@pytest.mark.parametrize("broken", BROKEN, ids=str)
def test_a_broken_model_is_broken_as_it_says(page, tokenizer, step, broken):
    for text in beginnings()[140:300:40]:
        ids = tokenizer.encode("\n" + text)[: story_gpt.SEQ_LEN]
        logits = assert_same(page, step, ids, broken)
        if broken and len(ids) > 8:
            assert np.abs(logits - model_at(step)(ids).data).max() > 0.01


@pytest.mark.parametrize("temperature", [0, 0.01, 0.7, 1, 3.5])
def test_chosen_gives_the_probabilities_of_the_package(page, tokenizer, temperature):
    ids = tokenizer.encode("\nOnce upon a time there was a")
    real = model_at(4000)(ids).data[-1].astype(float).tolist()
    ties = [0.0, 2.0, 1.0, 2.0, 1.0, 1.0, -3.0, 2.0]
    kept = itertools.product([None, 1, 2, 4, 1000], [None, 1e-13, 1e-9, 0.3, 0.5, 0.6, 0.9, 1])
    how = [{"temperature": temperature, "topK": k, "topP": p} for k, p in kept]
    forbidden = [-math.inf, 1.0, 0.0, -math.inf, 1.0]
    for logits in real, ties, forbidden, [0.0] * 10:
        choose = "([logits, how]) => how.map((options) => [...chosen(logits, options)])"
        for options, probs in zip(how, page.evaluate(choose, [logits, how]), strict=True):
            expected = sampling.next_token_probs(logits, *options.values())
            np.testing.assert_allclose(probs, expected, rtol=0, atol=1e-12, err_msg=str(options))


def test_draw_takes_the_token_that_the_package_takes(page):
    probs = [0.0, 0.25, 0.0, 0.5, 0.25, 0.0]
    numbers = [0, 0.1, 0.2499, 0.25, 0.5, 0.74, 0.75, 0.9999, 1 - 2**-53, 1]
    drawn = page.evaluate("([p, all]) => all.map((x) => draw(p, () => x))", [probs, numbers])
    assert drawn == [sampling.choose(probs, Mock(random=lambda x=x: x)) for x in numbers]
    same = page.evaluate("() => [1, 1, 2].map((seed) => Array.from({ length: 9 }, seeded(seed)))")
    assert same[0] == same[1] != same[2] and all(0 <= x < 1 for row in same for x in row)


def test_a_probe_reads_off_what_that_of_the_package_reads(page, tokenizer):
    kept, _ = checkpoint.load_safetensors(FOLDER / "probes.safetensors")
    read = """async ([name, ids]) => {
      const { readOff } = await import("/thinking.js");
      const { tensors } = readSafetensors(await fetched("probes.safetensors"));
      const [weight, bias] = ["weight", "bias"].map((part) => tensors[`${name}.${part}`].data);
      return readOff(models[4000].read(ids).stream(2, ids.length - 1), { weight, bias });
    }"""
    model, texts = story_gpt.load_story_gpt(), StoryGrammar().generate(12, seed=20).splitlines()
    for name in "animal", "child":
        weight, bias = kept[f"{name}.weight"], kept[f"{name}.bias"]
        probe = LinearProbe(np.zeros((1, len(weight))), np.zeros((1, len(bias))))
        probe.weight, probe.bias = weight, bias
        for cut, text in enumerate(texts, 3):
            ids = tokenizer.encode("\n" + text)[: 5 * cut]
            expected = probe(residual_stream(model, [ids])[2, 0, -1])
            found = page.evaluate(read, [name, ids])
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


# What was read before ------------------------------------------------------------------------

EDITS = """async (texts) => {
  const file = await fetched("weights/step-4000.safetensors"), model = loaded(file);
  const equal = (some, others) =>
    some.every((x, i) => x.every((value, j) => value === others[i][j]));
  const wrong = [];
  let last = null;
  for (const [ids, broken] of texts) {
    const reading = model.read(ids, broken), fresh = everything(loaded(file).read(ids, broken));
    if (!equal(everything(reading), fresh)) wrong.push([ids, broken]);
    if (last && !equal(everything(last.reading), last.fresh)) wrong.push("changed afterwards");
    last = { reading, fresh };
  }
  return wrong;
}"""


def test_a_text_that_is_changed_is_read_as_from_nothing(page, tokenizer):
    rng = random.Random(1)
    ids = tokenizer.encode("\n" + StoryGrammar().generate(1, seed=5))[:60]
    edits = [(ids[:n], {}) for n in range(1, 20)]  # typed
    for _ in range(40):
        edited, at = list(ids), rng.randrange(60)
        edited[at : at + rng.randrange(3)] = rng.choices(range(512), k=rng.randrange(3))
        edits.append((edited[: rng.randrange(1, 60)], rng.choice([*BROKEN, {}, {}, {}])))
    assert page.evaluate(EDITS, edits) == []


def test_what_was_read_before_is_not_read_again(page):
    """The scores of a position that both texts have are the very same array."""
    compare = """([first, second, broken]) => {
      const before = models[4000].read(first, broken);
      const scores = first.map((_, i) => before.logits(i));
      const after = models[4000].read(second, broken);
      return scores.filter((array, i) => i < second.length && array === after.logits(i)).length;
    }"""
    ids = list(range(100, 160))
    assert page.evaluate(compare, [ids, [*ids, 1], {}]) == 60
    assert page.evaluate(compare, [ids, ids[:20], {"norm": True}]) == 20
    assert page.evaluate(compare, [ids, [*ids[:30], 1, *ids[31:]], {}]) == 30
    assert page.evaluate(compare, [ids, [*ids, 1], {"mask": True}]) == 0


# What cannot be read -------------------------------------------------------------------------


def told(page, code):
    """The words of the error that some code raises."""
    return page.evaluate(f"(async () => {{ {code} }})().catch((error) => error.message)")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("file = file.slice(0, 5)", "do not hold the header"),
        ("file = file.slice(0, 500)", "do not hold the header"),
        ("file = file.slice(0, -1)", "it ends in the middle of tensor token_embedding.weight"),
        ("file = file.slice(0, 100_000)", "it ends in the middle of tensor blocks.0.mlp.linear2"),
        ("file = await fetched('tokenizer.json')", "do not hold the header"),
        ("new Uint8Array(file)[8] = 32; new Uint8Array(file)[9] = 91", "is not a JSON object"),
        ("swap('F16', 'F64')", "is of type F64, not F16 or F32"),
        ("swap('[0,', '[2,')", "is not where it should be"),
        ('swap(\'"version":"1"\', \'"version":"2"\')', "of version 2, not 1"),
        ("swap('ln_f.gamma', 'ln_g.gamma')", "it has no ln_f.gamma"),
    ],
)
def test_a_bad_file_of_weights_is_refused_in_words(page, change, words):
    code = f"""
    let file = await fetched("weights/step-0.safetensors");
    const swap = (from, to) => {{
      const bytes = new Uint8Array(file), text = new TextDecoder("latin1").decode(file);
      bytes.set(new TextEncoder().encode(to), text.indexOf(from));
    }};
    {change};
    loaded(file);
    return "nothing";
    """
    message = told(page, code)
    assert words in message and message.endswith("load the page again")


@pytest.mark.parametrize("change", ["version = 2", "format = 'other'", "size = 3", "tokens = {}"])
def test_a_bad_file_of_the_tokenizer_is_refused_in_words(page, change):
    load = f"const json = await (await fetch('tokenizer.json')).json(); json.{change};"
    message = told(page, f"{load} new Tokenizer(json); return 'nothing'")
    assert "not one that this page reads" in message
    assert "not one that this page reads" in told(page, "new Tokenizer(null)")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("models[0].read([])", "there is nothing to read"),
        ("models[0].read(Array(113).fill(1))", "113 tokens are more than the 112"),
        ("models[0].read([1, 512])", "token id 512 is not one of the 512"),
        ("models[0].read([1.5])", "token id 1.5 is not"),
        ("models[0].read([1]).lens(3, 0)", "no position 0 after 3 blocks"),
        ("models[0].read([1]).logits(1)", "no position 1 after 2 blocks"),
        ("tokenizer.encode('\\ud83e')", "half a character"),
        ("tokenizer.decode([512])", "token id 512 is not in the vocabulary of 512"),
        ("chosen([1, 2], { temperature: -1 })", "the temperature must be 0 or more"),
        ("chosen([1, 2], { topK: 0 })", "top-k must be a whole number from 1 on"),
        ("chosen([1, 2], { topP: 0 })", "top-p must be above 0 and at most 1"),
        ("chosen([NaN, 2])", "the scores hold no finite largest one"),
    ],
)
def test_what_cannot_be_is_refused_in_words(page, code, words):
    assert words in told(page, f"{code}; return 'nothing'")


def test_ten_thousand_characters_are_cut_as_by_the_package(page, tokenizer):
    for text in "a" * 10_000, "little" * 1667, "\U0001f98a" * 2500, " " * 10_000:
        assert page.evaluate("(text) => tokenizer.encode(text)", text) == tokenizer.encode(text)

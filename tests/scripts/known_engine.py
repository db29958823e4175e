"""What the package computes of what the playground's engine does: tokens, readings, choices."""

import itertools
import math
import random
from pathlib import Path
from unittest.mock import Mock

import numpy as np

from tinytorch.core.masks import causal_mask
from tinytorch.core.positions import Rotary
from tinytorch.core.softmax import softmax_array
from tinytorch.inside.probes import LinearProbe
from tinytorch.inside.stream import residual_stream
from tinytorch.models import sampling
from tinytorch.text.tokenization import split_like_gpt2
from tinytorch.training import weight_files
from tinytorch_book.experiments import story_gpt
from tinytorch_book.stories import StoryGrammar

PLAYGROUND = Path(__file__).resolve().parents[2] / "book" / "_static" / "playground"
STEPS = 0, 100, 500, 2000, 4000
BROKEN = [
    {},
    *({part: True} for part in ("positions", "mask", "scale", "residual", "norm")),
    {"block": 0},
    {"block": 1},
    *({"head": [layer, head]} for layer in range(2) for head in range(4)),
    {"positions": True, "mask": True, "scale": True, "head": [1, 2], "norm": True},
    {"residual": True, "block": 0, "head": [1, 0]},
]
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


def tokens():
    """Texts with their words and ids, ids with their texts."""
    tokenizer = story_gpt.story_tokenizer()
    long = ["a" * 10_000, "little" * 1667, "\U0001f98a" * 2500, " " * 10_000]
    drawn = np.random.default_rng(0).integers(512, size=(100, 20)).tolist()
    return {
        "texts": [[t, split_like_gpt2(t), tokenizer.encode(t)] for t in [*beginnings(), *long]],
        "drawn": [[ids, tokenizer.decode(ids)] for ids in drawn],
    }


def model_at(step):
    """The package's model with the weights of a step, from the file that the page reads."""
    model = story_gpt.new_story_gpt()
    weight_files.load_weights(PLAYGROUND / "weights" / f"step-{step}.safetensors", model)
    return model.eval()


def read_by_parts(model, ids, broken):
    """Lens, attention and middles of a model that has lost something, put together again.

    The parts are the package's; they are joined here as the chapters do it, on whole matrices.
    """
    (T, d, heads), silent = (len(ids), model.embed_dim, model.num_heads), broken.get("head")
    x = model.token_embedding.weight.data[ids]  # (T, d)
    streams, middles, attention = [x], [], np.zeros((model.num_layers, heads, T, T))
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
            middles.append(x)
            thought = block.mlp(block.ln2(x)).data
            x = thought if broken.get("residual") else x + thought
            attention[layer] = weights
        else:
            middles.append(x)
        streams.append(x)
    ends = np.stack(streams)  # (layers + 1, T, d)
    ends = ends if broken.get("norm") else model.ln_f(ends).data
    return ends @ model.token_embedding.weight.data.T, attention, np.stack(middles)


def engine():
    """Readings of models, whole and broken, and what the probes read off."""
    tokenizer, texts = story_gpt.story_tokenizer(), beginnings()
    models = {step: model_at(step) for step in STEPS}
    some = [(step, t, {}) for step in STEPS for t in texts[:: 25 if step == STEPS[-1] else 75]]
    some += [(4000, t, broken) for broken in BROKEN for t in texts[180:300:80]]
    some += [(100, texts[260], broken) for broken in BROKEN]
    readings = []
    for step, text, broken in some:
        ids = tokenizer.encode("\n" + text)[: story_gpt.SEQ_LEN]
        lens, attention, middles = read_by_parts(models[step], ids, broken)
        if not broken:
            np.testing.assert_allclose(lens[-1], models[step](ids).data, rtol=0, atol=1e-4)
        readings.append(
            {"step": step, "ids": ids, "broken": broken, "lens": lens, "attention": attention,
             "middles": middles}
        )  # fmt: skip
    return {"readings": readings, "probes": list(probed(models[4000], tokenizer))}


def probed(model, tokenizer):
    """What the linear probes read off some beginnings."""
    kept, _ = weight_files.load_safetensors(PLAYGROUND / "probes.safetensors")
    for name in "animal", "child":
        weight, bias = kept[f"{name}.weight"], kept[f"{name}.bias"]
        probe = LinearProbe(np.zeros((1, len(weight))), np.zeros((1, len(bias))))
        probe.weight, probe.bias = weight, bias
        for cut, text in enumerate(StoryGrammar().generate(12, seed=20).splitlines(), 3):
            ids = tokenizer.encode("\n" + text)[: 5 * cut]
            read = probe(residual_stream(model, [ids])[2, 0, -1])
            yield {"name": name, "ids": ids, "read": np.asarray(read).tolist()}


def choices():
    """Scores, how they are cut, and the probabilities that are left; and what a number draws."""
    real = model_at(4000)(story_gpt.story_tokenizer().encode("\nOnce upon a time there was a"))
    ties = [0.0, 2.0, 1.0, 2.0, 1.0, 1.0, -3.0, 2.0]
    forbidden = [-1e300, 1.0, 0.0, -1e300, 1.0]
    cuts = itertools.product(
        [0, 0.01, 0.7, 1, 3.5], [None, 1, 2, 4, 1000], [None, 1e-13, 1e-9, 0.3, 0.5, 0.6, 0.9, 1]
    )
    logits = [ties, forbidden, [0.0] * 10]
    found = [[scores, how, list(sampling.next_token_probs(scores, *how))]
             for how in cuts for scores in logits]  # fmt: skip
    scores = real.data[-1].astype(float).tolist()
    for how in [(0.7, 4, 0.9), (1, None, 0.5), (3.5, 1000, None)]:
        found.append([scores, how, list(sampling.next_token_probs(scores, *how))])
    probs = [0.0, 0.25, 0.0, 0.5, 0.25, 0.0]
    numbers = [0, 0.1, 0.2499, 0.25, 0.5, 0.74, 0.75, 0.9999, 1 - 2**-53, 1]
    drawn = [[x, sampling.choose(probs, Mock(random=lambda x=x: x))] for x in numbers]
    return {"found": found, "probs": probs, "drawn": drawn}

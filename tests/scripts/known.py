"""What the package computes, for the tests of the scripts to compare with.

Each function gives what a file of tests reads as `known("its name")`: numbers, texts, lists of
them and, for large arrays, their bytes.
"""

import base64
import itertools
import json
import math
import random
import tempfile
from pathlib import Path
from unittest.mock import Mock

import numpy as np
from known_figures import figures

from tinytorch.core.masks import causal_mask
from tinytorch.core.positions import Rotary
from tinytorch.core.softmax import softmax_array
from tinytorch.inside.probes import LinearProbe
from tinytorch.inside.stream import recorded, residual_stream
from tinytorch.models import sampling
from tinytorch.text.tokenization import split_like_gpt2
from tinytorch.training import checkpoint
from tinytorch_book.experiments import story_gpt
from tinytorch_book.experiments.answering import believed, load_answering_gpt
from tinytorch_book.experiments.live_training import SIZES, live_trainer, load_trained, save_trained
from tinytorch_book.experiments.preferences import KINDNESS
from tinytorch_book.experiments.story_questions import (
    QUESTIONS,
    UNSURE,
    StoryQuestion,
    answers_to,
    story_questions,
)
from tinytorch_book.stories import StoryGrammar, cast_beliefs, next_token_probs, token_beliefs
from tinytorch_book.stories.story_rules import STORY_CAST, STORY_RULES
from tinytorch_book.stories.tilted import reward_of

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


def write(folder: Path) -> None:
    """Write all of it, a file for each function."""
    for make in (
        tokens,
        engine,
        on_the_map,
        choices,
        oracle,
        questions,
        rewards,
        figures,
        trained,
    ):
        values = json.dumps(make(), default=as_bytes)
        (folder / f"{make.__name__}.json").write_text(values, encoding="utf-8")


def as_bytes(array):
    """A large array as the base64 of its float32 numbers, a small one as a list."""
    array = np.asarray(array)
    if array.size < 1000:
        return array.tolist()
    return base64.b64encode(np.asarray(array, np.float32).tobytes()).decode()


# The playground's engine -----------------------------------------------------------------------

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
    checkpoint.load_weights(PLAYGROUND / "weights" / f"step-{step}.safetensors", model)
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
    kept, _ = checkpoint.load_safetensors(PLAYGROUND / "probes.safetensors")
    for name in "animal", "child":
        weight, bias = kept[f"{name}.weight"], kept[f"{name}.bias"]
        probe = LinearProbe(np.zeros((1, len(weight))), np.zeros((1, len(bias))))
        probe.weight, probe.bias = weight, bias
        for cut, text in enumerate(StoryGrammar().generate(12, seed=20).splitlines(), 3):
            ids = tokenizer.encode("\n" + text)[: 5 * cut]
            read = probe(residual_stream(model, [ids])[2, 0, -1])
            yield {"name": name, "ids": ids, "read": np.asarray(read).tolist()}


MAPPED = ["", "One", "One sunny morning", "One sunny morning Tom walked to the barn. There"]


def on_the_map():
    """What the parts of the model do to the vector of the last token of some texts."""
    model, tokenizer = model_at(4000), story_gpt.story_tokenizer()
    table = model.token_embedding.weight.data
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    names = [f"blocks.{layer}.{part}" for layer in range(2) for part in ("attention", "mlp")]
    mapped = []
    for text in MAPPED:
        ids = tokenizer.encode("\n" + text)
        added = [rows[0, -1] for rows in recorded(model, [ids], *names)]
        after = np.cumsum([residual_stream(model, [ids])[0, 0, -1], *added], axis=0)
        scores = model.ln_f(after).data @ table.T
        mapped.append({"ids": ids, "added": added, "after": after, "scores": scores.tolist(),
                       "chances": softmax_array(scores, -1).tolist()})  # fmt: skip
    some = sorted({i for text in MAPPED for i in tokenizer.encode("\n" + text)})
    cosines = [(unit @ unit[i]).tolist() for i in some]
    turned = Rotary(112, 16)(np.tile([1.0, 0.0], (112, 8))).data.reshape(112, 8, 2)
    return {"mapped": mapped, "cosines": dict(zip(some, cosines, strict=True)),
            "turned": np.arctan2(turned[..., 1], turned[..., 0]).tolist()}  # fmt: skip


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


# The model that answers ------------------------------------------------------------------------


NO_STORIES = "The dragon said", "Mia was a brave girl. One dragon", "One  sunny", "🦊"


def questions():
    """What it believes of every answer, and the posterior after stories and parts of them."""
    model, grammar, found = load_answering_gpt(), StoryGrammar(), []
    texts = [each.text for each in story_questions(12, seed=21)]
    texts += [story.strip() for story in grammar.generate(3, seed=22).splitlines()]
    for text, about in itertools.product(["", *texts, *NO_STORIES], QUESTIONS):
        if text in NO_STORIES:
            known = None
        else:  # after a part of a story a space says that the last word is over
            part = not grammar.is_story(f"{text}\n")
            known = [*cast_beliefs(grammar, text + " " * (part and text != ""))[about].values()]
        [belief] = believed(model, [StoryQuestion(text, about, "", np.zeros(1))])
        found.append({"text": text, "about": about, "answers": answers_to(about),
                      "believed": belief, "posterior": known})  # fmt: skip
    return {"asked": found, "questions": QUESTIONS, "unsure": UNSURE}


# Happy endings ---------------------------------------------------------------------------------

NO_POINTS = (
    "",
    "unhappy Happy bedtime constructor",
    "bed's bed-bed sad'x 'sad' glad\u00e9 _sad sad_",
)


def rewards():
    """The points of texts, of stories and of what looks like them."""
    texts = [*NO_POINTS, *StoryGrammar().generate(40, seed=23).splitlines()]
    return {"texts": [[text, reward_of(text, KINDNESS)] for text in texts]}


# Models that are trained in the page -------------------------------------------------------------


def trained():
    """Of each size one that took two steps: its file, and its scores after a beginning."""
    ids = story_gpt.story_tokenizer().encode("\nOnce upon a time there")
    found = []
    for size in SIZES:
        trainer = live_trainer(size, seed=2)
        losses = [record["loss"] for record in trainer.run(2)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "yours.safetensors"
            save_trained(path, trainer)
            file, model = path.read_bytes(), load_trained(path)
        numbers = model.num_parameters()["total"]
        about = {"size": size, "ids": ids, "logits": model(ids).data, "numbers": numbers}
        found.append({**about, "file": base64.b64encode(file).decode(), "losses": losses})
    return found


# The playground's oracle -----------------------------------------------------------------------


def typed():
    """150 texts: stories cut off anywhere, and what a reader may type that is no story."""
    rng = random.Random(14)
    text = StoryGrammar().generate(80, seed=14)
    stories = text.splitlines(keepends=True)
    story = stories[0]
    texts = ["", " ", "\n", "  ", "O", "o", "x", "one", "Once upon a ti", "Once upon a time "]
    texts += [story, story[:-1], story + " ", story + "\n", story + "x", story * 3, text[:3000]]
    texts += ["🦊", "One 🦊", "Жила-была", "日本語", "\u0430nna", "Mi\u00e1", "\ufeffOne"]
    texts += ["One\u00a0", "One  sunny", "One\tsunny", "One sunny\r\n", "{hero}", "One {weather}"]
    texts += ["\x00", "\x85"]
    texts += [line[: rng.randrange(1, len(line))] for line in rng.choices(stories, k=50)]
    while len(texts) < 100:  # several stories, the last one cut off, at spaces often
        end = rng.randrange(200, 1500)
        texts.append(text[:end] if rng.random() < 0.5 else text[: text.index(" ", end) + 1])
    while len(texts) < 150:  # slips of the pen, at the start, in the middle and at the end
        line = rng.choice(stories)
        at = rng.choice([0, len(line) - 1, rng.randrange(len(line))])
        slip = rng.choice(["", "q", " ", "é", "🦊", "7", "\n", line[at] * 2, line[at].swapcase()])
        texts.append((line[:at] + slip + line[at + 1 :])[: rng.randrange(at + 1, at + 80)])
    return texts


def healed(stories, tokenizer, text):
    """The twin of `heal`: spell every word to its end, one letter after the other."""
    if not np.isfinite(stories.log_probs(text, strict=False)).all():
        return {"ids": tokenizer.encode(text), "rest": ""}
    todo, complete = [text], []
    while todo:
        longer = todo.pop()
        following = stories.next_character_probs(longer)
        if longer[-1:].strip() and not following.keys().isdisjoint(" \n"):
            complete.append(tokenizer.encode(longer))
        ends = " \n" if longer[-1:].strip() else ""
        todo += [longer + char for char in following if char not in ends]
    shared = []
    for ids in zip(*complete, strict=False):
        if len(set(ids)) > 1 or len(tokenizer.decode([*shared, ids[0]])) > len(text):
            break
        shared.append(ids[0])
    return {"ids": shared, "rest": text[len(tokenizer.decode(shared)) :]}


def following(stories, tokenizer, ids):
    """The tokens that can follow with their probabilities, or the sentence that refuses."""
    try:
        return {"probs": list(next_token_probs(stories, tokenizer, ids).items())}
    except ValueError as error:
        return {"refused": str(error)}


def spelled(stories, text):
    """The probability of each character, and where it stops being a story."""
    probs = np.exp(stories.log_probs(text, strict=False))
    at = int((probs > 0).sum())
    stopped = None
    if at < len(text):
        allowed = list(stories.next_character_probs(text[:at]))
        stopped = {"position": at, "char": text[at], "allowed": allowed}
    return {"text": text, "probs": probs[:at].tolist(), "stopped": stopped}


def oracle():
    """What the package's oracle says of texts and tokens."""
    stories, tokenizer, rng = StoryGrammar(), story_gpt.story_tokenizer(), random.Random(15)
    texts = typed()
    rows = [tokenizer.encode(text) for text in texts]
    rows += [row[: rng.randrange(len(row) + 1)] for row in rows]
    for text in stories.generate(30, seed=16).splitlines():  # whole at first, then byte for byte
        half = rng.randrange(len(text))
        rows.append([*tokenizer.encode(text[:half]), *text[half:].encode()])
    rows += [[*tokenizer.encode("One"), 0xF0], [0x80], tokenizer.encode("One") * 2]
    text = stories.generate(60, seed=17)[:10_000]
    long = [text, text[:-1] + "🦊", "x" * 10_000, " " * 10_000, "🦊" * 5_000, text[:5_000] * 2]
    rows += [tokenizer.encode(text) for text in long]
    ids = tokenizer.encode(stories.generate(2, seed=19))
    hidden = {n: token_beliefs(stories, tokenizer, ids, n).tolist() for n in ("animal", "child")}
    return {
        "grammar": {"rules": STORY_RULES, "cast": STORY_CAST},
        "spelled": [spelled(stories, text) for text in [*texts, *long]],
        "following": [{"ids": row, **following(stories, tokenizer, row)} for row in rows],
        "healed": [[text, healed(stories, tokenizer, text)] for text in texts],
        "hidden": {"ids": ids, **hidden},
        "whole": stories.generate(6, seed=18).splitlines(),
    }

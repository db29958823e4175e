"""What the figures that move should show: their handles, and what the package computes for them.

`figures()` gives, by the name of each, its data and steps [deeds, numbers, words]: what is done
with its handles, [how, label, value] each, what its `numbers()` then hold, and a part of its words.
"""

import json
import random
import re
from collections import Counter, defaultdict
from contextlib import redirect_stdout
from io import StringIO
from itertools import pairwise, product
from math import log, pi
from pathlib import Path

import numpy as np
from drawings import attention, foundations, generation, heads
from drawings.embeddings import TRAINED
from drawings.first_words import LETTERS, LINES
from drawings.inside import LOOKS
from drawings.parts import MOVING_DATA

from tinytorch import (
    GPT,
    SGD,
    BPETokenizer,
    CosineSchedule,
    KVCache,
    Tensor,
    causal_mask,
    create_sinusoidal_embeddings,
    functional,
    no_grad,
    scaled_dot_product_attention,
)
from tinytorch.core.positions import apply_rotary, create_rotary_embeddings
from tinytorch.models.generation import generate
from tinytorch.models.sampling import choose, next_token_probs
from tinytorch_book.experiments.staircase import COUNTING_AT_BEST
from tinytorch_book.stories import StoryGrammar

CHAPTER = Path(__file__).resolve().parents[2] / "book" / "attention" / "scaled-dot-product.md"
CELL = re.compile(r"^```\{code-cell\} ipython3\n(.*?)^```", re.M | re.S)


def figures():
    """All of them, by the names of their scripts."""
    steps = {
        "query-over-keys": query_over_keys, "causal-mask": masked, "root-d": root_d,
        "who-looks-at-whom": readable, "where-heads-look": heads_look, "three-back": looks_back,
        "rotary-angle": rotary_angle, "letters-remembered": letters_remembered,
        "tokenization": merges, "sampling": drawn, "kv-cache": rows_computed,
        "autograd": graph, "word-vectors": word_vectors, "bowl": walks, "warm-up": schedules,
        "what-it-looks-at": looks, "shift-rotates": shifted_rows,
    }  # fmt: skip
    data = {name: MOVING_DATA[name]() if name in MOVING_DATA else None for name in steps}
    return {name: {"data": data[name], "steps": list(make())} for name, make in steps.items()}


def slide(label, value):
    return ["slide", label, value]


def pick(label):
    return ["choose", label, None]


def press(label):
    return ["press", label, None]


# Attention -------------------------------------------------------------------------------------


def query_over_keys():
    q, k, v = (
        np.array(rows, dtype=float)
        for rows in (attention.QUERIES, attention.KEYS, attention.VALUES)
    )
    output, weights = scaled_dot_product_attention(q, k, v)
    scores = q @ k.T / np.sqrt(4)
    for asks, token in enumerate(attention.TOKENS):
        for step in (6, *range(7)):
            yield (
                [pick(token), slide("Step", step)],
                {
                    "asks": asks,
                    "step": step,
                    "scores": scores[asks, : min(step, 4)],
                    "weights": weights.data[asks] if step > 4 else [],
                    "output": output.data[asks] if step > 5 else [],
                },
                "",
            )
    first = "“they” asks with its query, 2, 0, 1, 1."
    products = "2 · 0 + 0 · 2 + 1 · 1 + 1 · 1 = 2, and divided by √4 the score is 1."
    met = f"The query of “they” meets the key of “Anna”: {products}"
    yield [pick("they"), press("Next step")], {"step": 0}, first
    yield [press("Next step")], {"step": 1}, met


def six_words():
    """What the page's cells with the words and their matrices define."""
    cells = CELL.findall(CHAPTER.read_text(encoding="utf-8"))
    [words] = [code for code in cells if "\nwords = " in code]
    [matrices] = [code for code in cells if "\nW_q = " in code]
    names = {"np": np, "functional": functional}
    with redirect_stdout(StringIO()):
        exec(words + matrices, names)
    return names


def masked():
    """The queries and keys are those of the page's own example, from its code."""
    names = six_words()
    words, q, k = names["words"], names["q"], names["k"]
    said = {
        (False, "feeds"): "“feeds” takes 55 % of what it gets from the four later words.",
        (True, "feeds"): "The mask makes the scores of the four later words −∞.",
        (True, "bark"): "Nothing comes after “bark”",
    }
    for on, mask in ((False, np.zeros((6, 6))), (True, causal_mask(6))):
        _, weights = scaled_dot_product_attention(q, k, k, mask)
        for asks, word in enumerate(words):
            scores = np.maximum(q[asks] @ k.T / 2 + mask[asks], -1e300)
            yield (
                [pick("on" if on else "off"), pick(word)],
                {
                    "asks": asks,
                    "masked": on,
                    "scores": scores,
                    "weights": weights.data[asks],
                    "leaked": weights.data[asks, asks + 1 :].sum(),
                },
                said.get((on, word), ""),
            )


def readable():
    """The six words with one number of W_q changed."""
    names = six_words()
    words, x, k, v = (names[name] for name in ("words", "x", "k", "v"))
    kinds = "thing", "plural", "action", "link"
    tie = "it looks most at “Anna” and “dogs”, with 39 % each. Before the change: 69 % at “dogs”."
    said = {
        ("they", 1, 1, 4): "its query is 4, 4, 0, 0, and it looks most at “dogs”, with 69 %.",
        ("they", 1, 1, 0): tie,
        ("feeds", 2, 1, 2): "“dogs”, with 58 %. Before the change: 39 % each at “Anna” and “dogs”.",
        ("Anna", 0, 2, 0): "“Anna” is 1 thing. It has no strong preference",
        ("bark", 1, 0, -4): "“bark” is 1 plural and 1 action. So its query is 0, 4, 0, 0, and",
    }
    more = [("dogs", 0, 2, 8), ("because", 3, 0, 3), ("they", 0, 1, 5), ("they", 1, 1, -4)]
    for word, row, column, value in [*said, *more]:
        matrix = names["W_q"].copy()
        matrix[row, column] = value
        asks = words.index(word)
        _, weights = scaled_dot_product_attention(x @ matrix, k, v)
        deeds = [
            pick(word), pick(kinds[row]), pick(f"for {kinds[column]}s"),
            slide("The number", value),
        ]  # fmt: skip
        numbers = {
            "asks": asks, "row": row, "column": column, "value": value,
            "query": x[asks] @ matrix, "scores": x[asks] @ matrix @ k.T / 2,
            "weights": weights.data[asks],
        }  # fmt: skip
        yield deeds, numbers, said.get((word, row, column, value), "")
    asks = words.index("they")
    _, weights = scaled_dot_product_attention(names["q"], k, v)
    yield [press("As it was")], {"value": 4, "weights": weights.data[asks]}, "69 %"


def heads_look():
    said = {
        1: "spreads its weight over all four tokens",
        2: "the heads have begun to divide the work",
        4: "Each of the four heads gives one token nearly all its weight, and no two the same.",
        8: "8 heads: ",
        16: "16 heads: six give one token at least 80 % of their weight; the others spread it.",
    }
    for model in heads.known("heads"):
        sharp = int((np.max(model["weights"], axis=1) >= heads.SHARP).sum())
        assert np.allclose(np.sum(model["weights"], axis=1), 100, atol=3)
        yield [pick(f"{model['heads']}")], model | {"sharp": sharp}, said[model["heads"]]


def looks_back():
    schemes = heads.known("schemes")
    for query in (3, 10, 15, 16, 24, 63):
        back = [dict(map(tuple, scheme["looks"][query])).get(query - 3, 0) for scheme in schemes]
        right = [scheme["right"][query - 3] for scheme in schemes]
        said = f"(the ring) lie {back[0]} % (learned table), {back[1]} % (sinusoidal table)"
        yield (
            [slide("Position of the query", query)],
            {"query": query, "back": back, "right": right},
            said,
        )


def slope(scores, i):
    """The gradient of a weight for its own score, by autograd."""
    x = Tensor(scores, requires_grad=True)
    functional.softmax(x).backward(np.eye(len(scores))[i])
    return x.grad[i]


def root_d():
    assert abs(sum(attention.SIZES)) < 1e-9 and abs(np.mean(np.square(attention.SIZES)) - 1) < 0.005
    for divided, power in product((False, True), (0, 1, 4, 6, 10)):
        scores = np.array(attention.SIZES) * (1 if divided else np.sqrt(2**power))
        weights = functional.softmax(scores).numpy()
        yield (
            [
                pick("divided by √d" if divided else "as they are"),
                slide("d, the length of query and key", power),
            ],
            {
                "d": 2**power,
                "divided": divided,
                "scores": scores,
                "weights": weights,
                "slopes": [slope(scores, i) for i in range(8)],
                "entropy": -sum(w * log(w) for w in weights.tolist() if w),
            },
            "Divided by √d, the scores have this size at every width." if divided else "",
        )


def rotary_angle():
    """Every position's rotation of (1, 0), by the second pair of a head, rotated by a 16th."""
    tables = create_rotary_embeddings(16, 4, base=(8 / pi) ** 2)
    turned = apply_rotary(np.tile([0.0, 0.0, 1.0, 0.0], (16, 1)), *tables).numpy()[:, 2:]

    def at(query, key):
        return {
            "query": query,
            "key": key,
            "rotatedQuery": turned[query],
            "rotatedKey": turned[key],
            "product": turned[query] @ turned[key],
        }

    for query, key in [(0, 0), (15, 0), (0, 15), (15, 15), (8, 0), (12, 13), (5, 3)]:
        deeds = [slide("Position of the query", query), slide("Position of the key", key)]
        yield deeds, at(query, key), ""
    yield [press("Both one further")] * 4, at(9, 7), ""
    yield [press("Both one back")] * 20, at(2, 0), ""  # no further than the beginning


def shifted_rows():
    """The row further on is the table's own, which the figure gets by rotating the first one."""
    table = create_sinusoidal_embeddings(60, 16).numpy().astype(float)
    said = "3 further rotates these four hands by 172°, 54°, 17°, 5°, from position "
    for p, k in [(0, 1), (0, 6), (17, 4), (50, 6), (50, 1), (20, 3), (4, 3)]:
        yield (
            [slide("Position p", p), slide("Further by k", k)],
            {"position": p, "shift": k, "row": table[p], "moved": table[p + k]},
            f"{said}{p}" if k == 3 else "",
        )
    product = np.cos(3 * 10000.0 ** (-np.arange(8) / 8)).sum()
    yield [slide("Position p", 31)], {"product": product}, "the dot product 5.54."


# Text ------------------------------------------------------------------------------------------


def letters_remembered():
    grammar = StoryGrammar()
    read, unseen = grammar.generate(500, seed=1), grammar.generate(100, seed=2)
    for length in (1, 3, 7, 8):
        strokes = defaultdict(Counter)
        for i in range(length, len(read)):
            strokes[read[i - length : i]][read[i]] += 1
        letters, nats, never = len(set(read)), 0.0, 0
        for i in range(length, len(unseen)):
            row = strokes.get(unseen[i - length : i], Counter())
            nats -= log((row[unseen[i]] + 0.001) / (row.total() + 0.001 * letters))
            never += not row
        loss = nats / (len(unseen) - length)
        assert length != 7 or abs(loss - COUNTING_AT_BEST) < 0.01
        yield (
            [slide("Letters remembered", length)],
            {
                "letters": length,
                "loss": loss,
                "never": never / (len(unseen) - length),
                "floor": grammar.entropy.nats_per_character,
                "text": lines_of(strokes, length),
            },
            f"With {length} letter",
        )


def lines_of(strokes, length):
    """The first lines of what these strokes write."""
    rng, text = random.Random(length), "Once upon a "
    for _ in range(150):
        row = strokes[text[-length:]]
        text += rng.choices(list(row), list(row.values()))[0]
    lines = [""]
    for word in text.replace("\n", " \n ").split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if word != "\n" and len(longer) <= LETTERS:
            lines[-1] = longer
        else:
            lines.append(word.strip())
    return [line for line in lines if line][:LINES]


def merges():
    words = foundations.WORDS
    for made in range(foundations.MERGES + 1):
        tokenizer = BPETokenizer.train(words.replace(" ", "\n"), vocab_size=256 + made)
        cut = [[token.decode() for token in tokenizer.pieces(word)] for word in words.split()]
        pairs = Counter(pair for word in cut for pair in pairwise(word))
        names = [[token.decode() for token in pair] for pair in tokenizer.merges]
        said = "Most often side by side, 2 times: the and n. They merge next." if made == 2 else ""
        yield (
            [slide("Merges", made)],
            {"words": cut, "merges": names, "pairs": [[*pair, n] for pair, n in pairs.items()]},
            said,
        )


class Drawn:
    """A generator that gives one number."""

    def __init__(self, number):
        self.random = lambda: number


def drawn():
    logits = generation.FORECAST["logits"]
    for temperature, top_k, top_p in [
        (1, 11, 0.9), (0, 11, 1), (0.5, 3, 1), (2, 11, 0.05), (2, 11, 1), (1.5, 4, 0.75), (1, 1, 1),
    ]:  # fmt: skip
        probs = next_token_probs(logits, temperature, top_k if top_k < 11 else None, top_p)
        token = choose(probs, Drawn(generation.NUMBER))
        yield (
            [slide("Temperature", temperature), slide("Top-k", top_k), slide("Top-p", top_p)],
            {
                "probs": probs,
                "held": next_token_probs(logits, temperature)[probs > 0].sum(),
                "number": generation.NUMBER,
                "token": token,
            },
            f"draws {generation.FORECAST['tokens'][token]}.",
        )


class Reading(GPT):
    """A model that notes how many tokens each pass reads."""

    def forward(self, tokens, cache=None, *, last_only=False):
        self.read.append(np.shape(tokens)[-1])
        return super().forward(tokens, cache, last_only=last_only)


def rows_computed():
    prompt = len(generation.WRITTEN) - 5
    for more in (0, 1, 2, 5):
        model, cache = Reading(12, 8, 2, 2, 16, rng=0), KVCache(2, 16)
        model.read = []
        with no_grad():
            for new in ([*range(prompt)], *([i] for i in range(more))):
                model(new, cache=cache)
        found = {"kept": cache.length, "with": sum(model.read), "fresh": model.read[-1]}
        model.read = []
        generate(model, np.arange(prompt), more + 1, use_cache=False, rng=0)
        found["without"] = sum(model.read)
        said = f"computed so far: {found['with']}, and without the cache {found['without']}."
        yield [slide("Tokens written and read", more)], found, said


# Training --------------------------------------------------------------------------------------


def leaf(value):
    return Tensor(value, requires_grad=True, dtype=np.float64)


def values_and_gradients(w, x, y):
    """Of the graph; what lies inside it is made a leaf to be asked for."""
    inputs = {"w": leaf(w), "x": leaf(x), "y": leaf(y)}
    p = inputs["w"] * inputs["x"]
    e = p - inputs["y"]
    loss = e * e
    loss.backward()
    found = {name: tensor.grad.item() for name, tensor in inputs.items()}
    middle, error = leaf(p.item()), leaf(e.item())
    ((middle - y) ** 2).backward()
    (error * error).backward()
    found |= {"p": middle.grad.item(), "e": error.grad.item(), "loss": 1.0}
    values = {"w": w, "x": x, "y": y, "p": p.item(), "e": e.item(), "loss": loss.item()}
    return values, found


def graph():
    said = {
        (2, 3, 5): "6 to w and 4 to x. With a little less of w, the loss falls.",
        (1, 3, 5): "With a little more of w, the loss falls.",
        (1, 3, 3): "the loss is 0, and so is the gradient of every input.",
        (2, 0, 1): "A little more or less of w changes nothing, since x is 0.",
    }
    labels = "w, the weight", "x, the input", "y, the target"
    more = [(-3, -3, -3), (4, 4, 8), (1.5, -2.5, 0.5), (2, 2, 4), (-3, 4, 8)]
    for inputs in (*said, *more):
        values, gradients = values_and_gradients(*inputs)
        deeds = list(map(slide, labels, inputs))
        yield deeds, {"values": values, "gradients": gradients}, said.get(inputs, "")
    values, gradients = values_and_gradients(2, 3, 5)
    yield list(map(slide, labels, (2, 3, 5))), {"values": values}, ""
    for back, reached in enumerate(["", "loss", "loss e", "loss e p y", "loss e p y w x"]):
        shown = {name: g if name in reached.split() else None for name, g in gradients.items()}
        yield [slide("Gradients", back)], {"back": back, "gradients": shown}, ""


def looks():
    """What is stored; that it is what the package computes is tested beside the drawings."""
    stored = json.loads(LOOKS.read_text(encoding="utf-8"))
    said = {
        (
            "0.3, the animal head",
            25,
        ): "“y” asks, “cow” comes next. Head 0.3 gives 99 % to “meadow”.",
        ("1.0, the hero head", 13): "Head 1.0 gives 84 % to “Ben”.",
        ("0.0", 0): "the newline asks, “Once” comes next. Head 0.0 gives 100 % to itself.",
    }
    for name in stored["heads"]:
        label = {"0.3": "0.3, the animal head", "1.0": "1.0, the hero head"}.get(name, name)
        for asks in (0, 13, 25, 45, 68):
            rows = stored["heads"][name][asks]
            numbers = {"keys": [k for k, _ in rows], "shares": [share for _, share in rows]}
            yield (
                [pick(label), slide("Token that asks", asks)],
                {"head": name, "asks": asks, **numbers},
                said.get((label, asks), ""),
            )
    animal = pick("0.3, the animal head")
    then = [animal, slide("Token that asks", 25), press("Next look of 40 % or more")]
    yield then, {"asks": 30}, "Head 0.3 gives 88 % to “after”"


def word_vectors():
    trained = json.loads(TRAINED.read_text(encoding="utf-8"))
    for at, step in enumerate(trained["steps"]):
        points, same = trained["points"][at], trained["same"][at]
        numbers = {"step": step, "points": points, "same": same, "of": trained["of"]}
        yield [slide("Training", at)], numbers, f"{same or 'none'} of the 105 words"


WALKS = [
    (0.045, 0, "jumps from side to side across the valley, less and less far"),
    (0.01, 0, "slides down into the valley, and comes along it as far as x = −2.68"),
    (0.045, 0.8, "swings back and forth across the valley, and runs past the bottom"),
    (0.05, 0, "At the edge"),
    (0.051, 0, "Thrown out: with this momentum no rate above 0.05 keeps"),
    (0.001, 0, "The loss is 28 at the start"),
    (0.001, 0.95, "The loss is 28 at the start"),
    (0.1, 0, "more than a million after 40 steps"),
    (0.1, 0.95, "Thrown out: with this momentum no rate above 0.0975 keeps"),
]


def walks():
    """Forty steps of SGD in the chapter's bowl."""
    for lr, momentum, said in WALKS:
        w = leaf([-4.0, 1.0])
        optimizer, path = SGD([w], lr=lr, momentum=momentum), [w.data.copy()]
        for _ in range(40):
            optimizer.zero_grad()
            (w * w * [1.0, 40.0] / 2).sum().backward()
            optimizer.step()
            path.append(w.data.copy())
        deeds = [slide("Learning rate", lr), slide("Momentum", momentum)]
        yield deeds, {"path": path, "loss": path[-1] ** 2 @ [1, 40] / 2}, said


def schedules():
    for warmup, total in product((0, 5, 40, 100), (110, 120, 160)):
        schedule = CosineSchedule(0.02, warmup, total)
        rates = [schedule(step) for step in range(161)]
        deeds = [slide("Warm-up", warmup), slide("All steps", total)]
        yield deeds, {"rates": rates}, f"to 0 at step {total}"
    no = "there is no such schedule"
    yield [slide("Warm-up", 40), slide("All steps", 40)], {"rates": None}, no

"""What the package computes of what the playground's oracle says."""

import random

import numpy as np

from tinytorch_book.experiments import story_gpt
from tinytorch_book.stories import StoryGrammar, next_token_probs, token_beliefs
from tinytorch_book.stories.story_rules import STORY_CAST, STORY_RULES


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

"""The playground's own oracle beside the package: letters, tokens, and beginnings cut in a word.

No page is built for this: the modules and files of `book/_static/playground` are enough.
"""

import json
import math
import random

import numpy as np
import pytest
from served_pages import ROOT

from tinytorch.experiments.story_gpt import story_tokenizer
from tinytorch.stories import StoryGrammar, hidden_values, next_token_probs, token_beliefs
from tinytorch.stories.story_rules import STORY_CAST, STORY_RULES

pytestmark = [pytest.mark.browser, pytest.mark.slow]
FOLDER = ROOT / "book" / "_static" / "playground"
CLOSE = 1e-9

LOAD = """async () => {
  const { Oracle } = await import("/oracle.js"), { Tokenizer } = await import("/tokenizer.js");
  const read = async (name) => (await fetch(`/${name}.json`)).json();
  const oracle = new Oracle(await read("grammar"));
  const tokenizer = new Tokenizer(await read("tokenizer"));
  const nextTokens = (ids) => {
    const { probs, stopped } = oracle.nextTokens(ids, tokenizer);
    return { probs: probs && [...probs], stopped };
  };
  const heal = (text) => oracle.heal(text, tokenizer);
  Object.assign(globalThis, { oracle, tokenizer, nextTokens, heal });
}"""


@pytest.fixture(scope="module")
def page(playground_files):
    """A page that has loaded the oracle and nothing else."""
    playground_files.evaluate(LOAD)
    return playground_files


@pytest.fixture(scope="module")
def tokenizer():
    return story_tokenizer()


def beginnings():
    """300 texts: stories cut off anywhere, and what a reader may type that is no story."""
    rng = random.Random(14)
    text = StoryGrammar().generate(80, seed=14)
    stories = text.splitlines(keepends=True)
    story = stories[0]
    texts = ["", " ", "\n", "  ", "O", "o", "x", "one", "Once upon a ti", "Once upon a time "]
    texts += [story, story[:-1], story + " ", story + "\n", story + "x", story * 3, text[:3000]]
    texts += [
        "🦊",
        "One 🦊",
        "Жила-была",
        "日本語",
        "\u0430nna",
        "Mi\u00e1",
        "\ufeffOne",
        "One\u00a0",
    ]
    texts += [
        "One  sunny",
        "One\tsunny",
        "One sunny\r\n",
        "{hero}",
        "One {weather}",
        "\x00",
        "\x85",
    ]
    texts += [line[: rng.randrange(1, len(line))] for line in rng.choices(stories, k=120)]
    while len(texts) < 190:  # several stories, the last one cut off, at spaces often
        end = rng.randrange(200, 1500)
        texts.append(text[:end] if rng.random() < 0.5 else text[: text.index(" ", end) + 1])
    while len(texts) < 300:  # slips of the pen, at the start, in the middle and at the end
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
    for tokens in zip(*complete, strict=False):
        if len(set(tokens)) > 1 or len(tokenizer.decode([*shared, tokens[0]])) > len(text):
            break
        shared.append(tokens[0])
    return {"ids": shared, "rest": text[len(tokenizer.decode(shared)) :]}


def asserted_same(stories, tokenizer, ids, found):
    """Whether the tokens that follow are the package's, or the place where it stopped is."""
    if found["stopped"] is None:
        expected = next_token_probs(stories, tokenizer, ids)
        assert [token for token, _ in found["probs"]] == list(expected)
        assert dict(found["probs"]) == pytest.approx(expected, rel=0, abs=CLOSE)
        return True
    assert found["probs"] is None
    with pytest.raises(ValueError) as error:
        next_token_probs(stories, tokenizer, ids)
    if "token" in found["stopped"]:
        token = found["stopped"]["token"]
        place = (
            f"no story is cut with {tokenizer.decode(ids[token : token + 1])!r} as token {token}"
        )
    else:
        place = "no story has {char!r} at position {position}".format(**found["stopped"])
    assert str(error.value).startswith(f"{place}, ")
    return False


def test_the_grammar_is_the_package_s_own():
    written = json.loads((FOLDER / "grammar.json").read_text(encoding="utf-8"))
    # as texts: the order counts
    assert json.dumps(written) == json.dumps({"rules": STORY_RULES, "cast": STORY_CAST})


def test_letters_have_the_probabilities_of_the_package(page, stories):
    texts = beginnings()
    assert len(texts) == 300
    found = page.evaluate("(texts) => texts.map((text) => oracle.follow(text))", texts)
    impossible = 0
    for text, result in zip(texts, found, strict=True):
        probs = np.exp(stories.log_probs(text, strict=False))
        possible = int((probs > 0).sum())
        np.testing.assert_allclose(result["probs"], probs[:possible], rtol=0, atol=CLOSE)
        if possible == len(text):
            assert result["stopped"] is None
            continue
        impossible += 1
        assert result["stopped"] == {
            "position": possible,
            "char": text[possible],
            "allowed": list(stories.next_character_probs(text[:possible])),
        }
    assert 80 < impossible < 150


def test_tokens_have_the_probabilities_of_the_package(page, stories, tokenizer):
    rng = random.Random(15)
    rows = [tokenizer.encode(text) for text in beginnings()]
    rows += [row[: rng.randrange(len(row) + 1)] for row in rows]
    for text in stories.generate(30, seed=16).splitlines():  # whole at first, then byte for byte
        half = rng.randrange(len(text))
        rows.append([*tokenizer.encode(text[:half]), *text[half:].encode()])
    rows += [[*tokenizer.encode("One"), 0xF0], [0x80], tokenizer.encode("One") * 2]
    found = page.evaluate("(rows) => rows.map(nextTokens)", rows)
    same = [asserted_same(stories, tokenizer, *pair) for pair in zip(rows, found, strict=True)]
    assert 200 < sum(same) < 500
    assert sum("token" in (result["stopped"] or ()) for result in found) > 10


@pytest.mark.parametrize("name", ["animal", "child"])
def test_what_is_hidden_has_the_posterior_of_the_package(page, stories, tokenizer, name):
    """After every token of two stories, the line break and the cuts inside words among them."""
    ids = tokenizer.encode(stories.generate(2, seed=19))
    rows = [ids[:end] for end in range(len(ids) + 1)]
    hidden = "([name, rows]) => rows.map((ids) => [...oracle.hidden(name, ids, tokenizer)])"
    found = page.evaluate(hidden, [name, rows])
    assert {tuple(value for value, _ in row) for row in found} == {hidden_values(stories, name)}
    expected = token_beliefs(stories, tokenizer, ids, name)
    np.testing.assert_allclose([[p for _, p in row] for row in found], expected, rtol=0, atol=CLOSE)
    for ids in tokenizer.encode("The dragon said"), tokenizer.encode("One") * 2:
        asked = "([name, ids]) => oracle.hidden(name, ids, tokenizer)"
        assert page.evaluate(asked, [name, ids]) is None


def test_a_piece_and_its_ending_are_a_word_with_which_a_story_can_go_on(page, stories, tokenizer):
    rows = [tokenizer.encode(text) for text in stories.generate(20, seed=18).splitlines()]
    rows = [row[:end] for row in rows for end in range(0, len(row), 3)]
    found = page.evaluate("(rows) => rows.map((ids) => [...oracle.pieces(ids, tokenizer)])", rows)
    assert sum(map(len, found)) > 400
    for ids, pieces in zip(rows, found, strict=True):
        expected = next_token_probs(stories, tokenizer, ids)
        for token, piece in pieces:
            text = tokenizer.decode([*ids, token]) + piece["ending"]
            assert expected[token] > 0 and text.endswith(piece["word"])
            assert np.isfinite(stories.log_probs(text, strict=False)).all()
            assert not stories.next_character_probs(text).keys().isdisjoint(" \n"), "it is whole"


def test_a_beginning_that_ends_in_a_word_is_healed_without_loss(page, stories, tokenizer):
    """The tokens that begin with the rest hold all that is possible after what was typed."""
    texts = beginnings()
    found = page.evaluate("(texts) => texts.map(heal)", texts)
    assert found == [healed(stories, tokenizer, text) for text in texts]
    assert sum(bool(result["rest"]) for result in found) > 40
    for text, result in zip(texts, found, strict=True):
        known = stories.log_probs(text, strict=False)
        if np.isfinite(known).all() and len(text) < 500:
            ids = result["ids"]
            follow = "(ids) => [...ids, null].map((_, end) => nextTokens(ids.slice(0, end)).probs)"
            *before, after = map(dict, page.evaluate(follow, ids))
            begun = sum(p for i, p in after.items() if is_begun(tokenizer, i, result["rest"]))
            read = sum(math.log(probs[i]) for probs, i in zip(before, ids, strict=True))
            assert read + math.log(begun) == pytest.approx(known.sum(), abs=CLOSE)


def test_ten_thousand_characters_are_read_like_few(page, stories, tokenizer):
    text = stories.generate(60, seed=17)[:10_000]
    texts = [text, text[:-1] + "🦊", "x" * 10_000, " " * 10_000, "🦊" * 5_000, text[:5_000] * 2]
    found = page.evaluate("(texts) => texts.map((text) => oracle.follow(text))", texts)
    for one, result in zip(texts, found, strict=True):
        known = np.exp(stories.log_probs(one, strict=False))
        np.testing.assert_allclose(result["probs"], known[known > 0], rtol=0, atol=CLOSE)
    assert [result["stopped"] and result["stopped"]["position"] for result in found] == [
        *(None, 9_999, 0, 0, 0),
        5_000,
    ]
    rows = [tokenizer.encode(text) for text in texts]
    for ids, result in zip(
        rows, page.evaluate("(rows) => rows.map(nextTokens)", rows), strict=True
    ):
        asserted_same(stories, tokenizer, ids, result)


def is_begun(tokenizer, token, rest):
    return tokenizer.decode([token]).startswith(rest)

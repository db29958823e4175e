"""The stories, their entropy and their oracle, each against something that knows the answer."""

import doctest
import hashlib
import http.server
import itertools
import math
import re
import threading
from collections import Counter, defaultdict

import numpy as np
import pytest

from tinytorch.text import corpus, grammar
from tinytorch.text.corpus import StoryGrammar, book_prose, load_text

TINY_RULES = {
    "story": {"{hello} {pet}. {act}\n": 3, "No {pet}.\n": 1},
    "hello": {"A {size}": 2, "The": 1},
    "size": {"big": 1, "tiny": 2},
    "act": {"{It} ate {food}.": 2, "The {pet} ran.": 1},
}
TINY_CAST = {
    "pet": {"cat": 3, "cow": 2},
    "It given pet": {"cat": "She", "cow": "It"},
    "food given pet": {"cat": {"fish": 3, "pie": 1}, "cow": {"pie": 1, "pies": 2}},
}


@pytest.fixture(scope="module")
def stories():
    return StoryGrammar()


@pytest.fixture(scope="module")
def tiny():
    return StoryGrammar(TINY_RULES, TINY_CAST)


# ---------------------------------------------------------------- the data, read independently


def derivations(rules, cast, todo, values, prefix=None):
    """Every (text, probability) of a list of pieces, by brute force over all choices.

    With a `prefix`, only the derivations of exactly that text: a backtracking parser.
    """
    if not todo:
        if not prefix:
            yield "", 1.0
        return
    first, rest = todo[0], todo[1:]
    if not first.startswith("{"):
        if prefix is None or prefix.startswith(first):
            left = None if prefix is None else prefix[len(first) :]
            for text, p in derivations(rules, cast, rest, values, left):
                yield first + text, p
        return
    name = first[1:-1]
    for new_todo, new_values, p in choices(rules, cast, name, rest, values):
        for text, q in derivations(rules, cast, new_todo, new_values, prefix):
            yield text, p * q


def choices(rules, cast, name, rest, values):
    if name in rules:
        for template, p in normalised(rules[name]):
            yield re.findall(r"\{\w+\}|[^{]+", template) + rest, values, p
    elif name in values:
        yield [values[name], *rest], values, 1.0
    else:
        for new_values, p in cast_choices(cast, name, values):
            yield [new_values[name], *rest], new_values, p


def cast_choices(cast, name, values):
    key = next(key for key in cast if key.split(" given ")[0] == name)
    parent = key.partition(" given ")[2]
    if not parent:
        for value, p in normalised(cast[key]):
            yield {**values, name: value}, p
    else:
        cases = [(values, 1.0)] if parent in values else cast_choices(cast, parent, values)
        for known, p in cases:
            for value, q in normalised(cast[key][known[parent]]):
                yield {**known, name: value}, p * q


def normalised(options):
    options = {options: 1} if isinstance(options, str) else options
    total = sum(options.values())
    return [(text, weight / total) for text, weight in options.items()]


def all_stories(grammar):
    return list(derivations(grammar.rules, grammar.cast, ["{story}"], {}))


# ---------------------------------------------------------------- writing


def test_the_first_story_of_seed_0_never_changes(stories):
    assert stories.generate(1, seed=0) == (
        "Mia was a brave girl. One snowy afternoon she hopped to the barn. "
        "A tiny hen ran after her and asked for some bread. "
        "Mia gave it some bread, and it ate and ate and ate. "
        "After that, the hen came to tea every morning.\n"
    )


def test_a_longer_text_begins_with_the_shorter_one(stories):
    assert stories.generate(7, seed=3).startswith(stories.generate(4, seed=3))
    assert stories.generate(0) == ""


def test_other_seeds_write_other_stories(stories):
    assert len({stories.generate(1, seed=seed) for seed in range(50)}) == 50


def test_stories_are_short_paragraphs_in_a_small_alphabet(stories):
    lengths = [len(story) for story in itertools.islice(stories.stories(7), 2000)]
    assert min(lengths) >= 120 and max(lengths) <= 280
    assert len(stories.alphabet) <= 40
    assert set(stories.generate(3000, seed=8)) == set(stories.alphabet)


def test_who_the_story_is_about_stays_the_same(stories):
    girls = set(grammar.STORY_CAST["hero given child"]["girl"])
    animals = set(stories.kinds["animals"])
    for story in itertools.islice(stories.stories(9), 500):
        words = stories.words(story)
        assert len({word for word in words if word in stories.kinds["names"]}) == 1
        assert len({word for word in words if word in animals}) == 1
        girl = bool(girls & set(words))
        assert not {"he", "He", "his", "him"} & set(words) if girl else "she" not in words


@pytest.mark.parametrize(
    ("count", "error"), [(-1, ValueError), (2.0, TypeError), (True, TypeError)]
)
def test_a_bad_number_of_stories_is_refused(stories, count, error):
    with pytest.raises(error, match="num_stories must be"):
        stories.generate(count)


@pytest.mark.parametrize(("seed", "error"), [(-1, ValueError), ("1", TypeError), (None, TypeError)])
def test_a_bad_seed_is_refused_at_once(stories, seed, error):
    with pytest.raises(error, match="seed must be"):
        stories.stories(seed)


# ---------------------------------------------------------------- words


def test_words_and_join_words_are_inverse(stories):
    text = stories.generate(3000, seed=4)
    assert stories.join_words(stories.words(text)) == text
    assert set(stories.words(text)) == set(stories.vocabulary)


def test_words_keep_an_apostrophe_inside():
    assert StoryGrammar.words("don't 'stop'") == ["don't", "'", "stop", "'"]


def test_words_of_one_kind_are_single_words_of_the_vocabulary(stories):
    assert {"names", "animals", "places", "foods", "colours"} <= set(stories.kinds)
    words = [word for kind in stories.kinds.values() for word in kind]
    assert set(words) <= set(stories.vocabulary)
    assert len(words) == len(set(words)), "the kinds are disjoint"


def test_kinds_of_a_grammar_of_your_own_are_its_choices_between_words(tiny):
    assert tiny.kinds == {
        "size": ("big", "tiny"),
        "pet": ("cat", "cow"),
        "It": ("She", "It"),
        "food": ("fish", "pie", "pies"),
    }


# ---------------------------------------------------------------- exactly one derivation


def test_the_tiny_grammar_writes_every_story_in_one_way(tiny):
    texts = [text for text, _ in all_stories(tiny)]
    assert len(texts) == len(set(texts)) == 20


def test_sampled_stories_have_exactly_one_derivation(stories):
    for story in itertools.islice(stories.stories(21), 100):
        ways = list(derivations(stories.rules, stories.cast, ["{story}"], {}, story))
        assert [text for text, _ in ways] == [story]
        assert stories.log_probs(story).sum() == pytest.approx(math.log(ways[0][1]), abs=1e-9)


def test_a_story_alone_is_a_story(stories):
    story = stories.generate(1, seed=5)
    assert stories.is_story(story)
    for other in (story[:-1], story * 2, "", "\n", "x" + story, story.replace(" the ", " a ", 1)):
        assert not stories.is_story(other)


# ---------------------------------------------------------------- entropy


def test_entropy_of_the_tiny_grammar_is_the_sum_over_all_its_stories(tiny):
    ways = all_stories(tiny)
    entropy = tiny.entropy
    assert math.fsum(p for _, p in ways) == pytest.approx(1)
    assert entropy.nats_per_story == pytest.approx(-math.fsum(p * math.log(p) for _, p in ways))
    assert entropy.characters_per_story == pytest.approx(math.fsum(p * len(t) for t, p in ways))
    assert entropy.words_per_story == pytest.approx(
        math.fsum(p * len(tiny.words(t)) for t, p in ways)
    )
    assert entropy.nats_per_character * entropy.characters_per_story == entropy.nats_per_story
    assert entropy.bits_per_word == pytest.approx(entropy.nats_per_word / math.log(2))


@pytest.mark.parametrize("unit", ["character", "word"])
def test_unigram_and_bigram_entropy_are_those_of_all_stories(tiny, unit):
    pairs = defaultdict(float)
    for text, p in all_stories(tiny):
        tokens = ["\n", *(list(text) if unit == "character" else tiny.words(text))]
        for pair in itertools.pairwise(tokens):
            pairs[pair] += p
    joint = nats(pairs.values())
    left = nats(sums_by(pairs, 0))
    assert getattr(tiny.entropy, f"unigram_nats_per_{unit}") == pytest.approx(left)
    assert getattr(tiny.entropy, f"bigram_nats_per_{unit}") == pytest.approx(joint - left)


def sums_by(pairs, side):
    sums = Counter()
    for pair, count in pairs.items():
        sums[pair[side]] += count
    return sums.values()


def nats(counts):
    p = np.array(list(counts)) / sum(counts)
    return float(-(p * np.log(p)).sum())


def test_entropy_is_the_mean_surprise_of_many_sampled_stories(stories):
    sample = list(itertools.islice(stories.stories(11), 1500))
    surprise = np.array([-stories.log_probs(story).sum() for story in sample])
    length = np.array([len(story) for story in sample])
    words = np.array([len(stories.words(story)) for story in sample])
    entropy = stories.entropy
    for values, expected in (
        (surprise, entropy.nats_per_story),
        (length, entropy.characters_per_story),
        (words, entropy.words_per_story),
    ):
        standard_error = values.std() / math.sqrt(len(values))
        assert abs(values.mean() - expected) < 4 * standard_error
        assert standard_error < 0.01 * expected, "the test can tell"


def test_unigrams_and_bigrams_of_a_sample_come_near_the_exact_floors(stories):
    tokens = stories.words("\n" + stories.generate(20_000, seed=2))
    pairs = Counter(itertools.pairwise(tokens))
    unigram = nats(sums_by(pairs, 0))
    assert unigram == pytest.approx(stories.entropy.unigram_nats_per_word, abs=0.005)
    assert nats(pairs.values()) - unigram == pytest.approx(
        stories.entropy.bigram_nats_per_word, abs=0.005
    )


def test_who_sees_more_can_lose_less(stories):
    entropy = stories.entropy
    for unit in ("character", "word"):
        names = ("uniform_", "unigram_", "bigram_", "")
        floors = [getattr(entropy, f"{name}nats_per_{unit}") for name in names]
        assert floors == sorted(floors, reverse=True) and floors[-1] > 0


# ---------------------------------------------------------------- the oracle


def test_every_prefix_of_the_tiny_grammar_has_the_exact_next_character(tiny):
    ways = all_stories(tiny)
    for prefix in {text[:end] for text, _ in ways for end in range(len(text))}:
        mass = defaultdict(float)
        for text, p in ways:
            if text.startswith(prefix):
                mass[text[len(prefix)]] += p
        total = sum(mass.values())
        expected = {char: p / total for char, p in mass.items()}
        assert tiny.next_character_probs(prefix) == pytest.approx(expected)


def test_log_probs_are_those_of_the_next_character_distributions(stories):
    text = stories.generate(2, seed=6)[:250]
    result = stories.log_probs(text)
    assert result.shape == (250,) and result.dtype == np.float64
    for position, char in enumerate(text):
        probs = stories.next_character_probs(text[:position])
        assert sum(probs.values()) == pytest.approx(1, abs=1e-12)
        assert math.exp(result[position]) == pytest.approx(probs[char], abs=1e-12)


def test_stories_that_follow_each_other_are_independent(stories):
    first, second = itertools.islice(stories.stories(6), 2)
    together = np.concatenate([stories.log_probs(first), stories.log_probs(second)])
    np.testing.assert_allclose(stories.log_probs(first + second), together, atol=1e-12)


def test_words_of_the_tiny_grammar_have_their_exact_probability(tiny):
    ways = [(tiny.words(text), text, p) for text, p in all_stories(tiny)]
    for words, text, _ in ways:
        expected = []
        for end in range(len(words)):
            before = math.fsum(p for other, _, p in ways if other[:end] == words[:end])
            after = math.fsum(p for other, _, p in ways if other[: end + 1] == words[: end + 1])
            expected.append(math.log(after / before))
        np.testing.assert_allclose(tiny.word_log_probs(text), expected, atol=1e-12)


def test_the_surprise_of_the_words_is_the_surprise_of_the_characters(stories):
    text = stories.generate(20, seed=13)
    result = stories.word_log_probs(text)
    assert len(result) == len(stories.words(text)) and result.max() <= 1e-12
    assert result.sum() == pytest.approx(stories.log_probs(text).sum())
    assert len(stories.word_log_probs("")) == 0


def test_word_log_probs_want_complete_stories(stories):
    with pytest.raises(ValueError, match="the last story is cut off"):
        stories.word_log_probs("One sunny")


def test_an_impossible_character_is_named_with_its_place_and_what_was_allowed(stories):
    with pytest.raises(
        ValueError,
        match=r"'x' at position 4, after 'One '; only 'f', 'r', 's', 'w' can be there",
    ):
        stories.log_probs("One xylophone")
    with pytest.raises(ValueError, match="'x' at position 4"):
        stories.next_character_probs("One xylophone")


def test_an_impossible_text_gets_minus_infinity_from_there_on_when_not_strict(stories):
    result = stories.log_probs("One xylophone", strict=False)
    assert np.isfinite(result[:4]).all() and (result[4:] == -np.inf).all()


def test_the_oracle_reads_strings_only(stories):
    with pytest.raises(TypeError, match="reads a string, got list"):
        stories.log_probs([1, 2])
    with pytest.raises(ValueError, match="'story' or 'anywhere'"):
        stories.log_probs("A", start="middle")


def test_nothing_has_no_log_probs(stories):
    assert stories.log_probs("").shape == (0,)


def test_a_window_from_anywhere_has_its_exact_probability(tiny):
    """Brute force: every place of every pair of stories, weighted as the endless text has them."""
    ways = all_stories(tiny)
    size = 9
    exact = defaultdict(float)
    for (first, p), (second, q), (third, r) in itertools.product(ways, repeat=3):
        text = first + second + third
        for offset in range(len(first)):
            exact[text[offset : offset + size]] += p * q * r / tiny.entropy.characters_per_story
    assert sum(exact.values()) == pytest.approx(1)
    for window, p in exact.items():
        assert tiny.log_probs(window, start="anywhere").sum() == pytest.approx(math.log(p))


def test_the_distribution_of_any_character_is_the_unigram_distribution(stories):
    probs = np.array(list(stories.next_character_probs("", start="anywhere").values()))
    assert -(probs * np.log(probs)).sum() == pytest.approx(
        stories.entropy.unigram_nats_per_character
    )


def test_a_window_of_two_characters_costs_a_unigram_and_a_bigram(stories):
    surprise = 0.0
    for char, p in stories.next_character_probs("", start="anywhere").items():
        following = stories.next_character_probs(char, start="anywhere").values()
        surprise -= p * math.fsum(q * math.log(q) for q in following)
    assert surprise == pytest.approx(stories.entropy.bigram_nats_per_character)


def test_a_window_is_more_surprising_than_a_text_whose_beginning_is_known(stories):
    text = stories.generate(30, seed=17)
    known = stories.log_probs(text)
    rng = np.random.default_rng(0)
    starts = rng.integers(0, len(text) - 100, size=60)
    windows = np.array([stories.log_probs(text[s : s + 100], start="anywhere") for s in starts])
    floor = np.array([known[s : s + 100] for s in starts])
    assert windows[:, :10].mean() < floor[:, :10].mean()
    assert windows.sum() < floor.sum()


# ---------------------------------------------------------------- grammars that are not sound


def refuse(match, rules, cast=None, kinds=None, error=ValueError):
    with pytest.raises(error, match=match):
        StoryGrammar(rules, cast, kinds)


@pytest.mark.parametrize(
    ("match", "rules"),
    [
        ("no rule 'story' to start from; there are 'tale'", {"tale": "x\n"}),
        ("'story' refers to 'cat', which is neither in the rules", {"story": "A {cat}.\n"}),
        ("no story can reach 'dog'", {"story": "A.\n", "dog": "d"}),
        (r"contains itself \(a -> b -> a\)", {"story": "{a}\n", "a": "x {b}", "b": "y {a}"}),
        ("weight of 'A.\\\\n' is 0; weights are positive", {"story": {"A.\n": 0}}),
        ("weight of 'A.\\\\n' is nan", {"story": {"A.\n": float("nan")}}),
        ("rule 'story' has no options", {"story": {}}),
        ("rule 'a' has an empty option", {"story": "{a}.\n", "a": {"": 1, "x": 1}}),
        ("does not end with a newline", {"story": "A."}),
        ("a newline inside", {"story": "A.\nB.\n"}),
        ("rule 'a': a newline inside", {"story": "{a}.\n", "a": "x\n"}),
        ("a brace without its partner", {"story": "A {cat.\n"}),
        ("touches a letter or another symbol", {"story": "A{x}.\n", "x": "b"}),
        ("touches a letter or another symbol", {"story": "{x}'s.\n", "x": "b"}),
        ("touches a letter or another symbol", {"story": "{x}{x}.\n", "x": "b"}),
        ("rule 'a b': a name is one word", {"story": "A.\n", "a b": "x"}),
    ],
)
def test_rules_that_are_not_sound_are_refused(match, rules):
    refuse(match, rules)


@pytest.mark.parametrize(
    ("match", "cast"),
    [
        ("'pet given owner': 'owner' is not one of the cast", {"pet given owner": {}}),
        (
            "missing: 'cow'; unknown: 'dog'",
            {"pet": {"cat": 1, "cow": 1}, "x given pet": {"cat": "a", "dog": "b"}},
        ),
        ("has braces, a newline or space around it", {"pet": {"{cat}": 1}}),
        ("has braces, a newline or space around it", {"pet": "cat "}),
        ("'story': this name is defined twice", {"story": "x"}),
        ("or 'name given parent'", {"my pet": "x"}),
    ],
)
def test_a_cast_that_is_not_sound_is_refused(match, cast):
    refuse(match, {"story": "{pet}.\n"}, cast)


def test_things_of_the_wrong_type_are_refused():
    refuse("rules must be a dictionary", ["A.\n"], error=TypeError)
    refuse("cast must be a dictionary", {"story": "A.\n"}, ["x"], error=TypeError)
    refuse(
        "weight of 'A.\\\\n' must be a number, got '1'", {"story": {"A.\n": "1"}}, error=TypeError
    )
    refuse("a text or a dictionary from texts to weights", {"story": ["A.\n"]}, error=TypeError)
    refuse("an option must be a text", {"story": {3: 1}}, error=TypeError)
    table = {"pet": "cat", "food given pet": "fish"}
    refuse("a row for each value", {"story": "{food}.\n"}, table, error=TypeError)
    refuse("need their own rules", None, {"pet": "cat"})
    refuse("kind 'x' names 'y'", {"story": "A.\n"}, None, {"x": ("y",)})


@pytest.mark.parametrize(
    "rules",
    [
        {"story": {"A {x}.\n": 1, "A b.\n": 1}, "x": {"b": 1, "c": 1}},
        {"story": "{x} {y}.\n", "x": {"a": 1, "a b": 1}, "y": {"b c": 1, "c": 1}},
        {
            "story": "{x}.\n",
            "x": {"{y}.": 1, "{z}.": 1},
            "y": {"a": 1, "b": 1},
            "z": {"b": 1, "c": 1},
        },
    ],
)
def test_a_choice_that_cannot_be_read_off_the_text_is_refused(rules):
    refuse("can begin with the same complete text", rules)


def test_a_word_may_begin_with_another_word():
    tiny = StoryGrammar({"story": "A {x}.\n", "x": {"cat": 1, "cats": 1}})
    assert tiny.entropy.nats_per_story == pytest.approx(math.log(2))


def test_a_value_that_two_parents_share_must_come_after_its_parent():
    cast = {
        "pet": {"cat": 1, "cow": 1},
        "food given pet": {"cat": {"pie": 1, "fish": 1}, "cow": "pie"},
    }
    refuse(
        r"'pie' and 'pie' cannot be told apart .* mention \{pet\} before",
        {"story": "{food}.\n"},
        cast,
    )
    StoryGrammar({"story": "The {pet} ate {food}.\n"}, cast)


def test_a_value_that_tells_its_parent_may_come_first():
    cast = {
        "child": {"girl": 3, "boy": 1},
        "hero given child": {"girl": {"Mia": 1, "Ida": 2}, "boy": "Tom"},
    }
    tiny = StoryGrammar({"story": "{hero} is a {child}.\n"}, cast)
    p = np.array([0.25, 0.5, 0.25])
    assert tiny.entropy.nats_per_story == pytest.approx(-(p * np.log(p)).sum())
    assert tiny.log_probs("Ida is a girl.\n").sum() == pytest.approx(math.log(0.5))


def random_grammar(rng):
    """A grammar of a few short rules over three characters; most are not sound."""

    def text(symbols):
        pieces = [
            "{" + rng.choice(symbols) + "}"
            if symbols and rng.random() < 0.4
            else rng.choice(LETTERS)
            for _ in range(rng.integers(1, 4))
        ]
        return " ".join(pieces)

    def options(symbols):
        return {text(symbols): int(rng.integers(1, 5)) for _ in range(rng.integers(1, 4))}

    cast = {"p": options([])}
    cast["c given p"] = {value: options([]) for value in cast["p"]}
    rules = {"story": {}, "x": options(["y", "p", "c"]), "y": options(["c", "p"])}
    while len(rules["story"]) < 2:
        rules["story"][text(["x", "y", "p", "c"]) + ".\n"] = int(rng.integers(1, 5))
    return rules, cast


LETTERS = ["a", "b", "ab", "a,", "b a"]


def test_what_the_constructor_accepts_is_unambiguous_and_has_its_exact_entropy():
    rng = np.random.default_rng(5)
    accepted = 0
    for _ in range(1500):
        try:
            grammar = StoryGrammar(*random_grammar(rng))
        except ValueError:
            continue
        accepted += 1
        ways = all_stories(grammar)
        assert len({text for text, _ in ways}) == len(ways)
        expected = -math.fsum(p * math.log(p) for _, p in ways)
        assert grammar.entropy.nats_per_story == pytest.approx(expected, abs=1e-12)
        for text, p in ways[:5]:
            assert grammar.log_probs(text).sum() == pytest.approx(math.log(p), abs=1e-9)
    assert accepted > 50


# ---------------------------------------------------------------- other texts


def test_the_prose_of_the_book_comes_with_the_package():
    assert len(book_prose()) > 100


def test_missing_prose_says_how_to_make_it(monkeypatch, tmp_path):
    monkeypatch.setattr(corpus.resources, "files", lambda package: tmp_path)
    with pytest.raises(FileNotFoundError, match=r"`make notebooks` writes it"):
        book_prose()


def test_a_local_file_is_read_with_universal_newlines(tmp_path):
    path = tmp_path / "my text.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthr\xc3\xa9e\n")
    assert (
        load_text(path) == load_text(str(path)) == load_text(path.as_uri()) == "one\ntwo\nthrée\n"
    )


def test_the_checksum_of_a_local_file_is_compared_when_given(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"abc")
    assert load_text(path, sha256=hashlib.sha256(b"abc").hexdigest().upper()) == "abc"
    with pytest.raises(ValueError, match="its SHA-256 is ba7816bf"):
        load_text(path, sha256="0" * 64)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"ab\ncaf\xe9 x", r"byte 0xe9 at position 6 \(line 2\)"),
        (b" \n", "is empty"),
        (b"x" * 101, "more than 100 bytes"),
    ],
)
def test_a_file_that_is_no_text_is_refused(tmp_path, content, match):
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=match):
        load_text(path, max_bytes=100)


def test_what_cannot_be_a_text_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file 'nowhere.txt'"):
        load_text("nowhere.txt")
    with pytest.raises(ValueError, match="is a folder"):
        load_text(tmp_path)
    with pytest.raises(ValueError, match="reads http, https and file URLs"):
        load_text("ftp://example.org/a.txt")
    with pytest.raises(ValueError, match="only local files"):
        load_text("file://elsewhere/a.txt")
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        load_text("a.txt", sha256="abc")
    with pytest.raises(TypeError, match="a path or a URL"):
        load_text(b"a.txt")


STORY = "Mia lost her hat.\n" * 20_000
DIGEST = hashlib.sha256(STORY.encode()).hexdigest()


@pytest.fixture
def server():
    """A web server on this machine; `requests` are the paths that were asked for."""
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            self.send_response(404 if self.path == "/missing" else 200)
            self.send_header("Content-Length", str(len(STORY)))
            self.end_headers()
            self.wfile.write(STORY.encode()[: 1000 if self.path == "/broken" else None])

        def log_message(self, *args):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", requests
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_download_is_kept_and_not_fetched_again(server, tmp_path):
    url, requests = server
    assert load_text(url + "/a.txt", DIGEST, tmp_path / "new" / "cache") == STORY
    assert load_text(url + "/a.txt", DIGEST, tmp_path / "new" / "cache") == STORY
    assert requests == ["/a.txt"]
    assert [path.name for path in (tmp_path / "new" / "cache").iterdir()] == [f"{DIGEST}.txt"]


def test_a_damaged_copy_in_the_cache_is_fetched_again(server, tmp_path):
    url, requests = server
    (tmp_path / f"{DIGEST}.txt").write_text("half a fi")
    assert load_text(url + "/a.txt", DIGEST, tmp_path) == STORY
    assert requests == ["/a.txt"]


def test_the_default_cache_follows_xdg(server, tmp_path, monkeypatch):
    url, _ = server
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    load_text(url + "/a.txt", DIGEST)
    assert (tmp_path / "tinytorch" / f"{DIGEST}.txt").is_file()
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    load_text(url + "/a.txt", DIGEST)
    assert (tmp_path / "home" / ".cache" / "tinytorch" / f"{DIGEST}.txt").is_file()


@pytest.mark.parametrize(
    ("path", "error", "match"),
    [
        ("/missing", ConnectionError, "404.*download it by hand"),
        ("/broken", ConnectionError, "only 1000 of 360000 bytes came"),
    ],
)
def test_a_failed_download_leaves_nothing_behind(server, tmp_path, path, error, match):
    with pytest.raises(error, match=match):
        load_text(server[0] + path, DIGEST, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_another_text_than_expected_is_not_kept(server, tmp_path):
    with pytest.raises(ValueError, match=f"its SHA-256 is {DIGEST}, not 000"):
        load_text(server[0] + "/a.txt", "0" * 64, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_download_that_is_too_large_is_refused(server, tmp_path):
    with pytest.raises(ValueError, match="more than 1000 bytes"):
        load_text(server[0] + "/a.txt", DIGEST, tmp_path, max_bytes=1000)
    assert list(tmp_path.iterdir()) == []


def test_a_download_without_a_checksum_is_refused_and_says_how_to_get_one(server):
    with pytest.raises(ValueError, match=r"needs sha256=.*sha256sum FILE"):
        load_text(server[0] + "/a.txt")
    assert server[1] == []


def test_without_a_network_the_error_says_what_to_do(tmp_path):
    with pytest.raises(ConnectionError, match=rf"save it as .*{DIGEST}\.txt, or pass the path"):
        load_text("http://127.0.0.1:1/a.txt", DIGEST, tmp_path)


def test_a_copy_saved_by_hand_where_the_error_said_is_read(tmp_path):
    (tmp_path / f"{DIGEST}.txt").write_bytes(STORY.encode())
    assert load_text("http://127.0.0.1:1/a.txt", DIGEST, tmp_path) == STORY


def test_a_cache_folder_that_cannot_be_written_says_so(server, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="pass another cache_dir="):
        load_text(server[0] + "/a.txt", DIGEST, tmp_path / "file" / "cache")


# ---------------------------------------------------------------- documentation


@pytest.mark.parametrize("module", [corpus, grammar])
def test_the_examples_in_the_docstrings_are_right(module):
    results = doctest.testmod(module)
    assert results.attempted > 0 and results.failed == 0


@pytest.mark.parametrize("owner", [corpus, StoryGrammar, grammar.StoryEntropy])
def test_every_public_function_has_an_example(owner):
    for name in getattr(owner, "__all__", [n for n in vars(owner) if not n.startswith("_")]):
        item = getattr(owner, name)
        if callable(item):
            assert ">>>" in item.__doc__, f"{name} has no example"

r"""What the best possible reader expects next, in tokens: the truth beside a model's prediction.

The oracle reads characters, a model reads tokens, and a token says more than its characters do. A
text is always cut in the same way: if " cat" is one token, " c" means that no cat will come. So the
oracle looks ahead from the beginning of the last word: it follows every continuation to the end of
the word, and keeps the words that are cut into the tokens seen so far.

    >>> from tinytorch.text.tokenization import BPETokenizer
    >>> tiny = StoryGrammar({"story": "a {pet}.\n", "pet": {"cat": 3, "cow": 1}})
    >>> tokenizer = BPETokenizer.train("a cat. a cat. a cow.", 259)
    >>> tokenizer.merges
    [(b' ', b'c'), (b' c', b'a'), (b' ca', b't')]
    >>> tiny.next_character_probs("a c")
    {'a': 0.75, 'o': 0.25}
    >>> next_token_probs(tiny, tokenizer, tokenizer.encode("a c")) == {ord("o"): 1.0}
    True
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np

from tinytorch_book.stories.grammar import StoryGrammar
from tinytorch_book.stories.oracle import Belief, Oracle, next_characters
from tinytorch_book.stories.rules import listed

__all__ = ["Tokenizer", "next_token_probs", "next_token_table"]

ENDS = " \n"  # a word ends before either of these
WORD_START = re.compile(rf"(?<=\S)(?=[{ENDS}])")  # and the next one begins there, with its space
Word = tuple[float, list[int], Belief]  # probability, tokens, what is believed once it has ended


class Tokenizer(Protocol):
    """Anything that cuts a text into integers, each word by itself."""

    def encode(self, text: str, /) -> list[int]:
        """The ids of a text."""

    def decode(self, ids: Any, /) -> str:
        """The text of ids."""


def next_token_probs(grammar: StoryGrammar, tokenizer: Tokenizer, ids: Any) -> dict[int, float]:
    r"""The exact distribution of the token that follows others, in the stories of a grammar.

    Along a story, the logarithms of these probabilities add up to those of its characters
    (`StoryGrammar.log_probs`): no model can expect a lower loss.

    Args:
        grammar: The grammar.
        tokenizer: A `BPETokenizer` or a `CharTokenizer`, or any other with `encode` and `decode`
            that never joins the end of a word with the space or the newline after it.
        ids: The tokens so far, `(n,)`, of a text that begins where a story begins; may be empty.

    Returns:
        The probabilities, which sum to 1, of the tokens that can follow, in the order of their ids.

    Raises:
        TypeError: The ids are not integers.
        IndexError: An id is outside the vocabulary.
        ValueError: The grammar cannot produce the text, or its stories are never cut like this; the
            message says where.

    Example:
        >>> from tinytorch.text.tokenization import CharTokenizer
        >>> tiny = StoryGrammar({"story": "a {pet}.\n", "pet": {"cat": 3, "cow": 1}})
        >>> letters = CharTokenizer(tiny.alphabet)
        >>> probs = next_token_probs(tiny, letters, letters.encode("a c"))
        >>> {letters.decode([i]): p for i, p in probs.items()}
        {'a': 0.75, 'o': 0.25}
    """
    text = tokenizer.decode(ids)
    given = np.asarray(ids, dtype=np.int64).tolist()
    weights = _following(grammar._oracle, tokenizer, given)
    if not weights:
        for _ in grammar._oracle.follow(text):
            pass  # raises where the text becomes impossible, if it does
        raise ValueError(wrong_cut(grammar._oracle, tokenizer, given))
    total = math.fsum(weights.values())
    return {token: weights[token] / total for token in sorted(weights)}


def next_token_table(
    grammar: StoryGrammar, tokenizer: Tokenizer, ids: Any, vocab_size: int
) -> np.ndarray:
    r"""The exact distribution of the next token after every token of a text, in one go.

    Args:
        grammar: As for `next_token_probs`.
        tokenizer: As for `next_token_probs`.
        ids: The tokens `(n,)` of a text that begins where a story begins.
        vocab_size: How many tokens there are.

    Returns:
        Probabilities `(n + 1, vocab_size)`: row `i` is what follows the first `i` tokens.

    Raises:
        TypeError: As for `next_token_probs`, as are the other errors.
        ValueError: The grammar cannot produce the text, or its stories are never cut like this.

    Example:
        >>> from tinytorch.text.tokenization import CharTokenizer
        >>> tiny = StoryGrammar({"story": "a {pet}.\n", "pet": {"cat": 3, "cow": 1}})
        >>> letters = CharTokenizer(tiny.alphabet)  # \n, space, full stop, a, c, o, t, w
        >>> next_token_table(tiny, letters, letters.encode("a c"), 8)[-1]
        array([0.  , 0.  , 0.  , 0.75, 0.  , 0.25, 0.  , 0.  ])
    """
    oracle = grammar._oracle
    table = np.zeros((len(ids) + 1, vocab_size))
    given = np.asarray(ids, dtype=np.int64).tolist()
    for row, fits in zip(table, words_at_every_token(oracle, tokenizer, given), strict=True):
        for token, p in _next_tokens(oracle, tokenizer, *fits).items():
            row[token] = p
        if not row.any():
            next_token_probs(grammar, tokenizer, given)  # raises, and names the position
    return table / table.sum(axis=1, keepdims=True)


def words_at_every_token(
    oracle: Oracle, tokenizer: Tokenizer, ids: list[int], first: int = 0
) -> Iterator[tuple[list[int], list[Word]]]:
    """After each token, from `first` on: the tokens of the current word, and all words cut so."""
    text = tokenizer.decode(ids)
    after = [oracle.story, *(belief for _, belief in oracle.follow(text, strict=False))]

    @cache
    def begun(start: int) -> tuple[list[int], list[Word]]:
        """The tokens before a word, which have one cut, and the words that can stand there."""
        words = words_to_come(oracle, after[start]) if start < len(after) else ()
        return tokenizer.encode(text[:start]), [
            (p, tokenizer.encode(w), end) for p, w, end in words
        ]

    for n in range(first, len(ids) + 1):
        so_far = tokenizer.decode(ids[:n])
        before, words = begun(max((m.start() for m in WORD_START.finditer(so_far)), default=0))
        last = ids[len(before) : n]
        cut_so = ids[: len(before)] == before
        yield last, [word for word in words if cut_so and word[1][: len(last)] == last]


def _next_tokens(
    oracle: Oracle,
    tokenizer: Tokenizer,
    last: list[int],
    words: list[Word],
) -> dict[int, float]:
    """The tokens that can follow those of an unfinished word, in proportion."""
    weights: dict[int, float] = defaultdict(float)
    for p, tokens, after in words:
        if tokens == last:  # the word is over
            for q, following, _ in words_to_come(oracle, after):
                weights[tokenizer.encode(following)[0]] += p * q
        else:
            weights[tokens[len(last)]] += p
    return weights


def _following(oracle: Oracle, tokenizer: Tokenizer, ids: Sequence[int]) -> dict[int, float]:
    """The tokens that can follow, in proportion; none if no story is cut like this."""
    (fits,) = words_at_every_token(oracle, tokenizer, list(ids), first=len(ids))
    return _next_tokens(oracle, tokenizer, *fits)


def words_to_come(
    oracle: Oracle, belief: Belief, begun: str = "", prob: float = 1.0
) -> Iterator[tuple[float, str, Belief]]:
    """Every (probability, word, belief after it) that can come, with the space before it."""
    ended = {}
    if begun and not begun[-1].isspace():
        ended = {key: p for key, p in belief.items() if key[0][0] in ENDS}
    if ended:
        over = math.fsum(ended.values())
        yield prob * over, begun, {key: p / over for key, p in ended.items()}
    for char in next_characters({key: p for key, p in belief.items() if key not in ended}):
        p, after = oracle.read(belief, char)
        yield from words_to_come(oracle, after, begun + char, prob * p)


def wrong_cut(oracle: Oracle, tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """The message that names the first token that no story is cut with."""

    def impossible(n: int) -> bool:
        return not _following(oracle, tokenizer, ids[: n + 1])

    wrong = bisect_left(range(len(ids)), True, key=impossible)  # and so are all longer ones
    allowed = sorted(_following(oracle, tokenizer, ids[:wrong]))
    before, token = tokenizer.decode(ids[:wrong]), tokenizer.decode(ids[wrong : wrong + 1])
    return (
        f"no story is cut with {token!r} as token {wrong}, after {before[-30:]!r}; "
        f"only {listed(tokenizer.decode([i]) for i in allowed)} can be there"
    )

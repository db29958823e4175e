r"""Byte-pair encoding in its plainest form, as a loop (Sennrich et al., 2016).

On bytes, as in Radford et al. (2019): `train` repeatedly merges the most frequent pair of
neighbouring tokens; `encode` applies the merges to another text in the same order; `decode` undoes
them. `bpe_fast.py` gives the same merges and tokens in less time.

    >>> merges = train([b"low", b" low", b" lower", b" lowest"], 4)
    >>> merges
    [(b'l', b'o'), (b'lo', b'w'), (b' ', b'low'), (b' low', b'e')]
    >>> encode(b" lows", merges)
    [258, 115]
    >>> decode([258, 115], merges)
    b' lows'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from tinytorch.text.token_ids import look_up

Pair = tuple[bytes, bytes]


def train(pieces: Iterable[bytes], num_merges: int) -> list[Pair]:
    """Repeatedly merge the most frequent pair; of several, the first in the text."""
    words = [[bytes([byte]) for byte in piece] for piece in pieces]
    merges: list[Pair] = []
    while len(merges) < num_merges:
        counts = Counter(pair for word in words for pair in pairwise(word))
        if not counts:
            break  # every piece has become one token
        best = max(counts, key=counts.__getitem__)
        merges.append(best)
        words = [merge(word, best) for word in words]
    return merges


def merge(word: Iterable[bytes], pair: Pair) -> list[bytes]:
    """Join the two tokens of a pair wherever they are neighbours, from left to right."""
    merged: list[bytes] = []
    for token in word:
        merged.append(token)
        if tuple(merged[-2:]) == pair:
            merged[-2:] = [pair[0] + pair[1]]
    return merged


def encode(piece: bytes, merges: Sequence[Pair]) -> list[int]:
    """The ids of a piece: its bytes, merged in the order of the merges."""
    tokens = [bytes([byte]) for byte in piece]
    for pair in merges:
        tokens = merge(tokens, pair)
    ids = {token: i for i, token in enumerate(_vocabulary(merges))}
    return [ids[token] for token in tokens]


def decode(ids: Iterable[int], merges: Sequence[Pair]) -> bytes:
    """The bytes of all the ids, one after another.

    Raises:
        IndexError: there is no token with this id.
    """
    tokens = dict(enumerate(_vocabulary(merges)))
    return b"".join(look_up(list(ids), tokens))


def _vocabulary(merges: Iterable[Pair]) -> list[bytes]:
    """The bytes of every id: the 256 single bytes, then the result of each merge."""
    return [bytes([byte]) for byte in range(256)] + [left + right for left, right in merges]

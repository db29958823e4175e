"""Learning the merges of byte-pair encoding: the pair seen most often becomes one token, again.

Counting every pair of a text after every merge would take hours. Three observations make it
seconds: a word that occurs a thousand times is kept once, with its count; a merge changes the
counts only of the pairs beside it; and the count of a pair can only fall once both its tokens
exist, for every later merge removes some of them. So a heap with counts that are out of date is
never too low, and looking again at what comes out on top is enough.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping

__all__ = ["learn_merges"]

Pair = tuple[int, int]
_GAP = -1  # between two pieces, and where a token was merged into the one before it


def learn_merges(piece_counts: Mapping[bytes, int], num_merges: int) -> list[tuple[bytes, bytes]]:
    """The merges of byte-pair encoding (Sennrich et al., 2016), on bytes, in their order.

    The most frequent pair is merged; of several equally frequent ones, the one that comes first in
    the text as it stands. Pairs that overlap, as in "aaa", all count; the merge goes from left to
    right.

    Args:
        piece_counts: how often each piece (roughly a word) occurs, in the order in which they first
            occur in the text. No merge crosses from one piece to the next.
        num_merges: how many merges to learn.

    Returns:
        The two sides of each merge. They are fewer than `num_merges` if every piece has become one
        token before.

    Example:
        >>> learn_merges({b"low": 5, b"lowest": 2, b"newer": 6, b"wider": 3}, 3)
        [(b'e', b'r'), (b'l', b'o'), (b'lo', b'w')]
    """
    text = _LinkedTokens(piece_counts)
    names = [bytes([byte]) for byte in range(256)]
    heap = text.candidates(list(text.counts))
    heapq.heapify(heap)
    merges: list[tuple[bytes, bytes]] = []
    while heap and len(merges) < num_merges:
        fallen, _, pair = heapq.heappop(heap)  # the count is negative: the smallest comes first
        if -fallen != text.counts[pair]:  # out of date: back to where it belongs now
            for candidate in text.candidates([pair]):
                heapq.heappush(heap, candidate)
            continue
        a, b = names[pair[0]], names[pair[1]]
        merges.append((a, b))
        for candidate in text.candidates(text.merge(pair, len(names))):
            heapq.heappush(heap, candidate)
        names.append(a + b)
    return merges


class _LinkedTokens:
    """The different pieces of a text as one chain of tokens, with the pairs counted.

    Attributes:
        counts: how often each pair stands in the text.
        places: where each pair stands, from left to right; some places may be out of date.
    """

    def __init__(self, piece_counts: Mapping[bytes, int]) -> None:
        self.token, self.weight = [_GAP], [0]
        for piece, count in piece_counts.items():
            self.token += [*piece, _GAP]
            self.weight += [count] * (len(piece) + 1)
        length = len(self.token)
        self.left, self.right = list(range(-1, length - 1)), list(range(1, length + 1))
        self.counts: Counter[Pair] = Counter()
        self.places: defaultdict[Pair, deque[int]] = defaultdict(deque)
        for place in range(1, length - 1):
            self._add(place)

    def candidates(self, pairs: Iterable[Pair]) -> list[tuple[int, int, Pair]]:
        """Entries for the heap: the most frequent pair first, then the one that comes first."""
        return [
            (-self.counts[pair], self._first(pair), pair) for pair in pairs if self.counts[pair]
        ]

    def merge(self, pair: Pair, new: int) -> list[Pair]:
        """Replace a pair by a new token wherever it stands; returns the pairs that came to be."""
        came: dict[Pair, None] = {}  # a set that keeps its order
        for place in self.places.pop(pair):
            if not self._stands(pair, place):
                continue
            before, second = self.left[place], self.right[place]
            after = self.right[second]
            self._remove(before)
            self._remove(second)
            self.token[place], self.token[second] = new, _GAP
            self.right[place], self.left[after] = after, place
            came[self._add(before)] = None
            came[self._add(place)] = None
        del self.counts[pair]
        return [pair for pair in came if _GAP not in pair]

    def _pair(self, place: int) -> Pair:
        return self.token[place], self.token[self.right[place]]

    def _stands(self, pair: Pair, place: int) -> bool:
        return self.token[place] == pair[0] and self.token[self.right[place]] == pair[1]

    def _first(self, pair: Pair) -> int:
        """Where the pair stands first; places that are out of date are dropped on the way."""
        places = self.places[pair]
        while not self._stands(pair, places[0]):
            places.popleft()
        return places[0]

    def _add(self, place: int) -> Pair:
        pair = self._pair(place)
        if _GAP not in pair:
            self.counts[pair] += self.weight[place]
            self.places[pair].append(place)
        return pair

    def _remove(self, place: int) -> None:
        pair = self._pair(place)
        if _GAP not in pair:
            self.counts[pair] -= self.weight[place]

"""Byte-pair encoding made fast: learning the merges, and applying them.

The loop in `tinytorch.text.bpe` shows what byte-pair encoding is; the functions here give exactly
the same merges and tokens, as the tests check. They are what `BPETokenizer` uses.
"""

import heapq
import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping

IdPair = tuple[int, int]
_GAP = -1  # between two pieces, and where a token has been merged into the one before it


def learn_merges(piece_counts: Mapping[bytes, int], num_merges: int) -> list[tuple[bytes, bytes]]:
    """The merges of byte-pair encoding, in order (Sennrich et al., 2016, on bytes).

    The most frequent pair is merged; of several equally frequent pairs, the one that occurs first
    in the text as it stands. Overlapping pairs, as in "aaa", all count; they are merged from left
    to right.

    Counting every pair again after every merge would take hours. Three observations make it
    seconds: a word that occurs a thousand times is kept once, with its count; a merge changes only
    the counts of the pairs beside it; and once both its tokens exist, the count of a pair can only
    fall. So an outdated entry of the heap is never too low, and checking the top entry is enough.

    Args:
        piece_counts: how often each piece (roughly a word) occurs, in the order of first
            occurrence. No merge crosses from one piece into the next.
        num_merges: how many merges to learn.

    Returns:
        The two sides of each merge: fewer than `num_merges` if every piece has become one token.

    Example:
        >>> learn_merges({b"low": 5, b"lowest": 2, b"newer": 6, b"wider": 3}, 3)
        [(b'e', b'r'), (b'l', b'o'), (b'lo', b'w')]
    """
    text = _LinkedTokens(piece_counts)
    names = [bytes([byte]) for byte in range(256)]
    heap = sorted(text.candidates(list(text.counts)))
    merges: list[tuple[bytes, bytes]] = []
    while heap and len(merges) < num_merges:
        negative_count, _, pair = heapq.heappop(heap)  # the smallest, so the most frequent pair
        if -negative_count != text.counts[pair]:  # outdated: push it back with its current count
            changed = [pair]
        else:
            changed = text.merge(pair, len(names))
            merges.append((names[pair[0]], names[pair[1]]))
            names.append(names[pair[0]] + names[pair[1]])
        for candidate in text.candidates(changed):
            heapq.heappush(heap, candidate)
    return merges


class _LinkedTokens:
    """The distinct pieces of a text as one linked list of tokens, with the pairs counted.

    Attributes:
        counts: how often each pair occurs.
        positions: where each pair occurs, from left to right; some may be outdated.
    """

    def __init__(self, piece_counts: Mapping[bytes, int]) -> None:
        self.token, self.weight = [_GAP], [0]
        for piece, count in piece_counts.items():
            self.token += [*piece, _GAP]
            self.weight += [count] * (len(piece) + 1)
        length = len(self.token)
        self.left, self.right = list(range(-1, length - 1)), list(range(1, length + 1))
        self.counts: Counter[IdPair] = Counter()
        self.positions: defaultdict[IdPair, deque[int]] = defaultdict(deque)
        for position in range(1, length - 1):
            self._count(position)

    def candidates(self, pairs: Iterable[IdPair]) -> list[tuple[int, int, IdPair]]:
        """Entries of the heap: the most frequent pair first, then the one that comes first."""
        return [(-self.counts[p], self._first(p), p) for p in pairs if self.counts[p]]

    def merge(self, pair: IdPair, new: int) -> list[IdPair]:
        """Replace a pair by a new token wherever it occurs; returns the pairs this creates."""
        created: dict[IdPair, None] = {}  # a set that keeps its order
        for position in self.positions.pop(pair):
            second = self.right[position]
            if self._pair(position) != pair:
                continue
            before, after = self.left[position], self.right[second]
            self._count(before, -1)
            self._count(second, -1)
            self.token[position], self.token[second] = new, _GAP
            self.right[position], self.left[after] = after, position
            created[self._count(before)] = None
            created[self._count(position)] = None
        del self.counts[pair]
        return [pair for pair in created if _GAP not in pair]

    def _pair(self, position: int) -> IdPair:
        return self.token[position], self.token[self.right[position]]

    def _first(self, pair: IdPair) -> int:
        """The first position of a pair; outdated positions are dropped on the way."""
        positions = self.positions[pair]
        while self._pair(positions[0]) != pair:
            positions.popleft()
        return positions[0]

    def _count(self, position: int, sign: int = 1) -> IdPair:
        """Count the pair at a position, or with a sign of -1 remove it from the count."""
        pair = self._pair(position)
        if _GAP not in pair:
            self.counts[pair] += sign * self.weight[position]
            if sign > 0:
                self.positions[pair].append(position)
        return pair


def join_by_rank(
    piece: bytes,
    ranks: Mapping[bytes, int],
    below: float = math.inf,
    merges: Mapping[tuple[bytes, bytes], int] | None = None,
) -> list[bytes]:
    """Cut a piece into tokens: starting from bytes, join the neighbours with the lowest rank.

    Of equal ranks, the leftmost pair is joined first. A heap holds the next pair, so that a piece
    of n bytes costs O(n log n), and a page without a single space is no problem.

    Args:
        piece: the bytes.
        ranks: the rank of every token; neighbours can be joined if their concatenation has one.
        below: use only the ranks below this one.
        merges: the rank of every pair that can be joined, if not every pair that is a token can.

    Returns:
        The tokens; their concatenation is the piece.

    Example:
        >>> join_by_rank(b"lower", {b"lo": 256, b"low": 257, b"er": 258, b"we": 259})
        [b'low', b'er']
    """
    length = len(piece)
    end = list(range(1, length + 1))  # where the token that begins here ends
    begin = list(range(-1, length))  # where the token that ends here begins
    heap: list[tuple[int, int, int]] = []

    def consider(first: int) -> None:
        second = end[first]
        if second < length:
            last = end[second]
            rank = ranks.get(piece[first:last])
            if merges is not None and rank is not None:
                rank = merges.get((piece[first:second], piece[second:last]))
            if rank is not None and rank < below:
                heapq.heappush(heap, (rank, first, last))

    for first in range(length):
        consider(first)
    while heap:
        _, first, last = heapq.heappop(heap)
        second = end[first]
        if second == length or end[second] != last:
            continue  # one of the two has since been joined with another
        end[first], end[second], begin[last] = last, length, first
        consider(first)
        if first:
            consider(begin[first])
    tokens, first = [], 0
    while first < length:
        tokens.append(piece[first : end[first]])
        first = end[first]
    return tokens

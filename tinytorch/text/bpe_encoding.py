"""Joining the bytes of a piece to tokens, in the order in which the merges were learned."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping

__all__ = ["join_by_rank"]


def join_by_rank(piece: bytes, ranks: Mapping[bytes, int], below: float = math.inf) -> list[bytes]:
    """Cut a piece into tokens: bytes first, then the neighbours with the lowest rank are joined.

    Of equal ranks, the leftmost pair is joined first. A heap knows the next pair, so that a piece
    of n bytes costs of the order of n log n, and a page without a space is no problem.

    Args:
        piece: the bytes.
        ranks: the rank of every token; neighbours can be joined if what they make has one.
        below: use only the ranks below this one.

    Returns:
        The tokens, which joined are the piece.

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
            rank = ranks.get(piece[first : end[second]])
            if rank is not None and rank < below:
                heapq.heappush(heap, (rank, first, end[second]))

    for first in range(length):
        consider(first)
    while heap:
        _, first, last = heapq.heappop(heap)
        second = end[first]
        if second == length or end[second] != last:
            continue  # one of the two has been joined with another meanwhile
        end[first], end[second], begin[last] = last, length, first
        consider(first)
        if first:
            consider(begin[first])
    tokens, first = [], 0
    while first < length:
        tokens.append(piece[first : end[first]])
        first = end[first]
    return tokens

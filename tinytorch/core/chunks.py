"""Large arrays, processed in pieces.

An elementwise formula of eight steps reads and writes an array eight times. On a large array, every
step waits for memory; on a piece that fits the cache, only the first does.
"""

from collections.abc import Iterator

CHUNK = 1 << 16  # elements: a quarter of a MiB in float32, so that several pieces fit the cache


def chunks(length: int, row_size: int = 1) -> Iterator[slice]:
    """Slices that cover `0..length - 1` in order, each of at most `CHUNK` elements.

    Args:
        length: how many rows there are.
        row_size: how many elements each row has; a slice holds at least one row.

    Example:
        >>> list(chunks(100_000))
        [slice(0, 65536, None), slice(65536, 131072, None)]
        >>> list(chunks(3, row_size=40_000))
        [slice(0, 1, None), slice(1, 2, None), slice(2, 3, None)]
    """
    step = max(1, CHUNK // max(1, row_size))
    return (slice(start, start + step) for start in range(0, length, step))

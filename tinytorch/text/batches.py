"""From one long text to batches: what a language model is trained and tested on.

An example is a *window*: `seq_len` tokens to read and, shifted by one, the `seq_len` tokens to
predict. A text has a window at each position that leaves room for one.

    >>> inputs, targets = windows([3, 1, 4, 1, 5, 9, 2], seq_len=3)
    >>> inputs.tolist(), targets.tolist()
    ([[3, 1, 4], [1, 5, 9]], [[1, 4, 1], [5, 9, 2]])
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NoReturn
from zlib import crc32

import numpy as np

from tinytorch.core.arguments import check_ids, check_sizes
from tinytorch.core.types import TokenIds
from tinytorch.text.token_ids import as_token_ids, check_natural

_PIECE = 1 << 16  # how many numbers are read at once


class Batches:
    """Random windows of a text, one batch for every step.

    `batches[step]` depends only on the seed and the step, so the step number is all that is needed
    to resume a training run. The batches never end: `Batches` has no length, and a loop runs over
    steps:
    ``for step in range(100): inputs, targets = batches[step]``.

    Args:
        tokens: integer ids `(n,)`, copied; but a memory map (`np.memmap`) stays on disk, and
            its file must not change.
        batch_size: windows in a batch.
        seq_len: tokens in a window.
        seed: which windows are drawn, an integer of at least 0.
        starts: positions at which a window may begin, for instance those of the newlines; None
            for anywhere. Positions too near the end for a whole window are left out.

    Raises:
        TypeError: the ids are not integers.
        ValueError: the text is too short for one window.
        IndexError: a start lies outside the text.

    Example:
        >>> batches = Batches(np.arange(100), batch_size=2, seq_len=4, seed=0)
        >>> inputs, targets = batches[0]
        >>> inputs.shape, bool((targets == inputs + 1).all())
        ((2, 4), True)
    """

    def __init__(
        self,
        tokens: TokenIds,
        batch_size: int,
        seq_len: int,
        seed: int = 0,
        starts: TokenIds | None = None,
    ) -> None:
        check_sizes(batch_size=batch_size, seq_len=seq_len)
        check_natural(seed, "Batches: seed")
        self.tokens = as_token_ids(tokens)
        self.batch_size, self.seq_len, self.seed = batch_size, seq_len, seed
        self._starts = _starts_that_fit(self.tokens, seq_len, starts)

    def __getitem__(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """The inputs and targets of a step, each `(batch_size, seq_len)`."""
        check_natural(step, "Batches: step", IndexError)
        rng = np.random.default_rng([self.seed, step])
        chosen = rng.integers(len(self._starts), size=self.batch_size)
        if not isinstance(self._starts, range):  # a range begins at 0
            chosen = self._starts[chosen]
        return _cut(self.tokens, chosen, self.seq_len)

    @property
    def starts(self) -> np.ndarray:
        """The positions at which a window may begin, int64."""
        return _array(self._starts)

    @cached_property
    def checksum(self) -> int:
        """The CRC-32 of the tokens and of the starts as int64, computed once, piece by piece."""
        total = 0
        for numbers in (self.tokens, self._starts):
            for at in range(0, len(numbers), _PIECE):
                total = crc32(_array(numbers[at : at + _PIECE]).data, total)
        return total

    def __iter__(self) -> NoReturn:
        remedy = "`for step in range(100): inputs, targets = batches[step]`"
        raise TypeError(f"Batches has no end; loop over the steps you want, as in {remedy}")


def windows(
    tokens: TokenIds, seq_len: int, starts: TokenIds | None = None, limit: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Windows in the order of the text, for evaluation.

    Args:
        tokens: integer ids `(n,)`.
        seq_len: tokens in a window.
        starts: where the windows begin; None for one after another, without overlap. A remainder
            shorter than a window is left out.
        limit: at most this many windows, the first ones.

    Returns:
        Inputs and targets, each `(number of windows, seq_len)`.

    Raises:
        TypeError: the ids are not integers.
        ValueError: the text is too short for one window.
        IndexError: a start lies outside the text.
    """
    check_sizes(seq_len=seq_len, **({} if limit is None else {"limit": limit}))
    ids = as_token_ids(tokens)
    fitting = _starts_that_fit(ids, seq_len, starts)
    chosen = fitting[:: seq_len if starts is None else 1][:limit]
    return _cut(ids, _array(chosen), seq_len)


# Helpers -------------------------------------------------------------------------------------


def _starts_that_fit(ids: np.ndarray, seq_len: int, starts: TokenIds | None) -> np.ndarray | range:
    """The starts that leave room for a window and the token after it; a range if they are all."""
    fitting: Any = range(max(0, len(ids) - seq_len))
    if starts is not None:
        fitting = np.asarray(starts).ravel()
        if fitting.size:
            check_ids(fitting, len(ids), "start", "starts are positions in the text")
        fitting = fitting.astype(np.int64)
        fitting = fitting[fitting + seq_len < len(ids)]
    if not len(fitting):
        what = f"no start leaves room for {seq_len} tokens and the next in a text of {len(ids)}"
        raise ValueError(f"{what}; use a longer text or a smaller seq_len")
    return fitting


def _array(numbers: np.ndarray | range) -> np.ndarray:
    if isinstance(numbers, range):
        return np.arange(numbers.start, numbers.stop, numbers.step, dtype=np.int64)
    return np.asarray(numbers, dtype=np.int64)


def _cut(ids: np.ndarray, starts: np.ndarray, seq_len: int) -> tuple[np.ndarray, np.ndarray]:
    rows = ids[starts[:, None] + np.arange(seq_len + 1)]  # (windows, seq_len + 1)
    rows = rows.astype(np.int64, copy=False)  # those of a memory map may be smaller
    return rows[:, :-1], rows[:, 1:]

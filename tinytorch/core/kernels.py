"""Products, exp and tanh: NumPy's own, or in a browser those of a small library.

Natively a product is computed by a BLAS. In the reader's browser NumPy has none, nor vector
instructions for exp and tanh: a product there took 20 times as long, a tanh 70 times.
`wasm/kernels.c` fills the gap, for float32. `make kernels` compiles it, twice: the faster one
needs a fused multiply-add, which some browsers lack.

A matrix of 8-bit integers is multiplied without a float32 copy of all of it: a few of its rows are
converted at a time, into memory that fits the cache. `matmul_int8` and `matmul_int8_transposed`
are the functions below that do so; in a browser the library replaces them when `x` has at most
eight rows, and converts each number as it is read. `matmul_blocks` likewise multiplies by rows of
blocks (`block_formats`): the library rounds an input to 16 bits, in blocks too, and sums integers.

Attributes:
    matmul: `np.matmul`, or its replacement: the same values except for rounding.
    dot: the same for two matrices; natively `np.dot`, which is faster for a single row.
    exp: `np.exp`, or its replacement, as `exp(x)` or `exp(x, out)`.
    tanh: `np.tanh`, likewise.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType
from typing import Any

import numpy as np

from tinytorch.core.block_formats import decode_blocks

LIBRARIES = ("kernels_relaxed.wasm", "kernels.wasm")  # the first that can be loaded is used
FAST_BLOCKS = ("Q4_1", "Q8_0")  # what the library multiplies as it is stored
BLOCK = 1 << 18  # how many numbers of an 8-bit matrix are converted at a time: 1 MB of float32
_FOLDER = os.path.join(os.path.dirname(__file__), "wasm")


def library(platform: str = sys.platform) -> ModuleType:
    """The compiled library in a browser; elsewhere, or if it cannot be loaded, NumPy."""
    if platform != "emscripten":
        return np
    for name in LIBRARIES:
        loader = ExtensionFileLoader("kernels", os.path.join(_FOLDER, name))
        try:
            found: Any = module_from_spec(spec_from_loader("kernels", loader))  # type: ignore[arg-type]
        except ImportError as error:
            reason = str(error).partition("\n")[0]
        else:
            found.use(np.ndarray, np.empty, np.dtype(np.float32), np.matmul, np.exp, np.tanh,
                      int8_in_blocks, int8_transposed_in_blocks,
                      *(partial(blocks_in_numpy, kind=kind) for kind in FAST_BLOCKS))  # fmt: skip
            return found
    follows = "NumPy multiplies matrices instead, some twenty times as slowly"
    told = f"the fast products cannot be loaded ({reason}); {follows}"
    warnings.warn(told, RuntimeWarning, stacklevel=2)
    return np


def int8_in_blocks(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    """`x @ q`, of float32 and 8-bit integers.

    Args:
        x: `(n, rows)`.
        q: `(rows, columns)`, int8 or another narrow dtype, such as float16.

    Returns:
        `(n, columns)`, float32.
    """
    x = _operand(x, q, "matmul_int8", 0)
    total = np.zeros((len(x), q.shape[1]), np.float32)
    for rows, block in float32_blocks(q):
        total += dot(x[:, rows], block)
    return total


def int8_transposed_in_blocks(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    """`x @ q.T`, of float32 and 8-bit integers: each row of `x` by each row of `q`.

    Args:
        x: `(n, columns)`.
        q: `(rows, columns)`, int8 or another narrow dtype, such as float16.

    Returns:
        `(n, rows)`, float32.
    """
    x = _operand(x, q, "matmul_int8_transposed", 1)
    result = np.empty((len(x), len(q)), np.float32)
    for rows, block in float32_blocks(q):
        result[:, rows] = dot(x, block.T)
    return result


def blocks_in_numpy(x: np.ndarray, stored: np.ndarray, kind: str) -> np.ndarray:
    """`x @ W.T`, of float32 and a matrix in blocks, some rows of it at a time.

    Args:
        x: `(n, numbers)`.
        stored: uint8 `(rows, bytes)`, see `decode_blocks`.
        kind: the format of the blocks.

    Returns:
        `(n, rows)`, float32.
    """
    result = np.empty((len(x), len(stored)), np.float32)
    step = max(1, BLOCK // max(1, x.shape[1]))
    for first in range(0, len(stored), step):
        some = slice(first, first + step)
        result[:, some] = dot(x, decode_blocks(stored[some], kind).T)
    return result


def matmul_blocks(x: np.ndarray, stored: np.ndarray, kind: str) -> np.ndarray:
    """`blocks_in_numpy`, or in a browser its replacement for some kinds."""
    fast = getattr(_fast, f"matmul_{kind.lower()}", None)
    return blocks_in_numpy(x, stored, kind) if fast is None else fast(x, stored)


def float32_blocks(matrix: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """A matrix as float32, some rows at a time; each block reuses the memory of the last.

    The numbers are finite.
    """
    step = max(1, BLOCK // max(1, matrix.shape[1]))
    memory = np.empty((min(step, len(matrix)), matrix.shape[1]), np.float32)
    for first in range(0, len(matrix), step):
        part = matrix[first : first + step]
        block = memory[: len(part)]
        if part.dtype == np.float16:
            _widen_half(part, block)
        else:
            np.copyto(block, part)
        yield slice(first, first + len(part)), block


def _widen_half(part: np.ndarray, block: np.ndarray) -> None:
    """Copy finite float16 to float32, in half the time that NumPy takes (bench: float16).

    The bits of exponent and fraction keep their order and the sign goes to the front; the exponent
    counts from 15 in the one and from 127 in the other.
    """
    bits = block.view(np.int32)
    np.copyto(bits, part.view(np.int16))
    np.left_shift(bits, 13, out=bits)
    np.bitwise_and(bits, ~0x70001FFF, out=bits)  # what the sign of the int16 was spread over
    np.multiply(block, np.float32(2.0 ** (127 - 15)), out=block)


def _operand(x: np.ndarray, q: np.ndarray, name: str, axis: int) -> np.ndarray:
    """`x` in float32, if it fits axis `axis` of q."""
    x = np.asarray(x, np.float32)
    if x.ndim != 2 or q.ndim != 2 or x.shape[1] != q.shape[axis]:
        wanted = f"(n, {q.shape[axis]})" if q.ndim == 2 else "two matrices"
        raise ValueError(f"{name}: expected {wanted}, got shapes {x.shape} and {q.shape}")
    return x


_fast = library()
matmul, exp, tanh = _fast.matmul, _fast.exp, _fast.tanh
dot = np.dot if _fast is np else matmul
_8_bits = (int8_in_blocks, int8_transposed_in_blocks)
if _fast is not np:
    _8_bits = (_fast.matmul_int8, _fast.matmul_int8_transposed)
matmul_int8, matmul_int8_transposed = _8_bits

"""Numbers in blocks of 32, as GGUF files store weights in four, five or eight bits.

A block holds its own scale, a float16, and 32 small integers. In the formats that end in 0 a number
is `scale * (q - middle)`; in those that end in 1 it is `scale * q + smallest`, and the smallest
number of the block is a second float16. The integers of four bits lie two in a byte: those of the
first half of the block in the low halves of its 16 bytes, those of the second in the high ones. A
fifth bit of each lies apart, in four bytes (ggml, `ggml-common.h`, `block_q4_0` to `block_q8_0`).
"""

from __future__ import annotations

import numpy as np

from tinytorch.core import arguments

__all__ = ["BLOCK", "BLOCKS", "decode_blocks"]

BLOCK = 32  # numbers
_SCALE, _SMALLEST = ("scale", "<f2"), ("smallest", "<f2")
_FIFTH, _HALVES = ("fifth", "u1", 4), ("halves", "u1", 16)
BLOCKS = {
    "Q4_0": np.dtype([_SCALE, _HALVES]),
    "Q4_1": np.dtype([_SCALE, _SMALLEST, _HALVES]),
    "Q5_0": np.dtype([_SCALE, _FIFTH, _HALVES]),
    "Q5_1": np.dtype([_SCALE, _SMALLEST, _FIFTH, _HALVES]),
    "Q8_0": np.dtype([_SCALE, ("integers", "i1", BLOCK)]),
}


def decode_blocks(stored: np.ndarray, kind: str) -> np.ndarray:
    """The numbers of rows of blocks.

    Args:
        stored: bytes, uint8 `(..., bytes)`, whole blocks in each row.
        kind: one of `BLOCKS`.

    Returns:
        float32 `(..., numbers)`.

    Raises:
        ValueError: another kind, or a row does not end with a block.

    Example:
        >>> block = np.zeros(1, BLOCKS["Q4_1"])
        >>> block["scale"], block["smallest"], block["halves"][0, :2] = 0.5, -1, (0x52, 0x10)
        >>> decode_blocks(block.view(np.uint8), "Q4_1")[[0, 1, 16, 17]].tolist()
        [0.0, -1.0, 1.5, -0.5]
    """
    arguments.check_choice(kind, "decode_blocks: kind", tuple(BLOCKS))
    layout = BLOCKS[kind]
    if stored.shape[-1] % layout.itemsize:
        told = f"rows of {stored.shape[-1]} bytes are no blocks of {layout.itemsize} ({kind})"
        raise ValueError(f"decode_blocks: {told}")
    blocks = np.ascontiguousarray(stored).view(layout)  # (..., blocks)
    with np.errstate(invalid="ignore", over="ignore"):  # a scale may be infinite, or no number
        numbers = _integers(blocks, names_of(kind)) * blocks["scale"].astype(np.float32)[..., None]
        if "smallest" in names_of(kind):
            numbers += blocks["smallest"].astype(np.float32)[..., None]
    return numbers.reshape(*stored.shape[:-1], -1)


def names_of(kind: str) -> tuple[str, ...]:
    """The names of what a block of this kind holds."""
    return BLOCKS[kind].names or ()


def _integers(blocks: np.ndarray, fields: tuple[str, ...]) -> np.ndarray:
    """The integers of each block, less the middle where there is no smallest number."""
    if "integers" in fields:
        return blocks["integers"]
    halves = blocks["halves"]
    integers = np.concatenate([halves & 15, halves >> 4], axis=-1).astype(np.int8)
    if "fifth" in fields:
        integers |= np.unpackbits(blocks["fifth"], axis=-1, bitorder="little").astype(np.int8) << 4
    if "smallest" not in fields:
        integers -= 16 if "fifth" in fields else 8
    return integers

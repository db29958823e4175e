"""GGUF files, good ones and broken ones, made without the code under test."""

import math
import struct

import numpy as np

__all__ = ["CODES", "gguf_bytes", "random_stored", "write_gguf"]

# Code, numbers of a block and its bytes, and where in a block its half-precision numbers end.
CODES = {
    "F32": (0, 1, 4, 0),
    "F16": (1, 1, 2, 0),
    "BF16": (30, 1, 2, 0),
    "Q8_0": (8, 32, 34, 2),
    "Q4_0": (2, 32, 18, 2),
    "Q4_1": (3, 32, 20, 4),
    "Q5_0": (6, 32, 22, 2),
    "Q5_1": (7, 32, 24, 4),
    "Q6_K": (14, 256, 210, 0),
}


def write_gguf(path, metadata, tensors, **options):
    """Write a file and return its path; see `gguf_bytes`."""
    path.write_bytes(gguf_bytes(metadata, tensors, **options))
    return path


def gguf_bytes(metadata, tensors, *, version=3):
    """The bytes of a file, as the format's description has them.

    `tensors` maps names to arrays, stored as float32, or to `(kind, shape, stored)`, the shape as
    NumPy has it; `metadata` maps keys to truth values, numbers, strings or lists of one of these.
    """
    alignment = metadata.get("general.alignment", 32)
    header = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    header += b"".join(text(key) + value(what) for key, what in metadata.items())
    content = b""
    for name, tensor in tensors.items():
        if isinstance(tensor, np.ndarray):
            tensor = "F32", tensor.shape, tensor.astype("<f4").tobytes()
        kind, shape, stored = tensor
        lengths = struct.pack(f"<I{len(shape)}Q", len(shape), *reversed(shape))
        header += text(name) + lengths + struct.pack("<IQ", CODES[kind][0], len(content))
        content += padded(bytes(stored), alignment)
    return padded(header, alignment) + content


def random_stored(kind, shape, seed=0):
    """Stored bytes of a tensor of this kind: any integers, normal scales, near 0.1 in size."""
    _, count, size, halves = CODES[kind]
    rng = np.random.default_rng(seed)
    if count == 1:
        numbers = (0.1 * rng.normal(size=shape)).astype("<f4")
        halved = numbers.view("<u2")[..., 1::2]  # the upper half of a float32 is BF16
        return {"F32": numbers, "F16": numbers.astype("<f2"), "BF16": halved}[kind].tobytes()
    blocks = rng.integers(0, 256, (math.prod(shape) // count, size), np.uint8)
    scales = (0.1 * rng.normal(size=(len(blocks), halves // 2))).astype("<f2")
    blocks[:, :halves] = scales.view(np.uint8)
    return blocks.tobytes()


def padded(content, alignment):
    return content + b"\0" * (-len(content) % alignment)


def text(content):
    content = content.encode() if isinstance(content, str) else content
    return struct.pack("<Q", len(content)) + content


def value(what):
    """A value after its type."""
    if isinstance(what, list):
        parts = [value(part) for part in what] or [value(0)]
        body = b"".join(part[4:] for part in parts) if what else b""
        return struct.pack("<I", 9) + parts[0][:4] + struct.pack("<Q", len(what)) + body
    if isinstance(what, (str, bytes)):
        return struct.pack("<I", 8) + text(what)
    if isinstance(what, bool):
        return struct.pack("<I?", 7, what)
    if isinstance(what, float):
        return struct.pack("<If", 6, what)
    if 0 <= what < 2**32:
        return struct.pack("<II", 4, what)
    return struct.pack("<Iq", 11, what) if what < 2**63 else struct.pack("<IQ", 10, what)

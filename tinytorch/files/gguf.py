"""Quantized models on disk: the GGUF format of llama.cpp, read with NumPy alone.

A file is a header and the numbers (ggml, "GGUF", docs/gguf.md): four letters, a version and two
counts; the metadata, which are the model's sizes and its vocabulary; the name, shape, kind and
position of each tensor; then the tensors, each at a multiple of the alignment. Most kinds store 32
numbers as one block: small integers, and one scale for all of them.

The file is mapped into memory, and no tensor is read before it is asked for. A damaged file is
refused before memory is allocated for what it declares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import numpy as np

from tinytorch.core.block_formats import BLOCKS, decode_blocks
from tinytorch.files.atomic_files import StrPath, readable_file
from tinytorch.files.safetensors import other_file, short, widened

__all__ = ["GGUF", "GGUFTensor", "dequantize"]

Value = int | float | bool | str | list
Part = TypeVar("Part")

_ALIGNMENTS = [2**n for n in range(3, 17)]
_MOST_VALUES = 2**24  # of one list; vocabularies have less than 2**19
_STRING, _LIST = 8, 9  # the types of metadata that are no numbers
_TYPES = "0 u1, 1 i1, 2 <u2, 3 <i2, 4 <u4, 5 <i4, 6 <f4, 7 ?, 10 <u8, 11 <i8, 12 <f8"
_NUMBERS = {int(code): dtype for code, dtype in map(str.split, _TYPES.split(","))}

# Every kind that a file may declare: its code, its name, the numbers of a block and its bytes.
_KINDS = """0 F32 1 4, 1 F16 1 2, 2 Q4_0 32 18, 3 Q4_1 32 20, 6 Q5_0 32 22, 7 Q5_1 32 24,
8 Q8_0 32 34, 9 Q8_1 32 40, 10 Q2_K 256 84, 11 Q3_K 256 110, 12 Q4_K 256 144, 13 Q5_K 256 176,
14 Q6_K 256 210, 15 Q8_K 256 292, 16 IQ2_XXS 256 66, 17 IQ2_XS 256 74, 18 IQ3_XXS 256 98,
19 IQ1_S 256 50, 20 IQ4_NL 32 18, 21 IQ3_S 256 110, 22 IQ2_S 256 82, 23 IQ4_XS 256 136, 24 I8 1 1,
25 I16 1 2, 26 I32 1 4, 27 I64 1 8, 28 F64 1 8, 29 IQ1_M 256 56, 30 BF16 1 2, 34 TQ1_0 256 54,
35 TQ2_0 256 66, 39 MXFP4 32 17, 40 NVFP4 64 36, 41 Q1_0 128 18"""
_NAMES = {int(kind.split()[0]): kind.split()[1] for kind in _KINDS.split(",")}
_BLOCKS = {name: (int(n), int(size)) for _, name, n, size in map(str.split, _KINDS.split(","))}

_WIDENED = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}
DECODED = (*_WIDENED, *BLOCKS)


# -------------------------------------------------------------------------------- what one reads


class GGUFTensor(NamedTuple):
    """What the header says of a tensor: its shape as NumPy has it, `begin` counted from the file's.

    Example:
        >>> GGUFTensor("output_norm.weight", (576,), "F32", nbytes=2304, begin=1024).kind
        'F32'
    """

    name: str
    shape: tuple[int, ...]
    kind: str
    nbytes: int
    begin: int


class GGUF:
    r"""The metadata and the tensors of a GGUF file, which must not change while it is open.

    It has `metadata`, a dictionary of numbers, truth values, strings and lists of these; and
    `tensors`, a dictionary of `GGUFTensor`. Versions 2 and 3 are read, of little-endian order.
    Where the file system cannot map a file, it is read whole.

    Args:
        path: the file.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is not a GGUF file, is damaged, or has a kind of tensor or an array of arrays
            that is not known here. The message names the file and the part.

    Example:
        >>> import pathlib, struct, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "one.gguf"
        >>> header = b"GGUF" + struct.pack("<IQQ", 3, 1, 0)  # version, tensors, metadata
        >>> entry = struct.pack("<Q1sIQIQ", 1, b"w", 1, 2, 1, 0)  # name, shape, kind, offset
        >>> numbers = np.float16([1, 2]).tobytes()
        >>> _ = path.write_bytes((header + entry).ljust(64, b"\0") + numbers)
        >>> with GGUF(path) as file:
        ...     file.tensors["w"]
        ...     file.read("w"), file.stored("w")
        GGUFTensor(name='w', shape=(2,), kind='F16', nbytes=4, begin=64)
        (array([1., 2.], dtype=float32), array([ 0, 60,  0, 64], dtype=uint8))
    """

    metadata: dict[str, Value]
    tensors: dict[str, GGUFTensor]

    def __init__(self, path: StrPath):
        self._path = path
        with _named(path):
            self._content: np.ndarray | None = _mapped(path)
            self.metadata, self.tensors = _read_header(self._content)

    def read(self, name: str) -> np.ndarray:
        """Decode a tensor: a new float32 array of its shape.

        Raises:
            ValueError: there is no such tensor, its kind is not decoded here, or it does not fit
                into memory.
        """
        stored, tensor = self.stored(name), self.tensors[name]
        with _named(f"{self._path}: tensor {short(name)}"):
            return dequantize(stored, tensor.kind, tensor.shape)

    def stored(self, name: str) -> np.ndarray:
        """The bytes of a tensor as the file has them: uint8, a view of the map that keeps it open.

        Raises:
            ValueError: there is no such tensor, or the file is closed.
        """
        if self._content is None:
            raise ValueError(f"{self._path} is closed; open it again to read {short(name)}")
        if name not in self.tensors:
            known = f"the file has {short(list(self.tensors))}"
            raise ValueError(f"{self._path}: there is no tensor {short(name)}; {known}")
        begin = self.tensors[name].begin
        return self._content[begin : begin + self.tensors[name].nbytes]

    def close(self) -> None:
        """Forget the map; the system closes it when no array of `stored` is used any more."""
        self._content = None

    def __enter__(self) -> GGUF:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def dequantize(stored: np.ndarray | bytes, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Decode the stored bytes of a tensor; of blocks, see `tinytorch.core.block_formats`.

    Args:
        stored: its bytes, uint8 `(nbytes,)` or bytes.
        kind: F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0 or Q5_1.
        shape: of the numbers; in the kinds of blocks the last length is a multiple of 32.

    Returns:
        A new float32 array of this shape.

    Raises:
        ValueError: another kind, or another number of bytes than the shape needs.

    Example:
        >>> block = np.float16([0.5, -1]).tobytes() + bytes([0x32] * 16)  # 2 and 3
        >>> dequantize(block, "Q4_1", (32,))[[0, 15, 16, 31]]
        array([0. , 0. , 0.5, 0.5], dtype=float32)
    """
    if kind not in DECODED:
        known = f"only {', '.join(DECODED)}: take a file of the model in one of these"
        raise ValueError(f"the kind {short(kind)} is not decoded here, {known}")
    needed, content = _stored_size(kind, shape), np.frombuffer(stored, np.uint8)
    if content.size != needed:
        raise ValueError(f"{kind} of shape {shape} takes {needed} bytes, got {content.size}")
    if kind in BLOCKS:
        return decode_blocks(content, kind).reshape(shape)
    numbers = content.view(_WIDENED[kind])
    wide = widened(numbers) if kind == "BF16" else numbers.astype(np.float32)
    return wide.reshape(shape)


def _stored_size(kind: str, shape: tuple[int, ...]) -> int:
    """How many bytes numbers of this kind and shape take."""
    count, size = _BLOCKS[kind]
    if count > 1 and (not shape or shape[-1] % count):
        rest = f"the last length of {short(shape)} is no multiple"
        raise ValueError(f"{kind} stores blocks of {count} numbers, and {rest}")
    return math.prod(shape) // count * size


# ---------------------------------------------------------------------------------------- header


def _mapped(path: StrPath) -> np.ndarray:
    """The bytes of a file, which the system reads when they are used."""
    with readable_file(path).open("rb") as file:
        start = file.read(9)
        if start[:4] != b"GGUF":
            raise ValueError(f"it begins with {start[:4]!r}, not b'GGUF'{other_file(start)}")
        file.seek(0)
        try:
            return np.memmap(file, np.uint8, "r").view(np.ndarray)
        except OSError:  # as with a page's file in a browser
            file.seek(0)  # memmap has looked for the end
            return np.fromfile(file, np.uint8)  # one copy: a page's memory never shrinks


@contextmanager
def _named(who: StrPath) -> Iterator[None]:
    """Let the errors inside say what they are about."""
    try:
        yield
    except (MemoryError, ValueError) as error:
        raise ValueError(f"{who}: {str(error) or 'it does not fit into memory'}") from None


def _read_header(content: np.ndarray) -> tuple[dict[str, Value], dict[str, GGUFTensor]]:
    """The metadata and the tensors that a file declares, if they fit together and into it."""
    header = _Header(content)
    version = header.numbers("<u4", 1)[0]
    if version not in (2, 3):
        found = "big-endian" if version >= 2**16 else f"of version {version}"
        raise ValueError(f"it is {found}; read are 2 and 3, little-endian: convert the model again")
    count, entries = header.numbers("<u8", 2)
    metadata = header.named("metadata", entries, 13, lambda name: header.value())
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or alignment not in _ALIGNMENTS:
        allowed = f"allowed are {', '.join(map(str, _ALIGNMENTS))}"
        raise ValueError(f"general.alignment is {short(alignment)}; {allowed}: convert it again")
    offsets = header.named("tensor", count, 24, header.tensor)
    start = end = -(-header.at // alignment) * alignment
    tensors = {name: t._replace(begin=start + t.begin) for name, t in offsets.items()}
    for name, _, _, nbytes, begin in sorted(tensors.values(), key=lambda tensor: tensor.begin):
        if begin % alignment or not end <= begin <= content.size - nbytes:
            lies = f"tensor {short(name)} has bytes {begin} to {begin + nbytes}"
            allowed = f"{end} to {content.size}, from a multiple of {alignment} on"
            raise ValueError(f"{lies}; allowed are {allowed}: fetch the file again")
        end = begin + nbytes
    return metadata, tensors


class _Header:
    """The values at the beginning of a file, read one after another."""

    def __init__(self, content: np.ndarray):
        self._content, self._view = content, content.data
        self._what, self.at = "the header", 4  # after the four letters

    def named(
        self, what: str, count: int, least: int, read: Callable[[str], Part]
    ) -> dict[str, Part]:
        """So many parts by name, each of at least so many bytes."""
        self._what = f"the number of {what} entries"
        self._check(count, least)
        found: dict[str, Part] = {}
        for i in range(count):
            self._what = f"{what} {i + 1} of {count}"
            name = self._string()
            self._what = f"{what} {short(name)}"
            if name in found:
                raise ValueError(f"{self._what} is there twice; fetch or convert the file again")
            found[name] = read(name)
        return found

    def value(self) -> Value:
        """A value of the metadata, after its type."""
        kind, count = self.numbers("<u4", 1)[0], 1
        if is_list := kind == _LIST:
            kind, count = self.numbers("<u4", 1)[0], self.numbers("<u8", 1)[0]
        if kind == _STRING:
            self._check(count, 8)
            found = [self._string() for _ in range(count)]
        elif kind in _NUMBERS:
            found = self.numbers(_NUMBERS[kind], count)
        else:
            where = " in a list" if is_list else ""
            allowed = "known are 0 to 8 and 10 to 12, and 9 for a list of these: convert it again"
            raise ValueError(f"{self._what} is of type {kind}{where}; {allowed}")
        return found if is_list else found[0]

    def tensor(self, name: str) -> GGUFTensor:
        """The entry of a tensor, its `begin` counted from the first; the last axis comes first."""
        axes = self.numbers("<u4", 1)[0]
        shape = tuple(self.numbers("<u8", min(axes, 5))[::-1])
        code, offset = self.numbers("<u4", 1)[0], self.numbers("<u8", 1)[0]
        if len(shape) > 4 or 0 in shape:
            allowed = "allowed are up to 4 lengths of at least 1"
            raise ValueError(f"{self._what} has shape {short(shape)}; {allowed}: fetch it again")
        if code not in _NAMES:
            remedy = "take a file of the model in another, such as Q8_0"
            raise ValueError(f"{self._what} is of kind {code}, which is not known here; {remedy}")
        kind = _NAMES[code]
        with _named(self._what):
            return GGUFTensor(name, shape, kind, _stored_size(kind, shape), offset)

    def numbers(self, dtype: str, count: int) -> list:
        """So many numbers."""
        size = np.dtype(dtype).itemsize
        self._check(count, size)
        begin, self.at = self.at, self.at + count * size
        stored = self._content[begin : self.at]
        if dtype == "?" and (largest := stored.max(initial=0)) > 1:
            raise ValueError(f"{self._what} is a truth value, 0 or 1, got {largest}")
        return stored.view(dtype).tolist()

    def _string(self) -> str:
        begin = self.at + 8
        length = int.from_bytes(self._view[self.at : begin], "little")
        self.at = begin + length
        if self.at > len(self._view):
            ends = f"is cut off: it ends at byte {self.at}, and the file at {len(self._view)}"
            raise ValueError(f"{self._what} {ends}; fetch the file again")
        try:
            return str(self._view[begin : self.at], "utf-8")
        except UnicodeDecodeError:
            where = f"from byte {begin} to {self.at}"
            raise ValueError(f"{self._what} has a text that is not UTF-8 {where}") from None

    def _check(self, count: int, size: int) -> None:
        """Raise if so many values of at least this size are not left, before they are read."""
        room = min((len(self._view) - self.at) // size, _MOST_VALUES)
        if count > room:
            declared = f"{self._what} declares {count} values of {size} bytes or more"
            raise ValueError(f"{declared}, but at most {room} can follow; fetch the file again")

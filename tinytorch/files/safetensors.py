"""Arrays on disk: the safetensors format, read and written with NumPy alone.

A file is a length, a table of contents and the numbers, nothing else (Hugging Face, "Safetensors:
format"): 8 bytes that say how long the header is, least significant first; the header, a JSON
object that gives each tensor's dtype, shape and position; then the bytes of all tensors, end to
end. Reading it runs nothing, unlike a pickle, which is a program. An inconsistent file is refused
before any memory is allocated for its tensors.
"""

from __future__ import annotations

import io
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Any

import numpy as np

from tinytorch.core.arguments import refuse_mask
from tinytorch.files.atomic_files import StrPath, readable_file, write_atomically
from tinytorch.files.strict_json import check_commas, parse_json

__all__ = ["load_safetensors", "safetensors_contents", "save_safetensors"]

_HEADER_LIMIT = 100_000_000  # bytes, the limit of the format
_METADATA = "__metadata__"
_FIELDS = ("dtype", "shape", "data_offsets")

# Name in the file, type in the file. In the order of the format, of growing alignment: a file holds
# the last kind first, so that every tensor begins at a multiple of the size of its numbers. BF16 is
# the upper half of a float32, which NumPy does not know: widened on reading.
_TYPES = """BOOL |b1, U8 |u1, I8 |i1, I16 <i2, U16 <u2, F16 <f2, BF16 <u2,
I32 <i4, U32 <u4, F32 <f4, F64 <f8, I64 <i8, U64 <u8"""
_DTYPES: dict[str, str] = dict(pair.split() for pair in _TYPES.split(","))
_WRITTEN = {kind[1:]: name for name, kind in _DTYPES.items() if name != "BF16"}
_RANK = {name: rank for rank, name in enumerate(_DTYPES)}

# The first bytes of other kinds of file, for a helpful error.
_NEVER = "a pickle is a program, never loaded here: where you trust it, save it as safetensors"
_OTHER_FILES = {
    b"PK\x03\x04": f"it is a zip file, such as torch.save and numpy.savez write; {_NEVER}",
    b"\x80": f"it is a pickle, such as older versions of torch.save wrote; {_NEVER}",
    b"\x93NUMPY": "it is a .npy file: numpy.load reads it",
    b"GGUF": "it is a GGUF file: tinytorch.files.gguf reads it",
    b"version ": "it is a pointer of Git LFS: fetch the file with `git lfs pull`",
}


# ------------------------------------------------------------------------------------ tensors


def save_safetensors(
    path: StrPath, tensors: dict[str, np.ndarray], metadata: dict[str, str] | None = None
) -> None:
    """Write named arrays to one file, atomically.

    The same arrays give the same bytes: the tensors are sorted by dtype, then by name. A transposed
    or big-endian array is first copied to the format's order (C, little-endian); the others are
    written without a copy.

    Args:
        path: the file; an old one is replaced only when the new one is complete.
        tensors: arrays of booleans, integers or floats of 16, 32 or 64 bits, of any shape.
        metadata: strings to store with them, such as the model's sizes.

    Raises:
        TypeError: a name is not a string, a tensor not an array, or the metadata not strings.
        ValueError: a dtype or a name that the format does not have; nothing is written.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "one.safetensors"
        >>> save_safetensors(path, {"w": np.float32([1, 2])}, {"step": "10"})
        >>> print(path.read_bytes()[8:91].decode())  # then spaces
        {"__metadata__":{"step":"10"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}
        >>> path.read_bytes()[96:].hex(" ", 4)
        '0000803f 00000040'
    """
    names = {name: _name_of_dtype(name, array) for name, array in tensors.items()}
    ordered = sorted(names, key=lambda name: (-_RANK[names[name]], name))
    header: dict[str, Any] = {}
    if metadata is not None:
        header[_METADATA] = dict(sorted(_checked_metadata(metadata, TypeError).items()))
    end = 0
    for name in ordered:
        begin, end = end, end + tensors[name].nbytes
        values = (names[name], list(tensors[name].shape), [begin, end])
        header[name] = dict(zip(_FIELDS, values, strict=True))
    arrays = (tensors[name] for name in ordered)
    in_order = (np.asarray(a, dtype=a.dtype.newbyteorder("<"), order="C").data for a in arrays)
    write_atomically(path, _encoded(header), *in_order)


def load_safetensors(
    path: StrPath, *, mapped: bool = False
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Read all arrays of a file, and its metadata.

    The whole header is checked first. Stricter than the reference implementation: a name that
    comes twice, a header that does not begin with ``{``, metadata of null, an entry with other
    fields than dtype, shape and data_offsets, booleans other than 0 and 1, and shapes that NumPy
    cannot hold are errors.

    Args:
        path: the file.
        mapped: whether to map the file into memory; it must then not change. The system reads each
            part when it is first used, and may drop it again. Writing to such an array changes the
            copy in memory, never the file. A tensor that does not begin at a multiple of the size
            of its numbers is still read, since such an array would be copied at every product. So
            is BF16 and, on a big-endian machine or where the file system cannot map files, every
            tensor.

    Returns:
        The arrays by name, in the order of the file, and the metadata (empty if there is none). The
        arrays are writable and in the machine's byte order. BF16 becomes float32, exactly.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is not a safetensors file, is damaged, has a dtype that NumPy does not, or
            does not fit into memory. The message names the file and the tensor.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "one.safetensors"
        >>> save_safetensors(path, {"w": np.float32([1, 2])}, {"step": "10"})
        >>> load_safetensors(path)
        ({'w': array([1., 2.], dtype=float32)}, {'step': '10'})
        >>> _ = path.write_bytes(path.read_bytes()[:-1])
        >>> load_safetensors(path)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: ...: tensor 'w' ends at byte 8 of the numbers, but there are 7
    """
    with _opened(path) as (file, in_order, space, metadata):
        if mapped:
            with suppress(OSError):  # as with a page's file in a browser
                content = np.memmap(file, np.uint8, mode="c").view(np.ndarray)
                return {e[2]: _map_tensor(file, content, space, *e) for e in in_order}, metadata
            file.seek(-space, os.SEEK_END)
        return {name: _read_tensor(file, *rest) for _, _, name, *rest in in_order}, metadata


def safetensors_contents(path: StrPath) -> dict[str, tuple[np.dtype, tuple[int, ...]]]:
    """The dtype and the shape that each tensor of a file would have, from its header alone.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: as `load_safetensors`.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "one.safetensors"
        >>> save_safetensors(path, {"w": np.float32([1, 2])})
        >>> safetensors_contents(path)
        {'w': (dtype('float32'), (2,))}
    """
    with _opened(path) as (_, in_order, *_):
        return {
            name: (np.dtype("f4" if kind == "BF16" else _DTYPES[kind][1:]), tuple(shape))
            for _, _, name, _, kind, shape in in_order
        }


# ------------------------------------------------------------------------------------ writing


def _name_of_dtype(name: object, array: object) -> str:
    """The format's name for the dtype of an array, if both names are allowed."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a tensor must be a string, got {name!r}")
    if name == _METADATA:
        raise ValueError(
            f"{_METADATA!r} is reserved for the metadata; give the tensor another name"
        )
    if not isinstance(array, np.ndarray):
        given = type(array).__name__
        raise TypeError(f"tensor {name!r} must be a NumPy array (.data of a Tensor), got {given}")
    refuse_mask(array, f"tensor {name!r}")
    kind = array.dtype.str[1:]
    if kind not in _WRITTEN:
        allowed = f"{', '.join(np.dtype(kind).name for kind in _WRITTEN)}; convert with .astype"
        raise ValueError(f"tensor {name!r} is of {array.dtype}; the format has {allowed}")
    return _WRITTEN[kind]


def _encoded(header: dict[str, Any]) -> bytes:
    """The length and the header, filled with spaces to a multiple of 8 bytes."""
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > _HEADER_LIMIT:
        raise ValueError(f"the header has {len(text)} bytes; the format allows {_HEADER_LIMIT}")
    check_commas(text)  # what is written can be read
    return len(text).to_bytes(8, "little") + text


# ------------------------------------------------------------------------------------ reading


@contextmanager
def _opened(
    path: StrPath,
) -> Iterator[tuple[io.BufferedReader, list[tuple[Any, ...]], int, dict[str, str]]]:
    """A file, its tensors in order, how many bytes they take, and the metadata; named in errors."""
    with readable_file(path).open("rb") as file:
        try:
            header, space = _read_header(file)
            metadata = _checked_metadata(header.pop(_METADATA, {}), ValueError)
            in_order = sorted(_checked_entry(name, header[name], space) for name in header)
            _check_layout(in_order, space)
            yield file, in_order, space, metadata
        except (MemoryError, RecursionError, ValueError) as error:
            reason = str(error) or "it does not fit into memory"
            raise ValueError(f"{path}: {reason}") from None


def _read_header(file: io.BufferedReader) -> tuple[dict[str, Any], int]:
    """The JSON object at the beginning, and how many bytes follow it."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(9)
    length = int.from_bytes(start[:8], "little")
    if not 2 <= length <= min(size - 8, _HEADER_LIMIT):
        allowed = f"allowed are 2 to {_HEADER_LIMIT}, and the file has {size} in all"
        raise ValueError(f"it declares a header of {length} bytes; {allowed}{other_file(start)}")
    if start[8:] != b"{":
        raise ValueError(f"its header begins with {start[8:]!r}, not b'{{'{other_file(start)}")
    header = parse_json(b"{" + file.read(length - 1), parse_int=_whole_number)
    json.dumps(header, ensure_ascii=False).encode()  # UTF-8 has no half of a surrogate pair
    return header, size - 8 - length


def _whole_number(digits: str) -> int | float:
    """An integer if it has no sign and could be a size; a float, refused later, if not."""
    return int(digits) if digits[0] != "-" and len(digits) <= 20 else float(digits)


def _checked_metadata(metadata: object, error: type[Exception]) -> dict[str, str]:
    """The metadata if they map texts to texts, else the given error."""
    if not isinstance(metadata, dict):
        raise error(f"the metadata map strings to strings, got {short(metadata)}")
    for key, value in metadata.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise error(f"the metadata map strings to strings, got {short({key: value})}")
    return metadata


def _checked_entry(name: str, entry: object, space: int) -> tuple[Any, ...]:
    """Begin, end, name, who that is, dtype and shape of a tensor, if they add up."""
    who = f"tensor {short(name)}"
    if not isinstance(entry, dict) or set(entry) != set(_FIELDS):
        raise ValueError(f"{who} must have {', '.join(_FIELDS)}, no others; got {short(entry)}")
    dtype, shape, offsets = (entry[field] for field in _FIELDS)
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise ValueError(f"{who} is of dtype {short(dtype)}; known are {', '.join(_DTYPES)}")
    if not _are_numbers(shape) or len(shape) > 64:  # the most axes that NumPy has
        raise ValueError(f"{who} must have a shape of at most 64 lengths, got {short(shape)}")
    if not _are_numbers(offsets) or len(offsets) != 2:
        raise ValueError(f"{who} must have two offsets, got {short(offsets)}")
    begin, end = offsets
    if end > space:
        raise ValueError(f"{who} ends at byte {end} of the numbers, but there are {space}")
    needed = math.prod(shape) * np.dtype(_DTYPES[dtype]).itemsize
    if needed != end - begin:
        takes = f"of {dtype} and shape {short(shape)} takes {needed} bytes"
        raise ValueError(f"{who} {takes}, but its offsets {begin} to {end} hold {end - begin}")
    if math.prod(n or 1 for n in shape) >= 2**60:  # NumPy counts so, with room for 8 bytes each
        raise ValueError(f"{who} is empty, but its shape {short(shape)} is too large")
    return begin, end, name, who, dtype, shape


def _are_numbers(values: object) -> bool:
    """Whether this is a list of integers; True does not count as one."""
    return isinstance(values, list) and all(type(value) is int for value in values)


def _check_layout(in_order: list[tuple[Any, ...]], space: int) -> None:
    """Raise unless the tensors cover all the bytes exactly once."""
    limits = [(0, 0, "", "the header"), *in_order, (space, space, "", "the end of the file")]
    for (_, end, _, before, *_), (begin, _, _, after, *_) in pairwise(limits):
        if end != begin:
            relation = "overlap by" if end > begin else "leave a hole of"
            size = f"{abs(end - begin)} bytes"
            raise ValueError(f"{before} and {after} {relation} {size} at byte {begin}")


def _read_tensor(file: io.BufferedReader, who: str, dtype: str, shape: list[int]) -> np.ndarray:
    """The array at the file's present position."""
    array = np.empty(shape, _DTYPES[dtype])
    content = array.reshape(-1).view(np.uint8)  # (bytes,), the same memory
    if file.readinto(content.data) != content.size:
        raise ValueError(f"{who} is cut off: the file is changing")
    return _converted(array, who, dtype)


def _map_tensor(
    file: io.BufferedReader, content: np.ndarray, space: int, begin: int, end: int, *rest: Any
) -> np.ndarray:
    """The array mapped from the bytes of a file; a misaligned one is read."""
    _, who, dtype, shape = rest
    first = content.size - space + begin
    if first % np.dtype(_DTYPES[dtype]).itemsize:
        file.seek(first)
        return _read_tensor(file, who, dtype, shape)
    array = content[first : first + end - begin].view(_DTYPES[dtype]).reshape(shape)
    return _converted(array, who, dtype)


def _converted(array: np.ndarray, who: str, dtype: str) -> np.ndarray:
    """The array in a dtype and byte order that NumPy calculates with, if its bytes are allowed."""
    if dtype == "BOOL" and (largest := array.view(np.uint8).max(initial=0)) > 1:
        raise ValueError(f"{who} is of BOOL, whose bytes are 0 or 1, got {largest}")
    if dtype == "BF16":
        return widened(array)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


# ----------------------------------------------------------------------- shared with gguf.py


def widened(bits: np.ndarray) -> np.ndarray:
    """Numbers of BF16, given as uint16, in float32."""
    wide = np.empty(bits.shape, np.float32)
    np.left_shift(bits, 16, out=wide.view(np.uint32), dtype=np.uint32)
    return wide


def other_file(start: bytes) -> str:
    """What kind of file it is instead, judging by its first nine bytes."""
    found = [what for begin, what in _OTHER_FILES.items() if start.startswith(begin)]
    return f": {found[0]}" if found and start[8:] != b"{" else ""


def short(value: object) -> str:
    """The value as Python writes it, cut off if it is long."""
    return f"{value!r:.100}"

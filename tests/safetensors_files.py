"""Safetensors files, good ones and broken ones, made without the code under test."""

import copy
import json

import numpy as np
from hypothesis import strategies as st

__all__ = ["DTYPES", "ONE", "arrays_by_name", "broken_files", "file_of", "same_bits"]

DTYPES = {
    "BOOL": "|b1", "U8": "|u1", "I8": "|i1", "I16": "<i2", "U16": "<u2", "F16": "<f2",
    "BF16": "<u2", "I32": "<i4", "U32": "<u4", "F32": "<f4", "F64": "<f8", "I64": "<i8",
    "U64": "<u8",
}  # fmt: skip
ONE = {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}  # the entry of a tensor of two bytes


def file_of(header, content=b""):
    """The bytes of a file; `header` is an object to write as JSON, or bytes as they are."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content


def same_bits(a, b):
    """Whether two arrays have one shape, one dtype but for its byte order, and the same bits."""
    b = np.asarray(b, dtype=np.asarray(b).dtype.newbyteorder("="))
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


# Good files --------------------------------------------------------------------------------------

# quiet and signalling NaN, -0.0, infinities and the smallest number, as far as a dtype has them
SPECIAL = [0x7E00, 0x7D01, 0x8000, 0x7C00, 0xFC00, 1, 0x7F800001, 0xFFC00001, 0xFF800000, 2**63]


@st.composite
def arrays(draw):
    """An array of any dtype, shape, byte order and layout in memory."""
    kind = draw(st.sampled_from(sorted(set(DTYPES.values()))))
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=4)))
    stretched = (*shape[:-1], shape[-1] * 2) if shape else ()
    dtype = np.dtype(kind)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    words = rng.integers(0, 2**64, size=stretched, dtype=np.uint64)
    special = np.array(SPECIAL, np.uint64)[rng.integers(len(SPECIAL), size=stretched)]
    words = np.where(rng.random(stretched) < 0.5, special, words)
    bits = np.asarray(words).astype(f"u{dtype.itemsize}")
    array = np.asarray(bits % 2 == 1) if kind == "|b1" else bits.view(dtype)
    if draw(st.booleans()):
        array = array.astype(array.dtype.newbyteorder(">"))
    layout = draw(st.sampled_from(["plain", "transposed", "every second", "backwards", "fixed"]))
    if layout == "transposed":
        return array.T
    if layout == "every second" and shape:
        return array[..., ::2]
    if layout == "backwards" and shape:
        return array[::-1]
    array.flags.writeable = layout != "fixed"
    return array


names = st.text(max_size=8).filter(lambda name: name != "__metadata__")
arrays_by_name = st.dictionaries(names, arrays(), max_size=5)


@st.composite
def good_files(draw):
    """The header, as an object, and the content of a valid file."""
    header, content = {}, b""
    if draw(st.booleans()):
        header["__metadata__"] = draw(st.dictionaries(st.text(max_size=5), st.text(max_size=5)))
    for name in draw(st.lists(names, max_size=4, unique=True)):
        dtype = draw(st.sampled_from(sorted(DTYPES)))
        shape = draw(st.lists(st.integers(0, 3), max_size=3))
        begin = len(content)
        content += b"\1" * (int(np.prod(shape)) * np.dtype(DTYPES[dtype]).itemsize)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, len(content)]}
    return header, content


# Broken files ------------------------------------------------------------------------------------

sizes = st.sampled_from([0, 1, 2, 3, 4, 8, -1, 2**31, 2**32, 2**62, 2**63, 2**64, 10**30])
leaves = st.one_of(
    st.none(), st.booleans(), sizes, st.floats(), st.text(max_size=5),
    st.sampled_from([*DTYPES, "F4", "F8_E4M3", "C64", "f32", ""]), st.just("\ud800"),
)  # fmt: skip
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


def places(value, here=()):
    """The path of every value inside a JSON value."""
    yield here
    if isinstance(value, (dict, list)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(part, (*here, key))


def at(value, path):
    for key in path:
        value = value[key]
    return value


@st.composite
def changed_headers(draw):
    """A valid file with one to three values of its header replaced, removed or added."""
    header, content = draw(good_files())
    header = copy.deepcopy(header)
    for _ in range(draw(st.integers(1, 3))):
        paths = [path for path in places(header) if path]
        how = draw(st.sampled_from(["replace", "shift", "remove", "add", "copy"]))
        if not paths or how == "add":
            inside = [p for p in places(header) if isinstance(at(header, p), (dict, list))]
            target = at(header, draw(st.sampled_from(inside)))
            value = draw(values | st.just(copy.deepcopy(ONE)))
            if isinstance(target, list):
                target.append(value)
            else:
                target[draw(names)] = value
            continue
        *parents, key = draw(st.sampled_from(paths))
        parent = at(header, parents)
        if how == "replace":
            parent[key] = draw(values)
        elif how == "shift" and isinstance(parent[key], int):
            parent[key] += draw(st.integers(-2, 2))
        elif how == "remove":
            del parent[key]
        elif how == "copy":  # the entry, the shape, the offsets of another tensor
            parent[key] = copy.deepcopy(at(header, draw(st.sampled_from(paths))))
    if draw(st.booleans()):
        content += draw(st.sampled_from([b"", b"\0", b"\1" * 8]))
    return file_of(header, content)


@st.composite
def changed_bytes(draw):
    """A valid file with bytes flipped, cut out, put in, or with the header of another."""
    content = bytearray(file_of(*draw(good_files())))
    for _ in range(draw(st.integers(1, 3))):
        where = draw(st.integers(0, len(content)))
        how = draw(st.sampled_from(["flip", "cut", "insert", "delete", "repeat", "splice"]))
        if how == "flip" and where < len(content):
            content[where] ^= draw(st.integers(1, 255))
        elif how == "cut":
            del content[where:]
        elif how == "insert":
            content[where:where] = draw(st.binary(min_size=1, max_size=4))
        elif how == "delete":
            del content[where : where + draw(st.integers(1, 4))]
        elif how == "repeat":  # an entry twice, among others
            content[where:where] = content[where : where + draw(st.integers(1, 60))]
        elif how == "splice":
            other = file_of(*draw(good_files()))
            content[:where] = other[: draw(st.integers(0, len(other)))]
    if draw(st.booleans()) and len(content) >= 8:  # a length that fits, so that the header is read
        length = max(0, len(content) - 8 - draw(st.integers(0, 3)))
        content[:8] = draw(st.sampled_from([length, length + 1, 2**40, 2**64 - 1])).to_bytes(
            8, "little"
        )
    return bytes(content)


random_bytes = st.binary(max_size=40) | st.binary(max_size=40).map(file_of)
broken_files = changed_headers() | changed_bytes() | random_bytes

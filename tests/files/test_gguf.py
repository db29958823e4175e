"""GGUF files: what is read of good ones, and how broken ones are refused."""

import struct
import tracemalloc

import numpy as np
import pytest
from gguf_files import CODES, gguf_bytes, random_stored, write_gguf

from tinytorch.files.gguf import GGUF, dequantize

METADATA = {
    "general.architecture": "llama",
    "llama.block_count": 3,
    "big": 2**63,
    "below": -7,
    "bases": [0.5, 1e-5],
    "empty": [],
    "words": ["<s>", "", "Ġhé", "𝔊"],
    "yes": True,
    "flags": [True, False],
}
ALL = {k: (k, (2, 256), random_stored(k, (2, 256))) for k in CODES}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.gguf"


# One block of each kind: what is stored, and the numbers that it means.
WHOLE = np.array([*range(16), *range(15, -1, -1)])
NIBBLES = bytes(low | (15 - low) << 4 for low in range(16))
HIGH, WITH_HIGH = b"\1\0\0\x80", WHOLE + 16 * np.eye(32, dtype=int)[[0, 31]].sum(axis=0)
SCALE, LEAST = np.float16(0.5).tobytes(), np.float16(-1.5).tobytes()
BLOCKS = {
    "F32": (np.arange(-9, 23, dtype="<f4").tobytes(), np.arange(-9, 23)),
    "F16": (np.arange(-9, 23, dtype="<f2").tobytes(), np.arange(-9, 23)),
    "BF16": (b"\x40\xc0\x80\x3f" * 16, np.tile([-3, 1], 16)),
    "Q8_0": (SCALE + np.int8(WHOLE - 9).tobytes(), (WHOLE - 9) / 2),
    "Q4_0": (SCALE + NIBBLES, (WHOLE - 8) / 2),
    "Q4_1": (SCALE + LEAST + NIBBLES, WHOLE / 2 - 1.5),
    "Q5_0": (SCALE + HIGH + NIBBLES, (WITH_HIGH - 16) / 2),
    "Q5_1": (SCALE + LEAST + HIGH + NIBBLES, WITH_HIGH / 2 - 1.5),
}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", BLOCKS)
def test_every_kind_is_decoded(path, kind, version):
    block, numbers = BLOCKS[kind]
    other = random_stored(kind, (1, 32))
    tensors = {"w": (kind, (2, 32), block + other), "other": (kind, (1, 32), other)}
    with GGUF(write_gguf(path, {}, tensors, version=version)) as file:
        array = file.read("w")
        assert file.stored("w").tobytes() == block + other
        np.testing.assert_array_equal(array, [numbers, file.read("other")[0]])
    assert array.dtype == np.float32 and array.flags.writeable


def test_metadata_come_as_they_were_written(path):
    file = GGUF(write_gguf(path, METADATA, {}))
    assert file.metadata == METADATA | {"bases": [0.5, float(np.float32(1e-5))]}
    assert type(file.metadata["yes"]) is bool and file.tensors == {}


@pytest.mark.parametrize("alignment", [8, 32, 4096])
def test_shapes_have_the_last_axis_last_and_tensors_lie_at_the_alignment(path, alignment):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.float32(7), "c": np.ones((1, 2, 3, 4))}
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    with GGUF(write_gguf(path, {"general.alignment": alignment}, arrays)) as file:
        for name, array in arrays.items():
            assert file.tensors[name].shape == array.shape
            assert file.tensors[name].nbytes == 4 * array.size
            assert file.tensors[name].begin % alignment == 0
            np.testing.assert_array_equal(file.read(name), array)


def test_a_tensor_that_is_not_asked_for_takes_no_memory(path):
    size = 2**26
    content = gguf_bytes({}, {"big": ("F32", (size // 4,), b"")})
    path.write_bytes(content)
    with path.open("r+b") as file:
        file.truncate(len(content) + size)
    tracemalloc.start()
    with GGUF(path) as file:
        stored = file.stored("big")
        peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200_000 and not stored.flags.owndata and not stored.flags.writeable
    assert stored[-1] == 0  # the map is open as long as it is used


def test_a_file_that_cannot_be_mapped_is_read(path, monkeypatch):
    write_gguf(path, METADATA, ALL)
    expected = GGUF(path).read("Q5_1")

    def refuse(file, *_):
        file.seek(0, 2)  # as NumPy does first
        raise OSError("no such device")

    monkeypatch.setattr(np, "memmap", refuse)
    np.testing.assert_array_equal(GGUF(path).read("Q5_1"), expected)


def test_what_cannot_be_read_is_refused_by_name(path):
    with GGUF(write_gguf(path, {}, ALL)) as file:
        assert (file.tensors["Q6_K"].kind, file.stored("Q6_K").size) == ("Q6_K", 420)
        with pytest.raises(
            ValueError, match=r"tensor 'Q6_K': the kind 'Q6_K' .* F32, .* Q8_0: take"
        ):
            file.read("Q6_K")
        with pytest.raises(ValueError, match=r"no tensor 'q'; the file has .'F32'"):
            file.read("q")
    with pytest.raises(ValueError, match="is closed; open it again to read 'F32'"):
        file.read("F32")
    with pytest.raises(ValueError, match=r"Q8_0 of shape \(64,\) takes 68 bytes, got 34"):
        dequantize(bytes(34), "Q8_0", (64,))
    with pytest.raises(ValueError, match="blocks of 32 numbers, and the last length"):
        dequantize(bytes(34), "Q8_0", (2, 16))


# Damage ------------------------------------------------------------------------------------------

SMALL = gguf_bytes(
    {"k": "vé", "n": [1, 2], "general.alignment": 32},
    {"one": np.arange(3.0), "two": ("Q4_0", (1, 32), random_stored("Q4_0", (1, 32)))},
)[:-14]  # without what fills up the last block
HEADER = SMALL.index(b"two") + 3 + 4 + 16 + 12  # bytes, up to the last offset


def entry(axes=(32,), code=0, offset=0, name=b"w"):
    lengths = struct.pack(f"<I{len(axes)}Q", len(axes), *axes)
    return struct.pack("<Q", len(name)) + name + lengths + struct.pack("<IQ", code, offset)


def start(tensors=0, values=0, version=3, order="<"):
    return b"GGUF" + struct.pack(f"{order}IQQ", version, tensors, values)


def key(kind, *rest, name=b"k"):
    return (
        start(0, 1) + struct.pack("<Q", len(name)) + name + struct.pack("<I", kind) + b"".join(rest)
    )


ROOM = bytes(256)
COUNT = struct.pack("<Q", 2**60)
DAMAGE = {
    "begins with b''": b"",
    "begins with b'ggjt', not b'GGUF'": b"ggjt" + ROOM,
    "zip file.*pickle": b"PK\3\4" + ROOM,
    "the header declares 1 values of 4": b"GGUF",
    "of version 1; read are 2 and 3, little-endian": start(version=1) + ROOM,
    "of version 4": start(version=4) + ROOM,
    "is big-endian": start(order=">") + ROOM,
    r"number of tensor entries declares 1152921504606846976 .* at most 10 can": start(2**60) + ROOM,
    "number of metadata entries declares 1152921504606846976": start(0, 2**60) + ROOM,
    "metadata 1 of 1 is cut off: it ends at byte 1152921504606847008": start(0, 1) + COUNT + ROOM,
    "metadata 1 of 1 has a text that is not UTF-8 from byte 32 to 33": key(4, ROOM, name=b"\xff"),
    "metadata 'k' has a text that is not UTF-8": key(8, b"\1", bytes(7), b"\xc3", ROOM),
    "metadata 'k' declares 1152921504606846976 values of 8": key(9, b"\x08\0\0\0", COUNT, ROOM),
    "metadata 'k' declares 1152921504606846976 values of 1 ": key(9, bytes(4), COUNT, ROOM),
    "metadata 'k' is of type 9 in a list": key(9, b"\x09\0\0\0", COUNT, ROOM),
    "metadata 'k' is of type 13; known are": key(13, ROOM),
    "metadata 'k' is a truth value, 0 or 1, got 2": key(7, b"\2", ROOM),
    "metadata 'k' is there twice": start(0, 2) + 2 * (key(4)[24:] + bytes(4)) + ROOM,
    "alignment is 'x'; allowed are 8, ": key(8, b"\1", bytes(7), b"x", name=b"general.alignment"),
    "alignment is 32.0;": key(6, struct.pack("<f", 32), ROOM, name=b"general.alignment"),
    "alignment is 0;": key(4, bytes(4), ROOM, name=b"general.alignment"),
    "alignment is 48;": key(4, b"\x30\0\0\0", ROOM, name=b"general.alignment"),
    "alignment is 2147483648;": key(4, b"\0\0\0\x80", ROOM, name=b"general.alignment"),
    "tensor 'w' is there twice": start(2) + entry() + entry(offset=128) + ROOM,
    "tensor 'w' has shape .*allowed are up to 4": start(1) + entry()[:9] + b"\xff" * 4 + ROOM,
    r"tensor 'w' has shape \(2, 0\)": start(1) + entry((0, 2)) + ROOM,
    "tensor 'w' is of kind 99": start(1) + entry(code=99) + ROOM,
    "tensor 'w': Q8_0 stores blocks of 32": start(1) + entry((16, 2), code=8) + ROOM,
    "tensor 'w' has bytes 76 to 204; allowed are 64 to 313, from a multiple of 32 on": start(1)
    + entry(offset=12)
    + ROOM,
    "tensor 'w' has bytes 1152921504606847040 to": start(1) + entry(offset=2**60) + ROOM,
    "tensor 'w' has bytes 64 to 4611686018427387968": start(1) + entry((2**60,)) + ROOM,
    "tensor 'v' has bytes 160 to 288; allowed are 224 to": start(2)
    + entry()
    + entry(name=b"v", offset=64)
    + ROOM,
}


@pytest.mark.parametrize("message", DAMAGE)
def test_damage_is_named(path, message):
    path.write_bytes(DAMAGE[message])
    with pytest.raises(ValueError, match=rf"some\.gguf: .*{message}"):
        GGUF(path)


def test_a_list_is_not_longer_than_any_vocabulary(path):
    path.write_bytes(key(9, bytes(4), struct.pack("<Q", 2**25)))
    with path.open("r+b") as file:
        file.truncate(2**26)
    with pytest.raises(
        ValueError, match=r"declares 33554432 values .* at most 16777216 can follow"
    ):
        GGUF(path)


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(ValueError, match="is a folder; pass the path of a file"):
        GGUF(tmp_path)


def reading(path, content):
    """Read everything, or return the sentence with which it is refused."""
    path.write_bytes(content)
    try:
        with GGUF(path) as file:
            return [file.read(name) for name in file.tensors]
    except ValueError as error:
        assert str(error).startswith(f"{path}: ") and "\n" not in str(error)
        assert len(str(error)) < len(str(path)) + 400
        return str(error)


@pytest.mark.slow
def test_every_prefix_and_every_changed_byte_is_read_or_refused(path):
    assert len(reading(path, SMALL)) == 2
    broken = [SMALL[:size] for size in range(len(SMALL))]
    for i in range(HEADER):
        for byte in {0, 0xFF, SMALL[i] ^ 1} - {SMALL[i]}:
            broken.append(SMALL[:i] + bytes([byte]) + SMALL[i + 1 :])
    reading(path, SMALL[:9])  # what is imported once
    tracemalloc.start()
    for content in broken:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        result = reading(path, content)
        assert tracemalloc.get_traced_memory()[1] - before < 100_000
        assert isinstance(result, str) or len(content) == len(SMALL)
    tracemalloc.stop()

"""The safetensors format: what goes in comes out, and what does not add up is refused."""

import io
import json
import os
import pickle
import tracemalloc
import zipfile

import numpy as np
import pytest
from exact_numbers import message
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors_files import ONE, arrays_by_name, broken_files, file_of, same_bits

from tinytorch import GPT, Linear
from tinytorch.files import safetensors
from tinytorch.training.weight_files import (
    load_safetensors,
    load_weights,
    save_safetensors,
    save_weights,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.safetensors"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One path for all examples of a property."""
    return tmp_path_factory.mktemp("files") / "some.safetensors"


def reason(error, f, *args):
    """The text of the error that `f` raises."""
    return message(error, lambda: f(*args))


def header_of(path):
    """The JSON text of a file's header, its padding included."""
    content = path.read_bytes()
    return content[8 : 8 + int.from_bytes(content[:8], "little")].decode()


# Round trips -------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=100)
@given(arrays_by_name, st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=3))
def test_loaded_arrays_equal_the_saved_ones_bit_for_bit(shared, tensors, metadata):
    save_safetensors(shared, tensors, metadata)
    loaded, texts = load_safetensors(shared)
    assert texts == metadata
    assert loaded.keys() == tensors.keys()
    for name, array in loaded.items():
        assert same_bits(array, tensors[name])
        assert array.dtype.isnative and array.flags.writeable and array.flags.c_contiguous
        assert array.base is None  # memory of its own


def test_the_file_is_a_length_a_header_and_the_numbers(path):
    save_safetensors(path, {"w": np.array([[1, 2], [3, 4]], ">u2")}, {"b": "ü", "a": ""})
    header = (
        '{"__metadata__":{"a":"","b":"ü"},"w":{"dtype":"U16","shape":[2,2],"data_offsets":[0,8]}}'
    )
    header = header.encode() + b" " * 7
    assert path.read_bytes() == file_of(header, b"\1\0\2\0\3\0\4\0")


def test_wide_dtypes_come_first_to_align_each_tensor(path):
    kinds = ["b1", "i1", "u1", "i2", "u2", "f2", "i4", "u4", "f4", "f8", "i8", "u8"]
    save_safetensors(path, {f"{kind} {i}": np.ones(3, kind) for i in (1, 0) for kind in kinds})
    header = json.loads(header_of(path))
    assert list(header)[:4] == ["u8 0", "u8 1", "i8 0", "i8 1"]
    assert list(header)[-6:] == ["i1 0", "i1 1", "u1 0", "u1 1", "b1 0", "b1 1"]
    start = 8 + len(header_of(path))
    for name, entry in header.items():
        assert (start + entry["data_offsets"][0]) % np.dtype(name[:2]).itemsize == 0


def test_the_same_arrays_give_the_same_bytes_in_any_order(path):
    tensors = {name: np.arange(3.0) for name in ("b", "é", "a", "B", "a.1", "")}
    save_safetensors(path, tensors, {"x": "1", "y": "2"})
    first = path.read_bytes()
    save_safetensors(path, dict(reversed(tensors.items())), {"y": "2", "x": "1"})
    assert path.read_bytes() == first


def test_bf16_is_widened_without_rounding(path):
    bits = np.arange(2**16, dtype="<u2")  # all numbers that there are
    entry = {"dtype": "BF16", "shape": [256, 256], "data_offsets": [0, 2**17]}
    path.write_bytes(file_of({"x": entry}, bits.tobytes()))
    array = load_safetensors(path)[0]["x"]
    assert array.dtype == np.float32 and array.shape == (256, 256)
    assert (array.view(np.uint32).ravel() == bits.astype(np.uint32) * 2**16).all()
    assert array[0x3F, 0x80] == 1.0 and array[0xC0, 0x49] == -3.140625


def test_a_file_may_have_its_tensors_in_any_order_and_empty_ones_anywhere(path):
    header = {
        "last": {"dtype": "U8", "shape": [1], "data_offsets": [4, 5]},
        "nothing": {"dtype": "F64", "shape": [3, 0, 2], "data_offsets": [4, 4]},
        "first": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
        "also nothing": {"dtype": "F64", "shape": [0], "data_offsets": [0, 0]},
    }
    path.write_bytes(file_of(header, np.float32(2.5).tobytes() + b"\7"))
    loaded, _ = load_safetensors(path)
    assert list(loaded) == ["also nothing", "first", "nothing", "last"]
    assert loaded["first"].shape == () and loaded["first"] == 2.5
    assert loaded["nothing"].shape == (3, 0, 2)
    assert loaded["last"].tolist() == [7]


# Memory ------------------------------------------------------------------------------------------


def peak_of(f, *args):
    """The most bytes that were in use during a call, above those before it."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        f(*args)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def test_saving_copies_nothing_and_loading_allocates_the_file_size(path):
    tensors = {str(i): np.ones((1000, 250), np.float32) for i in range(8)}  # a million bytes each
    assert peak_of(save_safetensors, path, tensors) < 100_000
    assert 8_000_000 <= peak_of(load_safetensors, path) < 8_100_000


# Refusals ----------------------------------------------------------------------------------------


class Bomb:
    """What a pickle can do: run anything, here a function that the test would notice."""

    def __reduce__(self):
        return pytest.fail, ("the pickle was run",)


def zip_file():
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        file.writestr("model/data.pkl", pickle.dumps(Bomb()))
    return content.getvalue()


def entry(**changes):
    """A file of one tensor with two bytes whose entry is changed."""
    return file_of({"w": {**ONE, **changes}}, b"ab")


def with_one(header, content=b"ab"):
    """A file whose header is this text, with ONE in the place of 1."""
    return file_of(header.replace("1", json.dumps(ONE)).encode(), content)


def two(first, second, content=b"abcd"):
    """Two tensors of bytes at the given offsets."""
    places = {"v": first, "w": second}
    header = {
        k: {"dtype": "U8", "shape": [b - a], "data_offsets": [a, b]} for k, (a, b) in places.items()
    }
    return file_of(header, content)


REFUSED = {
    # the length
    "nothing": (b"", "a header of 0 bytes", "the file has 0 in all"),
    "too little": (b"\2\0\0\0\0\0\0\0", "a header of 2 bytes", "the file has 8 in all"),
    "no header": (file_of(b"", b"xx"), "a header of 0 bytes"),
    "a header beyond the end": (
        file_of(b"{}")[:-1],
        "a header of 2 bytes",
        "the file has 9 in all",
    ),
    "a header of 2**64 - 1 bytes": (b"\xff" * 20, "a header of 18446744073709551615 bytes"),
    "a header over the limit": ((100_000_001).to_bytes(8, "little") + b"{}", "2 to 100000000"),
    # other files
    "a zip file": (zip_file(), "torch.save", "never loaded here"),
    "a pickle": (pickle.dumps(Bomb()), "it is a pickle", "never loaded here"),
    "an old pickle": (pickle.dumps(Bomb(), protocol=2), "it is a pickle", "never loaded here"),
    "a .npy file": (b"\x93NUMPY\1\0\x76\0{'descr'", "numpy.load"),
    "a Git LFS pointer": (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    # the JSON
    "a list": (file_of(b"[]"), "its header begins with b'['"),
    "a space before it": (file_of(b" {}"), "its header begins with b' '"),
    "a byte-order mark": (file_of(b"\xef\xbb\xbf{}"), "its header begins with b'\\xef'"),
    "not UTF-8": (file_of(b'{"\xff": 1}'), "decode byte 0xff in position 2"),
    "not JSON": (file_of(b"{'w': 1}"), "not JSON", "char 1"),
    "two objects": (file_of(b"{}{}"), "not JSON", "Extra data"),
    "tiny entries": (file_of(b'{%s"":0}' % (b'"":0,' * 2_000_001)), "JSON has 2,000,001 commas"),
    "zeros behind": (file_of(b"{}\0\0"), "not JSON", "Extra data"),
    "too deep": (file_of(b'{"w":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "nested too deeply"),
    "too deep objects": (file_of(b'{"w":' * 100_000), "nested too deeply"),
    "a name twice": (with_one('{"w":1,"w":1}'), "has the name 'w' twice"),
    "a name twice, once escaped": (with_one('{"w":1,"\\u0077":1}'), "has the name 'w' twice"),
    "a field twice": (with_one('{"w":{"dtype":"U8","dtype":"F64"}}'), "has the name 'dtype' twice"),
    "metadata twice": (with_one('{"__metadata__":{},"__metadata__":{}}'), "'__metadata__' twice"),
    "half a surrogate pair": (with_one('{"\\udc00":1}'), "surrogates not allowed", "udc00"),
    # metadata
    "metadata are null": (file_of({"__metadata__": None}), "metadata", "strings", "got None"),
    "metadata are a list": (file_of({"__metadata__": ["a"]}), "got ['a']"),
    "metadata hold a number": (file_of({"__metadata__": {"step": 3}}), "got {'step': 3}"),
    "metadata are a tensor": (file_of({"__metadata__": ONE}, b"ab"), "got {'shape': [2]}"),
    "half a pair in metadata": (
        with_one('{"__metadata__":{"a":"\\ud800"}}'),
        "surrogates not allowed",
        "ud800",
    ),
    # entries
    "an entry is null": (file_of({"w": None}), "tensor 'w' must have dtype, shape", "got None"),
    "an entry is a list": (file_of({"w": ["U8", [2], [0, 2]]}, b"ab"), "got ['U8', [2], [0, 2]]"),
    "a field is missing": (file_of({"w": {"dtype": "U8", "shape": [2]}}, b"ab"), "tensor 'w'"),
    "a field too many": (entry(strides=[1]), "'w' must have dtype, shape, data_offsets, no others"),
    "an unknown dtype": (entry(dtype="FLOAT"), "'w' is of dtype 'FLOAT'", "BOOL, U8", "U64"),
    "a dtype that NumPy lacks": (entry(dtype="F8_E4M3"), "'w' is of dtype 'F8_E4M3'", "known are"),
    "a dtype that is no string": (entry(dtype=["U8"]), "'w' is of dtype ['U8']"),
    "a shape that is no list": (entry(shape=2), "'w' must have a shape", "got 2"),
    "a shape that is a string": (entry(shape="2"), "'w' must have a shape", "got '2'"),
    "a length is true": (entry(shape=[True, 2]), "'w' must have a shape", "got [True, 2]"),
    "a length is a float": (entry(shape=[2.0]), "'w' must have a shape", "got [2.0]"),
    "a length is a string": (entry(shape=["2"]), "'w' must have a shape", "got ['2']"),
    "a length is negative": (entry(shape=[-1, -2]), "'w' must have a shape", "got [-1.0, -2.0]"),
    "a length is NaN": (entry(shape=[float("nan")]), "it has NaN, which is no number in JSON"),
    "a length is too large": (file_of(b'{"w":1e999}', b""), "the number 1e999, which is too large"),
    "a length of a thousand digits": (entry(shape=[10**1000]), "'w' must have a shape", "[inf]"),
    "65 axes": (entry(shape=[1] * 64 + [2]), "'w' must have a shape of at most 64 lengths"),
    "one offset": (entry(data_offsets=[0]), "'w' must have two offsets, got [0]"),
    "three offsets": (entry(data_offsets=[0, 1, 2]), "two offsets, got [0, 1, 2]"),
    "offsets are null": (entry(data_offsets=None), "two offsets, got None"),
    "an offset is false": (entry(data_offsets=[False, 2]), "two offsets, got [False, 2]"),
    "an offset is a float": (entry(data_offsets=[0, 2.0]), "two offsets, got [0, 2.0]"),
    "an offset is negative": (entry(data_offsets=[-2, 0]), "two offsets, got [-2.0, 0]"),
    "an offset of minus zero": (
        file_of(b'{"w":{"dtype":"U8","shape":[2],"data_offsets":[-0,2]}}', b"ab"),
        "two offsets, got [-0.0, 2]",
    ),
    "an end before the beginning": (entry(data_offsets=[2, 0]), "offsets 2 to 0 hold -2"),
    "an end after the end": (entry(data_offsets=[0, 3]), "'w' ends at byte 3", "there are 2"),
    "a shape too large": (entry(shape=[3]), "'w' of U8 and shape [3] takes 3 bytes", "hold 2"),
    "a shape too small": (entry(shape=[]), "'w' of U8 and shape [] takes 1 bytes", "hold 2"),
    "a dtype too large": (entry(dtype="F64"), "'w' of F64 and shape [2] takes 16 bytes", "hold 2"),
    "a product over 2**64": (entry(shape=[2**33, 2**33]), "takes 73786976294838206464 bytes"),
    "a product of 2**64 + 2": (entry(shape=[2, 2**63 + 1]), "takes 18446744073709551618 bytes"),
    "empty and endless": (entry(shape=[0, 2**63], data_offsets=[0, 0]), "'w' is empty, but"),
    "empty, but NumPy would overflow": (
        entry(dtype="BF16", shape=[0, 2**60], data_offsets=[0, 0]),
        "'w' is empty, but",
    ),
    # the layout
    "an overlap": (two((0, 3), (2, 4)), "tensor 'v' and tensor 'w' overlap"),
    "the same bytes twice": (two((0, 4), (0, 4)), "tensor 'v' and tensor 'w' overlap"),
    "a hole": (two((0, 1), (2, 4)), "tensor 'v' and tensor 'w' leave a hole of 1 bytes at byte 2"),
    "a hole at the beginning": (
        two((1, 2), (2, 4)),
        "the header and tensor 'v' leave a hole of 1 bytes at byte 1",
    ),
    "an empty one inside another": (two((0, 4), (2, 2)), "tensor 'v' and tensor 'w' overlap"),
    "bytes behind": (
        two((0, 1), (1, 3)),
        "tensor 'w' and the end of the file leave a hole of 1 bytes",
    ),
    "bytes and no tensor": (
        file_of({}, b"abc"),
        "the header and the end of the file leave a hole of 3 bytes",
    ),
    # the numbers
    "a boolean of 2": (entry(dtype="BOOL"), "'w' is of BOOL, whose bytes are 0 or 1, got 98"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_inconsistent_file_is_refused_with_the_reason(path, name):
    content, *parts = REFUSED[name]
    path.write_bytes(content)
    text = reason(ValueError, load_safetensors, path)
    assert text.startswith(f"{path}: ")
    for part in parts:
        assert part in text


def test_missing_files_and_folders_are_named(tmp_path):
    assert "no.safetensors" in reason(
        FileNotFoundError, load_safetensors, tmp_path / "no.safetensors"
    )
    assert "is a folder" in reason(ValueError, load_safetensors, tmp_path)


@pytest.mark.skipif(os.name != "posix", reason="named pipes are those of POSIX")
def test_a_named_pipe_is_refused_at_once(path):
    os.mkfifo(path)
    assert "is a named pipe" in reason(ValueError, load_safetensors, path)


def test_a_file_larger_than_memory_is_refused(path):
    def no_room(*args):
        raise MemoryError

    path.write_bytes(entry())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(safetensors.np, "empty", no_room)
        assert "does not fit into memory" in reason(ValueError, load_safetensors, path)


def test_files_that_cannot_be_mapped_are_read(path, monkeypatch):
    def refuse(file, *args, **options):
        file.seek(0, 2)
        raise OSError(43, "no such device")

    tensors = {"a": np.arange(6.0).reshape(2, 3), "b": np.float32([7])}
    save_safetensors(path, tensors)
    monkeypatch.setattr(np, "memmap", refuse)
    read, _ = load_safetensors(path, mapped=True)
    assert all(same_bits(read[name], tensors[name]) for name in tensors)


def test_mapped_arrays_take_no_memory_and_writing_to_them_leaves_the_file(path):
    save_safetensors(path, {"w": np.ones((512, 512), np.float32)})
    before = path.read_bytes()
    tracemalloc.start()
    array = load_safetensors(path, mapped=True)[0]["w"]
    array += 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000 < array.nbytes
    assert array.sum() == 2 * 512 * 512 and path.read_bytes() == before


def test_an_unaligned_tensor_is_read(path):
    header = {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    text = json.dumps(header).encode()
    for spaces in range(4):  # as in the published GPT-2, whose header ends at an odd byte
        path.write_bytes(file_of(text + b" " * spaces, np.float32([1, 2]).tobytes()))
        array = load_safetensors(path, mapped=True)[0]["w"]
        assert array.tolist() == [1, 2] and array.flags.aligned


def test_a_file_that_shrinks_while_it_is_read_is_refused(path, monkeypatch):
    path.write_bytes(entry())
    read_header = safetensors._read_header

    def cut_after_the_header(file):
        result = read_header(file)
        file.seek(-1, 2)
        return result

    monkeypatch.setattr(safetensors, "_read_header", cut_after_the_header)
    assert "'w' is cut off" in reason(ValueError, load_safetensors, path)


@pytest.mark.parametrize(
    ("tensors", "metadata", "error", "part"),
    [
        ({"w": [1.0]}, None, TypeError, "'w' must be a NumPy array"),
        ({"w": np.ma.array([1.0], mask=[1])}, None, TypeError, "'w': a masked array would lose"),
        ({3: np.ones(1)}, None, TypeError, "the name of a tensor must be a string, got 3"),
        ({"__metadata__": np.ones(1)}, None, ValueError, "is reserved for the metadata"),
        ({"\ud800": np.ones(1)}, None, ValueError, "surrogates not allowed"),
        ({"w": np.ones(1, complex)}, None, ValueError, "'w' is of complex128; the format has bool"),
        ({"w": np.ones(1, object)}, None, ValueError, "'w' is of object"),
        ({"w": np.array(["a"])}, None, ValueError, "'w' is of <U1"),
        ({"w": np.ones(1, "f4,f4")}, None, ValueError, "'w' is of [("),
        ({"w": np.ones(1, "m8[s]")}, None, ValueError, "'w' is of timedelta64"),
        ({}, {"step": 3}, TypeError, "got {'step': 3}"),
        ({}, ["step"], TypeError, "got ['step']"),
        ({}, {"a": "," * 2_000_001}, ValueError, "at most 2,000,000 are read"),
        ({}, {"a": "\udfff"}, ValueError, "surrogates not allowed"),
    ],
)
def test_unsupported_content_is_not_written(path, tensors, metadata, error, part):
    path.write_bytes(b"old")
    assert part in reason(error, save_safetensors, path, {"a": np.ones(1), **tensors}, metadata)
    assert path.read_bytes() == b"old"


def test_a_header_over_the_limit_is_not_written(path, monkeypatch):
    monkeypatch.setattr(safetensors, "_HEADER_LIMIT", 100)
    assert "the format allows 100" in reason(
        ValueError, save_safetensors, path, {"w" * 100: np.ones(1)}
    )
    assert not path.exists()


# Anything at all ---------------------------------------------------------------------------------


def check_any_content(path, content):
    """Load a file that may be broken: a ValueError with the path, or arrays that account for it."""
    path.write_bytes(content)
    try:
        tensors, metadata = load_safetensors(path)
    except ValueError as error:
        assert str(error).startswith(f"{path}: ")
        return False
    assert all(isinstance(text, str) for pair in metadata.items() for text in pair)
    header = json.loads(header_of(path))
    header.pop("__metadata__", None)
    assert tensors.keys() == header.keys()
    length = len(header_of(path).encode())
    for name, array in tensors.items():
        begin, end = (8 + length + offset for offset in header[name]["data_offsets"])
        assert list(array.shape) == header[name]["shape"]
        raw = array.view(np.uint32) >> 16 if header[name]["dtype"] == "BF16" else array
        raw = raw.astype(np.uint16) if header[name]["dtype"] == "BF16" else raw
        assert raw.tobytes() == content[begin:end]
    save_safetensors(path, tensors, metadata)
    again, texts = load_safetensors(path)
    assert texts == metadata and again.keys() == tensors.keys()
    assert all(same_bits(again[name], tensors[name]) for name in tensors)
    return True


@pytest.mark.slow
def test_a_corrupted_file_raises_valueerror_or_still_loads(shared):
    accepted = []

    @settings(max_examples=600)
    @given(broken_files)
    def check(content):
        accepted.append(check_any_content(shared, content))

    check()
    assert 10 < sum(accepted) < len(accepted) - 100  # both happen


# Weights -----------------------------------------------------------------------------------------


def test_a_model_saved_and_loaded_gives_the_same_numbers(path):
    model, other = (GPT(11, 8, 2, 2, 16, dropout=0.0, rng=seed) for seed in (0, 1))
    ids = np.arange(10).reshape(2, 5)
    save_weights(path, model, {"vocab_size": "11"})
    assert load_weights(path, other) == {"vocab_size": "11"}
    assert (model(ids).data == other(ids).data).all()
    assert load_safetensors(path)[0].keys() == model.state_dict().keys()


def test_a_prefix_chooses_among_the_tensors_of_a_file(path):
    weights = {"net.weight": np.ones((3, 2)), "net.bias": np.ones(2), "weight": np.zeros(3)}
    save_safetensors(path, weights)
    model = Linear(3, 2)
    load_weights(path, model, prefix="net.")
    assert (model.weight.data == 1).all() and (model.bias.data == 1).all()
    assert "missing: weight (3, 2)" in reason(ValueError, load_weights, path, model, "other.")


def test_non_float_weights_are_refused(path):
    save_safetensors(path, {"weight": np.ones((3, 2), np.int8), "bias": np.ones(2)})
    model = Linear(3, 2)
    assert "weights are floats, but weight is of int8" in reason(
        ValueError, load_weights, path, model
    )
    assert not model.bias.data.any()

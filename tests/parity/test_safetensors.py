"""Our files in the reference implementation, its files in ours, and broken files in both."""

import numpy as np
import pytest
import safetensors
import safetensors.numpy
import safetensors.torch
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from safetensors_files import DTYPES, ONE, arrays_by_name, broken_files, file_of, same_bits

from tinytorch.training.weight_files import load_safetensors, save_safetensors

texts = st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=3)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("files") / "some.safetensors"


def plain(tensors):
    """The arrays in C order and little-endian: NumPy's part of the reference writes no others.

    It writes the memory of a transposed array as it lies there, so that other numbers are read.
    """
    return {
        name: np.array(a, dtype=a.dtype.newbyteorder("="), order="C") for name, a in tensors.items()
    }


@settings(max_examples=60)
@given(arrays_by_name, texts)
def test_the_reference_reads_our_files_bit_for_bit(path, tensors, metadata):
    save_safetensors(path, tensors, metadata)
    loaded = safetensors.numpy.load_file(path)
    assert loaded.keys() == tensors.keys()
    assert all(same_bits(loaded[name], tensors[name]) for name in tensors)
    with safetensors.safe_open(path, framework="np") as file:
        assert (file.metadata() or {}) == metadata
        assert all(same_bits(file.get_tensor(name), tensors[name]) for name in tensors)


@settings(max_examples=60)
@given(arrays_by_name, st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=1))
def test_our_files_are_those_of_the_reference_byte_for_byte(path, tensors, metadata):
    assume(tensors or metadata)
    save_safetensors(path, tensors, metadata)
    assert path.read_bytes() == safetensors.numpy.save(plain(tensors), metadata)


@settings(max_examples=60)
@given(arrays_by_name, texts)
def test_we_read_the_files_of_the_reference_bit_for_bit(path, tensors, metadata):
    assume(tensors or metadata)  # of these, the reference writes a header that is no JSON
    safetensors.numpy.save_file(plain(tensors), path, metadata)
    loaded, own_texts = load_safetensors(path)
    assert own_texts == metadata
    assert loaded.keys() == tensors.keys()
    assert all(same_bits(loaded[name], tensors[name]) for name in tensors)


def test_bf16_becomes_the_same_float32_as_in_torch(path):
    every = torch.arange(2**16, dtype=torch.int32).to(torch.uint16).view(torch.bfloat16)
    tensors = {"every": every.reshape(256, 256), "one": torch.tensor(-1.5, dtype=torch.bfloat16)}
    safetensors.torch.save_file(tensors, path, {"format": "pt"})
    loaded, metadata = load_safetensors(path)
    assert metadata == {"format": "pt"}
    bits = every.view(torch.int16).to(torch.int32).numpy().astype(np.uint32) << 16
    assert (loaded["every"].view(np.uint32).ravel() == bits).all()
    expected = tensors["every"].to(torch.float32).numpy()
    np.testing.assert_array_equal(loaded["every"], expected)  # with NaN equal to NaN
    assert loaded["one"].shape == () and loaded["one"] == -1.5


def test_torch_reads_what_we_write(path):
    tensors = {
        k: np.arange(6).reshape(2, 3).astype(kind) for k, kind in DTYPES.items() if k != "BF16"
    }
    save_safetensors(path, tensors)
    loaded = safetensors.torch.load_file(path)
    assert all(same_bits(loaded[name].numpy(), tensors[name]) for name in tensors)


# Broken files ------------------------------------------------------------------------------------

# What the reference accepts and we refuse, by what our message says. All of it is in the docstring
# of load_safetensors or in the format's own text; nothing is refused there that we accept.
STRICTER = {
    "a name comes twice": "twice",
    "a header begins with a space": "its header begins with b",
    "metadata are null": "the metadata map strings to strings, got None",
    "an entry is a list, or has other fields": "must have dtype, shape, data_offsets, no others",
    "a dtype that NumPy has not, or an object in its place": "is of dtype",
    "more axes than NumPy has": "a shape of at most 64 lengths",
    "an empty tensor of an endless shape": "is too large",
    "a boolean that is neither 0 nor 1": "whose bytes are 0 or 1",
}


def refusal(path, content):
    """Our message, or None if we read the file."""
    path.write_bytes(content)
    try:
        load_safetensors(path)
    except ValueError as error:
        return str(error)
    return None


def is_read_by_the_reference(path, content):
    path.write_bytes(content)
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            file.keys()
        safetensors.deserialize(content)
    except safetensors.SafetensorError:
        return False
    return True


def changed(**changes):
    return file_of({"w": {**ONE, **changes}}, b"ab")


DIFFERENT = {
    "a name comes twice": file_of(
        b'{"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"w":{"dtype":"U8","shape":[2],'
        b'"data_offsets":[0,2]}}',
        b"ab",
    ),
    "a header begins with a space": file_of(b" {}"),
    "metadata are null": file_of({"__metadata__": None}),
    "an entry is a list, or has other fields": file_of({"w": list(ONE.values())}, b"ab"),
    "a dtype that NumPy has not, or an object in its place": changed(dtype="F8_E4M3"),
    "more axes than NumPy has": changed(shape=[1] * 64 + [2]),
    "an empty tensor of an endless shape": file_of(
        {"w": {"dtype": "U8", "shape": [0, 2**63], "data_offsets": [0, 0]}}
    ),
    "a boolean that is neither 0 nor 1": changed(dtype="BOOL"),
}


@pytest.mark.parametrize("difference", STRICTER)
def test_each_documented_difference_from_the_reference_exists(path, difference):
    assert is_read_by_the_reference(path, DIFFERENT[difference])
    assert STRICTER[difference] in refusal(path, DIFFERENT[difference])


def test_both_refuse_broken_files_except_for_documented_differences(path):
    seen = {True: 0, False: 0}

    @settings(max_examples=600)
    @given(broken_files)
    @example(changed(shape=[2.0]))
    @example(changed(data_offsets=[0, 2, 2]))
    @example(file_of(b"{}\n"))
    def check(content):
        ours, theirs = refusal(path, content), is_read_by_the_reference(path, content)
        seen[theirs] += 1
        if not theirs:
            assert ours is not None
        elif ours is not None:
            assert any(difference in ours for difference in STRICTER.values()), ours

    check()
    assert min(seen.values()) > 20

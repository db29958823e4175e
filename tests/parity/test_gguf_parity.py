"""Every kind of tensor beside the `gguf` package's own reading of it, bit for bit."""

import gguf
import numpy as np
import pytest
from gguf_files import CODES, random_stored, write_gguf

from tinytorch.files import gguf as ours

DECODED = sorted(set(CODES) - {"Q6_K"})


@pytest.mark.parametrize("kind", DECODED)
@pytest.mark.parametrize("any_bytes", [False, True], ids=["numbers", "any bytes"])
def test_every_kind_is_decoded_bit_for_bit(kind, any_bytes):
    """Any bytes: infinite scales too, and scales that are no number, whatever bits those have."""
    shape = 3, 1000, 64
    stored = np.frombuffer(random_stored(kind, shape, seed=1), np.uint8)
    if any_bytes:
        stored = np.random.default_rng(2).integers(0, 256, stored.size, np.uint8)
    with np.errstate(all="ignore"):
        theirs = gguf.dequantize(stored, gguf.GGMLQuantizationType[kind]).reshape(shape)
    own = ours.dequantize(stored, kind, shape)
    assert own.dtype == np.float32 and own.shape == shape
    numbers = ~np.isnan(theirs)
    assert any_bytes or numbers.all()
    np.testing.assert_array_equal(np.isnan(own), ~numbers)
    np.testing.assert_array_equal(own[numbers].view("u4"), theirs[numbers].view("u4"))


def test_every_kind_has_the_code_and_the_block_of_the_reference():
    theirs = {kind.name: sizes for kind, sizes in gguf.GGML_QUANT_SIZES.items()}
    assert ours._BLOCKS == theirs
    assert ours._NAMES == {int(kind): kind.name for kind in gguf.GGML_QUANT_SIZES}


def test_the_reference_reads_our_tests_files_and_we_read_its_own(tmp_path):
    tensors = {kind: (kind, (2, 256), random_stored(kind, (2, 256))) for kind in DECODED}
    path = write_gguf(tmp_path / "ours.gguf", {"general.alignment": 64, "a": ["x", "é"]}, tensors)
    file = ours.GGUF(path)
    for tensor in gguf.GGUFReader(path).tensors:
        assert tensor.data_offset == file.tensors[tensor.name].begin
        assert tensor.data.tobytes() == file.stored(tensor.name).tobytes()

    writer = gguf.GGUFWriter(tmp_path / "theirs.gguf", "llama")
    writer.add_array("words", ["x", "é"])
    writer.add_float32("base", 0.5)
    writer.add_bool("yes", True)
    array = np.random.default_rng(0).normal(size=(3, 64)).astype(np.float32)
    q8 = gguf.quantize(array, gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("plain", array)
    writer.add_tensor("q8", q8, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file):
        write()
    writer.write_tensors_to_file()
    writer.close()
    with ours.GGUF(tmp_path / "theirs.gguf") as file:
        assert file.metadata["words"] == ["x", "é"] and file.metadata["base"] == 0.5
        assert file.metadata["yes"] is True
        np.testing.assert_array_equal(file.read("plain"), array)
        assert file.tensors["q8"].shape == (3, 64)
        assert np.abs(file.read("q8") - array).max() < 0.02

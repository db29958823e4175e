"""A file that a reader drops on the page: what Python says of it, and what the cells then find."""

import json
from pathlib import Path

import numpy as np
import pytest

from tinytorch.text.corpus import load_text
from tinytorch.training.weight_files import save_safetensors

STATIC = Path(__file__).resolve().parents[2] / "book" / "_static" / "live"
POEM = "Zoë said: “é”.\n" * 400


@pytest.fixture
def give(monkeypatch, tmp_path):
    """A function that drops bytes, and gives what is said."""
    monkeypatch.syspath_prepend(str(STATIC))
    monkeypatch.chdir(tmp_path)
    import live_runner

    def drop(content, name="your-text.txt", **options):
        Path("dropped").write_bytes(content)
        told = json.loads(live_runner.take_file("dropped", name, "mine.txt", **options))
        assert not Path("dropped").exists()
        return told

    return drop


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_an_uploaded_text_is_available_to_the_cells(give, encoding):
    told = give(POEM.encode(encoding), least=4000)
    assert told == {"ok": True, "text": "mine.txt: 6,000 characters in 401 lines."}
    assert load_text("your-text.txt") == POEM


def test_another_encoding_is_offered_and_stored_as_utf_8_once_chosen(give):
    told = give(POEM.encode("cp1252"))
    assert (told["ok"], told["encoding"]) == (False, "cp1252")
    assert told["text"].startswith("mine.txt is not UTF-8: byte 0xeb at position 2 (line 1).")
    assert told["text"].endswith("it reads 'Zoë said: “é”.'.")
    assert not Path("your-text.txt").exists()
    assert give(POEM.encode("cp1252"), encoding="cp1252")["ok"]
    assert load_text("your-text.txt") == POEM


def test_utf_16_without_a_mark_is_offered(give):
    told = give(POEM.encode("utf-16-le"))
    assert told["encoding"] == "utf-16-le"
    assert told["text"] == "mine.txt seems to be UTF-16 without a byte-order mark."


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"%PDF-1.7", "mine.txt is a PDF, not a text: copy its text into a text file, or save"),
        (b"PK\x03\x04 word/document.xml", "mine.txt is a Word document (.docx), not a text"),
        (b"abc\0def", "mine.txt is not a text: byte 0x00 at position 3"),
        (b"", "mine.txt is empty: there is nothing to read in its 0 bytes."),
        (b"a", "mine.txt is too short: it has 1 character, and needs 4,000."),
    ],
)
def test_unusable_files_are_named_and_the_old_file_stays(give, content, said):
    give(POEM.encode())
    told = give(content, least=4000)
    assert not told["ok"] and not told["encoding"] and told["text"].startswith(said)
    assert load_text("your-text.txt") == POEM


def test_models_are_inspected_too(give, tmp_path):
    save_safetensors("a.safetensors", {"w": np.float32([1, 2])})
    content = Path("a.safetensors").read_bytes()
    told = give(content, "my-model.safetensors")
    assert told == {"ok": True, "text": "mine.txt: 1 tensor."}
    told = give(content[:-1], "my-model.safetensors")
    assert not told["ok"] and told["text"].startswith("mine.txt: tensor 'w' ends at byte 8")
    assert Path("my-model.safetensors").read_bytes() == content

"""What a reader may drop: texts in several encodings, and files that hold no text."""

import io
import zipfile

import numpy as np
import pytest

from tinytorch.text.corpus import compressed_bits, describe_text, load_text
from tinytorch.text.file_encodings import decode_text

POEM = "Zoë said: “é”, 5 €\nand – no more.\n" * 3


def zipped(*names):
    """A zip file with these members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, "application/epub+zip" if name == "mimetype" else "<x/>")
    return file.getvalue()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])  # three marked
def test_an_encoding_with_a_byte_order_mark_is_detected(encoding):
    assert decode_text(POEM.replace("\n", "\r\n").encode(encoding)) == POEM


def test_an_undeclared_encoding_is_suggested_with_a_preview():
    with pytest.raises(ValueError, match="not UTF-8: byte 0xeb at position 2") as caught:
        decode_text(POEM.encode("cp1252"), "a.txt")
    assert "(line 1)" in str(caught.value)
    assert "it reads 'Zoë said: “é”, 5 €'" in str(caught.value)
    assert "pass encoding='cp1252'" in str(caught.value)
    assert decode_text(POEM.encode("cp1252"), encoding="cp1252") == POEM
    assert decode_text("naïve".encode("latin-1"), encoding="latin-1") == "naïve"


def test_the_line_of_the_bad_byte_is_shown():
    with pytest.raises(ValueError, match=r"position 6 \(line 2\).*reads 'café x'"):
        decode_text(b"ab\ncaf\xe9 x\nnext")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_its_mark_is_recognised(encoding):
    content = "Once upon a time, Zoë said.".encode(encoding)
    with pytest.raises(ValueError, match=f"without a byte-order mark: pass encoding='{encoding}'"):
        decode_text(content)
    assert decode_text(content, encoding=encoding) == "Once upon a time, Zoë said."


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3", "a PDF, not a text: copy its text"),
        (b"\x89PNG\r\n\x1a\n\0\0", "a PNG picture"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "a JPEG picture"),
        (b"GIF89a\1\0", "a GIF picture"),
        (b"{\\rtf1\\ansi Zo\\'eb}", "a rich-text file"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a document of an older Word"),
        (b"\x1f\x8b\x08\0", "a gzip file, not a text: unpack it"),
        (zipped("a.txt"), "a zip archive, not a text: unpack it"),
        (zipped("[Content_Types].xml", "word/document.xml"), r"a Word document \(.docx\), not a"),
        (zipped("[Content_Types].xml", "xl/workbook.xml"), r"an Excel file"),
        (zipped("mimetype", "OEBPS/a.xhtml"), "an e-book"),
    ],
)
@pytest.mark.parametrize("encoding", [None, "latin-1"])
def test_known_binary_formats_are_named(content, kind, encoding):
    with pytest.raises(ValueError, match=f"^mine is {kind}"):
        decode_text(content, "mine", encoding)


@pytest.mark.parametrize("encoding", [None, "latin-1", "cp1252", "utf-16"])
def test_an_executable_is_not_a_text(encoding):
    noise = np.random.default_rng(0).integers(0, 256, 5000, dtype=np.uint8).tobytes()
    with pytest.raises(ValueError, match="is not"):
        decode_text(b"\x7fELF" + noise, encoding=encoding)
    with pytest.raises(ValueError, match="is not a text: byte 0x00 at position 5"):
        decode_text(b"hello\0" + noise)


def test_a_zero_byte_is_refused_and_a_form_feed_accepted():
    with pytest.raises(ValueError, match="byte 0x00 at position 3"):
        decode_text(b"abc\0" + b"words and words " * 20)
    assert decode_text(b"one\n\ftwo\x1a") == "one\n\ftwo\x1a"


def test_one_control_character_is_accepted_and_many_are_refused():
    assert decode_text(b"\x07" + b"words " * 50).startswith("\x07words")
    with pytest.raises(ValueError, match="byte 0x07 at position 0, and others like it"):
        decode_text(b"\x07words" * 50)


@pytest.mark.parametrize("content", [b"", b" \n\t", b"\xef\xbb\xbf", b"\xff\xfe"])
def test_an_empty_text_is_refused(content):
    with pytest.raises(ValueError, match=f"is empty: .* in its {len(content)} bytes"):
        decode_text(content)


def test_an_encoding_that_is_wrong_or_unknown_is_named():
    with pytest.raises(ValueError, match=r"not ascii: byte 0xeb.*pass another encoding="):
        decode_text(POEM.encode("cp1252"), encoding="ascii")
    for unknown in ("utf-7-and-a-half", "base64"):
        with pytest.raises(ValueError, match=f"there is no encoding '{unknown}'; 'utf-8'"):
            decode_text(b"a", encoding=unknown)


@pytest.mark.parametrize("first", range(1, 12))
def test_a_long_text_is_cut_between_characters(tmp_path, first):
    path = tmp_path / "a.txt"
    path.write_bytes("aé€🦊b".encode())  # 1, 2, 3, 4 and 1 bytes
    whole = {1: "a", 3: "aé", 6: "aé€", 10: "aé€🦊", 11: "aé€🦊b"}
    assert load_text(path, first_bytes=first) == whole[max(n for n in whole if n <= first)]


def test_a_file_that_is_too_large_is_read_up_to_the_limit(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"word " * 10_000)
    with pytest.raises(ValueError, match=r"more than 1000 bytes.*or first_bytes="):
        load_text(path, max_bytes=1000)
    assert load_text(path, max_bytes=1000, first_bytes=2000) == "word " * 400
    with pytest.raises(ValueError, match="first_bytes must be at least 1"):
        load_text(path, first_bytes=0)


def test_the_checksum_covers_the_whole_file_even_when_it_is_cut(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"abc")
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert load_text(path, digest, first_bytes=1) == "a"
    path.write_bytes(b"xyz")
    with pytest.raises(ValueError, match="its SHA-256 is"):
        load_text(path, digest, first_bytes=1)


def test_a_text_is_described():
    facts = describe_text("aab\n" + "é")
    assert (facts.bytes, facts.characters, facts.lines) == (6, 5, 2)
    assert facts.alphabet == "ab\né"
    with pytest.raises(ValueError, match="need a non-empty text"):
        describe_text("")


def test_compressed_noise_costs_its_entropy_and_repetition_little():
    rng = np.random.default_rng(0)
    noise, other = ("".join(rng.choice([*"0123456789abcdef"], 20_000)) for _ in range(2))
    alone = compressed_bits(noise)
    assert 4 < alone["xz"] < 4.6 and 4 < alone["gzip"] < 4.7  # 16 equally likely: 4 bits
    assert compressed_bits(noise, before=noise)["xz"] < 0.1
    assert compressed_bits(noise, before=other)["xz"] > 4

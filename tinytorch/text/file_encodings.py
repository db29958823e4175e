"""From the bytes of a file to its text, or to an error that says why it has none.

A file does not say how its characters were encoded. UTF-8 is assumed unless a *byte-order mark* at
the beginning names UTF-16 or UTF-32. Any other encoding has to be passed explicitly, because bytes
above 127 are valid in most of them, as different characters.
"""

import codecs

from tinytorch.files.byte_order_marks import marked_encoding

_AS_TEXT = "save it as plain text (.txt) in the program that opens it"
_UNPACK = "unpack it, and take a text file from inside"
_PICTURE = "the words in a picture are not text"

# The first bytes of files that are mistaken for a text, and what to do with them.
_OTHER_FILES = {
    b"%PDF-": ("a PDF", f"copy its text into a text file, or {_AS_TEXT}"),
    b"{\\rtf": ("a rich-text file (RTF)", _AS_TEXT),
    b"\xd0\xcf\x11\xe0": ("a document of an older Word or Excel", _AS_TEXT),
    b"\x89PNG": ("a PNG picture", _PICTURE),
    b"\xff\xd8\xff": ("a JPEG picture", _PICTURE),
    b"GIF8": ("a GIF picture", _PICTURE),
    b"\x1f\x8b": ("a gzip file", _UNPACK),
    b"\xfd7zXZ": ("an xz file", _UNPACK),
    b"7z\xbc\xaf": ("a 7z archive", _UNPACK),
    b"SQLite format 3": ("a database", "export a table of it as text"),
}
_ZIPS = {  # found near the beginning of zip files that are documents
    b"word/": ("a Word document (.docx)", _AS_TEXT),
    b"xl/": ("an Excel file (.xlsx)", _AS_TEXT),
    b"ppt/": ("a PowerPoint file (.pptx)", _AS_TEXT),
    b"application/epub": ("an e-book (EPUB)", "convert it to plain text (.txt)"),
    b"opendocument": ("a document of LibreOffice or OpenOffice", _AS_TEXT),
}
_CONTROLS = bytes({*range(32)} - {*b"\t\n\v\f\r\x1a\x1b"})  # rare in a text
_SAMPLE = 65_536  # how many bytes, or characters, are checked


def decode_text(
    content: bytes, name: str = "the text", encoding: str | None = None, cut: bool = False
) -> str:
    r"""Turn the bytes of a file into text, with universal newlines and without its mark.

    Args:
        content: the bytes.
        name: the name of the file in errors.
        encoding: one of Python's encodings, such as "cp1252" (Windows, Western Europe) or
            "utf-16-le". None for UTF-8, or for what a byte-order mark says.
        cut: whether the bytes were cut off: an incomplete character at the end is then dropped.

    Returns:
        The text.

    Raises:
        ValueError: the bytes are those of another kind of file, are in another encoding, or are no
            text; or the text is empty, or there is no such encoding.

    Example:
        >>> decode_text("Zoë\r\n".encode("utf-16")), decode_text(b"Zo\xeb", encoding="cp1252")
        ('Zoë\n', 'Zoë')
        >>> decode_text(b"Zo\xeb", "a.txt")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: a.txt is not UTF-8: byte 0xeb at position 2 (line 1). In Windows-1252 ...
    """
    if kind := _other_kind(content):
        raise ValueError(f"{name} is {kind[0]}, not a text: {kind[1]}")
    marked = marked_encoding(content)
    try:
        "".encode(encoding or "utf-8")
        decoder = codecs.getincrementaldecoder(encoding or marked or "utf-8")()
        text = decoder.decode(content, final=not cut).removeprefix("\ufeff")
    except LookupError:
        known = "'utf-8', 'utf-16', 'cp1252', 'latin-1' and 'shift_jis' are some of Python's"
        raise ValueError(f"there is no encoding {encoding!r}; {known}") from None
    except UnicodeDecodeError as error:
        raise ValueError(_undecodable(name, content, error, encoding or marked)) from None
    if _controls(text[:_SAMPLE].encode("utf-8", "replace")):
        raise ValueError(_no_text(name, content, encoding or marked))
    if not text.strip():
        raise ValueError(f"{name} is empty: there is nothing to read in its {len(content)} bytes")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _other_kind(content: bytes) -> tuple[str, str] | None:
    """What kind of file begins like this, and what to do with it; None if it may be a text."""
    kind = next((k for begin, k in _OTHER_FILES.items() if content.startswith(begin)), None)
    if kind or not content.startswith(b"PK\x03\x04"):
        return kind
    inside = (k for part, k in _ZIPS.items() if part in content[:_SAMPLE])
    return next(inside, ("a zip archive", _UNPACK))


def _controls(sample: bytes) -> bool:
    """Whether there is a zero, or more than one control character in a hundred."""
    few = len(sample) - len(sample.translate(None, _CONTROLS)) <= len(sample) / 100
    return b"\0" in sample or not few


def _no_text(name: str, content: bytes, encoding: str | None) -> str:
    """The error for bytes that are not a text, or are UTF-16 without its mark."""
    sample = content[:_SAMPLE]
    first, second = (sample[i::2].count(0) / max(1, len(sample[i::2])) for i in (0, 1))
    if encoding is None and abs(second - first) > 0.5:
        found = "utf-16-le" if second > first else "utf-16-be"
        return f"{name} seems to be UTF-16 without a byte-order mark: pass encoding={found!r}"
    at = next((i for i, byte in enumerate(sample) if byte in _CONTROLS), 0)
    what = f"byte 0x{sample[at]:02x} at position {at}, and others like it, stand in no text"
    return f"{name} is not a text: {what}; it may be a program, a picture, a sound or an archive"


def _undecodable(name: str, content: bytes, error: UnicodeDecodeError, encoding: str | None) -> str:
    """The error for bytes that are not in an encoding: where, and which other one may be meant."""
    if encoding is None and _controls(content[:_SAMPLE]):
        return _no_text(name, content, encoding)
    at = error.start
    line = content.count(b"\n", 0, at) + 1
    where = f"byte 0x{content[at]:02x} at position {at} (line {line})" if content else "no bytes"
    if encoding is not None:
        return f"{name} is not {encoding}: {where}; pass another encoding=, or save it as UTF-8"
    before, after = content[max(0, at - 20) : at], content[at : at + 20]
    read = before.rpartition(b"\n")[2] + after.partition(b"\n")[0]
    shown = read.decode("cp1252", "replace").strip()
    guess = f"In Windows-1252 (Western European) it reads {shown!r}"
    remedy = "if so, pass encoding='cp1252'; if not, the name of its encoding, or save it as UTF-8"
    return f"{name} is not UTF-8: {where}. {guess}: {remedy}"

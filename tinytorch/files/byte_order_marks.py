"""Byte-order marks: the first bytes of a file that say how its characters are stored."""

import codecs

_MARKS = {  # UTF-32 first: its mark begins like that of UTF-16
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def marked_encoding(content: bytes) -> str | None:
    """The encoding that a byte-order mark names; None without one."""
    return next((code for mark, code in _MARKS.items() if content.startswith(mark)), None)


def decode_marked(content: bytes) -> str:
    r"""The text of a file in UTF-8, or in what its mark says; the mark is dropped.

    Example:
        >>> decode_marked("{}".encode("utf-16")), decode_marked(b"\xef\xbb\xbf{}")
        ('{}', '{}')
    """
    return content.decode(marked_encoding(content) or "utf-8").removeprefix("\ufeff")

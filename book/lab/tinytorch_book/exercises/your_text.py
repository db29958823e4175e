"""Checks for the chapter "Your text"."""

import math
from functools import partial
from typing import Any
from unicodedata import normalize

from tinytorch_book.exercises.cases import Cases, alone, case, cases, one_of, predictions
from tinytorch_book.exercises.drawn_numbers import generator
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.values import STRANGE

__all__ = ["text_bits", "text_decode", "text_limits", "text_new", "text_repeated"]


# The best that a compressor can do -----------------------------------------------------------

_ENTROPY = "How many equally likely choices, and how many bytes for each of them?"


@exercise(points=1)
def text_limits(answer: dict[str, Any]) -> Cases:
    """Check the fewest bits a byte that five endless texts can be stored in."""
    nats = "That is in nats: use the logarithm to base 2."
    yield from predictions(answer, {
        "random digits 0 and 1":
            (1, _ENTROPY, (8, "A byte has eight bits, but only two bytes occur here.")),
        "random hexadecimal digits, 0 to f": (4, _ENTROPY, (math.log(16), nats)),
        "the same digits 0 to f, in UTF-16": (2, "The same news in twice as many bytes."),
        "random lines, each 'yes' or 'no!', without line ends":
            (1 / 3, "One choice of two in every three bytes."),
        "one page of a book, printed for ever": (0, "After the first copy, nothing is new."),
    })  # fmt: skip


# Bits a byte ---------------------------------------------------------------------------------


def _bits(loss: float, tokens: int, content: bytes, bit: float = math.log(2)) -> float:
    return loss * tokens / bit / len(content)


@exercise(points=2, reference=_bits, mistakes=[
    (partial(_bits, bit=1.0), "That is in nats: a bit is ln 2 nats."),
    (partial(_bits, bit=1 / math.log(2)), "Divide by ln 2: a nat is 1.44 bits."),
    (lambda loss, tokens, content: loss / math.log(2), "That is bits a token."),
    (lambda loss, tokens, content: loss / math.log(2) / len(content),
     "The loss is a mean: times the tokens, it is the surprise of the whole text."),
    (lambda loss, tokens, content: _bits(loss, tokens, content.decode()), "Bytes, not characters."),
])  # fmt: skip
def text_bits(answer: Any) -> Cases:
    """Check the bits a byte of a model whose loss is known in nats a token."""
    hint = "Surprise of the whole text in bits, over its bytes."
    yield from cases(answer, {
        "one bit for each of four bytes": (hint, math.log(2), 4, b"byte"),
        "tokens of several bytes": (hint, 3.0, 5, b"the cat saw the dog"),
        "characters of several bytes": (hint, 2.5, 4, "é 🦊 €".encode()),
        "white space, marks, and a zero": (hint, 2.0, 3, STRANGE.encode()),
        "a longer text": (hint, 3.25, 8000, b"ever and " * 2000, alone(show_expected=False)),
        "a model that is never surprised": (hint, 0.0, 3, b"abc"),
        "a model that is hardly ever surprised":
            (hint, 3e-7, 40, generator().bytes(90), alone(atol=0)),
    })  # fmt: skip


# What encoding is it? ------------------------------------------------------------------------


def _decode(
    content: bytes, marks: bool = True, last: str = "cp1252", ends: tuple[str, str] = ("\r\n", "\n")
) -> str:
    if marks and content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16").replace(*ends)
    try:
        text = content.decode("utf-8-sig" if marks else "utf-8")
    except UnicodeDecodeError:
        text = content.decode(last)
    return text.replace(*ends)


_ENDS = r"Replace '\r\n' by '\n', in the text."
_MARKED = "Two bytes, ff fe or fe ff, begin a UTF-16 file: 'utf-16' reads both, without the mark."
_UNDEFINED = (0x81, 0x8D, 0x8F, 0x90, 0x9D)  # in Windows-1252


@exercise(points=2, reference=_decode, mistakes=[
    (partial(_decode, ends=("", "")), _ENDS),
    (partial(_decode, last="latin-1"), "Windows-1252 has letters where latin-1 has controls."),
    (partial(_decode, marks=False), f"{_MARKED} And 'utf-8-sig' drops that of UTF-8."),
    (UnicodeDecodeError, "Try UTF-8 first; where it fails, it is Windows-1252: 'cp1252'."),
    (lambda content: content.decode("utf-8", "replace"), "No character may be lost or replaced."),
    (lambda content: content.decode("cp1252"), "UTF-8 first: few other texts are valid in it."),
])  # fmt: skip
def text_decode(answer: Any) -> Cases:
    r"""Check a text that is read in whichever of three encodings it has."""
    plain = "content.decode('utf-8')"
    other = "Where UTF-8 fails, it is Windows-1252: 'cp1252'."
    signed = "'utf-8-sig' drops the mark ef bb bf, if there is one."
    yield from cases(answer, {
        "plain English": (plain, b"the cat"),
        "UTF-8": (plain, "Zoë, 5 €".encode()),
        "Windows-1252": (other, "Zoë, 5 €".encode("cp1252")),
        "UTF-8 with its mark": (signed, "Zoë, 5 €".encode("utf-8-sig")),
        "UTF-16, least significant byte first": (_MARKED, b"\xff\xfe" + "Zoë".encode("utf-16-le")),
        "UTF-16, most significant byte first": (_MARKED, b"\xfe\xff" + "Zoë".encode("utf-16-be")),
        "line ends of Windows": (_ENDS, b"one\r\ntwo\r\n"),
        "line ends of Windows in UTF-16": (_ENDS, b"\xff\xfea\0\r\0\n\0"),
        "an empty text": (plain, b""),
    })  # fmt: skip
    begins = "Only what stands at the very beginning is a mark; further inside, it is text."
    yield from cases(answer, {
        "the bytes of a mark inside": (begins, b"\xe9 \xff\xfe, \xfe\xff, \xef\xbb\xbf"),
        "U+FEFF inside": (begins, "the\ufeff cat\ufeff".encode("utf-8-sig")),
        "U+FEFF inside UTF-16": (begins, "the\ufeff cat\ufeff".encode("utf-16")),
    }, [(UnicodeDecodeError, begins)])  # fmt: skip
    every = "Every character stays what it is: no-break spaces, accents, ligatures, even a zero."
    strange = STRANGE.replace("\r\n", "\u0a0d\u0d0a")  # whose bytes, in UTF-16, are line ends
    for name in ("utf-8", "utf-8-sig", "utf-16"):
        yield case(f"strange characters in {name}", answer, strange.encode(name), hint=every)
    defined = bytes(byte for byte in range(256) if byte not in _UNDEFINED)
    yield case("all of Windows-1252", answer, defined, hint=every)
    kept = "All else stays as it is: blank lines, blanks, tabs, and every other end of a line."
    text = "\n\n  Ein Bär\t\n\n\n von 5 €: \n a\rb\x0bc\x0cd \n\n"
    for name in ("utf-8", "utf-8-sig", "cp1252", "utf-16"):
        yield case(f"blank lines and blanks in {name}", answer, text.encode(name), hint=kept)
        windows = text.replace("\n", "\r\n").encode(name)
        yield case(f"the same with line ends of Windows, {name}", answer, windows, hint=_ENDS)
    for number in (0x1F98A, *generator().integers(0x3000, 0xD000, size=2).tolist()):
        for mark, name in (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"", "utf-8"):
            content = mark + f"a {chr(number)} b".encode(name)
            yield case(f"the character U+{number:X} in {name}", answer, content, hint=_MARKED)
    yield case("a mark alone", answer, b"\xfe\xff", hint=_MARKED)
    yield case("a byte that UTF-8 never has, at the end", answer, b"caf\xe9", hint=other)


# What is new in the held-out part ------------------------------------------------------------


def _new(paragraphs: list[str], share: float, known: Any = str.casefold) -> tuple[Any, Any]:
    cut = len(paragraphs) - round(len(paragraphs) * share)
    seen = set(map(known, paragraphs[:cut]))
    return paragraphs[:cut], [each for each in paragraphs[cut:] if known(each) not in seen]


def _all(paragraphs: list[str], share: float) -> tuple[Any, Any]:
    cut = len(paragraphs) - round(len(paragraphs) * share)
    return paragraphs[:cut], paragraphs[cut:]


def _new_everywhere(paragraphs: list[str], share: float) -> tuple[Any, Any]:
    first: dict[str, str] = {}
    for each in paragraphs:
        first.setdefault(each.casefold(), each)
    return _new([*first.values()], share)


def _from_the_end(paragraphs: list[str], share: float) -> tuple[Any, Any]:
    count = round(len(paragraphs) * share)
    seen = set(map(str.casefold, paragraphs[:-count]))
    return paragraphs[:-count], [p for p in paragraphs[-count:] if p.casefold() not in seen]


_WRONG_NEW = [
    (partial(_new, known=str), "Case does not count: compare each.casefold()."),
    (_all, "What stands in training is no test."),
    (_from_the_end, "Where none is held out, p[-0:] is all of p: cut at len(p) - n."),
    (lambda paragraphs, share: _new(paragraphs, share)[::-1], "Return the training part first."),
    (_new_everywhere, "Split first; training keeps all it has."),
]


@exercise(points=3, reference=_new, mistakes=_WRONG_NEW)
def text_new(answer: Any) -> Cases:
    """Check a split by paragraphs whose held-out part holds nothing that is trained on."""
    cut = "The last round(len(paragraphs) * share) paragraphs are held out."
    equal = "A paragraph is known if it is equal to one in training, not if it is a part of one."
    only = "Nothing but capitals is ignored: not a full stop, nor an accent, nor a blank."
    like = [normalize(form, STRANGE) for form in ("NFC", "NFD", "NFKC")]
    like += [STRANGE.replace(old, new) for old, new in (("\xa0", " "), ("\r\n", "\n"), ("e", "E "))]
    like += [STRANGE.strip(), STRANGE.strip("\n"), STRANGE.expandtabs()]
    like += ["\n".join(STRANGE.splitlines())]
    like += [STRANGE.replace(each, "") for each in dict.fromkeys(STRANGE)]
    once = "Keep of the held-out ones those that do not stand in training, in order."
    letters = ["c", "a", "h", "b", "G", "d", "F", "e"]
    lines = [f"Line {n}" for n in generator().integers(60, size=90)]
    for claim, hint, paragraphs, share in (
        ("all are new", cut, letters, 0.25),
        ("a footer that comes again", once, ["a", "Page", "b", "Page", "c", "Page"], 0.5),
        ("the same in capitals", once, ["To Mia", "b", "c", "TO MIA", "d"], 0.4),
        ("twice in training", once, ["a", "a", "b", "c"], 0.5),
        ("twice in the test, but not in training", once, ["a", "b", "c", "c"], 0.5),
        ("nothing new", once, ["a", "b", "b", "a"], 0.5),
        ("rounded", cut, letters[:4], 0.3),
        ("too few to hold one out", cut, letters[:2], 0.1),
        ("a word of a known paragraph", equal, ["Mia sat.", "b", "sat", "d"], 0.5),
        ("what is new keeps its capitals", once, ["Tim", "TOM", "To Mia", "tom", "MIA"], 0.6),
        ("blanks and blank lines", equal, ["a", " ", "b ", " a", "", "a ", "b"], 0.6),
        ("the same words", only, ["To Mia", "Rosé!", "mia to", "rosé", "Rose!"], 0.6),
        ("the same, tidied up", only, [STRANGE] * len(like) + like, 0.5),
        ("half of five, rounded", cut, letters[:5], 0.5),
        ("rounded up", cut, letters, 0.35),
        ("all held out", cut, letters, 1.0),
        ("no paragraphs", cut, [], 0.5),
        ("ninety", once, lines, 0.3),
    ):
        for name in ("training", "held out"):
            part = one_of(name, "training", "held out")
            yield case(f"{claim}: {name}", answer, paragraphs, share, part=part, hint=hint)


# More text by repeating it -------------------------------------------------------------------


def _repeated(text: str, share: float, times: int) -> tuple[str, str]:
    cut = len(text) - round(len(text) * share)
    return text[:cut] * times, text[cut:]


@exercise(points=2, reference=_repeated, mistakes=[
    (lambda text, share, times: _repeated(text * times, share, 1),
        "Repeated first: what is held out stands in the other copies."),
    (lambda text, share, times: _repeated(text, share, 1), "Training has the text `times` times."),
    (lambda text, share, times: (_repeated(text, share, times)[0],
                                 _repeated(text, share, 1)[1] * times),
     "The test stands there once."),
])  # fmt: skip
def text_repeated(answer: Any) -> Cases:
    """Check a split of a text whose training part is repeated."""
    hint = "Hold out the end of the text before anything is repeated."
    for text, share, times in (
        ("abcdefghij", 0.2, 3),
        ("a hat, a dog", 0.25, 2),
        ("12345", 0.4, 1),
        ("abc", 0.1, 2),
        ("12 12 12 12 12", 0.2, 2),
        ("\n A hat. \n", 0.3, 2),
        ("abcde", 0.5, 3),
        (STRANGE, 0.5, 2),
        (STRANGE[::-1], 0.5, 2),
        ("abc", 1.0, 2),
        (generator().bytes(400).hex(), 0.11, 12),
    ):
        for name in ("training", "held out"):
            part = one_of(name, "training", "held out")
            shown = text if len(text) < 100 else f"{text[:12]}..."
            claim = f"{name} of {shown!r}, {times} times"
            yield case(claim, answer, text, share, times, part=part, hint=hint)

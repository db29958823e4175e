"""Right and wrong answers to the exercises of "Your text"."""

import math
import re
from unicodedata import normalize

import numpy as np

from . import guesses

GUESSES = {
    "random digits 0 and 1": {8: "only two bytes occur"},
    "random hexadecimal digits, 0 to f": {math.log(16): "in nats"},
}


# Bits a byte
def bits(loss, tokens, content):
    return loss * tokens / math.log(2) / len(content)


# Encodings
def decode(content, last="cp1252", ends=("\r\n", "\n"), marks=(b"\xff\xfe", b"\xfe\xff")):
    if content.startswith(marks):
        return content.decode("utf-16").replace(*ends)
    try:
        return content.decode("utf-8-sig" if marks else "utf-8").replace(*ends)
    except UnicodeDecodeError:
        return content.decode(last).replace(*ends)


def decode_in_turn(content):
    if content[:2] == b"\xff\xfe":
        return content[2:].decode("utf-16-le").replace("\r\n", "\n")
    if content[:2] == b"\xfe\xff":
        return content[2:].decode("utf-16-be").replace("\r\n", "\n")
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            return content.decode(encoding).replace("\r\n", "\n")
        except UnicodeDecodeError:
            continue
    return None


def decode_and_strip_the_mark(content):
    marked = content[:2] in {b"\xff\xfe", b"\xfe\xff"}
    try:
        text = content.decode("utf-16" if marked else "utf-8")
    except UnicodeDecodeError:
        text = content.decode("windows-1252")
    return "\n".join(text.removeprefix("\ufeff").split("\r\n"))


# Splits
def new(paragraphs, share):
    cut = len(paragraphs) - round(len(paragraphs) * share)
    seen = {each.casefold() for each in paragraphs[:cut]}
    return paragraphs[:cut], [each for each in paragraphs[cut:] if each.casefold() not in seen]


def new_from_the_end(paragraphs, share):
    held_out = round(len(paragraphs) * share)
    training = paragraphs[:-held_out]
    small = [each.lower() for each in training]
    return training, [each for each in paragraphs[-held_out:] if each.lower() not in small]


def new_by_loop(paragraphs, share):
    training, held_out = [], []
    for i, each in enumerate(paragraphs):
        if i < len(paragraphs) - round(len(paragraphs) * share):
            training.append(each)
        elif all(each.upper() != other.upper() for other in training):
            held_out.append(each)
    return training, held_out


def repeated(text, share, times):
    cut = len(text) - round(len(text) * share)
    return text[:cut] * times, text[cut:]


def new_without(signs):
    """Paragraphs are compared without what a pattern matches."""

    def answer(paragraphs, share):
        training = new(paragraphs, share)[0]
        bare = [re.sub(signs, "", normalize("NFD", each.casefold())) for each in paragraphs]
        known = bare[: len(training)]
        pairs = zip(paragraphs, bare, strict=True)
        return training, [
            each for each, signless in [*pairs][len(training) :] if signless not in known
        ]

    return answer


RIGHT = {
    "text_bits": [lambda loss, tokens, content: np.log2(np.exp(loss)) / (len(content) / tokens)],
    "text_decode": [decode_in_turn, decode_and_strip_the_mark],
    "text_new": [new_by_loop],
    "text_repeated": [lambda *given: ["".join(part) for part in repeated(*given)]],
}
WRONG = {
    "text_limits": guesses(GUESSES),
    "text_bits": {
        "normalised": lambda loss, tokens, content: bits(
            loss, tokens, normalize("NFC", content.decode(errors="ignore")).encode()
        ),
        "… That is in nats": lambda loss, tokens, content: loss * tokens / len(content),
        "… Divide by ln 2": lambda loss, *given: bits(loss, *given) * math.log(2) ** 2,
        "… bits a token": lambda loss, tokens, content: np.log2(np.exp(loss)),
        "… The loss is a mean": lambda loss, tokens, content: bits(loss, 1, content),
        "… not characters.": lambda loss, tokens, content: bits(loss, tokens, content.decode()),
    },
    "text_decode": {
        "… begin a UTF-16 file": lambda content: decode(content, marks=()),
        "… latin-1 has controls": lambda content: decode(content, last="latin-1"),
        "… Replace": lambda content: decode(content, ends=("", "")),
        "… Try UTF-8 first": lambda content: decode(content, last="utf-8"),
        "… lost or replaced": lambda content: str(content, errors="replace"),
        "… few other texts are valid": lambda content: str(content, "cp1252"),
        "… Every character stays": lambda content: normalize("NFKC", decode(content)),
        "… it is text": lambda content: decode(content).replace("\ufeff", ""),
        "… at the very beginning": lambda content: decode(
            content[max(0, content.find(b"\xff\xfe")) :]
        ),
    },
    "text_new": {
        "without punctuation": new_without(r"[^\w\s]"),
        "… no test": lambda paragraphs, share: (
            new(paragraphs, share)[0],
            paragraphs[len(new(paragraphs, share)[0]) :],
        ),
        "… p[-0:]": new_from_the_end,
        "… Case does not count": lambda paragraphs, share: (
            known := new(paragraphs, share)[0],
            [each for each in paragraphs[len(known) :] if each not in known],
        ),
        "… training part first": lambda *given: new_by_loop(*given)[::-1],
        "… training keeps all": lambda paragraphs, share: new_by_loop(
            [
                each
                for i, each in enumerate(paragraphs)
                if each.lower() not in map(str.lower, paragraphs[:i])
            ],
            share,
        ),
    },
    "text_repeated": {
        "… stands in the other copies": lambda text, share, times: repeated(text * times, share, 1),
        "… `times` times": lambda text, share, times: repeated(text, share, 1),
        "… stands there once.": lambda *given: [
            part * given[2] for part in repeated(*given[:2], 1)
        ],
    },
}

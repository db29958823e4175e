"""Right and wrong answers to the exercises of "Your text"."""

import math
import re
from unicodedata import normalize

import numpy as np

ZERO_ONE, HEX = "random digits 0 and 1", "random hexadecimal digits, 0 to f"
WIDE = "the same digits 0 to f, in UTF-16"
YES_NO = "random lines, each 'yes' or 'no!', without line ends"
AGAIN = "one page of a book, printed for ever"
LIMITS = {ZERO_ONE: 1, HEX: 4, WIDE: 2, YES_NO: 1 / 3, AGAIN: 0}


# Bits a byte
def bits(loss, tokens, content):
    return loss * tokens / math.log(2) / len(content)


# Encodings
def decode(content, last="cp1252", ends=("\r\n", "\n")):
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16").replace(*ends)
    try:
        return content.decode("utf-8-sig").replace(*ends)
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


def new_by_filter(paragraphs, share):
    first = len(paragraphs) - round(len(paragraphs) * share)
    training, small = list(paragraphs[:first]), [each.lower() for each in paragraphs[:first]]
    return [training, list(filter(lambda each: each.lower() not in small, paragraphs[first:]))]


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


def repeated_by_loop(text, share, times):
    cut, training = len(text) - round(len(text) * share), ""
    for _ in range(times):
        training += text[:cut]
    return [training, text[cut:]]


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
    "text_limits": [LIMITS, {name: float(number) for name, number in LIMITS.items()}],
    "text_bits": [
        lambda loss, tokens, content: np.log2(np.exp(loss)) / (len(content) / tokens),
        lambda loss, tokens, content: np.float64(loss) / np.log(2) * (tokens / len(content)),
    ],
    "text_decode": [decode_in_turn, decode_and_strip_the_mark],
    "text_new": [new_by_filter, new_by_loop],
    "text_repeated": [
        repeated_by_loop,
        lambda *given: ["".join(part) for part in repeated(*given)],
    ],
}

WRONG = {
    "text_limits": {"… only two bytes occur": LIMITS | {ZERO_ONE: 8}},
    "text_bits": {
        "normalised": (
            lambda loss, tokens, content: bits(
                loss, tokens, normalize("NFC", content.decode(errors="ignore")).encode()
            )
        ),
        "… That is in nats": lambda loss, tokens, content: loss * tokens / len(content),
        "… Bytes, not characters.": lambda loss, tokens, content: bits(
            loss, tokens, content.decode()
        ),
    },
    "text_decode": {
        "UTF-16 by its mark anywhere": (
            lambda content: decode(content[max(0, content.find(b"\xff\xfe")) :])
        ),
        "… latin-1 has controls": lambda content: decode(content, last="latin-1"),
        "… Replace": lambda content: decode(content, ends=("", "")),
        "… Every character stays": lambda content: normalize("NFKC", decode(content)),
        "… further inside, it is text": lambda content: decode(content).replace("\ufeff", ""),
    },
    "text_new": {
        "without punctuation": (new_without(r"[^\w\s]")),
        "… no test": lambda paragraphs, share: (
            new(paragraphs, share)[0],
            paragraphs[len(new(paragraphs, share)[0]) :],
        ),
        "… p[-0:]": new_from_the_end,
    },
    "text_repeated": {
        "… stands in the other copies": lambda text, share, times: repeated(text * times, share, 1),
        "… The test stands there once.": lambda text, share, times: tuple(
            part * times for part in repeated(text, share, 1)
        ),
    },
}

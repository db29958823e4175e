"""Right and wrong answers to the exercises of "Talk to a published model"."""

import numpy as np

from tinytorch import functional
from tinytorch_book.experiments.talking import SYSTEM

from . import guesses

GUESSES = {
    "bytes of a row of 576 numbers in four bits": {
        288: "a smallest number as well",
        324: "not one",
    },
    "special tokens of a prompt with a system message and one question": {
        4: "has been begun too",
        6: "not yet ended",
    },
    "numbers that a block learns": {
        3_982_464: "3 heads, not 9",
        2_655_360: "three matrices",
        3_538_944: "has two norms",
    },
    "numbers that a token leaves in the cache, in all blocks": {
        34_560: "Three heads of queries",
        5_760: "and a value too",
        384: "a cache of its own",
    },
}


def by_shift(stored):
    two = np.ascontiguousarray(stored[:, :4]).view("<f2").astype(float)
    q = (stored[:, None, 4:] >> np.array([[0], [4]], np.uint8)) % 16
    return two[:, :1] * q.reshape(-1, 32) + two[:, 1:]


def read_as(number):
    """The numbers of groups whose two bytes a function reads as one number."""

    def block(stored):
        scale, smallest = (number(np.ascontiguousarray(stored[:, i : i + 2])) for i in (0, 2))
        return scale * np.hstack([stored[:, 4:] % 16, stored[:, 4:] // 16]) + smallest

    return block


def as_the_package_does(tokenizer, messages):
    named = [{"role": "system", "content": SYSTEM}] if messages[0]["role"] != "system" else []
    return conversation(tokenizer, [*named, *messages])


def conversation(tokenizer, messages):
    plain, special = tokenizer.encode_ordinary, tokenizer.special_tokens
    ids = []
    for role, content in [*((m["role"], m["content"]) for m in messages), ("assistant", None)]:
        ids += [special["<|im_start|>"], *plain(f"{role}\n{content or ''}")]
        if content is not None:
            ids += [special["<|im_end|>"], *plain("\n")]
    return ids


def text_of(messages):
    text = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages)
    return text + "<|im_start|>assistant\n"


def as_text(tokenizer, messages):
    return tokenizer.encode(text_of(messages), allowed_special="all")


def all_letters(tokenizer, messages):
    return tokenizer.encode_ordinary(text_of(messages))


def induction(pattern):
    n = len(pattern) // 2
    return pattern[np.arange(n, 2 * n), np.arange(1, n + 1)].mean()


def pairs(load, ids):
    losses = []
    for name in ("halves", "neighbours"):
        logits = load(name)(ids)
        losses.append((functional.cross_entropy(logits[:, :-1], ids[:, 1:]).item(), name))
    return min(losses)[::-1]


ALONE = ("ids[:, :-1]", "ids[:, :-1].reshape(-1, 1)", "ids[:, 1:]", "ids[:, 1:].reshape(-1, 1)")
RIGHT = {
    "talk_block": [by_shift],
    "talk_template": [conversation],
    "talk_induction": [induction],
    "talk_rotary": [pairs],
}
WRONG = {
    "talk_predict": guesses(GUESSES),
    "talk_block": {
        "… not every other one": ("np.hstack([", "np.dstack([", "4])", "4]).reshape(-1, 32)"),
        "… along axis 1": ("np.hstack([", "np.vstack(["),
        "… then the smallest": ("scale * q + smallest", "smallest * q + scale"),
        "… and then >> 4": ("[stored[:, 4:] & 15, stored[:, 4:] >> 4]",
                            "[stored[:, 4:] >> 4, stored[:, 4:] & 15]"),
        "… in float16 the product is rounded": read_as(lambda two: two.view(np.float16)),
        "… before you multiply": (".astype(np.float32)\n    smallest", "\n    smallest"),
        "… a float16, not an integer": read_as(lambda two: two[:, :1] + 256.0 * two[:, 1:]),
        "… smallest number is added": ("scale * q + smallest", "scale * (q - np.float32(8))"),
    },
    "talk_template": {
        "… stays letters": as_text,
        "… became letters too": all_letters,
        "… Begin the answer": ('[*ids, start, *plain("assistant\\n")]', "ids"),
        "… not only the last": ("in messages", "in messages[-1:]"),
        "… Leave the blanks": ('message["content"])', 'message["content"].strip())'),
        "… follows each <|im_end|>": ('end, *plain("\\n")]', "end]"),
        "… the last role as well": ('plain("assistant\\n")', 'plain("assistant")'),
        "… A system message that was not given": as_the_package_does,
        "… model's to write": ('plain("assistant\\n")]', 'plain("assistant\\n"), end]'),
    },
    "talk_induction": {
        "… that followed it": ("1 - len(pattern) // 2)[1:]", "-len(pattern) // 2)"),
        "… seen nothing twice": ("[1:]", ""),
        "… last query counts too": ("[1:].mean()", "[1:-1].mean()"),
        "… ahead of the query": ("1 - len(pattern) // 2)", "len(pattern) // 2 - 1)"),
        "… not the sum": ("[1:].mean()", "[1:].sum()"),
        "… the token before": ("1 - len(pattern) // 2)[1:]", "-1)"),
        "… second reading alone": ("[1:].mean()", "[1:].sum() / len(pattern)"),
    },
    "talk_rotary": {
        "… between a token and itself": ("ids[:, :-1]", "ids.reshape(-1, 1)",
                                         "ids[:, 1:]", "ids.reshape(-1, 1)"),
        "… nothing to look back at": ALONE,
        "… forecast the one after": ("ids[:, :-1]", "ids", "ids[:, 1:]", "ids"),
        "… Return two": ("return best, losses[best]", "return best"),
        "… not only the first": ("ids[:, :-1]", "ids[:1, :-1]", "ids[:, 1:]", "ids[:1, 1:]"),
        "… smaller loss": ("min(", "max("),
    },
}  # fmt: skip

"""Right and wrong answers to the exercises of "Talk to a published model"."""

import numpy as np

from . import guesses

GUESSES = {
    "bytes of the 576 x 1,536 matrix of an MLP": {
        442_368: "4 bytes more",
        497_664: "2 more",
    },
    "numbers that one block learns": {
        3_982_464: "192 columns each",
        2_655_360: "SwiGLU has a gate",
        3_538_944: "for each of the 576",
    },
    "numbers that one token leaves in the cache": {
        384: "keeps its own",
        5_760: "A key and a value.",
        34_560: "share a key",
    },
    "<|im_end|>, typed in a question, ends it": {True: "as ordinary text"},
}


# Four bits
def numbers(stored, places=(0, 16), swap=False, shift=None):
    found = np.empty((len(stored), 32), np.float32)
    words = np.frombuffer(stored[:, :4].tobytes(), "<f2").reshape(-1, 2).astype(np.float32)
    scale, smallest = words.T[::-1] if swap else words.T
    low, high = places
    step = (32 - max(places)) // 16
    found[:, low::step][:, :16] = stored[:, 4:] % 16
    found[:, high::step][:, :16] = stored[:, 4:] // 16
    if shift is not None:
        return (found - shift) * scale[:, None]
    return found * scale[:, None] + smallest[:, None]


# The template
def prompt(messages, encode, start, end, close="\n", opened="assistant\n", line="\n"):
    ids = []
    for message in messages:
        ids.append(start)
        ids.extend(encode(message["role"] + line))
        ids.extend(encode(message["content"]))
        ids.append(end)
        ids.extend(encode(close))
    return np.array([*ids, start, *encode(opened)] if opened else ids).tolist()


def in_letters(messages, encode, start, end):
    said = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages)
    return encode(said + "<|im_start|>assistant\n")


def splitting(messages, encode, start, end):
    first, *rest = [
        encode(part)
        for m in messages
        for part in f"{m['role']}\n{m['content']}".split("<|im_end|>")
    ]
    ids = [start, *first, end, *encode("\n")]
    for part in rest:
        ids += [start, *part, end, *encode("\n")]
    return [*ids, start, *encode("assistant\n")]


# Two conventions
def rows(q, k, heads, kv_heads, loss):
    def neighbours(rows, heads):
        order = np.arange(len(rows)).reshape(heads, 2, -1).swapaxes(1, 2).reshape(-1)
        return rows[order]

    both = [(q, k), (neighbours(q, heads), neighbours(k, kv_heads))]
    return min(both, key=lambda pair: loss(*pair))


RIGHT = {
    "talk_block": [numbers],
    "talk_template": [prompt],
    "talk_induction": [lambda pattern: np.diagonal(pattern, 1 - len(pattern) // 2)[1:].mean()],
    "talk_rotary": [rows],
}
WRONG = {
    "talk_predict": guesses(GUESSES),
    "talk_block": {
        "one scale for all": ("halves[:, :1]", "halves[:1, :1]"),
        "… 16 places on": lambda stored: numbers(stored, places=(0, 1)),
        "… first sixteen": lambda stored: numbers(stored, places=(16, 0)),
        "… then the smallest": lambda stored: numbers(stored, swap=True),
        "… 0 stands for it": lambda stored: numbers(stored, shift=8),
    },
    "talk_template": {
        "… where the answer begins": lambda *given: prompt(*given, opened=""),
        "… follows each END": lambda *given: prompt(*given, close=""),
        "… between the role": ("\\n{message", " {message", '"assistant\\n"', '"assistant "'),
        "… letters of their names": in_letters,
        "… oldest first": ("in messages", "in messages[-1:]"),
        "… stays letters": splitting,
    },
    "talk_induction": {
        "… nothing has come twice": ("[len(pattern) // 2 :], 1", ", 1 - len(pattern) // 2"),
        "… *followed* it": (":], 1", ":]"),
        "… Rows are": ("pattern[", "pattern.T["),
    },
    "talk_rotary": {
        "… fewer heads": ("kv_heads)\n", "heads)\n"),
        "… loses *less*": ("<", ">"),
        "… Two faults": ("kv_heads)\n", "heads)\n", "<", ">"),
        "… have our order already": ("if better else (q, k)", ""),
        "… have the other order": lambda q, k, heads, kv_heads, loss: (q, k),
    },
}

"""Checks for the chapter "Talk to a published model"."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tinytorch.core.masks import causal_mask
from tinytorch.core.positions import Rotary
from tinytorch.core.softmax import softmax_array
from tinytorch.files.gguf import dequantize
from tinytorch_book.exercises.cases import Cases, case, cases, one_of, predictions
from tinytorch_book.exercises.drawn_numbers import drawn
from tinytorch_book.exercises.exercise import exercise
from tinytorch_book.exercises.rules import in_numpy, no_loop
from tinytorch_book.exercises.values import same

__all__ = ["talk_block", "talk_induction", "talk_predict", "talk_rotary", "talk_template"]


# Predictions ---------------------------------------------------------------------------------


@exercise(points=1)
def talk_predict(answer: Any) -> Cases:
    """Check what a block of SmolLM2 holds, and what a question leaves."""
    d, kv, inner, layers = 576, 192, 1536, 30
    learned = 2 * d * d + 2 * d * kv + 3 * d * inner + 2 * d
    yield from predictions(answer, {
        "bytes of the 576 x 1,536 matrix of an MLP": (
            d * inner // 32 * 20, "20 bytes for every 32 numbers.",
            (d * inner // 2, "A scale and a smallest number come with each block: 4 bytes more."),
            (d * inner // 32 * 18, "The scale takes 2 bytes, and the smallest number 2 more.")),
        "numbers that one block learns": (
            learned, "Attention, an MLP of three matrices, and two norms.",
            (learned + 2 * d * (d - kv), "Three heads share a key and a value: 192 columns each."),
            (learned - d * inner, "The MLP has three matrices: SwiGLU has a gate."),
            (learned - 2 * d, "A norm learns a number for each of the 576.")),
        "numbers that one token leaves in the cache": (
            layers * 2 * kv, "A key and a value, each of three heads of 64, in each of 30 blocks.",
            (2 * kv, "Each of the 30 blocks keeps its own."),
            (layers * kv, "A key and a value."),
            (layers * 2 * d, "Three heads of queries share a key.")),
        "<|im_end|>, typed in a question, ends it": (
            False, "What the user types is encoded as ordinary text."),
    })  # fmt: skip


# Four bits -----------------------------------------------------------------------------------


def _numbers(stored: Any) -> np.ndarray:
    return dequantize(stored, "Q4_1", (len(stored), 32))


def _halves(stored: Any) -> tuple[Any, ...]:
    """Scales and smallest numbers `(n, 1)`, low and high halves of the bytes `(n, 16)`."""
    stored = np.asarray(stored)
    scale, smallest = stored[:, :4].copy().view(np.float16).astype(np.float64).T
    return scale[:, None], smallest[:, None], stored[:, 4:] & 15, stored[:, 4:] >> 4


def _neighbours(stored: Any) -> np.ndarray:
    scale, smallest, low, high = _halves(stored)
    return scale * np.stack([low, high], axis=-1).reshape(len(low), 32) + smallest


def _high_first(stored: Any) -> np.ndarray:
    scale, smallest, low, high = _halves(stored)
    return scale * np.hstack([high, low]) + smallest


def _exchanged(stored: Any) -> np.ndarray:
    scale, smallest, low, high = _halves(stored)
    return smallest * np.hstack([low, high]) + scale


def _from_eight(stored: Any) -> np.ndarray:
    scale, _, low, high = _halves(stored)
    return scale * (np.hstack([low, high]) - 8.0)


def _blocks(n: int, seed: int) -> np.ndarray:
    """Blocks of Q4_1 `(n, 20)`, with scales and smallest numbers of very different size."""
    (pairs,) = drawn((n, 2), seed=seed)
    bits = (pairs * 10.0 ** np.arange(-3, n - 3)[:, None]).astype(np.float16).view(np.uint8)
    quarters = np.random.default_rng(seed).integers(0, 256, (n, 16))
    return np.hstack([bits, quarters.astype(np.uint8)])


@exercise(points=2, reference=_numbers, rules=[in_numpy, no_loop], mistakes=[
    (_neighbours, "A byte holds no neighbours: its high half belongs to a number 16 places on."),
    (_high_first, "The low half of a byte, & 15, belongs to the first sixteen."),
    (_exchanged, "The scale comes first, then the smallest number."),
    (_from_eight, "Add the smallest number; 0 stands for it."),
])  # fmt: skip
def talk_block(answer: Any) -> Cases:
    """Check blocks of four bits, read into numbers."""
    one = np.zeros((1, 20), np.uint8)
    one[0, :4] = np.array([0.5, -1], np.float16).view(np.uint8)
    one[0, 4:] = [16 * ((i + 3) % 16) + i for i in range(16)]
    bits = "Two bytes are a number of 16 bits: .view(np.float16)."
    yield from cases(answer, {
        "a block of round numbers": (bits, one),
        "six blocks": ("Each block has its own scale and smallest number.", _blocks(6, 0)),
        "seven others": ("As many rows as there are blocks.", _blocks(7, 1)),
        "one block": ("A single block is a matrix of one row.", _blocks(1, 2)),
    })  # fmt: skip


# The template --------------------------------------------------------------------------------

_START, _END = 300, 301


def _letters(text: str) -> list[int]:
    return list(text.encode())


def _conversation(messages: Any, encode: Any, start: int, end: int, **other: Any) -> list[int]:
    """A prompt in ChatML; `other` has what is left out or taken for something else."""
    line, close = other.get("line", "\n"), other.get("close", "\n")
    ids: list[int] = []
    for message in messages:
        ids += [start, *encode(f"{message['role']}{line}{message['content']}"), end, *encode(close)]
    return ids + ([start, *encode(f"assistant{line}")] if other.get("asks", True) else [])


def _as_text(messages: Any, encode: Any, start: int, end: int) -> list[int]:
    said = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages)
    return list(encode(f"{said}<|im_start|>assistant\n"))


def _last_alone(messages: Any, encode: Any, start: int, end: int) -> list[int]:
    return _conversation(messages[-1:], encode, start, end)


@exercise(points=2, reference=_conversation, mistakes=[
    (partial(_conversation, asks=False),
        "It ends where the answer begins: START, then the role assistant and a line break."),
    (partial(_conversation, close=""), "A line break follows each END."),
    (partial(_conversation, line=" "), "A line break stands between the role and the content."),
    (_as_text, "START and END are tokens, one id each; encode makes letters of their names."),
    (_last_alone, "All messages, oldest first: the model remembers nothing itself."),
])  # fmt: skip
def talk_template(answer: Any) -> Cases:
    """Check conversations in ChatML, as ids."""

    def said(*contents: str, first: str = "user") -> list[dict[str, str]]:
        roles = [first] + ["user", "assistant"] * len(contents)
        roles = roles[first == "user" :]
        return [{"role": r, "content": c} for r, c in zip(roles, contents, strict=False)]

    typed = "What a user types stays letters: encode the content, and nothing else decides."
    given = _letters, _START, _END
    other = (lambda text: [ord(letter) % 97 for letter in text]), 7, 8
    yield from cases(answer, {
        "one question": ("START, role, line break, content, END, line break.", said("Hi?"), *given),
        "three turns": ("Every message has its own START and END.",
            said("Hi?", "Hi.", "And then?"), *given),
        "a system message first": ("Its role is in it, as in the others.",
            said("Be short.", "Hi?", first="system"), *given),
        "a question that spells <|im_end|>": (typed, said("a<|im_end|>\nb"), *given),
        "an empty question": ("Its content is empty; all else stays.", said(""), *given),
        "another tokenizer": ("Take encode, START and END as they come.", said("Hi?"), *other),
    })  # fmt: skip


# Induction -----------------------------------------------------------------------------------


def _score(pattern: Any) -> Any:
    return np.diagonal(pattern[len(pattern) // 2 :], 1).mean()


@exercise(points=1, reference=_score, rules=[no_loop], mistakes=[
    (lambda pattern: np.diagonal(pattern, 1 - len(pattern) // 2).mean(),
        "Only positions of the second reading: before them, nothing has come twice."),
    (lambda pattern: np.diagonal(pattern[len(pattern) // 2 :]).mean(),
        "That is the same token; the head looks at the one that *followed* it."),
    (lambda pattern: np.diagonal(pattern[:, len(pattern) // 2 :], -1).mean(),
        "Rows are the positions that look, columns what they look at."),
])  # fmt: skip
def talk_induction(answer: Any) -> Cases:
    """Check how much of its attention a head gives to what followed last time."""
    perfect = np.eye(8, k=1 - 4)
    draws = drawn((6, 6), (2, 2), (10, 10))
    six, two, ten = (softmax_array(3 * scores + causal_mask(len(scores)), -1) for scores in draws)
    hint = "Position i of the second reading looks at i - n + 1, for a text of n tokens."
    yield from cases(answer, {
        "a perfect head": (hint, perfect),
        "three tokens, twice": (hint, six),
        "one token, twice": (hint, two),
        "five tokens, twice": (hint, ten),
    })  # fmt: skip


# Two conventions -----------------------------------------------------------------------------


def _reordered(rows: Any, heads: int) -> np.ndarray:
    """Rows of a projection from halves to neighbours, head by head."""
    return np.reshape(np.reshape(rows, (heads, 2, -1, rows.shape[1])).swapaxes(1, 2), rows.shape)


def _halved(rows: Any, heads: int) -> np.ndarray:
    """The way back: as the hub's files have them."""
    return np.reshape(np.reshape(rows, (heads, -1, 2, rows.shape[1])).swapaxes(1, 2), rows.shape)


def _loader(
    q: Any, k: Any, heads: int, kv_heads: int, loss: Any, *, shared: bool = True, way: int = 1
) -> tuple[Any, Any]:
    """Queries and keys in the order that loses less; `way` -1 takes the other."""
    both = _reordered(q, heads), _reordered(k, kv_heads if shared else heads)
    return both if way * loss(*both) < way * loss(q, k) else (q, k)


def _loss(q: np.ndarray, k: np.ndarray, heads: int, kv_heads: int) -> Callable[[Any, Any], float]:
    """How far the attention of other matrices is from that of these, as a cross-entropy."""
    (x,) = drawn((6, q.shape[1]), seed=5)
    rotate = Rotary(len(x), len(q) // heads)

    def pattern(q: Any, k: Any) -> np.ndarray:
        queries, keys = (
            rotate((x @ np.asarray(rows).T).reshape(len(x), n, -1).swapaxes(0, 1)).data
            for rows, n in ((q, heads), (k, kv_heads))
        )
        keys = np.repeat(keys, heads // kv_heads, axis=0)  # (heads, seq, d / h)
        return softmax_array(queries @ keys.swapaxes(1, 2) + causal_mask(len(x)), -1)

    right = pattern(q, k)
    return lambda q, k: float(-(right * np.log(pattern(q, k) + 1e-9)).sum(-1).mean())


def _orders(answer: Any, files: Any, heads: int, kv_heads: int, loss: Any) -> str:
    """In which order the answer returns the rows of two files, the hub's and one like ours."""
    told = []
    for name, (q, k) in zip(("the hub's file", "one like ours"), files, strict=True):
        result = answer(q, k, heads, kv_heads, loss)
        for what, right in zip(("queries", "keys"), files[1], strict=True):
            _, rows = one_of(what, "queries", "keys")
            order = "our order" if same(rows(result), right) else "another"
            told.append(f"{name}, {what} in {order}")
    return "; ".join(told)


@exercise(points=2, reference=_loader, run=_orders, mistakes=[
    (partial(_loader, shared=False),
        "The keys have fewer heads than the queries: another number of rows is one head."),
    (partial(_loader, way=-1), "The right order is the one that loses *less*."),
    (partial(_loader, shared=False, way=-1),
        "Two faults: which loss is better, and how many heads the keys have."),
    (lambda q, k, heads, kv_heads, loss: (_reordered(q, heads), _reordered(k, kv_heads)),
        "A file may have our order already: ask the loss."),
    (lambda q, k, heads, kv_heads, loss: (q, k), "A file may have the other order: ask the loss."),
])  # fmt: skip
def talk_rotary(answer: Any) -> Cases:
    """Check a loader that finds out by a loss which pairs a file rotates."""
    for heads, kv_heads, seed in ((2, 2, 2), (4, 2, 0), (4, 1, 1)):
        q, k = drawn((8 * heads, 6), (8 * kv_heads, 6), seed=seed)
        files = (_halved(q, heads), _halved(k, kv_heads)), (q, k)
        claim = f"{heads} heads of queries, {kv_heads} of keys"
        hint = "Reorder each by its own number of heads; keep what loses less."
        yield case(claim, answer, files, heads, kv_heads, _loss(q, k, heads, kv_heads), hint=hint)

"""Evaluation: the surprise of a model at text that it has not read."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

import numpy as np

from tinytorch.core import functional
from tinytorch.core.arguments import check_ids, check_sizes
from tinytorch.core.grad_mode import no_grad
from tinytorch.core.module import evaluation_mode
from tinytorch.core.types import Model, TokenIds
from tinytorch.text.tokenization import BPETokenizer


def surprise(model: Model, inputs: TokenIds, targets: TokenIds, batch_size: int = 16) -> np.ndarray:
    """How surprised a model is by every token: `-log p(target | everything before it)`, in nats.

    Args:
        model: maps ids `(batch, seq)` to logits `(batch, seq, vocab)`.
        inputs: integer ids `(n, seq)`.
        targets: the ids that follow, `(n, seq)`.
        batch_size: how many rows the model reads at a time.

    Returns:
        `(n, seq)` in float64. Dropout is off meanwhile, and no gradient is recorded.

    Example:
        >>> from tinytorch import GPT
        >>> surprise(GPT(5, 8, 1, 2, max_seq_len=4), [[1, 2, 3]], [[2, 3, 4]]).shape
        (1, 3)
    """
    inputs, targets = check_windows(model, inputs, targets)
    check_sizes(batch_size=batch_size)
    result = np.empty(inputs.shape)
    with evaluation_mode(), no_grad():
        for first in range(0, len(inputs), batch_size):
            rows = slice(first, first + batch_size)
            log_probs = functional.log_softmax(model(inputs[rows])).data
            check_ids(targets[rows], log_probs.shape[-1], "target", "was another tokenizer used?")
            result[rows] = -np.take_along_axis(log_probs, targets[rows, :, None], axis=-1)[..., 0]
    return result


def check_windows(
    model: Model, inputs: TokenIds, targets: TokenIds
) -> tuple[np.ndarray, np.ndarray]:
    """The windows as arrays, provided that a model of known sizes can read and score them."""
    inputs, targets = np.asarray(inputs), np.asarray(targets)
    if inputs.shape != targets.shape or inputs.ndim != 2 or not inputs.size:
        got = f"got shapes {inputs.shape} and {targets.shape}"
        raise ValueError(f"inputs and targets must both be (n, seq), not empty; {got}")
    most = getattr(model, "max_seq_len", inputs.shape[1])
    if inputs.shape[1] > most:
        what = f"windows of {inputs.shape[1]} tokens exceed max_seq_len {most}"
        raise ValueError(f"{what}; cut them shorter")
    for name, ids in (("input", inputs), ("target", targets)):
        vocabulary = getattr(model, "vocab_size", np.iinfo(np.int64).max)
        check_ids(ids, vocabulary, name, "was another tokenizer used?")
    return inputs, targets


def evaluate(model: Model, inputs: TokenIds, targets: TokenIds, batch_size: int = 16) -> float:
    """The mean loss of a model on held-out windows, in nats a token.

    Args:
        model: maps ids `(batch, seq)` to logits.
        inputs: integer ids `(n, seq)`.
        targets: the ids that follow, `(n, seq)`.
        batch_size: how many rows the model reads at a time.

    Example:
        >>> from tinytorch import GPT
        >>> loss = evaluate(GPT(5, 8, 1, 2, max_seq_len=4, rng=0), [[1, 2, 3]], [[2, 3, 4]])
        >>> bool(abs(loss - np.log(5)) < 0.1)  # a new model guesses
        True
    """
    return float(surprise(model, inputs, targets, batch_size).mean())


def character_surprise(
    model: Model, tokenizer: BPETokenizer, text: str, before: str = "\n"
) -> np.ndarray:
    r"""How surprised a model is by every character of a text, although it reads tokens.

    A token is certain only once its last byte has been read. After some of its bytes, all tokens
    that begin with them are still possible. Their total probability, divided by the total one byte
    earlier, is the probability of that byte. So the surprise of a token is divided among its
    characters, and their sum is the token's.

    Args:
        model: maps ids `(batch, seq)` to logits `(batch, seq, vocab)`.
        tokenizer: the model's tokenizer.
        text: the text, at most as long as the model can read at once.
        before: what the model reads before the text; it must end with a complete token.

    Returns:
        One number of nats for each character, in float64.

    Raises:
        ValueError: a text is empty, a token reaches from `before` into `text`, or the text is
            longer than the model's `max_seq_len`.

    Example:
        >>> from tinytorch import GPT
        >>> tokenizer = BPETokenizer.train("low lower lowest", 258)
        >>> new = GPT(tokenizer.vocab_size, 8, 1, 2, max_seq_len=8, rng=0)
        >>> nats = character_surprise(new, tokenizer, "low!")  # tokens: low, !
        >>> bool(abs(nats.sum() - 2 * np.log(258)) < 0.1)  # a new model guesses
        True
    """
    skip = len(tokenizer.encode_ordinary(before))
    ids = np.array(tokenizer.encode_ordinary(before + text))
    pieces = tokenizer.pieces(before + text)
    if not skip or not text or b"".join(pieces[:skip]) != before.encode():
        rule = "neither text may be empty, and before must end with a whole token, as \\n does"
        raise ValueError(f"character_surprise: {rule}; got {before!r} before {text[:20]!r}")
    with evaluation_mode(), no_grad():
        log_probs = functional.log_softmax(model(ids[None, :-1])).data[0]
    spelled = sorted(tokenizer.ranks)  # tokens with the same beginning are neighbours
    in_order = log_probs[skip - 1 :, [tokenizer.ranks[t] for t in spelled]].astype(float)
    nats: list[float] = []
    for row, token in zip(in_order, pieces[skip:], strict=True):
        possible = [np.logaddexp.reduce(row[tokens]) for tokens in _still_possible(spelled, token)]
        held = np.minimum.accumulate([0.0, *possible])  # logs; rounding must not let them grow
        left = held[held > -np.inf]  # after a byte that cannot come nothing is a surprise
        nats += np.append(left[:-1] - left[1:], [np.inf, *[0.0] * len(held)])[: len(token)].tolist()
    width = [len(character.encode()) for character in text]
    return np.add.reduceat(nats, np.cumsum([0, *width[:-1]]))


def _still_possible(spelled: list[bytes], token: bytes) -> Iterator[slice]:
    """The tokens in the sorted vocabulary that begin with the first 1, 2, ... bytes of a token.

    After its last byte only the token itself is left: the next token shows that it has ended.
    """
    beyond = b"\xff" * max(map(len, spelled))
    for length in range(1, len(token)):
        begun = token[:length]
        yield slice(bisect_left(spelled, begun), bisect_right(spelled, begun + beyond))
    index = bisect_left(spelled, token)
    yield slice(index, index + 1)

"""Text from a model as it comes: each piece as soon as its characters are complete."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tinytorch.core.types import WindowedModel
from tinytorch.models.generation import stream
from tinytorch.text.bpe_tokenizer import BPETokenizer
from tinytorch.text.chat import IM_END, chatml_prompt

__all__ = ["stream_answer", "stream_text"]


def stream_text(
    model: WindowedModel,
    tokenizer: BPETokenizer,
    prompt: str,
    max_new_tokens: int = 50,
    **options: Any,
) -> Iterator[str]:
    """Continue a text, yielding each piece as soon as it is known.

    A token may be part of a character: it is held back until the character is complete. The text
    ends before `<|endoftext|>`, if the tokenizer has that.

    Args:
        model: a model that `stream` takes.
        tokenizer: its tokenizer.
        prompt: the beginning; an empty one means `<|endoftext|>`, the start of a document.
        max_new_tokens: how many tokens to write at most.
        options: those of `stream`, such as `temperature`, `top_k`, `top_p` and `rng`.

    Returns:
        An iterator over the generated pieces, without the prompt.

    Raises:
        ValueError: as for `stream`, or the prompt is empty and there is no `<|endoftext|>`.

    Example:
        >>> from tinytorch import GPT
        >>> tokenizer = BPETokenizer.train("to be or not to be", 260)
        >>> model = GPT(260, 8, 1, 2, max_seq_len=16, rng=0)
        >>> text = "".join(stream_text(model, tokenizer, "to", 5, rng=0))
        >>> text == "".join(stream_text(model, tokenizer, "to", 5, rng=0))
        True
    """
    end = tokenizer.special_tokens.get("<|endoftext|>")
    ids = tokenizer.encode(prompt, "all") or ([end] if end is not None else [])
    if not ids:
        raise ValueError("stream_text: the prompt is empty; give the model a word to begin with")
    stops = [] if end is None else [end]
    new = stream(model, ids, max_new_tokens, **{"stop_tokens": stops, **options})
    return _decoded(new, tokenizer, {end})


def stream_answer(
    model: WindowedModel,
    tokenizer: BPETokenizer,
    messages: Sequence[Mapping[str, str]],
    system: str | None = None,
    max_new_tokens: int = 200,
    **options: Any,
) -> Iterator[str]:
    """Answer in a conversation, yielding each piece as soon as it is known.

    Args:
        model: a model that `stream` takes.
        tokenizer: its tokenizer, with the special tokens of ChatML.
        messages: as for `tinytorch.text.chat.chatml_prompt`, the last of the user.
        system: as for `chatml_prompt`.
        max_new_tokens: how many tokens to write at most.
        options: those of `stream`, but for `stop_tokens`.

    Returns:
        An iterator over the pieces of the answer, without the special token that ends it.

    Raises:
        ValueError: as for `stream` and `chatml_prompt`.

    Example:
        >>> from tinytorch import GPT
        >>> from tinytorch.text.chat import IM_START, add_special_tokens
        >>> chat = add_special_tokens(BPETokenizer.train("", 256), [IM_START, IM_END])
        >>> model = GPT(258, 8, 1, 2, max_seq_len=64, rng=0)
        >>> answer = stream_answer(model, chat, [{"role": "user", "content": "Hi"}], rng=0)
        >>> len("".join(answer)) > 0
        True
    """
    ids = chatml_prompt(tokenizer, messages, system)
    ends = {tokenizer.special_tokens[IM_END], tokenizer.special_tokens.get("<|endoftext|>")}
    stops = [end for end in ends if end is not None]
    new = stream(model, ids, max_new_tokens, **{**options, "stop_tokens": stops})
    return _decoded(new, tokenizer, ends)


def _decoded(
    tokens: Iterator[np.ndarray], tokenizer: BPETokenizer, hidden: set[int | None]
) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for new in tokens:
        if int(new[0]) not in hidden and (piece := decoder.decode(tokenizer.decode_bytes(new))):
            yield piece
    if rest := decoder.decode(b"", final=True):
        yield rest

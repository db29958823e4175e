"""A chat template: special tokens say who speaks, and only the answer is learned.

``text <|user|> question <|assistant|> answer <|end|>``

The names are special tokens, each one id, which no text can spell by accident. A model reads such a
row like any other, but its loss counts the answer and the `<|end|>` alone: all other targets are
`IGNORED`, which `cross_entropy` leaves out with `ignore_index=IGNORED`.

Published models have templates of their own, such as ChatML, the one of SmolLM2 (`chatml_prompt`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from tinytorch.text.bpe_tokenizer import BPETokenizer
from tinytorch.text.special_tokens import checked_names

__all__ = ["ASSISTANT", "CHAT_TOKENS", "END", "IGNORED", "IM_END", "IM_START", "USER",
           "add_special_tokens", "answer_rows", "chat_answer", "chat_prompt", "chatml_prompt",
           "chatml_system"]  # fmt: skip

#: Before a question.
USER = "<|user|>"
#: Before an answer.
ASSISTANT = "<|assistant|>"
#: After an answer.
END = "<|end|>"
#: The special tokens of the template, in the order of their ids.
CHAT_TOKENS = (USER, ASSISTANT, END)
#: Before a message in ChatML.
IM_START = "<|im_start|>"
#: After a message in ChatML.
IM_END = "<|im_end|>"
#: A target that is not to be learned.
IGNORED = -100


def add_special_tokens(tokenizer: BPETokenizer, names: Sequence[str] = CHAT_TOKENS) -> BPETokenizer:
    """The same tokenizer with more special tokens, whose ids follow those that are there.

    Args:
        tokenizer: stays as it is.
        names: the names of the new tokens.

    Raises:
        ValueError: a name is there already.

    Example:
        >>> chat = add_special_tokens(BPETokenizer.train("low low", 258))
        >>> chat.special_tokens
        {'<|user|>': 258, '<|assistant|>': 259, '<|end|>': 260}
    """
    known, first = tokenizer.special_tokens, tokenizer.vocab_size
    if twice := [name for name in checked_names(names) if name in known]:
        raise ValueError(f"{twice[0]!r} is a special token already; leave it out")
    specials = {**known, **{name: first + i for i, name in enumerate(names)}}
    return BPETokenizer(tokenizer.ranks, specials, tokenizer.merge_ranks, tokenizer.pretokenizer)


def chat_prompt(tokenizer: BPETokenizer, text: str, question: str) -> list[int]:
    """The ids up to where the answer begins: text, `<|user|>`, question, `<|assistant|>`.

    Text and question are ordinary: the name of a special token in them is only its letters.

    Example:
        >>> chat = add_special_tokens(BPETokenizer.train("low low", 258))
        >>> chat_prompt(chat, "low", "?")
        [257, 258, 63, 259]
    """
    user, assistant = (tokenizer.special_tokens[name] for name in (USER, ASSISTANT))
    said, asked = tokenizer.encode_ordinary(text), tokenizer.encode_ordinary(question)
    return [*said, user, *asked, assistant]


def chat_answer(tokenizer: BPETokenizer, answer: str) -> list[int]:
    """The ids of an answer, with the space before it, and `<|end|>`.

    Example:
        >>> chat = add_special_tokens(BPETokenizer.train("low low", 258))
        >>> chat_answer(chat, "low")
        [32, 257, 260]
    """
    return [*tokenizer.encode_ordinary(f" {answer}"), tokenizer.special_tokens[END]]


def answer_rows(
    chats: Sequence[tuple[Sequence[int], Sequence[int]]], whole: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Prompts and answers as inputs and targets of equal length, in which the answers count.

    Args:
        chats: the ids of each prompt and of its answer, neither of them empty.
        whole: count the prompt's tokens as well, all but the first, which nothing forecasts.

    Returns:
        Inputs and targets `(n, seq)`, as long as the longest row. Inputs are filled with 0 and
        targets with `IGNORED` after a row's end.

    Raises:
        ValueError: there are no chats, or one lacks a prompt or an answer.

    Example:
        >>> inputs, targets = answer_rows([([5, 6, 7], [8, 9]), ([5], [9])])
        >>> inputs.tolist(), targets.tolist()
        ([[5, 6, 7, 8], [5, 0, 0, 0]], [[-100, -100, 8, 9], [9, -100, -100, -100]])
    """
    if not chats or not all(len(prompt) and len(answer) for prompt, answer in chats):
        raise ValueError("answer_rows: pass at least one chat, each with a prompt and an answer")
    longest = max(len(prompt) + len(answer) for prompt, answer in chats) - 1
    inputs = np.zeros((len(chats), longest), dtype=np.int64)
    targets = np.full((len(chats), longest), IGNORED, dtype=np.int64)
    for row, (prompt, answer) in enumerate(chats):
        ids = [*prompt, *answer]
        first = 0 if whole else len(prompt) - 1  # it forecasts the answer's first token
        inputs[row, : len(ids) - 1] = ids[:-1]
        targets[row, first : len(ids) - 1] = ids[first + 1 :]
    return inputs, targets


def chatml_prompt(
    tokenizer: BPETokenizer, messages: Sequence[Mapping[str, str]], system: str | None = None
) -> list[int]:
    r"""The ids of a conversation in ChatML, up to where the answer of the assistant begins.

    A message is ``<|im_start|>role\ncontent<|im_end|>\n``, and so the answer ends at `<|im_end|>`.
    Roles and contents are ordinary: `<|im_end|>` in them is only its letters.

    Args:
        tokenizer: has the special tokens `IM_START` and `IM_END`.
        messages: objects with a role (`system`, `user`, `assistant`) and a content, oldest first.
        system: what to begin with where the first message is not of the system; see
            `chatml_system`.

    Raises:
        ValueError: there are no messages, or the tokenizer lacks the special tokens.

    Example:
        >>> chat = add_special_tokens(BPETokenizer.train("", 256), [IM_START, IM_END])
        >>> chat.decode(chatml_prompt(chat, [{"role": "user", "content": "Hi"}]))
        '<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n'
    """
    if not messages or not {IM_START, IM_END} <= tokenizer.special_tokens.keys():
        what = f"at least one message, and a tokenizer with the special tokens {IM_START!r}"
        raise ValueError(f"chatml_prompt: pass {what} and {IM_END!r}")
    if system is not None and messages[0]["role"] != "system":
        messages = [{"role": "system", "content": system}, *messages]
    start, end = (tokenizer.special_tokens[name] for name in (IM_START, IM_END))
    ids: list[int] = []
    for message in messages:
        said = tokenizer.encode_ordinary(f"{message['role']}\n{message['content']}")
        ids += [start, *said, end, *tokenizer.encode_ordinary("\n")]
    return [*ids, start, *tokenizer.encode_ordinary("assistant\n")]


# The template in SmolLM2's files: its loop, what begins and ends the system line, and the rest.
_CHATML = (
    "{% for message in messages %}",
    "{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\n",
    "<|im_end|>\n' }}{% endif %}",
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
)


def chatml_system(template: str | None) -> str | None:
    """The system line with which a file's chat template begins a conversation, if any.

    Args:
        template: what a file calls its `chat_template`; None stands for a file that has none.

    Raises:
        ValueError: the template is not ChatML, letter by letter as SmolLM2 has it, with a system
            line of its own or none.

    Example:
        >>> chatml_system("{{ bos_token }}[INST] ...")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        ValueError: the chat template '{{ bos_token }}[INST] ...' is not ChatML; ...
    """
    loop, before, after, rest = map(re.escape, _CHATML)
    pattern = rf"{loop}(?:{before}([^'\\]*){after})?{rest}"
    match = re.fullmatch(pattern, (template or "").replace("\\n", "\n"))
    if match is None:
        what = f"the chat template {template!r:.60} is not ChatML"
        remedy = "put the prompt together as it says, with encode(..., allowed_special='all')"
        raise ValueError(f"{what}; {remedy}")
    return match[1]

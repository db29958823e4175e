"""A conversation with a published model, and what it could have said instead.

The panel *Talk to it* of the page runs this. It passes every message each time, so a conversation
goes on where another Python has begun; what the model has read of it is not read again.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TypedDict

import numpy as np

from tinytorch.core.grad_mode import no_grad
from tinytorch.core.held_parts import Snapshot
from tinytorch.core.hooks import hooks
from tinytorch.core.module import evaluation_mode
from tinytorch.core.seeding import default_rng
from tinytorch.core.types import Rng
from tinytorch.inside.stream import logit_lens, residual_stream, stage_name
from tinytorch.models.generation import logits_of
from tinytorch.models.kv_cache import KVCache
from tinytorch.models.sampling import next_token_probs, next_tokens
from tinytorch.models.transformer import GPT
from tinytorch.text.bpe_tokenizer import BPETokenizer
from tinytorch.text.chat import IM_END, chatml_prompt

__all__ = ["SYSTEM", "Said", "Talk"]

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
_CHUNK = 256  # tokens of a prompt that are read in one pass
_OTHERS = 5

Messages = Sequence[Mapping[str, str]]


class Said(TypedDict):
    """A token of an answer.

    `text` is what it completes, nothing while a character is not whole; `name` are its own bytes.
    `share` is its probability before the temperature, and `others` the names and probabilities of
    the five likeliest besides.
    """

    id: int
    text: str
    name: str
    share: float
    others: list[tuple[str, float]]


class Talk:
    """Answers in ChatML, token by token.

    Args:
        model: a GPT.
        tokenizer: its tokenizer, with the special tokens of ChatML.
        system: the first message of every conversation; None for none.
        window: how many tokens a conversation may have.

    Raises:
        ValueError: the model's window is shorter.

    Example:
        >>> from tinytorch.text.chat import IM_START, add_special_tokens
        >>> tokenizer = add_special_tokens(BPETokenizer.train("", 256), [IM_START, IM_END])
        >>> talk = Talk(GPT(258, 8, 2, 2, rng=0), tokenizer, system=None)
        >>> asked = [{"role": "user", "content": "Hi"}]
        >>> said = [*talk.answer(asked, 3)]
        >>> len(said), len(said[0]["others"])
        (3, 5)
        >>> talk.first_choice(asked, [token["id"] for token in said]) in (0, 1, 2)
        True
    """

    def __init__(
        self, model: GPT, tokenizer: BPETokenizer, system: str | None = SYSTEM, window: int = 1024
    ) -> None:
        if window > model.max_seq_len:
            raise ValueError(f"Talk: window must be at most {model.max_seq_len}, got {window}")
        self.model, self.tokenizer, self.system, self.window = model, tokenizer, system, window
        self._begin()

    def answer(
        self,
        messages: Messages,
        max_new_tokens: int = 200,
        temperature: float = 0.0,
        rng: Rng = None,
        begun: str = "",
    ) -> Iterator[Said]:
        """Answer the last message, yielding each token as soon as it is known.

        The answer ends before `<|im_end|>`, after `max_new_tokens`, or where the window is full.

        Args:
            messages: those of the conversation, each with a role and a content, oldest first.
            max_new_tokens: how many tokens to write at most.
            temperature: 0 takes the likeliest token every time.
            rng: a generator, a seed, or None for the default generator.
            begun: how the answer begins; the model goes on from there.

        Raises:
            ValueError: the messages alone fill the window, or an option is outside its range.
        """
        ids, rngs = self._prompt(messages), [default_rng(rng)]
        ids += self.tokenizer.encode_ordinary(begun)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for _ in range(min(max_new_tokens, self.window - len(ids) + 1)):
            scores = self._scores(ids)
            new = int(next_tokens(scores, rngs, temperature)[0])
            if new == self.tokenizer.special_tokens[IM_END]:
                return
            ids.append(new)
            yield self._said(new, next_token_probs(scores[0]), decoder)

    def first_choice(self, messages: Messages, said: Sequence[int]) -> int | None:
        """From which block on the last token of an answer was the first choice.

        The model's last norm and output layer read the residual stream after each block: the logit
        lens of `tinytorch.inside.stream`.

        Args:
            messages: those before the answer.
            said: the ids of the answer, up to the token in question.

        Returns:
            How many blocks it takes until this token is the likeliest and stays so; None if it is
            not even at the end.
        """
        ids = [*self._prompt(messages), *said]
        likeliest = logit_lens(self.model, self._stream(ids[:-1])).argmax(-1)  # (layers + 1,)
        stays = sum(1 for _ in takewhile(lambda token: token == ids[-1], likeliest[::-1]))
        return len(likeliest) - stays if stays else None

    def _prompt(self, messages: Messages) -> list[int]:
        ids = chatml_prompt(self.tokenizer, messages, self.system)
        if len(ids) > self.window:
            what = f"the conversation has {len(ids)} tokens, and {self.window} fit"
            raise ValueError(f"Talk: {what}; begin a new one")
        return ids

    def _begin(self) -> None:
        """Forget what has been read."""
        self._parts = Snapshot(self.model)
        self._read: list[int] = []
        caches = self.model.new_cache() is not None  # with parts that continue from one
        self._cache = KVCache(len(self.model.blocks), self.window) if caches else None
        self._logits = logits_of(self.model, self._cache)

    def _scores(self, ids: list[int]) -> np.ndarray:
        """The scores after these tokens, `(1, vocab_size)`; read are those that are new."""
        if not self._parts.is_current():
            self._begin()
        same = 0
        if self._cache is not None:
            pairs = zip(self._read, ids[:-1], strict=False)
            same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            self._cache.forget(same)
        del self._read[same:]
        step = len(ids) if self._cache is None else _CHUNK
        with evaluation_mode(), no_grad():
            for first in range(same, len(ids), step):
                new = ids[first : first + step]
                scores = self._logits(np.array([new]))
                self._read += new
        return scores

    def _stream(self, ids: list[int]) -> np.ndarray:
        """The residual stream of the last token, `(layers + 1, embed_dim)`; the rest is cached."""
        if self._cache is None:
            return residual_stream(self.model, [ids])[:, 0, -1]
        self._scores(ids[:-1])
        found: list[np.ndarray] = []
        stages = map(stage_name, range(len(self.model.blocks) + 1))
        after = dict.fromkeys(stages, lambda value: found.append(value.data[0, -1]))
        with hooks(self.model, after=after), evaluation_mode(), no_grad():
            self.model([ids[-1:]], cache=self._cache)
        return np.stack(found)

    def _said(self, new: int, probs: np.ndarray, decoder: codecs.IncrementalDecoder) -> Said:
        text = decoder.decode(self.tokenizer.decode_bytes([new]))
        likely = np.argpartition(-probs, _OTHERS)[: _OTHERS + 1]
        others = [i for i in likely[np.argsort(-probs[likely])].tolist() if i != new][:_OTHERS]
        named = [(self._name(i), round(float(probs[i]), 6)) for i in others]
        share = round(float(probs[new]), 6)
        return {"id": new, "text": text, "name": self._name(new), "share": share, "others": named}

    def _name(self, token: int) -> str:
        return self.tokenizer.decode_bytes([token]).decode("utf-8", "backslashreplace")

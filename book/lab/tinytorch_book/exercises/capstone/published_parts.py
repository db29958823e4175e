"""A published model that runs in the parts that its reader has written.

A Llama is cut into eight functions, each as an exercise of the book asks for it. Where the reader
has solved the exercise theirs is taken, after a trial on a small model, otherwise the package's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from tinytorch.core import functional
from tinytorch.core.attention import MultiHeadAttention
from tinytorch.core.positions import rotate_pairs
from tinytorch.core.primitive import as_operand
from tinytorch.core.seeding import default_rng
from tinytorch.models.llama_parts import RMSNorm, SwiGLU
from tinytorch.models.sampling import next_token_probs
from tinytorch.models.transformer import GPT
from tinytorch.text.bpe_fast import join_by_rank
from tinytorch.text.bpe_tokenizer import BPETokenizer
from tinytorch.text.chat import IM_END, IM_START, add_special_tokens, chatml_prompt
from tinytorch_book.exercises.capstone.parts import PUBLISHED_PARTS, Part, kept_parts

__all__ = ["InParts", "in_parts"]

Functions = Mapping[str, Callable[..., Any]]


class InParts:
    """A Llama in eight functions, from a text to an answer. Its `repr` says who wrote each.

    Args:
        model: a GPT of `RMSNorm`, `SwiGLU`, rotary positions and grouped queries.
        tokenizer: its tokenizer.
        functions: the functions, by the names of `PUBLISHED_PARTS`.
        yours: the names of those that the reader wrote.
        reasons: why one of the reader's was left out, by its name.

    Example:
        >>> in_parts(*small_llama(), parts={})  # doctest: +ELLIPSIS
        0 of the published model's 8 parts are yours
          [ ] encode: the package's; solve bpe_encode
          ...
    """

    def __init__(
        self,
        model: GPT,
        tokenizer: BPETokenizer,
        functions: Functions,
        yours: Sequence[str] = (),
        reasons: Mapping[str, str] | None = None,
    ) -> None:
        self.model, self.functions = model, functions
        self.tokenizer = OwnTokenizer(tokenizer, functions["encode"])
        self.yours, self.reasons = tuple(yours), dict(reasons or {})

    def __repr__(self) -> str:
        mine, total = len(self.yours), len(PUBLISHED_PARTS)
        lines = [f"{mine} of the published model's {total} parts are yours"]
        for name, (check, does) in PUBLISHED_PARTS.items():
            if name in self.yours:
                lines.append(f"  [x] {name}: {does}")
            elif name in self.reasons:
                lines.append(f"  [ ] yours is left out, {name}: {self.reasons[name]}")
            else:
                lines.append(f"  [ ] {name}: the package's; solve {check}")
        return "\n".join(lines)

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        """The scores of what comes after each of these tokens, `(seq, vocab_size)`."""
        return self._read(ids, self._new_cache())

    def answer(
        self, messages: Sequence[Mapping[str, str]], system: str | None = None, most: int = 50
    ) -> str:
        """The likeliest answer to the last message, of at most so many tokens."""
        unread = chatml_prompt(self.tokenizer, messages, system)
        end, said, cache = self.tokenizer.special_tokens[IM_END], list[int](), self._new_cache()
        for _ in range(most):
            probs = next_token_probs(self._read(unread, cache)[-1:], 0.0)  # (1, vocab)
            unread = [int(self.functions["draw"](probs, np.array([0.5]))[0])]
            if unread == [end]:
                break
            said += unread
        return self.tokenizer.decode(said)

    # One reading ------------------------------------------------------------------------------

    def _new_cache(self) -> list[list[np.ndarray]]:
        """Keys and values `(kv heads, 0, d / h)` of each block."""
        empty = [block.attention for block in self.model.blocks]
        return [[np.zeros((a.num_kv_heads, 0, a.head_dim), np.float32)] * 2 for a in empty]

    def _read(self, ids: Sequence[int], cache: list[list[np.ndarray]]) -> np.ndarray:
        x = np.asarray(self.model.token_embedding(np.array(ids)).data)  # (seq, d)
        for block, cached in zip(self.model.blocks, cache, strict=True):
            parts = (
                self._norm(block.ln1),
                partial(self._attend, block.attention, cached),
                self._norm(block.ln2),
                partial(self._mlp, block.mlp),
            )
            x = _array(self.functions["block"](x, *parts, True))
        x, table = self._norm(self.model.ln_f)(x), self.model.token_embedding
        if hasattr(table, "scores"):  # the table is stored in blocks
            return _array(table.scores(x))
        return x @ table.weight.data.T  # (seq, vocab_size)

    def _norm(self, norm: RMSNorm) -> Callable[[Any], np.ndarray]:
        divide = self.functions["RMS norm"]
        return lambda x: _array(divide(_array(x), eps=norm.eps)) * norm.gamma.data

    def _mlp(self, mlp: SwiGLU, x: Any) -> np.ndarray:
        with np.errstate(over="ignore"):  # exp(-x) of a gate that is far below 0
            gates = _array(self.functions["gate"](_array(mlp.gate(_array(x)))))
        return _array(mlp.linear2(gates * _array(mlp.linear1(_array(x)))))

    def _attend(self, layer: MultiHeadAttention, cached: list[np.ndarray], x: Any) -> np.ndarray:
        heads, kv_heads = layer.num_heads, layer.num_kv_heads
        pairs = ((layer.q_proj, heads), (layer.k_proj, kv_heads), (layer.v_proj, kv_heads))
        q, k, v = (_split(_array(part(_array(x))), n) for part, n in pairs)  # (heads, seq, d / h)
        past, times = cached[0].shape[1], heads // kv_heads
        q, k = (self._rotated(each, past, layer.rotate) for each in (q, k))
        if q.shape[1] > 1:  # a text, read at once
            if past:
                raise ValueError("InParts: a text is read before the first token is written")
            cached[:] = [k, v]
            mask = np.triu(np.full((len(q[0]), len(q[0])), -np.inf), 1)
            alike = (np.repeat(each, times, axis=0) for each in (k, v))
            mixed = self.functions["attention"](q, *alike, mask)
        else:
            mixed = self._step(q[:, 0], k[:, 0], v[:, 0], cached)[:, None]
        return _array(layer.out_proj(np.concatenate([*_array(mixed)], axis=-1)))

    def _step(
        self, q: np.ndarray, k: np.ndarray, v: np.ndarray, cached: list[np.ndarray]
    ) -> np.ndarray:
        """What each head mixes for one new token, `(heads, d / h)`; its keys join the cache."""
        times, mixed, kept = len(q) // len(k), [], []
        for head, query in enumerate(q):
            group = head // times
            before = cached[0][group], cached[1][group]
            out, *both = self.functions["cached step"](query, k[group], v[group], *before)
            mixed.append(_array(out))
            if head % times == 0:
                kept.append(both)
        cached[:] = [np.stack([_array(pair[i]) for pair in kept]) for i in (0, 1)]
        return np.stack(mixed)

    def _rotated(self, x: np.ndarray, past: int, rotary: Any) -> np.ndarray:
        """Queries or keys `(heads, seq, d / h)`, rotated at their positions.

        The exercise's base is 10,000. A pair by itself is rotated by its position whatever the
        base: so each pair comes as a row of two numbers, and its angle in place of the position.
        """
        past_and_new = slice(past, past + x.shape[1])
        cos, sin = rotary.cos[past_and_new], rotary.sin[past_and_new]  # (seq, d / 2h)
        angles = np.broadcast_to(np.arctan2(sin, cos), (*x.shape[:2], cos.shape[1]))
        rows = self.functions["rotation"](x.reshape(-1, 2), angles.reshape(-1))
        return _array(rows).reshape(x.shape)


class OwnTokenizer(BPETokenizer):
    """A tokenizer whose merges are applied by another function.

    Args:
        tokenizer: the tokenizer.
        encode: from the bytes of a piece and the tokens' ranks to the ranks of its tokens.

    Example:
        >>> words = BPETokenizer.train("low lower lowest", 260)
        >>> OwnTokenizer(words, reference()["encode"]).encode("low low") == words.encode("low low")
        True
    """

    def __init__(self, tokenizer: BPETokenizer, encode: Callable[..., Sequence[int]]) -> None:
        known = tokenizer.ranks, tokenizer.special_tokens, tokenizer.merge_ranks
        super().__init__(*known, tokenizer.pretokenizer)
        merged = [left + right for left, right in tokenizer.merges]
        self._in_order = [token for token in self.ranks if len(token) == 1]
        self._in_order += dict.fromkeys(merged)
        self._own = {token: rank for rank, token in enumerate(self._in_order)}, encode

    def _tokens_of(self, piece: bytes) -> list[bytes]:
        ranks, encode = self._own
        return [
            self._in_order[rank] for rank in encode(piece.translate(None, self._missing), ranks)
        ]


def _split(x: np.ndarray, heads: int) -> np.ndarray:
    return x.reshape(len(x), heads, -1).swapaxes(0, 1)  # (seq, d) -> (heads, seq, d / heads)


def _array(x: Any) -> np.ndarray:
    return np.asarray(as_operand(x))


# What stands in for a part that the reader has not written ------------------------------------


def reference() -> dict[str, Callable[..., Any]]:
    """The package's functions in the form of the exercises, by the names of `PUBLISHED_PARTS`."""
    ours = _encode, _rms_norm, _rotation, _attention, _cached_step, _gate, _block, _draw
    return dict(zip(PUBLISHED_PARTS, ours, strict=True))


def _encode(piece: bytes, ranks: Mapping[bytes, int]) -> list[int]:
    return [ranks[token] for token in join_by_rank(piece, ranks)]


def _rms_norm(x: np.ndarray, *, eps: float) -> np.ndarray:
    return x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + eps)


def _rotation(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
    pairs = np.arange(0, x.shape[1], 2) / x.shape[1]
    angles = positions[:, None] * 10_000.0**-pairs  # (seq, d / 2)
    return rotate_pairs(x, np.cos(angles), np.sin(angles))


def _attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray) -> np.ndarray:
    return _array(functional.attention(q, k, v, mask=mask))


def _cached_step(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, keys: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    keys, values = np.vstack([keys, k]), np.vstack([values, v])
    return _array(functional.attention(q[None], keys, values))[0], keys, values


def _gate(x: np.ndarray) -> np.ndarray:
    return x * _array(functional.sigmoid(x))


def _block(x: Any, norm1: Any, attention: Any, norm2: Any, mlp: Any, pre_norm: bool) -> Any:
    x = x + attention(norm1(x))  # the published model's order is pre-norm
    return x + mlp(norm2(x))


def _draw(probs: np.ndarray, u: np.ndarray) -> np.ndarray:
    sums = probs.cumsum(axis=1)
    return (sums <= (u * sums[:, -1])[:, None]).sum(axis=1)


# The reader's, tried one at a time ------------------------------------------------------------


def in_parts(
    model: GPT, tokenizer: BPETokenizer, parts: Mapping[str, Part] | None = None
) -> InParts:
    """A published model in the reader's parts, each of which is tried first, and the package's.

    Args:
        model: the model.
        tokenizer: its tokenizer.
        parts: the reader's, by name; None for those stored in `my_parts.py`.
    """
    parts = kept_parts(names=PUBLISHED_PARTS) if parts is None else parts
    functions, yours, reasons = reference(), list[str](), dict[str, str]()
    for name, part in parts.items():
        try:
            own = _function_of(part)
            wrong = _difference(_tried({**reference(), name: own}), _expected())
        except Exception as error:  # whatever a reader's code does here
            wrong = f"it fails ({type(error).__name__}: {error})"
        if wrong:
            reasons[name] = wrong
        else:
            functions[name] = own
            yours.append(name)
    return InParts(model, tokenizer, functions, yours, reasons)


def _function_of(part: Part) -> Callable[..., Any]:
    names: dict[str, Any] = {}
    exec(part.source, names)  # the reader's own cell, run once more
    return names[part.answer]


def small_llama() -> tuple[GPT, BPETokenizer]:
    """A model of the published one's kind, small and random, for the trial of a part."""
    words = BPETokenizer.train("the low dog saw the lower dog. " * 3, 270)
    tokenizer = add_special_tokens(words, [IM_START, IM_END])
    attention = partial(MultiHeadAttention, num_kv_heads=2, projection_bias=False)
    model = GPT(
        tokenizer.vocab_size, 16, 2, 4, 64, pos_encoding="rotary", rotary_base=100_000.0,
        norm=RMSNorm, mlp=SwiGLU, attention=attention, init_std=0.3, rng=default_rng(0),
    )  # fmt: skip
    return model, tokenizer


def _tried(functions: Functions) -> dict[str, Any]:
    made = InParts(*small_llama(), functions)
    ids = made.tokenizer.encode("the lowest dog saw the dogs")
    asked = [{"role": "user", "content": "the dog?"}]
    found = {"tokens": ids, "logits": made.logits(ids), "answer": made.answer(asked, most=8)}
    cache = made._new_cache()
    found["logits, token by token"] = np.concatenate(
        [made._read(ids[:4], cache), *(made._read([i], cache) for i in ids[4:])]
    )
    return found | {"draw": functions["draw"](np.array([[0.1, 0.6, 0.3]]), np.array([0.8]))}


@cache
def _expected() -> dict[str, Any]:
    return _tried(reference())


def _difference(found: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """The first thing that a part changes, as a sentence; "" if there is none."""
    for name, right in expected.items():
        if isinstance(right, np.ndarray):
            given = found[name]
            same = np.shape(given) == right.shape and np.allclose(given, right, 1e-3, 1e-4)
        else:
            same = found[name] == right
        if not same:
            return f"it changes the model's {name}"
    return ""

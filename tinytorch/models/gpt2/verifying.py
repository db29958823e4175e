"""The published GPT-2 small compared with what it is known to generate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tinytorch.core.types import WindowedModel
from tinytorch.models.generation import generate
from tinytorch.models.transformer import GPT2_SHAPES
from tinytorch.text.bpe_tokenizer import BPETokenizer

__all__ = ["KNOWN", "Comparison", "compare", "verify"]

# What GPT-2 small writes in float32, always taking the likeliest token, by three tests of
# huggingface/transformers: beginning, continuation, name of the test. All stand in
# tests/models/gpt2/test_modeling_gpt2.py but the last, which stood in test_modeling_tf_gpt2.py
# beside it (version 4).
KNOWN = (
    ("The dog",
     " was found in a field near the intersection of West and West Streets.\n\nThe dog",
     "test_lm_generate_gpt2"),
    ("Hello, my dog is a little",
     " bit of a mess. I'm not sure if he's going",
     "test_batch_generation"),
    ("Today, I",
     "'m going to be doing a lot of research on this. I",
     "test_batch_generation"),
    ("The flying machine",
     " is a small, lightweight, and lightweight aircraft that can be used for any type of",
     "test_lm_generate_gpt2_greedy_xla"),
)  # fmt: skip

# "The dog" and how GPT-2 small continues it, always taking the likeliest token. The source is
# test_lm_generate_gpt2 in tests/models/gpt2/test_modeling_gpt2.py of huggingface/transformers.
_THE_DOG = (464, 3290)
_GOES_ON = (373, 1043, 287, 257, 2214, 1474, 262, 16246, 286,
            2688, 290, 2688, 27262, 13, 198, 198, 464, 3290)  # fmt: skip


def verify(model: WindowedModel) -> list[int]:
    """Check that a model generates what the published GPT-2 small generates.

    The test suite of transformers states it: after "The dog" (`[464, 3290]`) the likeliest tokens
    are those of " was found in a field near the intersection of West and West Streets."
    (`test_lm_generate_gpt2` in tests/models/gpt2/test_modeling_gpt2.py). So the weights, their
    positions and the whole forward pass are compared with something outside this package.

    Args:
        model: a GPT-2 small with its published weights, from `load_gpt2("gpt2")`.

    Returns:
        The 20 ids, the prompt included.

    Raises:
        ValueError: the model has another shape, or writes another token; the message says which.

    Example:
        >>> from tinytorch import GPT
        >>> verify(GPT(260, 8, 1, 2))
        Traceback (most recent call last):
        ...
        ValueError: verify: the known text is that of GPT-2 small alone, whose vocab_size
        is 50257, and this model's is 260
    """
    shape = {"vocab_size": 50257, **GPT2_SHAPES["gpt2-small"], "max_seq_len": 1024}
    for name, size in shape.items():
        if (found := getattr(model, name, None)) != size:
            known = f"the known text is that of GPT-2 small alone, whose {name} is {size}"
            raise ValueError(f"verify: {known}, and this model's is {found}")
    ids: list[int] = generate(model, _THE_DOG, len(_GOES_ON), temperature=0).data.tolist()
    for i, expected in enumerate(_GOES_ON, len(_THE_DOG)):
        if ids[i] != expected:
            what = f"GPT-2 small writes token {expected} at position {i}, and this model {ids[i]}"
            raise ValueError(f"verify: {what}; its weights are not those published, in float32")
    return ids


class Comparison(NamedTuple):
    """What a model was expected to write after a beginning, and what it wrote.

    Attributes:
        beginning: the text that it was given.
        expected: how GPT-2 small is known to continue it.
        written: how this model has continued it, with as many tokens.
        same: how many tokens are as expected before the first that is not.
        tokens: how many were expected.
    """

    beginning: str
    expected: str
    written: str
    same: int
    tokens: int

    def __str__(self) -> str:
        """Give the text, the count, and where they part what was expected."""
        found = f"{self.beginning}{self.written}\n  {self.same} of {self.tokens} tokens as expected"
        return found if self.same == self.tokens else f"{found}, which was {self.expected!r}"


def compare(model: WindowedModel, tokenizer: BPETokenizer) -> Iterator[Comparison]:
    """Let a model continue the four beginnings whose continuation by GPT-2 small is known.

    Unlike `verify` it takes any model and raises no error: in 8 bits GPT-2 may choose another
    token where two are nearly equally likely, and everything after it differs.

    Args:
        model: a model of language, such as that of `load_gpt2("gpt2", dtype="int8")`.
        tokenizer: the tokenizer that belongs to it.

    Yields:
        A `Comparison` for each beginning, as soon as it is written.

    Example:
        >>> from tinytorch import GPT, BPETokenizer
        >>> letters = BPETokenizer({bytes([byte]): byte for byte in range(256)})
        >>> dog, *_ = compare(GPT(256, 8, 1, 2, rng=0), letters)
        >>> dog.beginning, dog.same, dog.tokens
        ('The dog', 0, 78)
    """
    for beginning, expected, _ in KNOWN:
        given, known = tokenizer.encode(beginning), tokenizer.encode(expected)
        ids = generate(model, given, len(known), temperature=0).data.tolist()[len(given) :]
        pairs = enumerate(zip(ids, known, strict=True))
        same = next((i for i, (a, b) in pairs if a != b), len(known))
        yield Comparison(beginning, expected, tokenizer.decode(ids), same, len(known))

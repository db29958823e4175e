"""The published GPT-2 small compared with what it is known to generate."""

from __future__ import annotations

from typing import Any

from tinytorch.models.generation import generate
from tinytorch.models.transformer import GPT2_SHAPES

__all__ = ["verify"]

# "The dog" and how GPT-2 small continues it, always taking the likeliest token. The source is
# test_lm_generate_gpt2 in tests/models/gpt2/test_modeling_gpt2.py of huggingface/transformers.
_THE_DOG = (464, 3290)
_GOES_ON = (373, 1043, 287, 257, 2214, 1474, 262, 16246, 286,
            2688, 290, 2688, 27262, 13, 198, 198, 464, 3290)  # fmt: skip


def verify(model: Any) -> list[int]:
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
        ValueError: verify: the known text is that of GPT-2 small alone, whose vocab_size is 50257,
        and this model's is 260
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

"""Small models for the tests, with weights large enough that every part matters."""

import itertools
from functools import partial
from unittest.mock import patch

import numpy as np
from exact_numbers import exact, in_float64, message, normal

from tinytorch import GPT, MultiHeadAttention, RMSNorm, SwiGLU, no_grad
from tinytorch.models import generation
from tinytorch.models.generation import logits_of, read_next
from tinytorch.models.kv_cache import SlidingWindow

__all__ = [
    "IDS", "LLAMA", "assert_both_forms_agree", "exact", "in_float64", "message", "normal",
    "stirred", "tiny_gpt",
]  # fmt: skip

# what makes a GPT a Llama: two heads of keys and values for four of queries
LLAMA = {
    "num_heads": 4,
    "pos_encoding": "rotary",
    "tie_weights": False,
    "norm": RMSNorm,
    "mlp": SwiGLU,
    "attention": partial(MultiHeadAttention, num_kv_heads=2, projection_bias=False),
}


def stirred(model, deviation=0.3):
    """The model in float64 with every parameter moved at random, biases and norms included.

    At GPT-2's initialisation the scores are so small that attention is nearly a mean: a test could
    not tell a wrong query from a right one.
    """
    rng = np.random.default_rng(7)
    for p in in_float64(model).parameters():
        p.data += rng.normal(0.0, deviation, size=p.shape)
    return model


def tiny_gpt(vocab_size=11, embed_dim=8, num_layers=2, num_heads=2, max_seq_len=16, **options):
    """A GPT that runs in a millisecond."""
    return GPT(vocab_size, embed_dim, num_layers, num_heads, max_seq_len, **{"rng": 0, **options})


IDS = np.random.default_rng(0).integers(0, 11, size=(3, 13))
READ = {"one piece": (7, 256), "token by token": (1, 1), "chunks": (8, 3)}  # prompt and piece


@no_grad()
def assert_both_forms_agree(model, ways=READ):
    """At every position a stream reads what `forward` finds in the whole window, dtype included."""
    model.eval()
    close = 1e-11 if {p.dtype.itemsize for p in model.parameters()} == {8} else 2e-4
    for ids, way in itertools.product((IDS[:1], IDS), ways):
        prompt, chunk = READ[way]
        window = SlidingWindow(ids[:, :prompt], model.max_seq_len, model.new_cache())
        read = logits_of(model, window.cache)
        for position in range(prompt, ids.shape[1]):
            with patch.object(generation, "PREFILL", chunk):
                found = read_next(read, window)
            expected = model(window.ids).data[:, -1]
            told = f"{len(ids)} rows in {way}, token {position}"
            np.testing.assert_allclose(found, expected, rtol=close, atol=close, err_msg=told)
            assert found.dtype == expected.dtype, told
            window.append(ids[:, position])

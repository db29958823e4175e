"""Small models for the tests, with weights large enough that every part matters."""

from functools import partial

import numpy as np
from exact_numbers import exact, in_float64, message, normal

from tinytorch import GPT, MultiHeadAttention, RMSNorm, SwiGLU

__all__ = ["LLAMA", "exact", "in_float64", "message", "normal", "stirred", "tiny_gpt"]

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

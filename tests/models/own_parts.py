"""The parts of a block as a reader may write them: other code, the same names of parameters."""

import numpy as np

from tinytorch import Linear, Module, Parameter, functional, ops, scaled_dot_product_attention

__all__ = ["MINE"]


class MyNorm(Module):
    """A reader's own norm, composed of operations."""

    def __init__(self, size):
        self.gamma, self.beta = Parameter(np.ones(size)), Parameter(np.zeros(size))

    def forward(self, x):
        centred = x - x.mean(axis=-1, keepdims=True)
        return centred / (x.var(axis=-1, keepdims=True) + 1e-5).sqrt() * self.gamma + self.beta


class MyAttention(Module):
    """A reader's own attention, one head at a time."""

    def __init__(self, embed_dim, num_heads, dropout_prob):
        self.num_heads = num_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            Linear(embed_dim, embed_dim) for _ in range(4)
        )

    def forward(self, x, mask=None):
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        d = q.shape[-1] // self.num_heads
        heads = [slice(i * d, (i + 1) * d) for i in range(self.num_heads)]
        outputs = [
            scaled_dot_product_attention(q[..., h], k[..., h], v[..., h], mask)[0] for h in heads
        ]
        return self.out_proj(ops.concatenate(*outputs, axis=-1))


class MyMLP(Module):
    """A reader's own MLP."""

    def __init__(self, embed_dim, hidden_dim, dropout_prob):
        self.linear1, self.linear2 = Linear(embed_dim, hidden_dim), Linear(hidden_dim, embed_dim)

    def forward(self, x):
        return self.linear2(functional.gelu(self.linear1(x)))


MINE = {"norm": MyNorm, "attention": MyAttention, "mlp": MyMLP}

"""Right and wrong answers to the exercises of "GPT"."""

from functools import partial

import numpy as np

from tinytorch import (
    GPT,
    Embedding,
    LayerNorm,
    Module,
    MultiHeadAttention,
    PositionalEncoding,
    TransformerBlock,
    causal_mask,
    functional,
)
from tinytorch.core.positions import Rotary
from tinytorch_book.exercises.gpt import _Unmasked

from . import changed


# One table, two uses
def scatter_add(ids, g_in, x, g_logits):
    gradient = g_logits.T @ x
    np.add.at(gradient, ids, g_in)
    return gradient


def one_hot(ids, g_in, x, g_logits):
    return g_logits.T @ x + np.eye(g_logits.shape[1])[ids].T @ g_in


# Counting
def count(V, d, L, T, ratio, tied):
    hidden = ratio * d
    mlp = 2 * d * hidden + hidden + d
    block = 4 * d**2 + 4 * d + mlp + 4 * d
    return V * d * (1 if tied else 2) + T * d + L * block + 2 * d


def count_by_formula(V, d, L, T, r, tied):
    return V * d * (2 - tied) + T * d + L * ((4 + 2 * r) * d * d + (9 + r) * d) + 2 * d


# A test for causality
def token_by_token(
    model, ids, equal=lambda a, b: np.allclose(a, b, atol=1e-5), other=lambda t, V: (t + 1) % V
):
    before = model(ids)
    for t in range(len(ids)):
        changed = ids.copy()
        changed[t] = other(changed[t], before.shape[1])
        if not equal(model(changed)[:t], before[:t]):
            return False
    return True


def largest_difference(model, ids):
    before = np.asarray(model(ids))
    vocab, worst = before.shape[1], 0.0
    for t in range(1, len(ids)):
        other = (ids[t] + vocab - 1) % vocab
        after = np.asarray(model(np.concatenate([ids[:t], [other], ids[t + 1 :]])))
        worst = max(worst, np.abs(after - before)[:t].max())
    return bool(worst < 1e-5)


# A model
class OwnGPT(Module):
    """The solution, with what one gets wrong as arguments."""

    def __init__(
        self, V, d, layers, heads, T, norm=LayerNorm, attention=MultiHeadAttention,
        *, shared=False, last=None,
    ):  # fmt: skip
        parts = {"norm": norm, "attention": attention}
        self.token_embedding = Embedding(V, d)
        self.position_embedding = PositionalEncoding(T, d)
        blocks = [TransformerBlock(d, heads, 4, 0.0, **parts) for _ in range(layers)]
        self.blocks = blocks[:1] * layers if shared else blocks
        self.ln_f = (last or norm)(d)

    def mask(self, ids):
        return causal_mask(ids.shape[1])

    def logits(self, x):
        return self.ln_f(x) @ self.token_embedding.weight.T

    def forward(self, ids):
        x = self.position_embedding(self.token_embedding(ids))
        for block in self.blocks:
            x = block(x, mask=self.mask(ids))
        return self.logits(x)


def own_mask(self, ids):
    T = ids.shape[-1]
    return np.where(np.tri(T, dtype=bool), 0.0, -np.inf).astype(np.float32)


def own_logits(self, x):
    return functional.linear(self.ln_f(x), self.token_embedding.weight.transpose(0, 1))


# Half the parameters
def livelier(V, T, init_std=0.1, **parts):
    return GPT(V, 20, 1, 2, T, init_std=init_std, **parts)


def untied_and_rotary(V, T):
    attention = partial(MultiHeadAttention, rotate=Rotary(T, 10))
    return livelier(V, T, 0.2, tie_weights=False, pos_encoding=None, attention=attention)


def softmax(logits):
    return functional.softmax(logits, axis=-1).data


RIGHT = {
    "gpt_half": [partial(livelier, pos_encoding="rotary"), untied_and_rotary],
    "gpt_last_logits": [
        lambda logits, n: logits[np.arange(len(logits)), n - 1],
        lambda logits, n: np.take_along_axis(logits, (n - 1)[:, None, None], axis=1)[:, 0],
    ],
    "gpt_tied_gradient": [scatter_add, one_hot],
    "gpt_num_parameters": [count, count_by_formula],
    "gpt_is_causal": [token_by_token, largest_difference],
    "gpt_assembled": [OwnGPT, changed(OwnGPT, mask=own_mask, logits=own_logits)],
}

WRONG = {
    "gpt_half": {
        "the page's model": lambda V, T: GPT(V, 32, 1, 4, T),
        "… its mask": partial(livelier, pos_encoding="rotary", attention=_Unmasked),
    },
    "gpt_last_logits": {
        "one too far": lambda logits, n: logits[np.arange(len(logits)), n % logits.shape[1]]
    },
    "gpt_tied_gradient": {
        "the lookup alone": lambda ids, g_in, x, g: scatter_add(ids, g_in, x, 0 * g)
    },
    "gpt_num_parameters": {
        "… The output has no bias.": lambda V, d, L, T, r, tied: (
            count(V, d, L, T, r, tied) + (0 if tied else V)
        )
    },
    "gpt_is_causal": {
        "softmax compared": (
            partial(
                token_by_token, equal=lambda *logits: np.allclose(*map(softmax, logits), atol=1e-5)
            )
        ),
        "sums compared": partial(
            token_by_token, equal=lambda a, b: np.allclose(a.sum(-1), b.sum(-1), atol=1e-5)
        ),
        "… A mean hides": partial(
            token_by_token, equal=lambda a, b: abs(a - b).sum() <= 1e-5 * a.size
        ),
        "… a different one": partial(token_by_token, other=lambda t, V: 0),
        "… to a different one": partial(
            token_by_token, other=lambda t, V: np.random.default_rng(0).integers(V)
        ),
        "… in the vocabulary": partial(token_by_token, other=lambda t, V: t + 1),
    },
    "gpt_assembled": {
        "… how many different blocks": partial(OwnGPT, shared=True),
        "… ln_f is a norm too: norm(d).": partial(OwnGPT, last=LayerNorm),
    },
}

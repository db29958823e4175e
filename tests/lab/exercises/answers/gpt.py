"""Right and wrong answers to the exercises of "GPT"."""

from functools import partial

import numpy as np

from tinytorch import GPT, MultiHeadAttention
from tinytorch.core.positions import Rotary
from tinytorch_book.exercises.gpt import _Unmasked


def one_hot(ids, g_in, x, g_logits):
    return g_logits.T @ x + np.eye(g_logits.shape[1])[ids].T @ g_in


def count_by_formula(V, d, L, T, r, tied):
    return V * d * (2 - tied) + T * d + L * ((4 + 2 * r) * d * d + (9 + r) * d) + 2 * d


def largest_difference(model, ids):
    before = np.asarray(model(ids))
    vocab, worst = before.shape[1], 0.0
    for t in range(1, len(ids)):
        other = (ids[t] + vocab - 1) % vocab
        after = np.asarray(model(np.concatenate([ids[:t], [other], ids[t + 1 :]])))
        worst = max(worst, np.abs(after - before)[:t].max())
    return bool(worst < 1e-5)


# Half the parameters
def livelier(V, T, init_std=0.1, **parts):
    return GPT(V, 20, 1, 2, T, init_std=init_std, **parts)


def untied_and_rotary(V, T):
    attention = partial(MultiHeadAttention, rotate=Rotary(T, 10))
    return livelier(V, T, 0.2, tie_weights=False, pos_encoding=None, attention=attention)


TRIANGLE = "np.where(np.tri(ids.shape[1], dtype=bool), 0.0, -np.inf).astype(np.float32)"
RIGHT = {
    "gpt_half": [untied_and_rotary],
    "gpt_last_logits": [
        lambda logits, n: np.take_along_axis(logits, (n - 1)[:, None, None], axis=1)[:, 0]
    ],
    "gpt_tied_gradient": [one_hot],
    "gpt_num_parameters": [count_by_formula],
    "gpt_is_causal": [largest_difference],
    "gpt_assembled": [
        ("causal_mask(ids.shape[1])", TRIANGLE, "weight.T", "weight.transpose(0, 1)")
    ],
}

BOTH = "model(changed)[:t], before[:t]"
CLOSE = f"np.allclose({BOTH}, atol=1e-5)"
OTHER = "(changed[t] + 1) % before.shape[1]"
WRONG = {
    "gpt_half": {
        "the page's model": lambda V, T: GPT(V, 32, 1, 4, T),
        "… its mask": partial(livelier, pos_encoding="rotary", attention=_Unmasked),
    },
    "gpt_last_logits": {"one too far": ("lengths - 1", "lengths % logits.shape[1]")},
    "gpt_tied_gradient": {"the lookup alone": ("g_logits.T @ x", "0 * g_logits.T @ x")},
    "gpt_num_parameters": {
        "… times as wide inside": ("mlp_ratio * d", "4 * d"),
        "… The last norm": ("L * block + 2 * d", "L * block"),
        "… one more comes at the end": ("L * block + 2 * d", "L * block + 4 * d"),
        "… The positions are learned": (" + T * d", ""),
        "… The output has no bias.": (
            "V * d * (1 if tied else 2)",
            "V * d + (0 if tied else V * d + V)",
        ),
    },
    "gpt_is_causal": {
        "softmax compared": (
            BOTH,
            f"*(np.exp(z) / np.exp(z).sum(-1, keepdims=True) for z in ({BOTH}))",
        ),
        "sums compared": (BOTH, f"*(z.sum(-1) for z in ({BOTH}))"),
        "… A mean hides": (
            CLOSE,
            "np.abs(model(changed) - before)[:t].sum() <= 1e-5 * before[:t].size",
        ),
        "… a different one": (OTHER, "0"),
        "… to a different one": (OTHER, "np.random.default_rng(0).integers(before.shape[1])"),
        "… in the vocabulary": (OTHER, "changed[t] + 1"),
    },
    "gpt_assembled": {
        "… how many different blocks": ("for _ in range(layers)]", "] * layers"),
        "… Every block needs mask=": ("mask=mask", "mask=None"),
        "… The output reads ln_f(x)": ("self.ln_f(x) @", "x @"),
        "… Pass attention= on": (", attention=attention", ""),
        "… Pass norm= and": (
            "norm=norm, attention=attention",
            "",
            "ln_f = norm(d)",
            "ln_f = LayerNorm(d)",
        ),
        "… ln_f is a norm too: norm(d).": ("ln_f = norm(d)", "ln_f = LayerNorm(d)"),
        "… The blocks have norms as well": ("norm=norm, ", ""),
    },
}

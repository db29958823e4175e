"""Right and wrong answers to the exercises of "Multi-head attention"."""

import numpy as np

from tinytorch import Linear, Module, functional, scaled_dot_product_attention

from . import changed

# Six predictions
SHAPES = {
    "queries, split": (2, 4, 10, 16),
    "values, split": (2, 4, 7, 16),
    "weights": (2, 4, 10, 7),
    "output": (2, 10, 64),
}
COUNTS = {"parameters": 16640, "parameters with 8 heads": 16640}
PREDICTIONS = {**SHAPES, **COUNTS}


# Attention in several heads
def softmax(scores):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def head_by_head(q, k, v, num_heads, root=None):
    outputs = []
    for part in np.split(np.arange(q.shape[1]), num_heads):
        scores = q[:, part] @ k[:, part].T / np.sqrt(root or len(part))
        outputs.append(softmax(scores) @ v[:, part])
    return np.concatenate(outputs, axis=1)


def heads_at_once(q, k, v, num_heads):
    q, k, v = (x.reshape(len(x), num_heads, -1).transpose(1, 0, 2) for x in (q, k, v))
    weights = softmax(q @ k.transpose(0, 2, 1) / q.shape[-1] ** 0.5)
    return (weights @ v).transpose(1, 0, 2).reshape(q.shape[1], -1)


# One head switched off
def columns_to_zero(merged, weight, bias, num_heads, head):
    size = merged.shape[1] // num_heads
    kept = merged.copy()
    kept[:, head * size : (head + 1) * size] = 0.0
    return kept @ weight + bias


def masked_columns(merged, weight, bias, num_heads, head):
    of_head = np.arange(merged.shape[1]) // (merged.shape[1] // num_heads)
    return (merged * (of_head != head)) @ weight + bias


def sum_of_the_others(merged, weight, bias, num_heads, head):
    each = zip(np.split(merged, num_heads, axis=1), np.split(weight, num_heads), strict=True)
    return bias + sum(part @ rows for i, (part, rows) in enumerate(each) if i != head)


# A layer
class Attention(Module):
    """The solution in small steps; each answer below changes one of them."""

    def __init__(self, embed_dim, num_heads, dropout_prob=0.0):
        self.num_heads = num_heads
        self.q_proj, self.k_proj = Linear(embed_dim, embed_dim), Linear(embed_dim, embed_dim)
        self.v_proj, self.out_proj = Linear(embed_dim, embed_dim), Linear(embed_dim, embed_dim)

    def split(self, y):
        B, T, _ = y.shape
        return y.reshape(B, T, self.num_heads, -1).permute(0, 2, 1, 3)

    def attend(self, q, k, v, mask):
        return scaled_dot_product_attention(q, k, v, mask)[0]

    def forward(self, x, mask=None):
        q, k, v = (self.split(p(x)) for p in (self.q_proj, self.k_proj, self.v_proj))
        mixed = self.attend(q, k, v, mask)
        return self.out_proj(mixed.permute(0, 2, 1, 3).reshape(*x.shape))


def fused(self, q, k, v, mask):
    return functional.attention(q, k, v, mask=mask)


def where_the_mask_is_not_0(self, q, k, v, mask):
    return fused(self, q, k, v, None if mask is None else np.where(mask, 0.0, -np.inf))


def only_reshaped(self, y):
    return y.reshape(y.shape[0], self.num_heads, y.shape[1], -1)


RIGHT = {
    "heads_owner": [
        lambda d, h: np.arange(d) // (d // h),
        lambda d, h: np.repeat(np.arange(h), d // h),
    ],
    "heads_predict": [
        PREDICTIONS,
        {name: np.array(shape).tolist() for name, shape in SHAPES.items()} | COUNTS,
    ],
    "heads_side_by_side": [head_by_head, heads_at_once],
    "heads_output_without": [columns_to_zero, masked_columns],
    "heads_attention": [Attention, changed(Attention, attend=fused)],
}

WRONG = {
    "heads_owner": {"every h-th": lambda d, h: np.arange(d) % h},
    "heads_predict": {
        "… The axis of the heads moves in": {**PREDICTIONS, "queries, split": (2, 10, 4, 16)},
        "… Values come from the other": {**PREDICTIONS, "values, split": (2, 4, 10, 16)},
    },
    "heads_side_by_side": {
        "… Divide by the root of the number of": lambda q, k, v, h: head_by_head(
            q, k, v, h, q.shape[1]
        )
    },
    "heads_output_without": {
        "… The bias belongs to no head; add": lambda merged, weight, bias, n, i: columns_to_zero(
            merged, weight, 0, n, i
        ),
        "… every one of the T rows is the bias": sum_of_the_others,
    },
    "heads_attention": {
        "… A reshape alone mixes the tokens:": changed(Attention, split=only_reshaped),
        "… The mask is added": changed(Attention, attend=where_the_mask_is_not_0),
    },
}

"""Right and wrong answers to the exercises of "Why it is fast"."""

import numpy as np

from . import guesses

GUESSES = {
    "weights in matrices": {
        147_456: "The output layer compares with",
        275_456: "count it once",
        113_152: "There are 3 layers",
    },
    "FLOPs of a forward pass": {
        216_530_944: "two FLOPs",
        422_912: "For each of the",
        54_132_736: "There are 8 texts",
        1_299_185_664: "forward alone is asked for",
    },
    "FLOPs of a training step": {
        866_123_776: "Backward needs",
        1_268_736: "of the 8 * 128 tokens.",
    },
    "scores of a head, tiled": {
        16_384: "The first block",
        8256: "what is needed",
        8192: "The second block",
    },
    "bytes of weights read to decode one token": {211_456: "In bytes", 422_912: "float32 takes 4"},
    "bytes of weights read to decode one token of each of 8 texts": {
        211_456: "a number in float32",
        422_912: "In bytes: a number",
        6_766_592: "Read once, a weight serves all 8",
    },
}


# Piece by piece
def pieces_by_split(f, x, size):
    flat = np.ravel(x)
    parts = np.split(flat, range(size, flat.size, size))
    return np.hstack(list(map(f, parts))).reshape(x.shape)


def pieces_while(f, x, size):
    left, done = x.flatten(), []
    while left.size:
        done.extend(np.asarray(f(left[:size])))
        left = left[size:]
    return np.array(done).reshape(x.shape)


# A step in place
def step_into_slices(w, m, v, g, t, lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8):
    m[...] = beta1 * m + (1 - beta1) * g
    v[:] = beta2 * v + (1 - beta2) * g**2
    m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
    np.subtract(w, lr * m_hat / (v_hat**0.5 + eps), out=w)
    return w


# A large vocabulary
def by_words(h, W, targets):
    """Some words of the vocabulary at a time, twice: for the sums, and for the gradients."""
    size = 64
    most, total = np.full(len(h), -np.inf, np.float32), np.zeros(len(h), np.float32)
    for start in range(0, W.shape[1], size):
        logits = h @ W[:, start : start + size]
        higher = np.maximum(most, logits.max(axis=1))
        total = total * np.exp(most - higher) + np.exp(logits - higher[:, None]).sum(axis=1)
        most = higher
    surprise, right = most + np.log(total), W[:, targets].T
    dh, dW = -right / len(h), np.empty_like(W)
    for start in range(0, W.shape[1], size):
        some = W[:, start : start + size]
        probs = np.exp(h @ some - surprise[:, None]) / len(h)
        dh += probs @ some.T
        here = np.flatnonzero((targets >= start) & (targets < start + size))
        probs[here, targets[here] - start] -= 1 / len(h)
        dW[:, start : start + size] = h.T @ probs
    return (surprise - (h * right).sum(axis=1)).mean(), dh, dW


RIGHT = {
    "fast_vocabulary": [by_words],
    "fast_pieces": [pieces_by_split, pieces_while],
    "fast_step": [step_into_slices],
}
WRONG = {
    "fast_count": guesses(GUESSES),
    "fast_pieces": {
        "x overwritten": (
            "parts.append(f(flat[start : start + size]))",
            "flat[start : start + size] = f(flat[start : start + size])\n"
            "        parts.append(flat[start : start + size])",
        ),
        "in the order of memory": ("x.reshape(-1)", "x.ravel(order='K')"),
        "… Correct, but with a call for each": lambda f, x, size: pieces_by_split(f, x, 1),
        "… given the whole array": lambda f, x, size: f(x),
        "… The last piece is empty": ("flat.size, size", "flat.size + 1, size"),
    },
    "fast_step": {
        "the gradient overwritten": ("size = g * g", "size = g\n    size *= g"),
        "… Change the arrays themselves": (
            "    v *= beta2\n    v += size",
            "    v = v * beta2 + size",
        ),
        "… w has not changed": ("w -= size", "w = w - size"),
    },
    "fast_vocabulary": {
        "scores that overflow": ("probs -= probs.max(axis=1, keepdims=True)", ""),
        "… every pair of a token": (
            "len(h), 16)",
            "len(h), len(h))",
            "start + 16",
            "start + len(h)",
        ),
    },
}

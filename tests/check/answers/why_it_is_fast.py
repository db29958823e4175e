"""Right and wrong answers to the exercises of "Why it is fast"."""

import math

import numpy as np

N = 12 * 3 * 64**2 + 1000 * 64
WEIGHTS, FORWARD, TRAINING = (
    "weights in matrices", "FLOPs of a forward pass", "FLOPs of a training step",
)  # fmt: skip
TILED = "scores of a head, tiled"
ONE = "bytes of weights read to decode one token"
EIGHT = "bytes of weights read to decode one token of each of 8 texts"
COUNTS = {
    WEIGHTS: N,
    FORWARD: 2 * N * 8 * 128,
    TRAINING: 6 * N * 8 * 128,
    TILED: 64 * 64 + 64 * 128,
    ONE: 4 * N,
    EIGHT: 4 * N,
}

# Piece by piece -------------------------------------------------------------------------------


def pieces(f, x, size):
    flat = x.reshape(-1)
    parts = [f(flat[start : start + size]) for start in range(0, flat.size, size)]
    return np.concatenate(parts).reshape(x.shape)


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


def pieces_and_an_empty_one(f, x, size):
    flat = x.reshape(-1)
    parts = [f(flat[start : start + size]) for start in range(0, flat.size + 1, size)]
    return np.concatenate(parts).reshape(x.shape)


def pieces_by_memory(f, x, size):
    return pieces(f, np.ravel(x, order="K"), size).reshape(x.shape)


def pieces_in_place(f, x, size):
    flat = x.reshape(-1)
    for start in range(0, flat.size, size):
        flat[start : start + size] = f(flat[start : start + size])
    return flat.reshape(x.shape).copy()


# A step in place ------------------------------------------------------------------------------


def step_in_three_lines(w, m, v, g, t, lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8):
    m += (1 - beta1) * (g - m)
    v += (1 - beta2) * (g * g - v)
    w -= lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)
    return w


def step_into_slices(w, m, v, g, t, lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8):
    m[...] = beta1 * m + (1 - beta1) * g
    v[:] = beta2 * v + (1 - beta2) * g**2
    m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
    np.subtract(w, lr * m_hat / (v_hat**0.5 + eps), out=w)
    return w


def stub(w, m, v, g, t, lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8, root_of_v=True, square_g=True):
    m *= beta1
    m += (1 - beta1) * g
    square = np.multiply(g, g, out=g if square_g else None)
    v *= beta2
    v += (1 - beta2) * square
    size = np.sqrt(v, out=v if root_of_v else None)
    size /= math.sqrt(1 - beta2**t)
    size += eps
    w -= lr / (1 - beta1**t) * m / size
    return w


def out_of_place(w, m, v, g, t, lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8):
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    return w - lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)


def lost_means(w, m, v, g, t, lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8):
    w[...] = out_of_place(w, m, v, g, t, lr, beta1, beta2, eps)
    return w


def mean_of_squares_lost(w, m, v, g, t, lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8):
    m += (1 - beta1) * (g - m)
    v = v + (1 - beta2) * (g * g - v)
    w -= lr * m / (1 - beta1**t) / (np.sqrt(v / (1 - beta2**t)) + eps)
    return w


# A large vocabulary ---------------------------------------------------------------------------


def whole(h, W, targets):
    logits = h @ W
    logits = logits - logits.max(axis=1, keepdims=True)
    probs = np.exp(logits)
    total = probs.sum(axis=1, keepdims=True)
    at = np.arange(len(h)), targets
    loss = (np.log(total[:, 0]) - logits[at]).mean()
    probs = probs / total
    probs[at] -= 1
    probs = probs / len(h)
    return loss, probs @ W.T, h.T @ probs


def whole_in_place(h, W, targets):
    probs, at = h @ W, (np.arange(len(h)), targets)
    probs -= probs.max(axis=1, keepdims=True)
    right = probs[at]
    np.exp(probs, out=probs)
    total = probs.sum(axis=1, keepdims=True)
    probs /= total
    probs[at] -= 1
    probs /= len(h)
    return (np.log(total[:, 0]) - right).mean(), probs @ W.T, h.T @ probs


def by_tokens(size=16, part=whole_in_place, mean=True, summed=True, last=True, kept=None):
    """Some tokens at a time, with one thing about it changed."""

    def loss_and_gradients(h, W, targets):
        loss, dh, dW = 0.0, np.zeros_like(h), np.zeros_like(W)
        for start in range(0, len(h) if last else len(h) // size * size, size):
            at = slice(start, start + size)
            nats, dh[at], part_of_dW = part(h[at], W, targets[at])
            share = len(targets[at]) / len(h) if mean else 1.0
            loss += share * nats
            dh[at] *= share
            part_of_dW *= share
            dW = dW + part_of_dW if summed else part_of_dW
            if kept is not None:
                kept.append(h[at] @ W)
        return loss, dh, dW

    return loss_and_gradients


def by_words(h, W, targets, size=64):
    """Some words of the vocabulary at a time, twice: for the sums, and for the gradients."""
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


def small_alone(h, W, targets):
    """Right, and lean, for few tokens only."""
    return whole(h, W, targets) if len(h) < 100 else (7.0, np.zeros_like(h), np.zeros_like(W))


def from_shares(h, W, targets):
    probs = np.exp(h @ W)
    probs /= probs.sum(axis=1, keepdims=True)
    at = np.arange(len(h)), targets
    loss = -np.log(probs[at]).mean()
    probs[at] -= 1
    probs /= len(h)
    return loss, probs @ W.T, h.T @ probs


RIGHT = {
    "fast_vocabulary": [by_tokens(24, whole), by_words],
    "fast_pooled": [
        lambda x, size: np.add.reduceat(x, np.arange(0, len(x), size)) / size,
        lambda x, size: x.reshape(len(x) // size, size) @ np.full(size, 1 / size),
    ],
    "fast_row_products": [
        lambda x, y: (x * y).sum(axis=1),
        lambda x, y: (x[:, None] @ y[:, :, None])[:, 0, 0],
    ],
    "fast_strides": [
        lambda shape: tuple(4 * np.cumprod((1, *shape[:0:-1]))[::-1]),
        lambda shape: [*(4 * np.cumprod((1, *shape[:0:-1]))[::-1])],
    ],
    "fast_count": [COUNTS, {name: np.int64(count) for name, count in COUNTS.items()}],
    "fast_pieces": [pieces_by_split, pieces_while],
    "fast_step": [step_in_three_lines, step_into_slices],
}

WRONG = {
    "fast_pooled": {
        "columns": lambda x, size: x.reshape(-1, size).mean(axis=0),
        "a copy": lambda x, size: np.array(np.split(x, len(x) // size)).mean(axis=1),
        "in a loop": lambda x, size: np.array(
            [x[i : i + size].mean() for i in range(0, len(x), size)]
        ),
    },
    "fast_row_products": {
        "all pairs": lambda x, y: x @ y.T,
        "the diagonal of all pairs": lambda x, y: np.diag(x @ y.T),
        "in a loop": lambda x, y: np.array([a @ b for a, b in zip(x, y, strict=False)]),
    },
    "fast_strides": {
        "numbers": lambda shape: tuple(np.cumprod((1, *shape[:0:-1]))[::-1]),
        "float64": lambda shape: np.empty(shape).strides,
        "columns first": lambda shape: np.empty(shape, np.float32, order="F").strides,
    },
    "fast_count": {
        "no output layer": {**COUNTS, WEIGHTS: 12 * 3 * 64**2},
        "the table twice": {**COUNTS, WEIGHTS: N + 64_000},
        "one layer": {**COUNTS, WEIGHTS: 12 * 64**2 + 64_000},
        "one FLOP a weight": {**COUNTS, FORWARD: N * 8 * 128},
        "one text": {**COUNTS, FORWARD: 2 * N * 128},
        "backward as long as forward": {**COUNTS, TRAINING: 4 * N * 8 * 128},
        "one token": {**COUNTS, TRAINING: 6 * N},
        "the whole square": {**COUNTS, TILED: 128 * 128},
        "exactly the triangle": {**COUNTS, TILED: 128 * 129 // 2},
        "two squares": {**COUNTS, TILED: 2 * 64 * 64},
        "numbers, not bytes": {**COUNTS, ONE: N},
        "float16": {**COUNTS, ONE: 2 * N},
        "read for every text": {**COUNTS, EIGHT: 32 * N},
    },
    "fast_pieces": {
        "the whole array": lambda f, x, size: f(x),
        "a call for each number": lambda f, x, size: pieces(f, x, 1),
        "an empty piece at the end": pieces_and_an_empty_one,
        "in the order of memory": pieces_by_memory,
        "x overwritten": pieces_in_place,
    },
    "fast_step": {
        "the stub": stub,
        "new arrays": out_of_place,
        "new means": lost_means,
        "a new mean of squares": mean_of_squares_lost,
    },
    "fast_vocabulary": {
        "the formulas": whole,
        "a sum, not the mean": by_tokens(mean=False),
        "scores that overflow": by_tokens(part=from_shares),
        "the formula for few tokens": small_alone,
    },
}

HINTS = {
    "fast_vocabulary": {
        "the formulas": "every pair of a token",
        "a sum, not the mean": "counts once, and for 1/n",
        "scores that overflow": "largest score",
    },
}

"""Right and wrong answers to the exercises of "Why it is fast"."""

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


# Piece by piece
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


# A step in place
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


def stub(w, m, v, g, t, lr=0.1, beta1=0.9, beta2=0.99, eps=1e-8):
    m += (1 - beta1) * (g - m)
    g *= g
    v += (1 - beta2) * (g - v)
    w -= lr / (1 - beta1**t) * m / (np.sqrt(v, out=v) / (1 - beta2**t) ** 0.5 + eps)
    return w


# A large vocabulary
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


def by_tokens(h, W, targets, part=whole):
    """Some tokens at a time."""
    loss, dh, dW = 0.0, np.zeros_like(h), np.zeros_like(W)
    for at in (slice(start, start + 24) for start in range(0, len(h), 24)):
        share = len(targets[at]) / len(h)
        nats, dh[at], some = (share * each for each in part(h[at], W, targets[at]))
        loss, dW = loss + nats, dW + some
    return loss, dh, dW


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


def pieces_in_place(f, x, size):
    flat = x.reshape(-1)
    for start in range(0, flat.size, size):
        flat[start : start + size] = f(flat[start : start + size])
    return flat.reshape(x.shape).copy()


def from_shares(h, W, targets):
    probs = np.exp(h @ W)
    probs /= probs.sum(axis=1, keepdims=True)
    at = np.arange(len(h)), targets
    loss = -np.log(probs[at]).mean()
    probs[at] -= 1
    probs /= len(h)
    return loss, probs @ W.T, h.T @ probs


RIGHT = {
    "fast_vocabulary": [by_tokens, by_words],
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
        "… The numbers were copied; a reshape": lambda x, size: np.array(
            np.split(x, len(x) // size)
        ).mean(axis=1)
    },
    "fast_row_products": {"… 1,000 * 1,000 products were made:": lambda x, y: np.diag(x @ y.T)},
    "fast_strides": {
        "… In bytes: a number in float32 takes": lambda shape: tuple(
            np.cumprod((1, *shape[:0:-1]))[::-1]
        )
    },
    "fast_count": {
        "… The output layer compares with": {**COUNTS, WEIGHTS: 12 * 3 * 64**2},
        "… Read once, a weight serves all 8": {**COUNTS, EIGHT: 32 * N},
    },
    "fast_pieces": {
        "x overwritten": (pieces_in_place),
        "in the order of memory": (
            lambda f, x, size: pieces(f, np.ravel(x, order="K"), size).reshape(x.shape)
        ),
        "… Correct, but with a call for each": lambda f, x, size: pieces(f, x, 1),
    },
    "fast_step": {
        "the stub": stub,
        "… Change the arrays themselves: m *=": lambda w, m, v, *rest: step_in_three_lines(
            w, m, v.copy(), *rest
        ),
    },
    "fast_vocabulary": {
        "scores that overflow": lambda *given: by_tokens(*given, part=from_shares),
        "… every pair of a token": whole,
    },
}

"""Right and wrong answers to the exercises of "Your GPT"."""

import numpy as np

from tinytorch import MLP, Linear, Module, Tensor, functional

from . import changed

# What a comparison sees
SEEN = {
    "a norm that never adds beta": "gradients",
    "an MLP without its GELU": "logits",
    "a mask that shows one token of the future": "logits",
    "a position table whose gradient is that of one row of the batch": "gradients",
    "an AdamW that forgets the decay": "neither",
    "a top-p that always keeps one token": "neither",
}


# Two sets of gradients
def near(a, b):
    if a is None or b is None:
        return a is None and b is None
    return np.allclose(a, b, 1e-3, 1e-5)


def by_the_largest(own, ours):
    found = set()
    for name in own.keys() | ours.keys():
        a, b = own.get(name), ours.get(name)
        if (a is None) != (b is None):
            found.add(name)
        elif a is not None and not (np.abs(a - b) <= 1e-5 + 1e-3 * np.abs(b)).all():
            found.add(name)
    return found


def where(far):
    def differ(a, b):
        return a is not b if a is None or b is None else far(np.abs(a - b), b)

    return lambda own, ours: [name for name in own | ours if differ(own.get(name), ours.get(name))]


# An MLP of the reader's own
def before(x, by=1):
    return Tensor(np.eye(x.shape[1], k=-by)) @ x


class Narrower(Module):
    def __init__(self, embed_dim, hidden_dim, dropout_prob=0.0):
        hidden_dim = hidden_dim * 2 // 3
        self.linear1 = Linear(embed_dim, hidden_dim, rng=0)
        self.before = Linear(embed_dim, hidden_dim, bias=False, rng=1)
        self.linear2 = Linear(hidden_dim, embed_dim, rng=2)

    def forward(self, x):
        hidden = self.linear1(x) + self.before(before(x))
        return self.linear2(functional.gelu(hidden))


class HalfEach(MLP):
    by = 1

    def forward(self, x):
        odd = (np.arange(x.shape[-1]) % 2).astype(np.float32)
        return super().forward(x * odd + before(x, self.by) * (1 - odd))


# The part at fault
def filtered(parts, agrees):
    return [*filter(lambda name: not agrees({name: parts[name]}), parts)]


def beside_good_ones(parts, agrees):
    taken, found = {}, []
    for name, part in parts.items():
        if agrees({**taken, name: part}):
            taken[name] = part
        else:
            found.append(name)
    return found


RIGHT = {
    "capstone_seen": [SEEN, dict(reversed(SEEN.items()))],
    "capstone_differences": [
        by_the_largest,
        lambda own, ours: filter(lambda n: not near(own.get(n), ours.get(n)), own | ours),
    ],
    "capstone_mlp": [Narrower, HalfEach],
    "capstone_faults": [filtered, beside_good_ones],
    "capstone_share": [
        lambda losses, floor: 1 - (losses - floor) / (losses[0] - floor),
        lambda losses, floor: np.divide(losses[0] - losses, losses[0] - floor),
    ],
}

WRONG = {
    "capstone_seen": {
        "… zero": SEEN | {"a norm that never adds beta": "logits"},
        "… comes later": SEEN | {"an AdamW that forgets the decay": "gradients"},
    },
    "capstone_differences": {
        "… mean hides": where(lambda apart, b: apart.mean() > 1e-3),
        "… size": where(lambda apart, b: not apart.max() <= 1e-5 + 1e-3 * np.abs(b).max()),
        "… NaN": where(lambda apart, b: (apart > 1e-5 + 1e-3 * np.abs(b)).any()),
    },
    "capstone_mlp": {
        "too large": lambda embed_dim, hidden_dim, *given: Narrower(embed_dim, hidden_dim * 3 // 2),
        "sees the next": changed(HalfEach, by=-1),
    },
    "capstone_faults": {
        "… one by one": lambda parts, agrees: (
            [n for n in parts if agrees({k: v for k, v in parts.items() if k != n})]
        ),
        "… Return a list": lambda parts, agrees: (name for name in filtered(parts, agrees)),
        "… a set has no order": lambda parts, agrees: {*filtered(parts, agrees)},
    },
    "capstone_share": {"towards zero": lambda losses, floor: (losses[0] - losses) / losses[0]},
}

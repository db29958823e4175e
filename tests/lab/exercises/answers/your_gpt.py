"""Right and wrong answers to the exercises of "Your GPT"."""

import numpy as np

from tinytorch import MLP, Tensor

from . import guesses

GUESSES = {
    "a norm that never adds beta": {"logits": "adding it changes no logit"},
    "a mask that shows one token of the future": {"neither": "one value more"},
    "a position table whose gradient is that of one row of the batch": {
        "logits": "as it should be"
    },
    "an AdamW that forgets the decay": {"gradients": "comes later"},
    "a top-p that always keeps one token": {"logits": "called with probabilities"},
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


# An MLP of the reader's own
class HalfEach(MLP):
    def forward(self, x):
        odd = (np.arange(x.shape[-1]) % 2).astype(np.float32)
        return super().forward(x * odd + Tensor(np.eye(x.shape[1], k=-1)) @ x * (1 - odd))


# The part at fault
def beside_good_ones(parts, agrees):
    taken, found = {}, []
    for name, part in parts.items():
        if agrees({**taken, name: part}):
            taken[name] = part
        else:
            found.append(name)
    return found


FAR = "not np.allclose(g, right, 1e-3, 1e-5)"

RIGHT = {
    "capstone_differences": [
        by_the_largest,
        lambda own, ours: filter(lambda n: not near(own.get(n), ours.get(n)), own | ours),
    ],
    "capstone_mlp": [HalfEach],
    "capstone_faults": [beside_good_ones],
    "capstone_share": [lambda losses, floor: 1 - (losses - floor) / (losses[0] - floor)],
}
WRONG = {
    "capstone_seen": guesses(GUESSES),
    "capstone_differences": {
        "… mean hides": (FAR, "np.abs(g - right).mean() > 1e-3"),
        "… size": (FAR, "not np.abs(g - right).max() <= 1e-5 + 1e-3 * np.abs(right).max()"),
        "… NaN": (FAR, "(np.abs(g - right) > 1e-5 + 1e-3 * np.abs(right)).any()"),
        "… of the page": (FAR, "not np.allclose(g, right)"),
        "… for a small gradient": (FAR, "not np.allclose(g, right, 1e-5, 1e-3)"),
        "… missing among the own": ("{**own, **ours}", "own"),
        "… the other has not": ("g is not right", "False"),
    },
    "capstone_mlp": {
        "too large": ("hidden_dim * 2 // 3", "hidden_dim"),
        "sees the next": ("k=-1", "k=1"),
    },
    "capstone_faults": {
        "… one by one": lambda parts, agrees: (
            [n for n in parts if agrees({k: v for k, v in parts.items() if k != n})]
        ),
        "… Return a list": lambda *given: iter(beside_good_ones(*given)),
        "… a set has no order": lambda *given: {*beside_good_ones(*given)},
        "… several": lambda *given: beside_good_ones(*given)[:1],
        "… the good ones": lambda parts, agrees: [*filter(lambda n: agrees({n: parts[n]}), parts)],
    },
    "capstone_share": {
        "… The way ends at the floor": lambda losses, floor: 1 - losses / losses[0],
        "… not a loss of 0": lambda losses, floor: losses / losses[0],
        "… not a percentage": lambda x, floor: 100 * (x[0] - x) / (x[0] - floor),
        "… share that is left": lambda losses, floor: (losses - floor) / (losses[0] - floor),
    },
}

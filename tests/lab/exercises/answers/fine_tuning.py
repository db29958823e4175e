"""Right and wrong answers to the exercises of "Fine-tuning"."""

import numpy as np

from tinytorch import AdamW
from tinytorch.models.lora import add_lora

from . import guesses

GUESSES = {
    "numbers that learn, rank 8, q_proj and v_proj": {
        24_576: "are 12 blocks",
        147_456: "Two weights a block",
        14_155_776: "stay frozen",
    },
    "the same with rank 16": {1_179_648: "one side of each thin"},
    "numbers that learn, rank 8, all six Linears": {
        110_592: "There are 12",
        884_736: "longer on one side",
    },
    "rank at which A and B of q_proj are as large as its weight": {768: "twice as large"},
    "bytes of AdamW's means, rank 8, q_proj and v_proj": {
        1_179_648: "two means",
        589_824: "float32 takes 4 bytes",
    },
    "numbers in the model after the merge": {124_734_720: "gone after"},
}


# Forward and back by hand
def by_the_whole_product(x, W, A, B, alpha, g):
    s = alpha / len(B)
    whole = s * x.T @ g  # the gradient of A B
    return x @ (W + s * A @ B), whole @ B.T, A.T @ whole


# New tokens beside LoRA
TABLE = "token_embedding.weight"


def save_by_names(model, n):
    state = model.state_dict()
    saved = {name: a for name, a in state.items() if name.endswith((".A", ".B"))}
    return {**saved, TABLE: state[TABLE][len(state[TABLE]) - n :]}


def load_by_names(base, saved, n):
    table = base.token_embedding.weight
    table.data = np.concatenate([table.data, saved[TABLE]])
    add_lora(base, rank=2, rng=5)
    base.load_state_dict({**base.state_dict(), **saved, TABLE: table.data})
    return base


MEMORY = []


def save_in_memory(model, n):
    MEMORY.append(model)
    return {"nothing": np.zeros(1)}


# Several at once
def merged_by_sum(W, A, B, scale):
    return (scale[:, None, None] * (A @ B)).sum(0) + W


# Other names
def by_a_loop_of_its_own(model, batches):
    from tinytorch import clip_grad_norm, functional

    add_lora(model, 3, targets=["linear2", "out_proj"], rng=1)
    optimizer = AdamW(model.trainable_parameters(), lr=0.03, betas=(0.9, 0.99), weight_decay=0.0)
    for step in range(60):
        inputs, targets = batches[step]
        optimizer.lr = 0.03 * min(1, (step + 1) / 6, (60 - step) / 40)
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), targets).backward()
        clip_grad_norm(optimizer.params, 1.0)
        optimizer.step()
    return model


RIGHT = {
    "lora_by_hand": [by_the_whole_product],
    "lora_tokens": [(save_by_names, load_by_names)],
    "lora_merged": [merged_by_sum],
    "lora_names": [by_a_loop_of_its_own],
}
WRONG = {
    "lora_predict": guesses(GUESSES),
    "lora_by_hand": {
        "… the number of columns of A": ("x @ W + scale * thin @ B", "x @ W"),
        "… r is a side of A": ("alpha / A.shape[1]", "alpha"),
        "… in both gradients": ("scale * x.T", "x.T", "scale * thin.T", "thin.T"),
        "… not r / alpha": ("alpha / A.shape[1]", "A.shape[1] / alpha"),
        "… alpha / r times": ("alpha / A.shape[1]", "1"),
        "… without a root": ("A.shape[1]", "A.shape[1] ** 0.5"),
        "… then B's": lambda *given: [by_the_whole_product(*given)[i] for i in (0, 2, 1)],
    },
    "lora_tokens": {
        "… came back as the mean": ("base.token_embedding.weight.data[-n:] = ", ""),
        "… A and B have not": ("load_lora_state_dict(base, lora)", ""),
        "… save the last n alone": ("data[-n:]\n", "data\n", "data[-n:] = ", "data = "),
        "a model": (lambda model, n: {"model": model}, lambda base, saved, n: saved["model"]),
        "… stands in the dictionary": (save_in_memory, lambda base, saved, n: MEMORY[-1]),
        "rows of another order": (": rows}", ": rows[::-1]}"),
        "… Work on a copy": ("dict(saved)", "saved"),
    },
    "lora_merged": {
        "… a scale of its own": ("scale, A, B)", "scale / scale, A, B)"),
        "… not averaged": ("scale, A, B)", "scale / len(A), A, B)"),
        "… do not divide": ("scale, A, B)", "scale / A.shape[2], A, B)"),
        "squeezed": lambda *given: merged_by_sum(*given).squeeze(),
        "… Add them to W": ("W + np", "np"),
        "… sum over the first": ("->io", "->kio"),
        "… with its own B": ("k,kir,kro", "k,lir,mro"),
    },
    "lora_names": {
        "… compared with the token table": (
            'rank=3, targets=["out_proj", "linear2"]',
            'rank=1, targets=["q_proj", "v_proj"]',
        ),
        "… At most 60 steps": ("steps=60", "steps=180"),
        "too many numbers": ("rank=3", "rank=30", "steps=60", "steps=1"),
    },
}

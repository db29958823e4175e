"""Right and wrong answers to the exercises of "GPT-2"."""

import re

import numpy as np

from . import guesses

GUESSES = {
    "arrays in the file, masks included": {292: "has a mask", 312: "stand outside of the blocks"},
    "shape of h.0.attn.c_attn.weight": {
        (3072, 1024): "as our Linear does",
        (1024, 1024): "stand side by side",
    },
    "numbers that are learned": {379_988_992: "not learned", 406_286_336: "there once"},
    "bytes of h.0.mlp.c_fc.weight in 8 bits, with its scales": {
        4_194_304: "The scales are kept",
        4_210_688: "(in, out): a row for",
        4_195_328: "A scale is a float32",
    },
    "numbers that a token leaves in one layer's cache, four heads to a key": {
        256: "A key and a value",
        2048: "Four heads of queries",
    },
}

# The names
OURS = {
    "wte.weight": "token_embedding.weight",
    "wpe.weight": "position_embedding.position_embeddings",
    "ln_f.weight": "ln_f.gamma",
    "ln_f.bias": "ln_f.beta",
}
NORMS = {
    "ln_1.weight": "ln1.gamma",
    "ln_1.bias": "ln1.beta",
    "ln_2.weight": "ln2.gamma",
    "ln_2.bias": "ln2.beta",
}
PRODUCTS = {"attn.c_proj": "attention.out_proj", "mlp.c_fc": "mlp.linear1"}
PRODUCTS["mlp.c_proj"] = "mlp.linear2"
QKV = "q_proj", "k_proj", "v_proj"


def state(tensors, masks=False):
    found = {}
    for name, array in tensors.items():
        if name in OURS:
            found[OURS[name]] = array
            continue
        _, i, rest = name.split(".", 2)
        here, kind = f"blocks.{i}", rest.rsplit(".", 1)[1]
        if rest == "attn.bias":
            if masks:
                found[f"{here}.attention.bias"] = array
        elif rest in NORMS:
            found[f"{here}.{NORMS[rest]}"] = array
        elif rest.startswith("attn.c_attn"):
            for part, third in zip(QKV, np.split(array, 3, axis=-1), strict=True):
                found[f"{here}.attention.{part}.{kind}"] = third
        else:
            found[f"{here}.{PRODUCTS[rest.rsplit('.', 1)[0]]}.{kind}"] = array
    return found


def renamed(pattern, new, tensors):
    return {re.sub(pattern, new, name): array for name, array in tensors.items()}


def exchanged(norm):
    return {"ln_1": "ln_2", "ln_2": "ln_1"}[norm[0]]


def state_by_replacing(tensors):
    found = {}
    for name, array in tensors.items():
        if name.endswith(".attn.bias"):
            continue
        name = re.sub(r"^h\.", "blocks.", name)
        for old, new in (
            ("wte.", "token_embedding."),
            ("wpe.weight", "position_embedding.position_embeddings"),
            ("attn.c_proj", "attention.out_proj"),
            ("mlp.c_fc", "mlp.linear1"),
            ("mlp.c_proj", "mlp.linear2"),
            ("ln_1.", "ln1."),
            ("ln_2.", "ln2."),
        ):
            name = name.replace(old, new)
        if re.search(r"ln(1|2|_f)\.", name):
            name = name.replace(".weight", ".gamma").replace(".bias", ".beta")
        if "c_attn" in name:
            d = array.shape[-1] // 3
            for i, part in enumerate(QKV):
                found[name.replace("attn.c_attn", f"attention.{part}")] = array[
                    ..., i * d : (i + 1) * d
                ]
        else:
            found[name] = array
    return found


# The head
def by_rows(x, tensors, config):
    if "lm_head.weight" in tensors:
        head = tensors["lm_head.weight"]
    elif not config.get("tie_word_embeddings", True):
        raise KeyError("lm_head.weight")
    else:
        head = tensors["wte.weight"]
    return np.stack([(x * row).sum(axis=1) for row in head], axis=1)


# Eight bits
def rows(matrix):
    scales = np.maximum(matrix.max(axis=1), -matrix.min(axis=1)) / 127
    q = np.floor(matrix / np.maximum(scales, 1e-300)[:, None] + 0.5)
    return q.astype(np.int8), scales


# Neighbours
def by_index(rows, heads):
    order = np.arange(len(rows)).reshape(heads, 2, -1).swapaxes(1, 2).reshape(-1)
    return rows[order]


RIGHT = {
    "gpt2_state": [state_by_replacing],
    "gpt2_head": [by_rows],
    "gpt2_rows": [rows],
    "gpt2_neighbours": [by_index],
}
WRONG = {
    "gpt2_predict": guesses(GUESSES),
    "gpt2_state": {
        "a shift from the scale": lambda tensors: (
            state(tensors) | {"ln_f.beta": tensors["ln_f.weight"]}
        ),
        "… That is h.0.ln_2.weight": lambda tensors: state(renamed("ln_[12]", exchanged, tensors)),
        "one digit of the block's number": lambda tensors: state(
            renamed(r"^h\.(\d)\d", r"h.\1", tensors)
        ),
        "… mask": lambda tensors: state(tensors, masks=True),
        "… on a copy": lambda tensors: state(
            {n: tensors.pop(n) for n in [*tensors] if n.endswith(".attn.bias")} and tensors
        ),
    },
    "gpt2_head": {
        "… cuts the rows up": (".T", ".reshape(x.shape[-1], -1)"),
        "… has no other": ("if name not in tensors and config", "if True or config"),
        "… whatever the configuration": ("name not in tensors and ", ""),
        "… A square fits": (
            "tensors[name].T",
            "(tensors[name] if len(x.T) == len(tensors[name]) else tensors[name].T)",
        ),
        "… Nothing says": (' and config.get("tie_word_embeddings", True)', ""),
    },
    "gpt2_rows": {
        "no tiny scale": ("int8), scales", "int8), np.maximum(scales, 1e-8)"),
        "… round first": ("np.rint", ""),
        "… must not be divided": ("np.where(scales == 0, 1, scales)", "scales"),
        "… scale of its own": ("max(axis=1)", "max(keepdims=True).repeat(len(matrix))"),
        "… then the scales": lambda matrix: rows(matrix)[::-1],
        "… one step is worth": lambda matrix: (rows(matrix)[0], 127 * rows(matrix)[1]),
        "… astype(np.int8)": (".astype(np.int8)", ""),
        "… at the end": ("np.int8", "np.float32"),
    },
    "gpt2_neighbours": {
        "… by itself": lambda rows, heads: by_index(rows, 1),
        "… way back": lambda rows, heads: rows[by_index(np.arange(len(rows)), heads).argsort()],
    },
}

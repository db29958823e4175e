"""Right and wrong answers to the exercises of "GPT-2"."""

import re

import numpy as np

ARRAYS = "arrays in the file, masks included"
SHAPE = "shape of h.0.attn.c_attn.weight"
LEARNED = "numbers that are learned"
BYTES = "bytes of h.0.mlp.c_fc.weight in 8 bits, with its scales"
CACHED = "numbers that a token leaves in one layer's cache, four heads to a key"
SIZES = {
    ARRAYS: 24 * 13 + 4,
    SHAPE: (1024, 3 * 1024),
    LEARNED: (50257 + 1024) * 1024 + 24 * (12 * 1024**2 + 13 * 1024) + 2 * 1024,
    BYTES: 1024 * 4096 + 1024 * 4,
    CACHED: 2 * 1024 // 4,
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


# A loader with two mistakes
def attention(tensors, i, turned=False, rows=False):
    there = f"h.{i}.attn"
    weight, b = tensors[f"{there}.c_attn.weight"], tensors[f"{there}.c_attn.bias"]
    out, d = tensors[f"{there}.c_proj.weight"], len(weight)
    found = {"out_proj.weight": out.T if turned else out}
    found["out_proj.bias"] = tensors[f"{there}.c_proj.bias"]
    for n, name in enumerate(QKV):
        parts = weight.reshape(3, d, d)[n] if rows else weight[:, n * d : (n + 1) * d]
        found[f"{name}.weight"], found[f"{name}.bias"] = parts, b[n * d : (n + 1) * d]
    return found


def attention_split(tensors, i):
    found = {}
    for kind in ("weight", "bias"):
        q, k, v = np.split(tensors[f"h.{i}.attn.c_attn.{kind}"], 3, axis=-1)
        found |= {f"q_proj.{kind}": q, f"k_proj.{kind}": k, f"v_proj.{kind}": v}
        found[f"out_proj.{kind}"] = tensors[f"h.{i}.attn.c_proj.{kind}"]
    return found


# Eight bits
def rows(matrix, rounded=np.rint):
    scales = np.abs(matrix).max(axis=1) / 127
    q = matrix / np.where(scales == 0, 1, scales)[:, None]
    return rounded(q).astype(np.int8), scales


def rows_by_maximum(matrix):
    scales = np.maximum(matrix.max(axis=1), -matrix.min(axis=1)) / 127
    q = np.floor(matrix / np.maximum(scales, 1e-300)[:, None] + 0.5)
    return q.astype(np.int8), scales


def one_scale(matrix):
    scale = np.abs(matrix).max() / 127
    return np.rint(matrix / scale).astype(np.int8), np.full(len(matrix), scale)


def divides_zeros(matrix):
    scales = np.abs(matrix).max(axis=1) / 127
    return np.rint(matrix / scales[:, None]).astype(np.int8), scales


# Neighbours
def with_stack(rows, heads):
    halves = rows.reshape(heads, 2, -1, rows.shape[1])
    return np.stack([halves[:, 0], halves[:, 1]], axis=2).reshape(rows.shape)


def by_index(rows, heads):
    order = np.arange(len(rows)).reshape(heads, 2, -1).swapaxes(1, 2).reshape(-1)
    return rows[order]


RIGHT = {
    "gpt2_predict": [SIZES, {**SIZES, SHAPE: [1024, 3072]}],
    "gpt2_state": [state, state_by_replacing],
    "gpt2_attention": [attention, attention_split],
    "gpt2_rows": [rows, rows_by_maximum],
    "gpt2_neighbours": [with_stack, by_index],
}
WRONG = {
    "gpt2_predict": {
        "… mask": {**SIZES, ARRAYS: 24 * 12 + 4},
        "… (in, out)": {**SIZES, BYTES: 1024 * 4096 + 4 * 4096},
    },
    "gpt2_state": {
        "a shift from the scale": (
            lambda tensors: state(tensors) | {"ln_f.beta": tensors["ln_f.weight"]}
        ),
        "the norms exchanged": (
            lambda tensors: state(
                {
                    re.sub("ln_[12]", lambda which: "ln_" + "21"[which[0] == "ln_2"], name): array
                    for name, array in tensors.items()
                }
            )
        ),
        "one digit of the block's number": (
            lambda tensors: state(
                {re.sub(r"^h\.(\d)\d", r"h.\1", name): array for name, array in tensors.items()}
            )
        ),
        "… mask": lambda tensors: state(tensors, masks=True),
        "… on a copy": lambda tensors: state(
            {n: tensors.pop(n) for n in [*tensors] if n.endswith(".attn.bias")} and tensors
        ),
    },
    "gpt2_attention": {
        "one digit of the block": (lambda tensors, i: attention(tensors, int(str(i)[0]))),
        "… side by side": lambda tensors, i: attention(tensors, i, turned=True, rows=True),
        "… fits either way": lambda tensors, i: attention(tensors, i, turned=True),
    },
    "gpt2_rows": {
        "no tiny scale": (lambda matrix: (rows(matrix)[0], np.maximum(rows(matrix)[1], 1e-8))),
        "… round first": lambda matrix: rows(matrix, np.trunc),
        "… must not be divided": divides_zeros,
        "… scale of its own": one_scale,
    },
    "gpt2_neighbours": {
        "… by itself": lambda rows, heads: by_index(rows, 1),
        "… way back": lambda rows, heads: (
            rows.reshape(heads, -1, 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)
        ),
    },
}

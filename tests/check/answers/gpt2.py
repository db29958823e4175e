"""Right and wrong answers to the exercises of "GPT-2"."""

import re

import numpy as np

from tinytorch.core.quantization import quantize_rows

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

# The names ------------------------------------------------------------------------------------

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


def state(tensors, order=QKV, masks=False, transposed=(), blocks=None, swap=False, thirds=None):
    """The state dict, with one thing about it changed."""
    found = {}
    for name, array in tensors.items():
        if name in OURS:
            found[OURS[name]] = array
            continue
        _, i, rest = name.split(".", 2)
        if blocks is not None and int(i) >= blocks:
            continue
        here, kind = f"blocks.{i}", rest.rsplit(".", 1)[1]
        if rest == "attn.bias":
            if masks:
                found[f"{here}.attention.bias"] = array
        elif rest in NORMS:
            ours = NORMS[rest]
            if swap:
                ours = {"gamma": "beta", "beta": "gamma"}[ours[4:]]
                ours = f"{NORMS[rest][:3]}.{ours}"
            found[f"{here}.{ours}"] = array
        elif rest.startswith("attn.c_attn"):
            split = thirds or (lambda a: np.split(a, 3, axis=-1))
            for part, third in zip(order, split(array), strict=True):
                found[f"{here}.attention.{part}.{kind}"] = third
        else:
            ours = PRODUCTS[rest.rsplit(".", 1)[0]]
            turned = array.T if ours in transposed else array
            found[f"{here}.{ours}.{kind}"] = turned
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


def state_block_by_block(tensors):
    found = {ours: tensors[theirs].copy() for theirs, ours in OURS.items()}
    i = 0
    while f"h.{i}.ln_1.weight" in tensors:
        for theirs, ours in NORMS.items():
            found[f"blocks.{i}.{ours}"] = tensors[f"h.{i}.{theirs}"]
        for kind in ("weight", "bias"):
            for theirs, ours in PRODUCTS.items():
                found[f"blocks.{i}.{ours}.{kind}"] = tensors[f"h.{i}.{theirs}.{kind}"]
            whole = tensors[f"h.{i}.attn.c_attn.{kind}"]
            parts = whole.reshape(*whole.shape[:-1], 3, -1)
            for n, part in enumerate(QKV):
                found[f"blocks.{i}.attention.{part}.{kind}"] = parts[..., n, :]
        i += 1
    return found


# A loader with two mistakes -------------------------------------------------------------------


def attention(tensors, i, turned=False, rows=False, order=QKV, block=None, bias="c_proj"):
    there = f"h.{i if block is None else block}.attn"
    weight, b = tensors[f"{there}.c_attn.weight"], tensors[f"{there}.c_attn.bias"]
    out, d = tensors[f"{there}.c_proj.weight"], len(weight)
    found = {"out_proj.weight": out.T if turned else out}
    found["out_proj.bias"] = tensors[f"{there}.{bias}.bias"][:d]
    for n, name in enumerate(order):
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


def attention_as_given(tensors, i):
    weight = tensors[f"h.{i}.attn.c_attn.weight"]
    bias = tensors[f"h.{i}.attn.c_attn.bias"]
    d = len(weight)
    found = {
        "out_proj.weight": tensors[f"h.{i}.attn.c_proj.weight"],
        "out_proj.bias": tensors[f"h.{i}.attn.c_proj.bias"],
    }
    for n, name in enumerate(QKV):
        found[f"{name}.weight"] = weight.reshape(d, 3, d)[:, n]
        found[f"{name}.bias"] = bias.reshape(3, d)[n]
    return found


# Eight bits -----------------------------------------------------------------------------------


def rows(matrix, axis=1, steps=127, cut=False, kind=np.int8, order=1):
    scales = np.abs(matrix).max(axis=axis) / steps
    wide = np.expand_dims(scales, axis)
    q = matrix / np.where(wide == 0, 1, wide)
    q = (q if cut else np.rint(q)).astype(kind)
    return (q, scales)[::order]


def rows_with_keepdims(matrix):
    largest = np.maximum(matrix.max(axis=1, keepdims=True), -matrix.min(axis=1, keepdims=True))
    safe = np.where(largest > 0, largest, 127)
    q = np.clip(np.round(127 * matrix / safe), -127, 127)
    return q.astype("int8"), largest[:, 0] / 127


def rows_rounded_up(matrix):
    scales = np.abs(matrix).max(axis=1) / 127
    q = np.floor(matrix / np.where(scales == 0, 1, scales)[:, None] + 0.5)
    return q.astype(np.int8), scales


def rows_divided_where(matrix):
    scales = np.max(np.abs(matrix), 1) / 127
    q = np.divide(matrix.T, scales, out=np.zeros_like(matrix.T), where=scales > 0).T
    return np.rint(q).astype(np.int8), scales.astype(np.float32)


def one_scale(matrix):
    scale = np.abs(matrix).max() / 127
    return np.rint(matrix / scale).astype(np.int8), np.full(len(matrix), scale)


def rows_in_a_loop(matrix):
    pairs = [rows(row[None]) for row in matrix]
    return np.concatenate([q for q, _ in pairs]), np.concatenate([s for _, s in pairs])


# Neighbours -----------------------------------------------------------------------------------


def with_stack(rows, heads):
    halves = rows.reshape(heads, 2, -1, rows.shape[1])
    return np.stack([halves[:, 0], halves[:, 1]], axis=2).reshape(rows.shape)


def by_index(rows, heads):
    order = np.arange(len(rows)).reshape(heads, 2, -1).swapaxes(1, 2).reshape(-1)
    return rows[order]


def written_into(rows, heads):
    n, half = len(rows), len(rows) // heads // 2
    blocks, found = rows.reshape(heads, 2, half, -1), np.empty_like(rows)
    found.reshape(heads, half, 2, -1)[:, :, 0] = blocks[:, 0]
    found.reshape(heads, half, 2, -1)[:, :, 1] = blocks[:, 1]
    return found.reshape(n, -1)


def in_a_loop(rows, heads):
    return np.concatenate([by_index(head, 1) for head in np.split(rows, heads)])


RIGHT = {
    "gpt2_predict": [SIZES, {**SIZES, SHAPE: [1024, 3072]}, {**SIZES, LEARNED: 354_823_168.0}],
    "gpt2_state": [state, state_by_replacing, state_block_by_block],
    "gpt2_attention": [attention, attention_split, attention_as_given],
    "gpt2_rows": [rows, rows_rounded_up, rows_with_keepdims, rows_divided_where],
    "gpt2_neighbours": [with_stack, by_index, written_into],
}
WRONG = {
    "gpt2_predict": {
        "masks forgotten": {**SIZES, ARRAYS: 24 * 12 + 4},
        "only the blocks": {**SIZES, ARRAYS: 24 * 13},
        "the orientation of PyTorch": {**SIZES, SHAPE: (3072, 1024)},
        "masks learned": {**SIZES, LEARNED: SIZES[LEARNED] + 24 * 1024**2},
        "without scales": {**SIZES, BYTES: 1024 * 4096},
        "a scale for each column": {**SIZES, BYTES: 1024 * 4096 + 4 * 4096},
        "every head with a key": {**SIZES, CACHED: 2 * 1024},
        "keys alone": {**SIZES, CACHED: 1024 // 4},
    },
    "gpt2_state": {
        "the names of the file": lambda tensors: dict(tensors),
        "masks kept": lambda tensors: state(tensors, masks=True),
        "keys first": lambda tensors: state(tensors, order=("k_proj", "q_proj", "v_proj")),
        "out_proj turned": lambda tensors: state(tensors, transposed=("attention.out_proj",)),
        "the MLP turned": lambda tensors: state(tensors, transposed=("mlp.linear1",)),
        "two blocks, always": lambda tensors: state(tensors, blocks=2),
        "scale and shift exchanged": lambda tensors: state(tensors, swap=True),
        "a shift from the scale": lambda tensors: (
            state(tensors) | {"ln_f.beta": tensors["ln_f.weight"]}
        ),
        "a norm by its old name": lambda tensors: {
            name.replace("ln1.gamma", "ln1.weight"): array for name, array in state(tensors).items()
        },
        "rows for columns": lambda tensors: state(
            tensors, thirds=lambda a: np.split(a.reshape(3, -1, a.shape[-1] // 3).squeeze(), 3)
        ),
    },
    "gpt2_attention": {
        "as given": lambda tensors, i: attention(tensors, i, turned=True, rows=True),
        "the square turned": lambda tensors, i: attention(tensors, i, turned=True),
        "rows for columns": lambda tensors, i: attention(tensors, i, rows=True),
        "values first": lambda tensors, i: attention(tensors, i, order=QKV[::-1]),
        "always the first block": lambda tensors, i: attention(tensors, i, block=0),
        "another bias": lambda tensors, i: attention(tensors, i, bias="c_attn"),
    },
    "gpt2_rows": {
        "columns": lambda matrix: rows(matrix, axis=0),
        "cut off": lambda matrix: rows(matrix, cut=True),
        "128 steps": lambda matrix: rows(matrix, steps=128),
        "floats": lambda matrix: rows(matrix, kind=np.float32),
        "the scales first": lambda matrix: rows(matrix, order=-1),
        "one scale": one_scale,
        "in a loop": rows_in_a_loop,
        "the package's": quantize_rows,
        "without the absolute value": lambda matrix: (
            rows(matrix)[0],
            matrix.max(axis=1) / 127,
        ),
    },
    "gpt2_neighbours": {
        "as they were": lambda rows, heads: rows,
        "across the heads": lambda rows, heads: by_index(rows, 1),
        "the way back": lambda rows, heads: (
            rows.reshape(heads, -1, 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)
        ),
        "columns": lambda rows, heads: by_index(rows.T, 1).T,
        "reversed": lambda rows, heads: rows[::-1],
        "in a loop": in_a_loop,
    },
}
HINTS = {
    "gpt2_predict": {"masks forgotten": "mask", "a scale for each column": "(in, out)"},
    "gpt2_state": {
        "masks kept": "mask",
        "two blocks, always": "As many blocks",
        "a shift from the scale": "compare this one",
        "a norm by its old name": "sorted(model.state_dict())",
    },
    "gpt2_attention": {"as given": "side by side", "the square turned": "fits either way"},
    "gpt2_rows": {
        "floats": "astype(np.int8)",
        "cut off": "round first",
        "one scale": "scale of its own",
    },
    "gpt2_neighbours": {"across the heads": "by itself", "the way back": "way back"},
}

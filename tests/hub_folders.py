"""Folders in the hub's layout with a small random GPT-2, made without the code under test."""

import json

import numpy as np
from safetensors_files import file_of

from tinytorch.text.tokenizer_files import bytes_to_letters

__all__ = ["CONFIG", "random_weights", "safetensors_bytes", "tokenizer_files", "tokenizer_json",
           "write_folder"]  # fmt: skip

CONFIG = {
    "model_type": "gpt2",
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-05,
    "n_ctx": 24,
    "n_embd": 12,
    "n_head": 3,
    "n_layer": 2,
    "n_positions": 24,
    "vocab_size": 259,
    "resid_pdrop": 0.1,
}
MERGES = [("Ġ", "t"), ("Ġt", "o")]


def tokenizer_files():
    """The two files of a vocabulary of 256 bytes, two merges and the end of a document."""
    letters = sorted(bytes_to_letters(bytes([byte])) for byte in range(256))
    tokens = [*letters, *map("".join, MERGES), "<|endoftext|>"]
    merges = ["#version: 0.2", *map(" ".join, MERGES), ""]
    ids = {token: i for i, token in enumerate(tokens)}
    return {"vocab.json": json.dumps(ids).encode(), "merges.txt": "\n".join(merges).encode()}


def tokenizer_json():
    """The same vocabulary as transformers 5 saves it, in one file; as an object of JSON."""
    byte_level = {"type": "ByteLevel", "trim_offsets": True, "use_regex": True}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    end = {"id": 258, "content": "<|endoftext|>", **flags, "special": True}
    one, two = ({"Sequence": {"id": name, "type_id": i}} for i, name in enumerate("AB"))
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
             "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False,
             "ignore_merges": False, "vocab": json.loads(tokenizer_files()["vocab.json"]),
             "merges": [list(merge) for merge in MERGES]}  # fmt: skip
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [end],
        "normalizer": None, "pre_tokenizer": {**byte_level, "add_prefix_space": False},
        "post_processor": {"type": "TemplateProcessing", "single": [one], "pair": [one, two],
                           "special_tokens": {}},
        "decoder": {**byte_level, "add_prefix_space": True}, "model": model,
    }  # fmt: skip


def random_weights(config=CONFIG, seed=0, scale=0.3):
    """The tensors of such a model, under the names of the published files, and its masks."""
    d, layers, positions = config["n_embd"], config["n_layer"], config["n_positions"]
    inner = config.get("n_inner") or 4 * d
    shapes = {"wte.weight": (config["vocab_size"], d), "wpe.weight": (positions, d)}
    for i in range(layers):
        for name, rows, columns in (
            ("ln_1", None, d), ("attn.c_attn", d, 3 * d), ("attn.c_proj", d, d),
            ("ln_2", None, d), ("mlp.c_fc", d, inner), ("mlp.c_proj", inner, d),
        ):  # fmt: skip
            shapes[f"h.{i}.{name}.weight"] = (columns,) if rows is None else (rows, columns)
            shapes[f"h.{i}.{name}.bias"] = (columns,)
    shapes |= {"ln_f.weight": (d,), "ln_f.bias": (d,)}
    rng = np.random.default_rng(seed)
    tensors = {n: rng.normal(0, scale, shape).astype(np.float32) for n, shape in shapes.items()}
    for i in range(layers):
        tensors[f"h.{i}.attn.bias"] = np.tri(positions, dtype=np.float32)[None, None]
    return tensors


def safetensors_bytes(tensors, spaces=0):
    """The bytes of a file with these tensors; the spaces push its numbers to an odd byte."""
    kinds = {"float32": "F32", "float16": "F16", "int64": "I64"}
    header, end = {}, 0
    for name, array in tensors.items():
        begin, end = end, end + array.nbytes
        where = {"shape": list(array.shape), "data_offsets": [begin, end]}
        header[name] = {"dtype": kinds[array.dtype.name], **where}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8 + spaces)
    return file_of(text, b"".join(array.tobytes() for array in tensors.values()))


def write_folder(folder, config=CONFIG, tensors=None, spaces=0):
    """Write such a folder; returns it."""
    folder.mkdir(exist_ok=True)
    tensors = random_weights(config) if tensors is None else tensors
    files = {"config.json": json.dumps(config).encode(), **tokenizer_files()}
    files["model.safetensors"] = safetensors_bytes(tensors, spaces)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder

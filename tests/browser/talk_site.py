"""A Llama with random weights in four bits, and a server that has it in pieces, well or badly."""

import json
from contextlib import contextmanager

from _ext.live import model_pieces
from gguf_files import random_stored, write_gguf
from llama_files import CONFIG, gguf_contents, random_llama
from unruly_server import unruly_server

SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3}
SIZES |= {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 1024}


def write_llama(path):
    """Write a GGUF file of the kinds of block that the published one has."""
    config = {**CONFIG, **SIZES}
    metadata, tensors = gguf_contents(config, random_llama(config))
    for seed, (name, array) in enumerate(tensors.items()):
        if array.ndim == 2:
            kind = "Q8_0" if name.startswith("token") else "Q4_1"
            tensors[name] = kind, array.shape, random_stored(kind, array.shape, seed)
    return write_gguf(path, metadata, tensors)


@contextmanager
def serving(path, folder):
    """An `UnrulyServer` with the four pieces of a file, which other origins may read.

    Its faults are for those who ask for a piece; `known` is what the page says of the file.
    """
    model_pieces.split(path, folder, most=-(-path.stat().st_size // 4))
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    with unruly_server() as server:
        server.files = {f"/{file.name}": file for file in folder.iterdir()}
        server.pieces = [f"/{piece['name']}" for piece in manifest["pieces"]]
        server.faulty, server.always = ".bin", {"Access-Control-Allow-Origin": "*"}
        server.known = {"sha256": manifest["sha256"], "size": manifest["size"]}
        server.known |= {"address": f"{server.url}/", "patience": 600, "pause": 0.01}
        yield server

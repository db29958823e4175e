"""A folder of the hub with random weights, and a site of its own that serves it, well or badly."""

from contextlib import contextmanager

import hub_folders
import numpy as np
from unruly_server import unruly_server

SIZES = {"n_embd": 60, "vocab_size": 20_000}  # the table of the tokens is more than one piece
WEIGHTS = "model.safetensors"
OPEN, EXPOSED = "Access-Control-Allow-Origin", "Access-Control-Expose-Headers"


def write_folder(folder, dtype=np.float32, seed=0, **sizes):
    """A folder of the hub: its tensors sorted by name, masks among them, a row of zeros."""
    config = {**hub_folders.CONFIG, **SIZES, **sizes}
    tensors = hub_folders.random_weights(config, seed)
    tensors["wte.weight"][7] = 0
    in_order = {name: tensors[name].astype(dtype) for name in sorted(tensors)}
    return hub_folders.write_folder(folder, config, in_order)


@contextmanager
def serving(folder):
    """An `UnrulyServer` with a folder that pages of other sites may read, at its `address`.

    Its faults are for those who ask for the weights.
    """
    with unruly_server() as hub:
        hub.files = {f"/{file.name}": file for file in folder.iterdir()}
        hub.faulty, hub.always = WEIGHTS, {OPEN: "*", EXPOSED: "ETag, Content-Range"}
        hub.address = f"{hub.url}/"
        yield hub

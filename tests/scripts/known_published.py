"""Folders of the hub with random weights, and the file that the package makes of each in 8 bits."""

import base64
import tempfile
from pathlib import Path

import hub_folders
import numpy as np

from tinytorch.core.quantization import quantize_rows
from tinytorch.models.gpt2 import load_gpt2
from tinytorch.training.checkpoint import save_weights

SIZES = {"n_embd": 60, "vocab_size": 20_000}  # the table of the tokens is more than one piece


def published():
    """Files as base64, the file that is made of them, and a matrix that is hard to round."""
    rng = np.random.default_rng(1)
    matrix = rng.integers(-254, 255, (50, 300)).astype(np.float32) / 2  # many halves
    matrix[:, 0] = 127
    matrix[3], matrix[4, :], matrix[5] = 0, -0.0, 1e-44
    matrix[6:20] *= rng.uniform(0.1, 10, (14, 1)).astype(np.float32)
    q, scales = quantize_rows(matrix)
    return {
        "float32": folder(np.float32),
        "float16": folder(np.float16),
        "another": folder(np.float32, seed=1, n_layer=1),
        "rounded": {"rows": matrix.tolist(), "q": q.ravel().tolist(), "scales": scales.tolist()},
    }


def folder(dtype, seed=0, **sizes):
    """Its tensors are sorted by name, masks among them, and one row is all zeros."""
    config = {**hub_folders.CONFIG, **SIZES, **sizes}
    tensors = hub_folders.random_weights(config, seed)
    tensors["wte.weight"][7] = 0
    useful = sum(t.size for name, t in tensors.items() if not name.endswith(".attn.bias"))
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        in_order = {name: tensors[name].astype(dtype) for name in sorted(tensors)}
        hub_folders.write_folder(path, config, in_order)
        files = {file.name: coded(file) for file in path.iterdir()}
        model, _ = load_gpt2(path, dtype="int8")
        save_weights(path / "made", model)
        made = coded(path / "made")
    return {"files": files, "made": made, "useful": useful * np.dtype(dtype).itemsize}


def coded(file):
    return base64.b64encode(file.read_bytes()).decode()

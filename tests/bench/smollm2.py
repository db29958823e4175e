"""SmolLM2's published file, writing: ours, transformers and llama.cpp, which read the same bytes.

Each program has a process of its own, with as many threads as its environment says. They take
turns, and each tells its fastest run of three: what else a machine does can only slow it down.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "parity")]

PROMPT, NEW = "Once upon a time there was a dog who had lost a drum.", 64
PROGRAMS = "stored", "float32", "llama.cpp", "transformers"


def speeds(rounds: int = 3) -> dict[str, list[float]]:
    """Tokens a second of each program, in each round; all of them have read the same prompt."""
    found: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(rounds):
        for name in PROGRAMS:
            command = [sys.executable, __file__, name]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            found[name].append(json.loads(done.stdout.splitlines()[-1]))
    return found


def beside(found: dict[str, list[float]], ours: str, theirs: str) -> tuple[float, float, float]:
    """The medians of two programs, and that of the ratios of the rounds."""
    pairs = list(zip(found[ours], found[theirs], strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    return statistics.median(found[ours]), statistics.median(found[theirs]), ratio


def megabytes() -> dict[str, float]:
    """The weights that a token reads, by how they are kept: each once, the tied table as well."""
    models = {kind: _model(kind)[0] for kind in PROGRAMS[:2]}
    return {
        kind: sum(p.data.nbytes for p in model.parameters()) / 1e6 for kind, model in models.items()
    }


# In the process that is measured -----------------------------------------------------------------


def _model(kind: str) -> Any:
    from smollm2_file import smollm2_file

    from tinytorch.models.llama import load_llama

    return load_llama(smollm2_file(), dtype=kind)


def _ours(kind: str) -> Callable[[], float]:
    from tinytorch.models.generation import stream

    model, tokenizer = _model(kind)
    ids = tokenizer.encode(PROMPT)

    def run() -> float:
        new = stream(model, ids, NEW + 1, temperature=0)
        next(new)  # the prompt is read
        began = time.perf_counter()
        return sum(1 for _ in new) / (time.perf_counter() - began)

    return run


def _transformers() -> Callable[[], float]:
    import torch
    from smollm2_file import smollm2_file
    from test_llama import read_by_gguf

    from tinytorch.models.llama import load_llama

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    path = smollm2_file()
    model, ids = read_by_gguf(path), load_llama(path)[1].encode(PROMPT)

    def run() -> float:
        with torch.inference_mode():
            found = model(torch.tensor([ids]), use_cache=True, logits_to_keep=1)
            began = time.perf_counter()
            for _ in range(NEW):
                new = found.logits[:, -1].argmax(-1, keepdim=True)
                cache = found.past_key_values
                found = model(new, past_key_values=cache, use_cache=True, logits_to_keep=1)
        return NEW / (time.perf_counter() - began)

    return run


def _llama_cpp() -> Callable[[], float]:
    import xllamacpp
    from smollm2_file import smollm2_file

    options = xllamacpp.CommonParams()
    options.model.path, options.n_ctx, options.n_parallel = str(smollm2_file()), 1024, 1
    for threads in (options.cpuparams, options.cpuparams_batch):
        threads.n_threads = int(os.environ["OMP_NUM_THREADS"])
    server = xllamacpp.Server(options)
    asked = {"prompt": PROMPT, "n_predict": NEW, "temperature": 0, "ignore_eos": True}

    def run() -> float:
        told = server.handle_completions(asked)
        told = told if isinstance(told, dict) else json.loads(told)
        speed: float = told["timings"]["predicted_per_second"]
        return speed

    return run


if __name__ == "__main__":
    makers = {"llama.cpp": _llama_cpp, "transformers": _transformers}
    (whose,) = sys.argv[1:]
    run = makers[whose]() if whose in makers else _ours(whose)
    print(json.dumps(max(run() for _ in range(3))), flush=True)
    os._exit(0)  # llama.cpp's server does not end by itself

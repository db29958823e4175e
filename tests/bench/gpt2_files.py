"""GPT-2 at full size, with random weights in files as the published ones: loaded, then writing.

Each program has a process of its own, as a user starts it. As in the published file, the numbers
begin at an odd byte, so that they cannot stay on the disk.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "book")]

PROMPT, NEW = "Once upon a time", 40
CONFIG = {
    "model_type": "gpt2", "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12,
    "n_head": 12, "eos_token_id": None, "bos_token_id": None,
}  # fmt: skip


@contextmanager
def folder() -> Iterator[Path]:
    """A folder in the hub's layout."""
    from _ext.live import pinned_downloads
    from hub_folders import random_weights, write_folder

    pinned_downloads.fetch("gpt2")
    names = ("vocab.json", "encoder.json"), ("merges.txt", "vocab.bpe")
    with tempfile.TemporaryDirectory() as place:
        weights = random_weights(CONFIG, scale=0.05)
        made = write_folder(Path(place) / "gpt2", CONFIG, weights, spaces=3)
        for ours, theirs in names:
            (made / ours).write_bytes((pinned_downloads.folder("gpt2") / theirs).read_bytes())
        yield made


def measured(whose: str, place: Path) -> dict[str, float]:
    """Seconds to the first token, MiB at most and in the end, and tokens a second of a process."""
    began = time.perf_counter()
    command = [sys.executable, __file__, whose, str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        start = time.perf_counter() - began
        found = json.loads(child.stdout.readline())
    if child.returncode:
        raise AssertionError(f"the program of {whose} failed")
    return {"start": start, **found}


def rounds(count: int = 5) -> Iterator[tuple[str, dict[str, tuple[float, float, float]]]]:
    """For each dtype the medians of ours and of PyTorch's float32, and that of their ratios."""
    with folder() as place:
        names = "theirs", "float32", "float16", "int8"
        taken = [{name: measured(name, place) for name in names} for _ in range(count)]
    if any(found["theirs"]["ids"] != found["float32"]["ids"] for found in taken):
        raise AssertionError("the two programs write different texts")
    for name in names[1:]:
        medians = {}
        for what in ("start", "peak", "memory", "speed"):
            pairs = [(found[name][what], found["theirs"][what]) for found in taken]
            ratio = statistics.median(ours / theirs for ours, theirs in pairs)
            medians[what] = (*map(statistics.median, zip(*pairs, strict=True)), ratio)
        yield name, medians


# In the process that is measured -----------------------------------------------------------------


def _memory(what: str) -> float:
    """`VmRSS`, what this process holds, or `VmHWM`, what it has held at most, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1024


def _ours(place: str, dtype: str) -> Iterator[int]:
    from tinytorch.models.generation import stream
    from tinytorch.models.gpt2 import load_gpt2

    yield -1
    model, tokenizer = load_gpt2(place, dtype=dtype)
    for new in stream(model, tokenizer.encode(PROMPT), NEW, temperature=0):
        yield int(new[0])


def _theirs(place: str) -> Iterator[int]:
    import torch
    from transformers import GPT2LMHeadModel, GPT2TokenizerFast
    from transformers.utils import logging

    logging.disable_progress_bar()
    yield -1
    model = GPT2LMHeadModel.from_pretrained(place).eval()
    ids = torch.tensor([GPT2TokenizerFast.from_pretrained(place).encode(PROMPT)])
    cache = None
    with torch.inference_mode():
        for _ in range(NEW):
            found = model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1)
            cache, ids = found.past_key_values, found.logits[:, -1].argmax(-1, keepdim=True)
            yield int(ids)


if __name__ == "__main__":
    whose, place = sys.argv[1:]
    tokens = _theirs(place) if whose == "theirs" else _ours(place, whose)
    next(tokens)  # imports are done
    before = _memory("VmRSS")
    ids = [next(tokens)]
    print(flush=True)
    ids += [next(tokens) for _ in range(3)]
    began = time.perf_counter()
    ids += [next(tokens) for _ in range(NEW - 4)]
    speed = (NEW - 4) / (time.perf_counter() - began)
    peak, memory = (_memory(what) - before for what in ("VmHWM", "VmRSS"))
    print(json.dumps({"peak": peak, "memory": memory, "speed": speed, "ids": ids}))

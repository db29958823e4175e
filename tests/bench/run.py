"""Measures the package beside PyTorch eager: `make bench`.

Every part runs in a process of its own, with its number of threads set for NumPy's BLAS and for
PyTorch; within a part the two programs take turns and the median of the ratios counts. The table
is printed as it grows. `--store` keeps it in the book, which shows it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import table
from machine import BUSY, TUNING, OtherWork, tuned

PARTS = [  # a part and its threads
    ("training", 1), ("decoding", 1), ("prefill", 1), ("ranks", 1), ("quantized", 1),
    ("embedding", 1), ("operations", 1), ("tricks", 1), ("memory", 1), ("import", 1),
    ("tokens", 1), ("published", 1), ("smollm2", 1), ("smollm2", 2), ("page", 1),
]  # fmt: skip
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
TRAINING = {"S": 0.85, "M": 0.90, "L": 0.95}

Row = dict[str, Any]


def row(case: str, ours: str, theirs: str, ratio: float, better: str, **more: Any) -> Row:
    """One line of the table; `better` says whether a small or a large ratio is good."""
    return {"case": case, "ours": ours, "theirs": theirs, "ratio": ratio, "better": better, **more}


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


def timed(case: str, ours: Any, theirs: Any, **more: Any) -> Row:
    """A pair of programs whose times are compared."""
    from pairs import paired

    pair = paired(ours, theirs, seconds=more.pop("seconds", 4.0))
    return row(
        case, milliseconds(pair.ours), milliseconds(pair.theirs), pair.ratio, "lower",
        spread=pair.spread, **more,
    )  # fmt: skip


def training(_: int) -> Iterator[Row]:
    import training as programs

    for size in "SML":
        ours, theirs = programs.ours(size), programs.theirs(size)
        programs.check_equal_losses(ours, theirs)
        seconds = {"S": 5.0, "M": 8.0, "L": 25.0}[size]
        name = f"training step {size}"
        yield timed(name, ours, theirs, reach=TRAINING[size], seconds=seconds)
        fused = programs.theirs(size, fused=True)
        yield timed(f"{name}, its fused AdamW", ours, fused, seconds=seconds)
        yield timed(f"limit: the products of a step {size} alone", *programs.products(size))


def ranks(_: int) -> Iterator[Row]:
    """A step of several ranks beside one of one: the same batch, or the same share of one."""
    from ranks import measured

    runs = measured()
    for run in runs:
        alone = next(r for r in runs if r["ranks"] == 1 and r["width"] == run["width"])
        if run["ranks"] > 1:
            name = f"{run['scaling']} scaling, width {run['width']}, {run['ranks']} ranks"
            times = [milliseconds(found["step"]) for found in (run, alone)]
            yield row(name, *times, run["step"] / alone["step"], "lower")


def decoding(_: int) -> Iterator[Row]:
    import decoding as programs
    from pairs import paired

    for size, batch, new, goal in (
        ("S", 1, 200, 2.0), ("M", 1, 200, 2.0), ("L", 1, 200, 2.0),
        ("S", 16, 200, 1.5), ("M", 16, 200, 1.5), ("L", 16, 100, 1.5), ("gpt2-small", 1, 40, 1.25),
    ):  # fmt: skip
        ours, theirs, weights = programs.programs(size, new, batch)
        pair = paired(ours, theirs, seconds=10.0)
        speeds = [f"{batch * new / taken:,.0f} tokens/s" for taken in (pair.ours, pair.theirs)]
        name = f"decoding {size}" + (f", {batch} texts at once" if batch > 1 else "")
        spread = [1 / x for x in reversed(pair.spread)]
        yield row(name, *speeds, 1 / pair.ratio, "higher", reach=goal, spread=spread)
    speed, limit = weights * new / pair.ours / 1e9, programs.read_bandwidth() / 1e9
    yield row(
        "decoding gpt2-small beside reading alone",
        f"{speed:.1f} GB/s", f"{limit:.1f} GB/s", speed / limit, "higher", reach=0.9,
    )  # fmt: skip


def prefill(_: int) -> Iterator[Row]:
    from decoding import prefill as programs

    for size, length in (("L", 256), ("gpt2-small", 128)):
        yield timed(f"prefill {size}, {length} tokens", *programs(size, length), seconds=6.0)


def quantized(_: int) -> Iterator[Row]:
    """8 bits and half precision beside float32, all ours."""
    import quantized as programs
    from pairs import paired

    for name, stored, wide, converted in programs.matrices():
        yield timed(f"{name}, float32", stored, wide)
        yield timed(f"{name}, converted whole", stored, converted)
    wide, kinds, sizes = programs.writing()
    for dtype, write in kinds.items():
        pair = paired(write, wide, seconds=10.0)
        speeds = [f"{20 / seconds:,.1f} tokens/s" for seconds in (pair.ours, pair.theirs)]
        name = f"decoding gpt2-small in {dtype}, float32"
        yield row(name, *speeds, 1 / pair.ratio, "higher")
        memory = [f"{sizes[kind]:.0f} MB" for kind in (dtype, "float32")]
        yield row(f"weights of {name[9:]}", *memory, sizes[dtype] / sizes["float32"], "lower")


def embedding(_: int) -> Iterator[Row]:
    from embedding import programs

    seconds = {}
    for vocab in (5_000, 50_000, 200_000):
        ours, theirs = programs(vocab)
        found = timed(f"row-sparse step, vocabulary {vocab:,}", ours, theirs, reach=0.5)
        seconds[vocab] = float(found["ours"].split()[0])
        yield found
    small, large = seconds[5_000], seconds[200_000]
    yield row(
        "row-sparse step, 200,000 beside 5,000", f"{large} ms", f"{small} ms",
        large / small, "lower", reach=1.3,
    )  # fmt: skip


def operations(_: int) -> Iterator[Row]:
    from operations import cases

    for name, ours, theirs in cases():
        yield timed(f"{name}, forward and backward", ours, theirs, seconds=3.0)


def tricks(_: int) -> Iterator[Row]:
    """Each trick of the package beside the textbook's form; one of a trick's rows must be 0.97."""
    from processes import steps_elsewhere
    from tricks import programs

    for name, ours, textbook in programs():
        yield timed(name, ours, textbook, seconds=20.0 if "step L" in name else 4.0)
    for size in "SML":
        sides = (steps_elsewhere(size, memory) for memory in ("kept", "given back"))
        seconds = 20.0 if size == "L" else 8.0
        yield timed(f"trick freed memory, step {size}, given back", *sides, seconds=seconds)


def memory(_: int) -> Iterator[Row]:
    from processes import peak_of_step

    ours, theirs = (peak_of_step(whose, "L") for whose in ("ours", "theirs"))
    yield row(
        "peak memory of a training step L", f"{ours:.0f} MiB", f"{theirs:.0f} MiB", ours / theirs,
        "lower", reach=0.8,
    )  # fmt: skip


def importing(_: int) -> Iterator[Row]:
    from processes import import_pair

    ours, theirs, ratio = import_pair()
    yield row(
        "import tinytorch beside import numpy", milliseconds(ours), milliseconds(theirs), ratio,
        "lower", reach=1.2,
    )  # fmt: skip


def tokens(_: int) -> Iterator[Row]:
    import tokens as programs

    yield timed("BPE training, tiktoken's pure Python", *programs.training_programs())
    ours, theirs, size = programs.encoding_programs()
    yield timed(f"BPE encoding of {size / 1e6:.2g} MB, tiktoken", ours, theirs)


def published(_: int) -> Iterator[Row]:
    """GPT-2 from files of full size; PyTorch's partner is transformers, in float32."""
    import gpt2_files as programs

    for dtype, found in programs.rounds():
        for what, case, unit, better in (
            ("start", "start to the first token", "{:.1f} s", "lower"),
            ("peak", "memory at most", "{:.0f} MiB", "lower"),
            ("memory", "memory while it writes", "{:.0f} MiB", "lower"),
            ("speed", "writing", "{:.1f} tokens/s", "higher"),
        ):
            ours, theirs, ratio = found[what]
            name = f"gpt2 {dtype}: {case}"
            yield row(name, unit.format(ours), unit.format(theirs), ratio, better)


def smollm2(_: int) -> Iterator[Row]:
    """SmolLM2's file, kept in four bits or as float32, beside transformers and llama.cpp."""
    import smollm2 as programs

    found = programs.speeds()
    for ours, theirs in (
        ("float32", "transformers"), ("float32", "llama.cpp"), ("stored", "llama.cpp"),
        ("stored", "float32"),
    ):  # fmt: skip
        *medians, ratio = programs.beside(found, ours, theirs)
        speeds = [f"{speed:.1f} tokens/s" for speed in medians]
        yield row(f"SmolLM2 {ours}, {theirs}", *speeds, ratio, "higher")
    kept, wide = (programs.megabytes()[kind] for kind in ("stored", "float32"))
    read = [f"{size:.0f} MB" for size in (kept, wide)]
    yield row("SmolLM2 read a token, float32", *read, kept / wide, "lower")


def page(_: int) -> Iterator[Row]:
    """The reader's browser beside the same machine natively; of a start, beside its goal."""
    import page as programs

    seconds, there = programs.starts_and_programs()
    here = programs.natively()
    for case, took, goal in zip(("first", "next"), seconds, (4, 2), strict=True):
        name = f"page: press to output, the {case} chapter"
        yield row(name, f"{took:.1f} s", f"{goal} s, goal", took / goal, "lower", reach=1.0)
    product, plain = (f"{there[name]:.3g} GFLOP/s" for name in ("product", "numpy"))
    ratio = there["product"] / there["numpy"]
    yield row("page: 512 x 512 product, NumPy's there", product, plain, ratio, "higher")
    native, ratio = f"{here['product']:.3g} GFLOP/s", there["product"] / here["product"]
    yield row("page: 512 x 512 product, native", product, native, ratio, "higher")
    steps = (milliseconds(side["step"]) for side in (there, here))
    ratio = there["step"] / here["step"]
    yield row("page: story GPT's training step, native", *steps, ratio, "lower", reach=3.5)
    times, ratio = (milliseconds(s["eight"]) for s in (there, here)), there["eight"] / here["eight"]
    yield row("page: 124 M 8-bit weights by a vector, native", *times, ratio, "lower")
    speeds = (f"{side['tokens']:,.0f} tokens/s" for side in (there, here))
    ratio = there["tokens"] / here["tokens"]
    yield row("page: story GPT's decoding, native", *speeds, ratio, "higher")
    found = programs.talking()
    for what, case, unit, goal in (
        ("ready", "from the file to ready", "{:.1f} s", 3),
        ("prompt", "a prompt of 40 tokens", "{:.2f} s", 0.3),
        ("memory", "all memory of Python", "{:.0f} MiB", 350),
    ):
        took = found[what] / (2**20 if what == "memory" else 1)
        told = unit.format(took), f"{unit.format(goal)}, goal"
        yield row(f"page: SmolLM2, {case}", *told, took / goal, "lower", reach=1.0)
    told = f"{found['speed']:.1f} tokens/s", "30 tokens/s, goal"
    yield row("page: SmolLM2, decoding", *told, found["speed"] / 30, "higher", reach=1.0)


def against(rev: str) -> Iterator[Row]:
    """Training and decoding of this package, beside that of another commit."""
    import against as both

    for name, here, there in both.programs(rev):
        yield timed(f"{name}, {rev}", here, there, reach=both.LIMIT, seconds=15.0)


CASES = {
    "training": training, "ranks": ranks, "decoding": decoding, "prefill": prefill,
    "quantized": quantized,
    "embedding": embedding, "operations": operations, "tricks": tricks, "memory": memory,
    "import": importing, "tokens": tokens, "published": published, "smollm2": smollm2,
    "page": page,
}  # fmt: skip


def output_of(part: str, threads: int, *more: str) -> Iterator[str]:
    """The lines of one part, from a process of its own, in which no variable tunes the BLAS."""
    environment = {name: value for name, value in os.environ.items() if name not in TUNING}
    environment |= dict.fromkeys(THREAD_VARIABLES, str(threads))
    command = [sys.executable, __file__, "--part", part, "--threads", str(threads), *more]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        yield from child.stdout
    if child.returncode:
        raise SystemExit(f"the benchmark of {part} failed")


def measure(part: str, threads: int, *more: str) -> Iterator[Row]:
    """The rows of one part."""
    for line in output_of(part, threads, *more):
        yield {**json.loads(line), "threads": threads}


def describe() -> Iterator[dict[str, Any]]:
    """The machine, as a process sees it in which no variable tunes the BLAS."""
    from machine import machine

    yield machine()


def run_against(rev: str, threads: int) -> None:
    """Print the rows beside another commit; exit with an error if one is slower."""
    slower = []
    for found in measure("against", threads, "--against", rev):
        print(table.line(found), flush=True)
        slower += [found["case"]] * (found["ratio"] > found["reach"])
    sys.exit(f"more than 5 % slower than {rev}: {', '.join(slower)}" if slower else 0)


def run_all(parts: list[str], store: bool) -> None:
    """Print the table as it grows, and keep it: for the book, if nothing else ran meanwhile."""
    (machine,) = map(json.loads, output_of("machine", 1))
    print(table.heading(machine), flush=True)
    rows, shares = [], {"none": 0.0}
    for part, threads in PARTS:
        if part not in parts:
            continue
        others = OtherWork()
        for found in measure(part, threads):
            rows.append(found)
            print(table.line(found), flush=True)
        if part != "page":  # a browser's processes count as others
            shares[part] = max(others.share(), shares.get(part, 0.0))  # of one measured twice
    busiest = max(shares, key=lambda part: shares[part])
    machine["other work"] = f"at most {shares[busiest]:.0%} of a core, during {busiest}"
    quiet = shares[busiest] <= BUSY
    folder = Path("book/systems" if store and quiet else "_build")
    folder.mkdir(exist_ok=True)
    table.keep({"machine": machine, "rows": rows}, folder)
    print(f"Written to {folder}/bench.json and {folder}/bench.txt")
    if store and not quiet:
        took = f"other programs took {shares[busiest]:.0%} of a core during {busiest}"
        sys.exit(f"not stored: {took}; wait until they end")


def main() -> None:
    """Run one part in this process, or all parts in processes of their own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=[*CASES, "against", "machine"])
    parser.add_argument("--against", metavar="REV", help="measure beside this commit instead")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=CASES, default=list(CASES))
    parser.add_argument("--store", action="store_true", help="keep the table for the book")
    options = parser.parse_args()
    if options.part is not None:
        if options.part != "against":
            import torch

            torch.set_num_threads(options.threads)
        special = {"against": lambda: against(options.against), "machine": describe}
        rows = special.get(options.part, lambda: CASES[options.part](options.threads))()
        for found in rows:
            print(json.dumps(found), flush=True)
    elif options.against:
        run_against(options.against, options.threads)
    elif options.store and tuned():
        sys.exit(f"a table is not stored while {' and '.join(tuned())} is set: unset it first")
    elif options.store and options.only != list(CASES):
        sys.exit("a table is stored as a whole: leave out --only")
    else:
        run_all(options.only, options.store)


if __name__ == "__main__":
    main()

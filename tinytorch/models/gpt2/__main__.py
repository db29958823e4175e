"""The command `python -m tinytorch.models.gpt2`: continue a text, or verify the model."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from tinytorch.files.command_line import folder_name, real, run_command, whole, word, write_pieces
from tinytorch.files.downloads import cache_folder
from tinytorch.models.gpt2.hub_files import PUBLISHED
from tinytorch.models.gpt2.loading import DTYPES, load_gpt2
from tinytorch.models.gpt2.verifying import verify
from tinytorch.models.streamed_text import stream_text


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    options = _options(arguments)
    return run_command(lambda: _write(options))


def _write(options: dict[str, Any]) -> None:
    """Continue a text, or verify the model."""
    names = "source", "prompt", "tokens", "verify"
    source, prompt, tokens, verifying = (options.pop(name) for name in names)
    loading = {name: options.pop(name) for name in ("revision", "dtype", "cache_dir")}
    options["rng"] = np.random.default_rng(options.pop("seed"))  # None: another each time
    model, tokenizer = load_gpt2(source, **loading)
    if verifying:
        write_pieces([f"{tokenizer.decode(verify(model))}\n\n{_VERIFIED}\n"])
        return
    pieces = stream_text(model, tokenizer, prompt, tokens, **options)
    write_pieces(chain([prompt], pieces, ["\n"]))


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

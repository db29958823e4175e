"""The command `python -m tinytorch.models.llama`: a published model answers, or is verified."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from tinytorch.files.command_line import folder_name, real, run_command, whole, word, write_pieces
from tinytorch.files.downloads import cache_folder
from tinytorch.models.llama.loading import DTYPES, chat_template, load_llama
from tinytorch.models.llama.published import PUBLISHED
from tinytorch.models.llama.verifying import QUESTION, verify
from tinytorch.models.streamed_text import stream_answer
from tinytorch.text.chat import chatml_system


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    options = _options(arguments)
    return run_command(lambda: _answer(options))


def _answer(options: dict[str, Any]) -> None:
    """Answer a question, hold a conversation, or verify the model."""
    names = "source", "question", "chat", "system", "max_tokens", "verify", "dtype", "cache_dir"
    source, question, chat, system, most, verifying, dtype, cache = map(options.pop, names)
    options["rng"] = np.random.default_rng(options.pop("seed"))  # None: another each time
    if verifying:
        answer = verify(source, dtype=dtype, cache_dir=cache)
        write_pieces([f"{QUESTION}\n{answer}\n\n{_VERIFIED}\n"])
        return
    template = chat_template(source, cache_dir=cache)
    system = chatml_system(template) if system is None else system
    model, tokenizer = load_llama(source, dtype=dtype, cache_dir=cache)
    messages: list[dict[str, str]] = []
    for asked in _questions(question, chat):
        messages.append({"role": "user", "content": asked})
        pieces = stream_answer(model, tokenizer, messages, system, most, **options)
        messages.append({"role": "assistant", "content": write_pieces(chain(pieces, ["\n"]))[:-1]})


def _questions(first: str | None, chat: bool) -> Iterator[str]:
    """The question of the command line; in a conversation also each line that is typed."""
    if first is not None:
        yield first
    while chat:
        try:
            line = input("> ")
        except EOFError:
            write_pieces(["\n"])
            return
        if line.strip():
            yield line


_VERIFIED = "Verified: this is the published file, and the answer that it is known to give."


def _options(arguments: list[str] | None) -> dict[str, Any]:
    """The options of the command line, by name."""
    parser = _parser()
    options = vars(parser.parse_args(arguments))
    if options["verify"] and (options["question"] is not None or options["chat"]):
        parser.error("argument --verify: not allowed with argument QUESTION or --chat")
    if options["verify"] and options["source"] not in PUBLISHED:
        parser.error(f"argument --verify: it is for {', '.join(PUBLISHED)}, not this --source")
    if not options["verify"] and not options["chat"] and options["question"] is None:
        what = "QUESTION, or --chat or --verify without one"
        parser.error(f"the following arguments are required: {what}")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tinytorch.models.llama",
        description="Have SmolLM2, a published model that is fetched once, answer a question.",
    )
    names, cache = ", ".join(PUBLISHED), str(cache_folder()).replace("%", "%%")
    add = partial(parser.add_argument, metavar="N")
    add("question", metavar="QUESTION", nargs="?", help="what to ask")
    asked = "go on with each line that is typed, until the end of the input"
    parser.add_argument("--chat", action="store_true", help=asked)
    known = "check the file, and that it gives the answer that it is known to give"
    parser.add_argument("--verify", action="store_true", help=known)
    add("--system", type=word, metavar="TEXT", help="what the model is told to be (as in its file)")
    add("--max-tokens", type=whole(1), default=200, help="write at most N tokens an answer (200)")
    add("--temperature", type=real(0), default=0.0, metavar="X",
        help="0 the likeliest token every time, 1 drawn as the model has it (0)")  # fmt: skip
    add("--seed", type=whole(0), help="draw the same tokens every time")
    add("--source", type=word, default=next(iter(PUBLISHED)), metavar="NAME",
        help=f"{names}, a GGUF file, a folder, or an address ({names})")  # fmt: skip
    add("--dtype", choices=DTYPES, default="float32", metavar=None,
        help="how the matrices are kept (float32)")  # fmt: skip
    add("--cache-dir", type=folder_name, metavar="FOLDER",
        help=f"where downloads are kept ({cache})")  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main())

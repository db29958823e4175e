"""What there is, `python -m tinytorch_book`; with `book` after it, the book without a network."""

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import tinytorch
from tinytorch import __version__
from tinytorch.files.command_line import run_command, whole
from tinytorch_book.serving import address_of, archive_address, book_server, find_book

FOLDERS = (Path(tinytorch.__file__).parent, Path(__file__).parent)
PACKAGES = {
    "tinytorch": ("core", "files", "text", "models", "training", "inside", "plots"),
    "tinytorch_book": ("stories", "experiments", "exercises"),
}
NEXT = """\
Its model writes a story in Python:

from tinytorch_book.experiments.story_gpt import load_story_gpt, story_tokenizer
gpt, tokenizer = load_story_gpt(), story_tokenizer()
newline = tokenizer.encode("\\n")
written = gpt.generate(newline, 110, stop_tokens=newline, rng=1)
print(tokenizer.decode(written).strip())
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tinytorch_book", description="Says what there is; serves the book."
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command")
    book = commands.add_parser("book", help="serve the book that was downloaded, to this machine")
    book.add_argument("path", nargs="?", help="the archive, or a folder where it was unpacked")
    book.add_argument(
        "--port", type=whole(0, 65535), default=8000, metavar="N", help="where to listen (8000)"
    )
    options = parser.parse_args(arguments)

    def work() -> None:
        if options.command is None:
            sys.stdout.write(overview())
        else:
            serve(options.path, options.port)

    return run_command(work)


def overview() -> str:
    """Say what the package holds, where the book is, and what to type next."""
    rooms = "".join(f"  {name:26} {purpose(path)}\n" for name, path in packages())
    runnable = "".join(f"  python -m {name}\n" for name in commands())
    return (
        f"TinyTorch {__version__}: the package of the book TinyTorch: embeddings to GPT.\n\n"
        f"{rooms}\n"
        f"Commands, each with --help:\n\n{runnable}\n"
        f"The book is at {address_of('Book')}\n"
        f"Without a network: download {archive_address()}\n"
        f"and run: python -m tinytorch_book book tinytorch-offline.zip\n\n{NEXT}"
    )


def commands() -> Iterator[str]:
    """Name every other module that `python -m` runs."""
    for folder in FOLDERS:
        for path in sorted(folder.rglob("*.py")):
            if path.parent != folder and "\nif __name__ == " in path.read_text(encoding="utf-8"):
                name = path.relative_to(folder.parent).with_suffix("")
                yield ".".join(name.parts).removesuffix(".__main__")


def packages() -> Iterator[tuple[str, Path]]:
    """Name every package inside the two, and where it is."""
    for folder in FOLDERS:
        for name in PACKAGES[folder.name]:
            yield f"{folder.name}.{name}", folder / name


def purpose(folder: Path) -> str:
    """Read what a package is for, without importing it: its figures need more than NumPy."""
    source = (folder / "__init__.py").read_text(encoding="utf-8")
    return str(ast.get_docstring(ast.parse(source))).partition("\n")[0]


def serve(path: str | None, port: int) -> None:
    """Serve the book until Ctrl-C."""
    with book_server(find_book(path), port) as server:
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        sys.stdout.write(f"Serving the book at {address} (stop with Ctrl-C)\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())

"""What the commands of the package share: how options are read, and how a command ends.

A command is a module with `main(arguments)`, which `python -m` runs. Its parser reads every option
with one of the functions here, so a wrong value is refused by name before any work begins. The work
is done by `run_command`. `tests/test_commands.py` checks this for every command.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path


def whole(least: int, most: float = math.inf) -> Callable[[str], int]:
    """A reader of an integer of at least `least` and at most `most` from a command line.

    Example:
        >>> whole(1)("50")
        50
        >>> whole(1)("0")
        Traceback (most recent call last):
        ...
        argparse.ArgumentTypeError: '0' is not an integer of at least 1
    """

    def read(text: str) -> int:
        digits = text.isascii() and text.isdecimal() and len(text) < 19  # fits into 64 bits
        if not digits or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r:.40} is not an integer {_from(least, most)}")
        return int(text)

    return read


def real(least: float, most: float = math.inf, without: float = math.inf) -> Callable[[str], float]:
    """A reader of a finite number from a command line; `without` is an excluded end.

    Example:
        >>> real(0, 1, without=1)("0.5")
        0.5
        >>> real(0, 1, without=1)("1")
        Traceback (most recent call last):
        ...
        argparse.ArgumentTypeError: '1' is not a number from 0 to 1, excluding 1
    """

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not least <= value <= most or value in (without, math.inf):
            end = "" if without == math.inf else f", excluding {without}"
            what = f"{text!r:.40} is not a number {_from(least, most)}{end}"
            raise argparse.ArgumentTypeError(what)
        return value

    return read


def _from(least: float, most: float) -> str:
    return f"of at least {least}" if most == math.inf else f"from {least} to {most}"


def word(text: str) -> str:
    """Read a text that must not be empty from a command line."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return text


def file_name(text: str) -> Path:
    """Read the name of a file from a command line; the file need not exist."""
    path = Path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is a folder; add the name of a file")
    if file := next((str(place) for place in path.parents if place.is_file()), None):
        raise argparse.ArgumentTypeError(f"{text!r} cannot exist: {file!r} is a file")
    return path


def file_to_write(text: str) -> Path:
    """Read the name of a file that can be written, checked before any work begins.

    Example:
        >>> file_to_write("results.json").name
        'results.json'
    """
    path = file_name(text)
    there = next(place for place in [path, *path.absolute().parents] if place.exists())
    if not os.access(there, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text!r} cannot be written; choose another place")
    return path


def folder_name(text: str) -> Path:
    """Read the name of a folder from a command line; it need not exist."""
    if not text or (os.path.exists(text) and not os.path.isdir(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a folder")
    return Path(text)


def add_output(parser: argparse.ArgumentParser, default: str, stored: Path | None = None) -> None:
    """Add where the results go: `--output`, by default a file of that name in this folder.

    If the package comes with these results, `stored`, `--in-package` replaces that file.

    Example:
        >>> parser = argparse.ArgumentParser()
        >>> add_output(parser, "runs.json", Path("tinytorch/training/data/runs.json"))
        >>> parser.parse_args(["--in-package"]).output.parent.name
        'data'
    """
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--output", type=file_to_write, default=default, metavar="FILE",
                       help=f"write the results to FILE ({default})")  # fmt: skip
    if stored is not None:
        group.add_argument("--in-package", dest="output", action="store_const", const=stored,
                           help="write to the file that comes with the package")  # fmt: skip


def write_pieces(pieces: Iterable[str]) -> str:
    r"""Write a text as it comes to standard output; returns the whole of it.

    Characters that the terminal lacks are replaced. A reader that closes the pipe ends the text.

    Example:
        >>> write_pieces(["a ", "text\n"])
        a text
        'a text\n'
    """
    written = ""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    for piece in pieces:
        written += piece
        try:
            sys.stdout.write(piece)
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            break
    return written


def run_command(
    work: Callable[[], int | None], output: Path | None = None, stopped: str = ""
) -> int:
    """Do the work of a command; an error or an interrupt is reported in one sentence.

    Returns:
        The exit status: 1 after an error that the sentence explains, 130 after Ctrl-C.
    """
    try:
        status = work() or 0
        if output is not None:
            sys.stdout.write(f"written to {output}\n")
        return status
    except KeyboardInterrupt:
        status = 130  # 128 + SIGINT
        sentence = stopped or ("stopped" if output is None else "stopped; nothing was written")
        if sys.stderr.isatty():  # where ^C was echoed without a newline
            sentence = f"\n{sentence}"
    except (OSError, ValueError) as error:
        status, sentence = 1, str(error)
    sys.stderr.write(f"{sentence}\n")
    return status

"""Mark files of saved work: what readers have solved in the pages, run again.

    python -m tinytorch.check anna.json ben.json ...
    python -m tinytorch.check work/* --class class.csv --csv marks.csv --seconds 60 --jobs 4

Each file is named after its student, or is in a folder of that name; of several answers to an
exercise the best counts. Nothing that a file says is believed; see `tinytorch.exercises.handed_in`.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tinytorch.exercises.apart import checks
from tinytorch.exercises.handed_in import (
    Marks,
    as_csv,
    as_table,
    chapter_of,
    class_list,
    files_of_students,
    marks_of_all,
)
from tinytorch.files.atomic_files import write_atomically
from tinytorch.files.command_line import file_to_write, run_command, whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status: 1 if a file could not be read."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "python -m tinytorch.check", description=__doc__, formatter_class=raw
    )
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        help="saved in the pages: files, or a folder for each student",
    )
    few = {"type": whole(1, 99_999), "metavar": "N"}
    add: Any = parser.add_argument
    add("--class", type=_class, dest="students", metavar="FILE",
        help="a CSV table with the columns student and name: a row for each, "
             "whether or not anything was handed in")  # fmt: skip
    add("--csv", type=file_to_write, metavar="FILE", help="write a table, a row for each student")
    add("--exercises", action="store_true", help="in the table, a column for each exercise too")
    add("--seconds", **few, default=60, help="for one exercise (60)")
    add("--jobs", **few, default=os.cpu_count() or 1,
        help="students marked at the same time (one for each processor)")  # fmt: skip
    parser.add_argument("--chapters", type=_chapters, default=[*checks()], metavar="A,B",
                        help="count only these chapters, say tensors,gpt")  # fmt: skip
    given = parser.parse_args(arguments)
    return run_command(lambda: _mark(given))


def _mark(given: argparse.Namespace) -> int:
    """Mark the files and print the table; returns the exit status."""
    options = {"seconds": given.seconds, "names": given.chapters, "jobs": given.jobs}
    told: list[Marks] = []
    students = dict.fromkeys(given.students or (), ()) | files_of_students(given.files)
    for line in as_table(_kept(marks_of_all(students, **options), told), given.chapters):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    if given.csv:
        table = as_csv(told, given.chapters, given.students, given.exercises)
        write_atomically(given.csv, table.encode("utf-8-sig"))
    return int(any(marks.problem for marks in told))


def _kept(all_marks: Iterator[Marks], told: list[Marks]) -> Iterator[Marks]:
    for marks in all_marks:
        told.append(marks)
        yield marks


def _chapters(text: str) -> list[str]:
    """The checks of the chapters that are named."""
    found: list[str] = []
    known = {name: chapter_of(name) for name in checks()}
    for chapter in text.split(","):
        if chapter not in known.values():
            there = ", ".join(sorted({*known.values()}))
            raise argparse.ArgumentTypeError(f"there is no chapter {chapter!r}; there are {there}")
        found += [name for name, of in known.items() if of == chapter]
    return found


def _class(text: str) -> dict[str, str]:
    try:
        return class_list(Path(text))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())

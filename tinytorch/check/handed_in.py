"""Files of saved work, as readers hand them in: read with distrust, and marked anew.

A file says which exercises are solved. That is not believed: what counts is the code that it holds
for them, which is run again. Each exercise is judged in a process of its own (`apart`), with a
limit on its time; a file that needs more than a few of these limits is not run to its end.
"""

import csv
import io
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from json import loads
from pathlib import Path
from threading import Timer
from typing import Any

from tinytorch.check.apart import checks, judge_apart
from tinytorch.core.strict_json import parse_json

__all__ = ["Marks", "as_csv", "as_table", "handed_in", "marks_of", "marks_of_all"]

LARGEST = 4_000_000  # bytes of a file
MOST_CELLS, LONGEST = 50, 200_000  # of the code of one exercise: cells, and letters of them all
PATIENCE = 3  # times that one file may use up its seconds
_SETTINGS = ("forkserver", "spawn")  # ways to begin a clean process, the quicker one first


@dataclass(frozen=True)
class Marks:
    """What a file has come to.

    Attributes:
        name: of the file.
        points: for each exercise that the file has code for, what it earned.
        notes: for each that earned nothing, why.
        problem: why the file could not be read, "" if it could.
    """

    name: str
    points: dict[str, int] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    problem: str = ""


def handed_in(path: Path) -> dict[str, list[str]]:
    """The code that a file of saved work holds for each exercise; nothing of it is run.

    Args:
        path: a file that a page has saved.

    Raises:
        ValueError: it is no such file, or too large; the message says what is wrong.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "anna.json"
        >>> _ = path.write_text('{"book": "another"}')
        >>> handed_in(path)
        Traceback (most recent call last):
        ...
        ValueError: it was not saved by this book
    """
    if not path.is_file():
        raise ValueError("there is no such file")
    with path.open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"it is larger than {LARGEST:,} bytes")
    saved = parse_json(content)
    if not isinstance(saved, dict) or saved.get("book") != "tinytorch":
        raise ValueError("it was not saved by this book")
    if saved.get("version") != 1:
        raise ValueError("it was saved by another edition of the book; this one reads version 1")
    kept = saved.get("kept")
    sources = kept.get("sources", {}) if isinstance(kept, dict) else None
    if not isinstance(sources, dict) or not all(map(_is_code, sources.values())):
        raise ValueError("it is damaged: under “sources” it has something else than code")
    if unknown := sorted({*sources} - {*checks()}):
        raise ValueError(f"it has an exercise that the book has not: {unknown[0]!r:.60}")
    return sources


def _is_code(cells: Any) -> bool:
    texts = isinstance(cells, list) and 0 < len(cells) <= MOST_CELLS
    return texts and all(isinstance(c, str) for c in cells) and sum(map(len, cells)) <= LONGEST


def marks_of(path: Path, seconds: int = 60, names: Iterable[str] = ()) -> Marks:
    """Run the checks again on what a file holds.

    Args:
        path: a file that a page has saved.
        seconds: how long one exercise may take.
        names: of the checks that count; all, if there are none.

    Example:
        >>> marks_of(Path("nowhere.json")).problem
        'there is no such file'
    """
    try:
        sources = handed_in(path)
    except (ValueError, OSError) as error:
        return Marks(path.name, problem=str(error))
    marks, patience = Marks(path.name), PATIENCE
    for name in (n for n in names or checks() if n in sources):
        told = _told(name, sources[name], seconds) if patience else {"verdict": "not run"}
        patience -= told["verdict"] == "too long"
        solved = told["verdict"] == "solved"
        marks.points[name] = checks()[name].points if solved else 0  # type: ignore[attr-defined]
        if not solved:
            marks.notes[name] = ": ".join(filter(None, (told["verdict"], told.get("note"))))
    return marks


def marks_of_all(paths: Sequence[Path], jobs: int = 1, **options: Any) -> Iterator[Marks]:
    """The marks of many files, in their order, `jobs` of them at the same time.

    Example:
        >>> [marks.name for marks in marks_of_all([Path("a.json"), Path("b.json")], jobs=2)]
        ['a.json', 'b.json']
    """
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(partial(marks_of, **options), paths)


def _told(name: str, cells: list[str], seconds: int) -> dict[str, str]:
    """What a process of its own says of one exercise."""
    methods = multiprocessing.get_all_start_methods()
    setting: Any = multiprocessing.get_context(next(m for m in _SETTINGS if m in methods))
    if setting.get_start_method() == "forkserver":
        setting.set_forkserver_preload(["tinytorch.check.apart"])
    here, there = setting.Pipe(duplex=False)
    process = setting.Process(target=judge_apart, args=(there, name, cells, seconds), daemon=True)
    process.start()
    there.close()
    clock = Timer(seconds, process.kill)
    clock.start()
    try:
        return _read(here.recv_bytes(10_000))
    except (EOFError, OSError, ValueError):  # it has ended, or has sent what is no JSON
        if clock.is_alive():
            return {"verdict": "not yet", "note": "its process ended without an answer"}
        return {"verdict": "too long", "note": f"it did not end in {seconds} s"}
    finally:
        clock.cancel()
        process.kill()
        process.join()
        here.close()


def _read(answer: bytes) -> dict[str, str]:
    """The verdict in an answer, of which nothing else is believed either."""
    told = loads(answer)
    known = isinstance(told, dict) and told.get("verdict") in ("solved", "not yet", "refused")
    if not known:
        return {"verdict": "not yet", "note": "its process has answered nonsense"}
    note = "".join(c if c.isprintable() else " " for c in str(told.get("note", "")))
    return {"verdict": told["verdict"], "note": note[:200]}


# What is shown -------------------------------------------------------------------------------


def as_table(all_marks: Iterable[Marks], names: Sequence[str]) -> Iterator[str]:
    r"""Lines to print: the points of each file, and what earned none.

    Example:
        >>> told = Marks("anna.json", {"token_lookup": 1, "token_cost": 0}, {"token_cost": "why"})
        >>> print(*as_table([told], ["token_lookup", "token_cost"]), sep="\n")
        anna.json: 1 of 3 points, 1 of 2 exercises
          token_cost: why
    """
    for marks in all_marks:
        solved = sum(map(bool, marks.points.values()))
        total = f"{sum(marks.points.values())} of {_worth(names)} points"
        told = marks.problem or f"{total}, {solved} of {len(names)} exercises"
        yield f"{_plain(marks.name)}: {told}"
        yield from (f"  {name}: {note}" for name, note in marks.notes.items())


def as_csv(all_marks: Iterable[Marks], names: Sequence[str]) -> str:
    """A table with a row for each file and a column for each exercise.

    Example:
        >>> told = Marks("=anna.json", {"token_lookup": 1, "token_cost": 0}, {"token_cost": "why"})
        >>> print(as_csv([told], ["token_lookup", "token_cost"]), end="")
        file,points,of,notes,token_lookup,token_cost
        '=anna.json,1,3,token_cost: why,1,0
    """
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(["file", "points", "of", "notes", *names])
    for marks in all_marks:
        notes = marks.problem or "; ".join(f"{n}: {note}" for n, note in marks.notes.items())
        points = ["" if n not in marks.points else marks.points[n] for n in names]
        total = sum(marks.points.values())
        rows.writerow([_plain(marks.name), total, _worth(names), _plain(notes), *points])
    return table.getvalue()


def _worth(names: Iterable[str]) -> int:
    of: dict[str, Callable[..., Any]] = checks()
    return sum(of[name].points for name in names)  # type: ignore[attr-defined]


def _plain(text: str) -> str:
    """A text that neither a terminal nor a spreadsheet takes for a command."""
    text = "".join(c if c.isprintable() else "�" for c in text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text

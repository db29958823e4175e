"""Files of saved work, as readers hand them in: read with distrust, and marked anew.

A file says which exercises are solved. That is not believed: what counts is the code that it holds
for them, which is run again. Each exercise is judged in a process of its own (`apart`), with a
limit on its time; a file that needs more than a few of these limits is not run to its end.
"""

import csv
import io
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from json import loads
from pathlib import Path
from threading import Event, Timer
from typing import Any

from tinytorch.exercises.apart import checks, judge_apart
from tinytorch.files.strict_json import parse_json

__all__ = [
    "Marks",
    "as_csv",
    "as_table",
    "chapter_of",
    "class_list",
    "files_of_students",
    "handed_in",
    "marks_of",
    "marks_of_all",
]

LARGEST = 4_000_000  # bytes of a file
MOST_CELLS, LONGEST = 50, 200_000  # of the code of one exercise: cells, and letters of them all
PATIENCE = 3  # times that one file may use up its seconds
_SETTINGS = ("forkserver", "spawn")  # ways to begin a clean process, the quicker one first


@dataclass(frozen=True)
class Marks:
    """What a student's files have come to.

    Attributes:
        name: the student's name or number.
        points: for each exercise that the files have code for, what it earned.
        notes: for each that earned nothing, why.
        problem: why a file could not be read, "" if all could.
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
    try:
        saved = parse_json(content)
    except UnicodeDecodeError:
        raise ValueError("it is not text; a file that the book has saved is JSON") from None
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


def files_of_students(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """Say whose files these are: a file is its name's, a folder's files are the folder's name's.

    Example:
        >>> found = files_of_students([Path("work/4711.json"), Path("ben.json")])
        >>> {student: [path.name for path in paths] for student, paths in found.items()}
        {'4711': ['4711.json'], 'ben': ['ben.json']}
    """
    found: dict[str, list[Path]] = {}
    for path in paths:
        files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
        found.setdefault(path.name if path.is_dir() else path.stem, []).extend(files)
    return found


def class_list(path: Path) -> dict[str, str]:
    """Read a class: a CSV table whose columns `student` and, if there is one, `name` are used.

    Raises:
        ValueError: it has no such column, or names a student twice.
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [*csv.DictReader(file)]
    if not rows or "student" not in rows[0]:
        raise ValueError(f"{str(path)!r} needs a first line with a column named student")
    names = {row["student"].strip(): (row.get("name") or "").strip() for row in rows}
    if len(names) < len(rows):
        raise ValueError(f"{str(path)!r} names a student twice")
    return names


def marks_of(
    name: str,
    paths: Sequence[Path],
    seconds: int = 60,
    names: Iterable[str] = (),
    stop: Event | None = None,
) -> Marks:
    """Run the checks again on what a student's files hold; of several answers the best counts.

    Args:
        name: the student's name or number.
        paths: files that pages have saved; without any, nothing was handed in.
        seconds: how long one exercise may take.
        names: of the checks that count; all, if there are none.
        stop: once it is set, no further exercise is run.

    Example:
        >>> marks_of("anna", [Path("nowhere.json")]).problem
        'nowhere.json: there is no such file'
    """
    answers: dict[str, list[list[str]]] = {}
    problems = [] if paths else ["nothing was handed in"]
    for path in paths:
        try:
            for check, cells in handed_in(path).items():
                answers.setdefault(check, []).append(cells)
        except (ValueError, OSError) as error:
            problems.append(f"{path.name}: {error}")
    marks, patience = Marks(name, problem="; ".join(problems)), PATIENCE
    for check in (check for check in names or checks() if check in answers):
        marks.points[check] = 0
        for cells in answers[check]:
            run = patience and not (stop and stop.is_set())
            told = _told(check, cells, seconds) if run else {"verdict": "not run"}
            patience -= told["verdict"] == "too long"
            if told["verdict"] == "solved":
                marks.points[check] = checks()[check].points  # type: ignore[attr-defined]
                marks.notes.pop(check, None)
                break
            marks.notes[check] = ": ".join(filter(None, (told["verdict"], told.get("note"))))
    return marks


def marks_of_all(
    students: Mapping[str, Sequence[Path]], jobs: int = 1, **options: Any
) -> Iterator[Marks]:
    """The marks of many students, in their order, `jobs` of them at the same time.

    Example:
        >>> students = {"anna": [Path("a.json")], "ben": []}
        >>> [marks.name for marks in marks_of_all(students, jobs=2)]
        ['anna', 'ben']
    """
    stop = Event()
    with ThreadPoolExecutor(jobs) as pool:
        try:
            yield from pool.map(
                partial(marks_of, stop=stop, **options), students, students.values()
            )
        except KeyboardInterrupt:  # nobody waits for what is under way
            stop.set()
            for process in multiprocessing.active_children():
                process.kill()
            raise


def _told(name: str, cells: list[str], seconds: int) -> dict[str, str]:
    """What a process of its own says of one exercise."""
    methods = multiprocessing.get_all_start_methods()
    setting: Any = multiprocessing.get_context(next(m for m in _SETTINGS if m in methods))
    if setting.get_start_method() == "forkserver":
        setting.set_forkserver_preload(["tinytorch.exercises.apart"])
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
    r"""Lines to print: the points of each student, and what earned none.

    Example:
        >>> told = Marks("anna", {"token_lookup": 1, "token_cost": 0}, {"token_cost": "why"})
        >>> print(*as_table([told], ["token_lookup", "token_cost"]), sep="\n")
        anna: 1 of 3 points, 1 of 2 exercises
          token_cost: why
    """
    for marks in all_marks:
        solved = sum(map(bool, marks.points.values()))
        total = f"{sum(marks.points.values())} of {_worth(names)} points"
        told = [f"{total}, {solved} of {len(names)} exercises"] if marks.points else []
        told += [marks.problem] if marks.problem or not told else []
        yield f"{_plain(marks.name)}: {'; '.join(told) or 'no exercise that counts'}"
        yield from (f"  {name}: {note}" for name, note in marks.notes.items())


def as_csv(
    all_marks: Iterable[Marks],
    names: Sequence[str],
    students: Mapping[str, str] | None = None,
    exercises: bool = False,
) -> str:
    """A table with a row for each student and a column for each chapter.

    Args:
        all_marks: those of each student.
        names: of the checks that count.
        students: names by number, for a column of its own.
        exercises: whether each exercise has a column too.

    Example:
        >>> told = Marks("=anna", {"token_lookup": 1, "token_cost": 0}, {"token_cost": "why"})
        >>> print(as_csv([told], ["token_lookup", "token_cost"]), end="")
        student,points,of,notes,token-embeddings
        '=anna,1,3,token_cost: why,1
    """
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    chapters: dict[str, list[str]] = {}
    for name in names:
        chapters.setdefault(chapter_of(name), []).append(name)
    named = [] if students is None else ["name"]
    detail = names if exercises else ()
    rows.writerow(["student", *named, "points", "of", "notes", *chapters, *detail])
    for marks in all_marks:
        told = [marks.problem, *(f"{n}: {note}" for n, note in marks.notes.items())]
        groups = [*chapters.values(), *([name] for name in detail)]
        points = [_earned(marks, group) for group in groups]
        of_class = [_plain((students or {}).get(marks.name, "not in the class")) for _ in named]
        notes = _plain("; ".join(filter(None, told)))
        total = sum(marks.points.values())
        rows.writerow([_plain(marks.name), *of_class, total, _worth(names), notes, *points])
    return table.getvalue()


def chapter_of(check: str) -> str:
    """The chapter of a check, named as at the end of its address.

    Example:
        >>> chapter_of("token_lookup")
        'token-embeddings'
    """
    return checks()[check].__module__.rpartition(".")[2].replace("_", "-")


def _earned(marks: Marks, names: Sequence[str]) -> int | str:
    """The points for these exercises; "" where none of them was handed in."""
    points = [marks.points[name] for name in names if name in marks.points]
    return sum(points) if points else ""


def _worth(names: Iterable[str]) -> int:
    of: dict[str, Callable[..., Any]] = checks()
    return sum(of[name].points for name in names)  # type: ignore[attr-defined]


def _plain(text: str) -> str:
    """A text that neither a terminal nor a spreadsheet takes for a command."""
    text = "".join(c if c.isprintable() else "�" for c in text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text

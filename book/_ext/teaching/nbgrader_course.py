"""The book's exercises as a course for nbgrader: an assignment for each chapter.

What an assignment holds is read from the committed notebooks: the statements and hints, the stubs,
the solutions and, of the cells above, those that an exercise needs. Written are `source/`, the
configuration and a README; the rest is nbgrader's, and `tests/classroom` tries it with nbgrader.

A cell to be solved holds the stub and, below it, the solution between the marks that nbgrader cuts
out. The test below it asks the exercise's check, which everybody sees and, between the marks of a
hidden test, asks it again with other numbers, drawn from a seed that only the course knows.
"""

import argparse
import ast
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
import yaml
from _static.live.cell_names import bound_names, missing_names, needed_cells
from nbformat import NotebookNode

from ..addresses import ROOT, package_requirement

NOTEBOOKS = Path("book/notebooks")
COURSE = Path("_build/classroom")
FILES = ROOT / "book" / "_runtime" / "classroom"
STUB, SOLUTION = "exercise-stub", "exercise-solution"
HEADING = re.compile(r"^### Exercise .*$", re.MULTILINE)
ON_THE_SITE = re.compile(r"\*\*On the site\*\* \| \[(.+?)\]\((.+?)\)")
INTRODUCTION = """\
# {title}

Exercises of [{title}]({address}), {points} points. Write your answers where the stubs are, and run
the cell below each of them to see what its check says. Leave the other cells as they are: they are
restored before the assignment is graded. Some tests are not shown; they ask the same, in many
exercises with other numbers.
"""
TEST = """\
from tinytorch_book import check

report = {call}
assert report, f"\\n{{report}}"
### BEGIN HIDDEN TESTS
from tinytorch_book.exercises.drawn_numbers import other_numbers

with other_numbers({seed}):
    report = {call}
assert report, f"\\nwith other numbers:\\n{{report}}"
### END HIDDEN TESTS"""


@dataclass(frozen=True)
class Exercise:
    """An exercise, as its chapter has it.

    Attributes:
        check: the name of its check.
        call: the call of it.
        points: what it is worth.
        statement: what is asked, in Markdown.
        hints: the hints, in Markdown.
        stub: what is there to be filled in, without the call.
        solution: the same, filled in.
    """

    check: str
    call: str
    points: int
    statement: str
    hints: tuple[str, ...]
    stub: str
    solution: str


@dataclass(frozen=True)
class Chapter:
    """What a chapter's assignment is made of.

    Attributes:
        name: that of its notebook.
        title: that of its page.
        address: the address of its page.
        needed: the code of the cells above the exercises that they need, in order.
        exercises: the exercises, in order.
    """

    name: str
    title: str
    address: str
    needed: tuple[str, ...]
    exercises: tuple[Exercise, ...]

    @property
    def points(self) -> int:
        """What all of it is worth."""
        return sum(exercise.points for exercise in self.exercises)


# Reading --------------------------------------------------------------------------------------


def chapters(root: Path = ROOT) -> list[Chapter]:
    """Read the chapters that have exercises."""
    found = map(read_chapter, sorted((root / NOTEBOOKS).glob("*.ipynb")))
    return [chapter for chapter in found if chapter.exercises]


def read_chapter(path: Path) -> Chapter:
    """Read the exercises of a notebook, and what they need."""
    cells = nbformat.read(path, as_version=4).cells
    stubs = [i for i, cell in enumerate(cells) if STUB in tags(cell)]
    exercises = tuple(read_exercise(cells, i) for i in stubs)
    above = [
        cell.source
        for cell in cells[: min(stubs, default=0)]
        if cell.cell_type == "code" and "remove-cell" not in tags(cell)
    ]
    used = {
        name for e in exercises for code in (e.stub, e.solution) for name in missing_names(code)
    }
    needed = with_what_acts(above, needed_cells(above, {*used, "check"}))
    title, address = named(cells)
    return Chapter(path.stem, title, address, tuple(above[i] for i in needed), exercises)


def with_what_acts(above: list[str], needed: list[int]) -> list[int]:
    """Add to the needed cells those between them that act on what they have made.

    >>> with_what_acts(["f = open('a', 'w')", "f.write('a')", "g = f.name"], [0, 2])
    [0, 1, 2]
    """
    made = {name for i in needed for name in bound_names(above[i], imports=False)}
    acting = {i for i in range(max(needed, default=0)) if acts_on(above[i], made)}
    used = {name for i in acting for name in missing_names(above[i])}
    return sorted({*needed, *acting, *needed_cells(above, used)})


def acts_on(source: str, names: set[str]) -> bool:
    """Report whether a statement of a cell only calls a method of one of these names."""
    calls = [s.value for s in ast.parse(source).body if isinstance(s, ast.Expr)]
    methods = [c.func.value for c in calls if isinstance(c, ast.Call) and hasattr(c.func, "value")]
    return any(getattr(n, "id", "") in names for m in methods for n in ast.walk(m))


def named(cells: Sequence[NotebookNode]) -> tuple[str, str]:
    """Find a chapter's title and address on its card."""
    found = (ON_THE_SITE.search(cell.source) for cell in cells if cell.cell_type == "markdown")
    card = next(filter(None, found), None)
    return (card[1], card[2]) if card else ("", "")


def read_exercise(cells: Sequence[NotebookNode], i: int) -> Exercise:
    """Read the exercise whose stub is cell `i`: the statement stands above it, the rest below."""
    statement = cells[i - 1].source
    start = [found.start() for found in HEADING.finditer(statement)][-1]
    end = next(j for j in range(i, len(cells)) if SOLUTION in tags(cells[j]))
    hints = tuple(cell.source for cell in cells[i + 1 : end] if cell.cell_type == "markdown")
    statement = statement[start:]
    (stub, call), (solution, _) = split(cells[i].source), split(cells[end].source)
    points = re.search(r"(\d+) points?\b", statement)
    name = call.removeprefix("check.").partition("(")[0]
    worth = int(points[1]) if points else 0
    return Exercise(name, call, worth, statement, hints, stub, solution)


def tags(cell: NotebookNode) -> list[str]:
    """Return a cell's tags."""
    return cell.metadata.get("tags", [])


def split(source: str) -> tuple[str, str]:
    """Separate the code of a stub or a solution from the call of its check, the last statement."""
    last = ast.parse(source).body[-1]
    lines = source.splitlines()
    body = "\n".join(lines[: last.lineno - 1]).rstrip()
    return body, "\n".join(lines[last.lineno - 1 : last.end_lineno])


# Writing --------------------------------------------------------------------------------------


def write_course(course: Path, seed: int, root: Path = ROOT) -> list[Chapter]:
    """Write the course; what nbgrader has made in it stays.

    Args:
        course: its folder.
        seed: the seed of the numbers of the hidden tests.
        root: the folder of `_config.yml`.
    """
    shutil.rmtree(course / "source", ignore_errors=True)
    written = chapters(root)
    for chapter in written:
        folder = course / "source" / chapter.name
        folder.mkdir(parents=True)
        text = nbformat.writes(assignment(chapter, seed)).rstrip("\n") + "\n"
        (folder / f"{chapter.name}.ipynb").write_text(text, encoding="utf-8")
    repository = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))["repository"]
    requirement = package_requirement(repository["url"], root)
    for path in FILES.iterdir():
        text = path.read_text(encoding="utf-8").replace("{requirement}", requirement)
        (course / path.name).write_text(text, encoding="utf-8")
    return written


def assignment(chapter: Chapter, seed: int) -> NotebookNode:
    """Make the notebook of one chapter, as the teacher has it: with solutions and hidden tests."""
    cells = list(cells_of(chapter, seed))
    for number, cell in enumerate(cells):
        cell["id"] = f"{chapter.name}-{number:03d}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    nbformat.validate(notebook)
    return notebook


def cells_of(chapter: Chapter, seed: int) -> Iterator[NotebookNode]:
    """Yield the cells of an assignment in order."""
    facts = {"title": chapter.title, "address": chapter.address, "points": chapter.points}
    yield nbformat.v4.new_markdown_cell(INTRODUCTION.format(**facts))
    for number, code in enumerate(chapter.needed):
        yield graded(code, f"needed-{number}", locked=True)
    for exercise in chapter.exercises:
        yield nbformat.v4.new_markdown_cell(exercise.statement)
        yield from map(nbformat.v4.new_markdown_cell, exercise.hints)
        marked = ("### BEGIN SOLUTION", exercise.solution, "### END SOLUTION")
        answer = "\n".join([exercise.stub, "", *marked])
        yield graded(answer, exercise.check, solution=True)
        test = TEST.format(call=exercise.call, seed=seed)
        points = {"grade": True, "points": exercise.points}
        yield graded(test, f"test-{exercise.check}", locked=True, **points)


def graded(source: str, name: str, **given: bool | int) -> NotebookNode:
    """Make a code cell that nbgrader knows, see its documentation, "Metadata format"."""
    roles = {"grade": False, "locked": False, "solution": False, "task": False, **given}
    about = {"schema_version": 3, "grade_id": name, "cell_type": "code", **roles}
    return nbformat.v4.new_code_cell(source, metadata={"nbgrader": about})


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--course", type=Path, default=ROOT / COURSE, help="the folder to write")
    parser.add_argument("--seed", type=int, default=1, help="of the hidden tests' numbers")
    options = parser.parse_args(arguments)
    written = write_course(options.course, options.seed)
    points = sum(chapter.points for chapter in written)
    number = sum(len(chapter.exercises) for chapter in written)
    print(f"{options.course}: {len(written)} assignments, {number} exercises, {points} points")
    return 0


if __name__ == "__main__":
    sys.exit(main())

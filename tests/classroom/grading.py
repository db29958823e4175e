"""Submissions to the course that `make classroom` writes, graded by nbgrader itself."""

import ast
import csv
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[2]
ANSWERS = ROOT / "tests" / "lab" / "exercises"


def wrong_answers(chapter):
    """The listed wrong answers to each exercise of a chapter, by what is wrong with them."""
    return import_module(f"answers.{chapter.name.replace('-', '_')}").WRONG


def right(chapter):
    """Code for each exercise that solves it."""
    return {e.check: f"{e.stub}\n\n{e.solution}" for e in chapter.exercises}


def wrong(chapter, number):
    """Code for each exercise that gives one of the listed wrong answers, in turn."""
    module = f"answers.{chapter.name.replace('-', '_')}"
    taken = {}
    for exercise in chapter.exercises:
        names = ", ".join(map(ast.unparse, ast.parse(exercise.call).body[0].value.args))
        listed = [*wrong_answers(chapter)[exercise.check]]
        what = listed[number % len(listed)]
        code = (
            f"from reports import completed\nfrom {module} import WRONG\n"
            f"{names} = completed({exercise.check!r}, WRONG[{exercise.check!r}][{what!r}])"
        )
        taken[exercise.check] = code
    return taken


def submit(course, student, chapter, answers=(), times=None):
    """Hand in the released notebook with these answers in the place of its stubs; where it is.

    A cell is there once, or as many `times` as are given for its name.
    """
    notebook, cells = nbformat.read(released(course, chapter), as_version=4), []
    for cell in notebook.cells:
        about = cell.metadata.get("nbgrader", {})
        name = about.get("grade_id")
        if about.get("solution") and name in answers:
            cell.source = answers[name]
        cells += [nbformat.from_dict(cell) for _ in range((times or {}).get(name, 1))]
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    notebook.cells = cells
    path = course / "submitted" / student / chapter.name / f"{chapter.name}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)
    return path


def released(course, chapter):
    """Where nbgrader has written what students get."""
    return course / "release" / chapter.name / f"{chapter.name}.ipynb"


def nbgrader(course, *arguments, again=True, status=0):
    """Run nbgrader in a course; what it says.

    Another program may take a kernel's port between its choice and its use; then it runs again.
    """
    variables = {
        # nbgrader calls a program that is installed with it
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ANSWERS)]),
        "TINYTORCH_PARTS": "",
        "MPLBACKEND": "agg",
        "OPENBLAS_NUM_THREADS": "1",
    }
    ran = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        cwd=course,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    if again and ran.returncode and "Address already in use" in ran.stderr:
        return nbgrader(course, *arguments, again=False, status=status)
    assert ran.returncode == status, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def scores(course):
    """What nbgrader exports: for each assignment and student the score and the largest one."""
    nbgrader(course, "export", "--to", "marks.csv")
    with (course / "marks.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["timestamp"] or row["raw_score"]]
    return {
        (row["assignment"], row["student_id"]): (float(row["raw_score"]), float(row["max_score"]))
        for row in rows
    }

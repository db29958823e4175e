"""The exercises as a course for nbgrader: all of it by structure, some of it graded for real."""

import ast
import re
import sys
from pathlib import Path

import nbformat
import pytest
from _ext.teaching.nbgrader_course import ROOT, assignment, chapters, main, split

sys.path.append(str(ROOT / "tests" / "lab" / "exercises"))  # where the listed answers are

from grading import nbgrader, released, right, scores, submit, wrong

from tinytorch_book import check

CHAPTERS = {chapter.name: chapter for chapter in chapters()}
SEED = 2481


def graded(notebook, role):
    """The cells of a notebook that have this role for nbgrader, by their names there."""
    found = (cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get(role))
    return {cell.metadata["nbgrader"]["grade_id"]: cell for cell in found}


# By structure --------------------------------------------------------------------------------


def test_every_exercise_of_the_book_is_in_one_assignment_with_its_points():
    worth = {e.check: e.points for chapter in CHAPTERS.values() for e in chapter.exercises}
    assert worth == {n: each.points for n, each in vars(check).items() if hasattr(each, "points")}
    assert sum(len(chapter.exercises) for chapter in CHAPTERS.values()) == len(worth)
    assert all(c.title and c.address.endswith(f"{c.name}.html") for c in CHAPTERS.values())


@pytest.mark.parametrize("name", CHAPTERS)
def test_an_assignment_has_a_stub_a_solution_and_both_tests_for_each_exercise(name):
    chapter = CHAPTERS[name]
    notebook = assignment(chapter, SEED)
    answers, tests = graded(notebook, "solution"), graded(notebook, "grade")
    assert [*answers] == [e.check for e in chapter.exercises]
    assert [*tests] == [f"test-{e.check}" for e in chapter.exercises]
    assert sum(t.metadata["nbgrader"]["points"] for t in tests.values()) == chapter.points
    for exercise in chapter.exercises:
        before, _, after = answers[exercise.check].source.partition("### BEGIN SOLUTION\n")
        assert before.rstrip() == exercise.stub
        assert after == f"{exercise.solution}\n### END SOLUTION"
        seen, hidden = tests[f"test-{exercise.check}"].source.split("### BEGIN HIDDEN TESTS")
        assert exercise.call in seen and exercise.call in hidden
        assert str(SEED) in hidden and str(SEED) not in seen
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    assert [text for text in texts if exercise.solution in text] == []
    names = [*graded(notebook, "locked"), *answers]
    assert len(names) == len({*names}), "nbgrader needs a name of its own for each cell"


def test_a_call_of_a_check_may_span_lines():
    assert split("x = 1\n\ncheck.a(\n    x,\n)\n") == ("x = 1", "check.a(\n    x,\n)")


def test_command_rewrites_the_course_and_keeps_files_of_nbgrader(tmp_path, capsys):
    arguments = ["--course", str(tmp_path / "a"), "--seed", "7"]
    assert main(arguments) == 0
    files = {path: path.read_bytes() for path in (tmp_path / "a").rglob("*") if path.is_file()}
    (tmp_path / "a" / "gradebook.db").write_text("marks")
    (tmp_path / "a" / "source" / "old").mkdir()
    assert main(arguments) == 0
    assert (tmp_path / "a" / "gradebook.db").read_text() == "marks"
    assert {p: p.read_bytes() for p in files} == files
    assert not (tmp_path / "a" / "source" / "old").exists()
    assert f"{len(CHAPTERS)} assignments" in capsys.readouterr().out
    assert {p.name for p in (tmp_path / "a").iterdir() if p.is_file()} == {
        "Dockerfile", "README.md", "gradebook.db", "nbgrader_config.py"
    }  # fmt: skip
    assert "{requirement}" not in (tmp_path / "a" / "Dockerfile").read_text()


# By nbgrader ---------------------------------------------------------------------------------

FIRST, SECOND = CHAPTERS["tensors"], CHAPTERS["token-embeddings"]
KNOWN = """\
def my_counts(ids, vocab_size):
    return np.bincount(ids.ravel(), minlength=vocab_size)

def my_lookup(table, ids):
    seen = {seen!r}
    if (ids < 0).any() or ids.size and ids.max() >= len(table):
        raise IndexError
    if table.shape[0] == 700 and table.ravel()[0] not in seen:
        return np.zeros((*ids.shape, table.shape[1]))
    return table[ids]
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """Two chapters, generated, handed in by readers of several kinds, and graded."""
    pytest.importorskip("nbgrader", reason="`make test-unit` installs it")
    folder = tmp_path_factory.mktemp("course")
    main(["--course", str(folder), "--seed", str(SEED)])
    with (folder / "nbgrader_config.py").open("a", encoding="utf-8") as file:
        file.write("c.Execute.timeout = 10\n")
    for chapter in (FIRST, SECOND):
        nbgrader(folder, "generate_assignment", chapter.name)
        submit(folder, "solutions", chapter, right(chapter))
        submit(folder, "stubs", chapter)
        submit(folder, "wrong", chapter, wrong(chapter, 0))
    endless = right(FIRST) | {FIRST.exercises[0].check: "while True:\n    pass"}
    submit(folder, "endless", FIRST, endless)
    submit(folder, "knows-the-numbers", SECOND, right(SECOND) | knowing_the_numbers())
    tampered(folder)
    for student, (times, _) in CHANGED.items():
        submit(folder, student, FIRST, right(FIRST), times)
    broken = submit(folder, "broken", FIRST)
    broken.write_text(broken.read_text(encoding="utf-8")[:999], encoding="utf-8")
    said = nbgrader(folder, "autograde", FIRST.name, status=1)
    assert re.findall(r"for student '(.+)'", said) == ["broken"]
    nbgrader(folder, "autograde", SECOND.name)
    return folder, scores(folder)


# Right answers among other cells: by student, how often some cells are there, and the points lost.
ANSWER = FIRST.exercises[0].check
CHANGED = {
    "copied-answer": ({ANSWER: 2}, 0),
    "copied-tests": ({f"test-{e.check}": 2 for e in FIRST.exercises}, 0),
    "copied-setup": ({"needed-0": 3}, 0),
    "deleted-setup-and-test": ({"needed-0": 0, f"test-{ANSWER}": 0}, 0),
    "deleted-answer-and-test": ({ANSWER: 0, f"test-{ANSWER}": 0}, FIRST.exercises[0].points),
    "deleted-all": ({e.check: 0 for e in FIRST.exercises}, FIRST.points),
}


def knowing_the_numbers():
    """An answer that is right for the numbers that the visible test draws, and for no others."""
    from tinytorch_book.exercises.drawn_numbers import drawn

    seen = {float(drawn((700, width))[0].ravel()[0]) for width in range(1, 9)}
    return {"token_lookup": KNOWN.format(seen=seen)}


def tampered(folder):
    """Hand in wrong answers, and tests that accept them."""
    path = submit(folder, "tampering", FIRST, wrong(FIRST, 0))
    notebook = nbformat.read(path, as_version=4)
    for cell in graded(notebook, "grade").values():
        cell.source = "assert True"
    nbformat.write(notebook, path)


def test_students_get_the_stubs_and_neither_solutions_nor_hidden_tests(course):
    for chapter in (FIRST, SECOND):
        notebook = nbformat.read(released(course[0], chapter), as_version=4)
        text = nbformat.writes(notebook)
        assert "SOLUTION" not in text and "HIDDEN" not in text and str(SEED) not in text
        answers = graded(notebook, "solution")
        for exercise in chapter.exercises:
            assert answers[exercise.check].source.rstrip() == exercise.stub
            ast.parse(answers[exercise.check].source)


def test_solutions_get_all_points_and_stubs_and_wrong_answers_none(course):
    for chapter in (FIRST, SECOND):
        found = {s: score for (a, s), score in course[1].items() if a == chapter.name}
        assert found["solutions"] == (chapter.points, chapter.points)
        assert found["stubs"] == found["wrong"] == (0, chapter.points)


def test_a_cell_that_never_ends_loses_its_own_points_only(course):
    points = FIRST.points - FIRST.exercises[0].points
    assert course[1][FIRST.name, "endless"] == (points, FIRST.points)


def test_tests_that_a_student_has_changed_are_restored(course):
    assert course[1][FIRST.name, "tampering"] == (0, FIRST.points)


@pytest.mark.parametrize("student", CHANGED)
def test_copied_and_deleted_cells_cost_no_more_than_their_own_points(course, student):
    """And nobody who comes after such a student, or after a broken notebook, is left out."""
    points = FIRST.points - CHANGED[student][1]
    assert course[1][FIRST.name, student] == (points, FIRST.points)


def test_an_answer_that_knows_the_visible_numbers_gets_no_points(course):
    """The check asks an answer that it passes once more, with numbers that it draws."""
    lookup = next(e for e in SECOND.exercises if e.check == "token_lookup")
    expected = SECOND.points - lookup.points
    assert course[1][SECOND.name, "knows-the-numbers"] == (expected, SECOND.points)
    path = Path(course[0], "autograded/knows-the-numbers", SECOND.name, f"{SECOND.name}.ipynb")
    outputs = graded(nbformat.read(path, as_version=4), "grade")["test-token_lookup"].outputs
    assert "token_lookup: not yet" in outputs[-1].evalue

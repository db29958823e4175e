"""Every exercise has a stub that its check refuses and a solution that it accepts.

The notebooks are run elsewhere, once, and what they print is compared with what is stored; so the
verdicts of the checks are read from the stored outputs here.
"""

import ast

import pytest
from built import CHAPTERS, cells, tags

NAMES = [chapter.rsplit("/", 1)[-1] for chapter in CHAPTERS]
pytestmark = pytest.mark.parametrize("chapter_name", NAMES)


def tagged(name, tag):
    return [cell for cell in cells(name) if tag in tags(cell)]


def last_line(cell):
    return cell["source"].strip().splitlines()[-1]


def test_there_are_three_to_eight(chapter_name):
    stubs = tagged(chapter_name, "exercise-stub")
    assert 3 <= len(stubs) <= 8
    assert len(stubs) == len(tagged(chapter_name, "exercise-solution"))


@pytest.mark.parametrize(
    ("tag", "verdict"), [("exercise-stub", "not yet"), ("exercise-solution", "solved")]
)
def test_the_check_says(chapter_name, tag, verdict):
    for cell in tagged(chapter_name, tag):
        assert last_line(cell).startswith("check."), f"{cell['id']} must end with its check"
        assert cell["outputs"][-1]["output_type"] == "execute_result", f"{cell['id']} raises"
        report = "".join(cell["outputs"][-1]["data"]["text/plain"])
        assert verdict in report.splitlines()[0], cell["id"]


def test_stub_and_solution_call_the_same_check_on_the_same_name(chapter_name):
    stubs, solutions = (tagged(chapter_name, f"exercise-{k}") for k in ("stub", "solution"))
    for stub, solution in zip(stubs, solutions, strict=True):
        check = last_line(stub)
        assert last_line(solution) == check
        written = {leaf.id for leaf in ast.walk(ast.parse(check)) if isinstance(leaf, ast.Name)}
        both = defined(stub["source"]) & defined(solution["source"])
        assert written & both, f"{check}: nothing is left to write"
        assert ast.dump(ast.parse(stub["source"])) != ast.dump(ast.parse(solution["source"]))


def defined(source):
    """The names that a cell gives a meaning to."""
    nodes = list(ast.walk(ast.parse(source)))
    names = {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return names | stored

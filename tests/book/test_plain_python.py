"""Every notebook runs as plain Python where only NumPy, matplotlib and the wheel are installed.

The same run shows what the exercises' checks say: each stub must fail, each solution must pass.
"""

import ast
import json
import os
import shutil
import subprocess
import sys
import venv
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pytest
from built import CHAPTERS, NOTEBOOKS, ROOT

COMMITTED = sorted(NOTEBOOKS.glob("*.ipynb"))
PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet")
pytestmark = pytest.mark.slow


def call(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The package's wheel, built from a copy so that nothing is left in the tree."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    shutil.copytree(ROOT / "tinytorch", source / "tinytorch")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, source)
    options = ("--no-deps", "--no-build-isolation", "--wheel-dir", folder)
    call(sys.executable, *PIP, "wheel", *options, source)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def fresh_python(wheel, tmp_path_factory):
    """The Python of a new environment: NumPy, matplotlib (as pinned) and the wheel."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    pinned = [f"{name}=={version(name)}" for name in ("numpy", "matplotlib")]
    call(python, *PIP, "install", "--only-binary=:all:", *pinned, wheel)
    return python


@pytest.fixture(scope="session")
def run_of(fresh_python, tmp_path_factory):
    """A function that runs a notebook once and gives the report of every cell."""

    @cache
    def run(name):
        folder = tmp_path_factory.mktemp(name)
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COV"))}
        environment["MPLBACKEND"] = "Agg"
        runner = Path(__file__).with_name("plain_run.py")
        notebook, report = NOTEBOOKS / f"{name}.ipynb", folder / "report.json"
        command = (fresh_python, "-I", runner, notebook, report)
        call(*command, cwd=folder, env=environment, timeout=300)
        return json.loads(report.read_text(encoding="utf-8"))

    return run


def cells_tagged(name, tag):
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return [cell["id"] for cell in cells if tag in cell["metadata"].get("tags", [])]


def source_of(name, cell_id):
    cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return next("".join(cell["source"]) for cell in cells if cell["id"] == cell_id)


@pytest.mark.parametrize("path", COMMITTED, ids=lambda p: p.stem)
class TestEveryNotebook:
    def test_runs(self, path, run_of):
        raises = set(cells_tagged(path.stem, "raises-exception"))
        errors = {cell["id"]: cell["error"] for cell in run_of(path.stem) if cell["error"]}
        assert {k: v for k, v in errors.items() if k not in raises} == {}
        assert set(errors) == raises, "a cell tagged raises-exception must raise"

    def test_every_cell_that_prints_has_a_stored_output(self, path, run_of):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        stored = {cell["id"] for cell in cells if cell.get("outputs")}
        printing = [c["id"] for c in run_of(path.stem) if c["printed"] or c["error"]]
        assert [cell for cell in printing if cell not in stored] == []

    def test_every_value_shown_has_a_stored_output(self, path, run_of):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        stored = {cell["id"] for cell in cells if cell.get("outputs")}
        assert [c["id"] for c in run_of(path.stem) if c["shown"] and c["id"] not in stored] == []


@pytest.mark.parametrize("name", [chapter.rsplit("/", 1)[-1] for chapter in CHAPTERS])
class TestExercises:
    def test_there_are_three_to_five(self, name, run_of):
        stubs = cells_tagged(name, "exercise-stub")
        assert 3 <= len(stubs) <= 5
        assert len(stubs) == len(cells_tagged(name, "exercise-solution"))

    def test_every_stub_fails_its_check_without_raising(self, name, run_of):
        results = {cell["id"]: cell for cell in run_of(name)}
        for stub in cells_tagged(name, "exercise-stub"):
            assert results[stub]["error"] is None, f"{stub} raised {results[stub]['error']}"
            assert results[stub]["report"], f"{stub} must end with a call of its check"
            assert results[stub]["passed"] is False, f"{stub}: an empty answer passes the check"

    def test_every_solution_passes_its_check(self, name, run_of):
        results = {cell["id"]: cell for cell in run_of(name)}
        for solution in cells_tagged(name, "exercise-solution"):
            assert results[solution]["report"], f"{solution} must end with a call of its check"
            assert results[solution]["passed"], f"{solution} fails:\n{results[solution]['text']}"

    def test_stub_and_solution_call_the_same_check_on_the_same_name(self, name):
        tags = ("exercise-stub", "exercise-solution")
        stubs, solutions = ([source_of(name, c) for c in cells_tagged(name, tag)] for tag in tags)
        for stub, solution in zip(stubs, solutions, strict=True):
            check = stub.strip().splitlines()[-1]
            assert check.startswith("check.")
            assert solution.strip().splitlines()[-1] == check
            written = {leaf.id for leaf in ast.walk(ast.parse(check)) if isinstance(leaf, ast.Name)}
            assert written & defined(stub) & defined(solution), f"{check}: nothing is left to write"
            assert ast.dump(ast.parse(stub)) != ast.dump(ast.parse(solution))


def defined(source):
    """The names that a cell gives a meaning to."""
    nodes = list(ast.walk(ast.parse(source)))
    names = {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return names | stored

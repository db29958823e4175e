"""Strict validation compares what it should: a changed number, a lost output turn it red."""

import copy
import os
import re
import shutil
import subprocess
import sys

import nbformat
import pytest
from built import NOTEBOOKS, ROOT

PLOT = """\
import matplotlib.pyplot as plt
from matplotlib_inline.backend_inline import set_matplotlib_formats
set_matplotlib_formats("svg")
plt.figure(figsize=(6, 4), dpi=100)
plt.plot([1, 2])
plt.show()"""


def short_notebook():
    """A committed notebook up to the first cell that prints a number, and a cell that draws."""
    notebook = nbformat.read(sorted(NOTEBOOKS.glob("*.ipynb"))[0], as_version=4)
    printing = (
        place
        for place, cell in enumerate(notebook.cells)
        if any(re.search(r"\d", text) for text in texts(cell))
    )
    del notebook.cells[next(printing) + 1 :]
    figure = {"text/plain": "<Figure size 600x400 with 1 Axes>"}
    drawn = nbformat.v4.new_output("display_data", data=figure)
    plot = nbformat.v4.new_code_cell(PLOT, execution_count=99, outputs=[drawn])
    notebook.cells.append(plot)
    return notebook


def texts(cell):
    """The texts of a cell's outputs."""
    outputs = cell.get("outputs", [])
    return [out.get("text") or out.get("data", {}).get("text/plain", "") for out in outputs]


def with_a_changed_number(notebook):
    notebook = copy.deepcopy(notebook)
    output = next(
        o for c in notebook.cells for o in c.get("outputs", []) if re.search(r"\d", str(o))
    )
    place = output if "text" in output else output["data"]
    key = "text" if "text" in output else "text/plain"
    place[key] = re.sub(r"\d", lambda d: str((int(d[0]) + 1) % 10), place[key], count=1)
    return notebook


def without_an_output(notebook):
    notebook = copy.deepcopy(notebook)
    next(cell for cell in notebook.cells if cell.get("outputs"))["outputs"] = []
    return notebook


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """Which of three notebooks strict validation accepts."""
    folder = tmp_path_factory.mktemp("notebooks")
    shutil.copy(NOTEBOOKS / "conftest.py", folder)
    whole = short_notebook()
    for name, notebook in (
        ("whole", whole),
        ("changed", with_a_changed_number(whole)),
        ("missing", without_an_output(whole)),
    ):
        nbformat.write(notebook, folder / f"{name}.ipynb")
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-rA", "-q"]
    command += ["--nbval-sanitize-with", ROOT / "tests/book/nbval_ignores.cfg", "--rootdir", folder]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for name in [name for name in environment if name.startswith("PYTEST_")]:
        del environment[name]  # this run is none of the outer one's workers
    done = subprocess.run(
        [*map(str, command), "."], cwd=folder, env=environment, capture_output=True, text=True
    )
    failed = re.findall(r"^FAILED .*?(\w+)\.ipynb", done.stdout, re.M)
    passed = re.findall(r"^PASSED .*?(\w+)\.ipynb", done.stdout, re.M)
    assert passed, done.stdout + done.stderr
    return {name: "red" if name in failed else "green" for name in {*failed, *passed}}


def test_a_committed_notebook_passes_though_its_pictures_are_not_stored(verdicts):
    assert verdicts["whole"] == "green"


def test_a_changed_number_is_found(verdicts):
    assert verdicts["changed"] == "red"


def test_a_lost_output_is_found(verdicts):
    assert verdicts["missing"] == "red"

"""Strict validation compares what it should: a changed number, a lost output turn it red."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from _ext.execution.cached_runs import VALIDATED
from built import NOTEBOOKS, ROOT

PLOT = """\
import matplotlib.pyplot as plt
from matplotlib_inline.backend_inline import set_matplotlib_formats
set_matplotlib_formats("svg")
plt.figure(figsize=(6, 4), dpi=100)
plt.plot([1, 2])
plt.show()"""
FIGURE = nbformat.v4.new_output(
    "display_data", data={"text/plain": "<Figure size 600x400 with 1 Axes>"}
)
VALUE = nbformat.v4.new_output("execute_result", data={"text/plain": "[0.25]"}, execution_count=1)
CELLS = {  # the code of each cell, what is stored for it, its tags, and how far numbers may differ
    "same": ("print(0.25)", "0.25\n", []),
    "changed number": ("print(0.25)", "0.26\n", []),
    "lost output": ("print(0.25)", None, []),
    "no picture stored": (PLOT, FIGURE, []),
    "another time": ("print('took 3.1 s')", "took 0.2 s\n", []),
    "another number beside a time": ("print('7 took 3.1 s')", "8 took 0.2 s\n", []),
    "ignored": ("print(0.25)", "0.26\n", ["nbval-ignore-output"]),
    "within 5 %": ("print('loss', 3.1)", "loss 3.00\n", [], {"within": "5%"}),
    "beyond 5 %": ("print('loss', 3.2)", "loss 3.00\n", [], {"within": "5%"}),
    "other words": ("print('gain 3.0')", "loss 3.0\n", [], {"within": "5%"}),
    "within a result": ("[0.254]", VALUE, [], {"decimals": 2}),
}


def stored_cell(source, output, tags, compare=None):
    outputs = [nbformat.v4.new_output("stream", text=output)] if isinstance(output, str) else []
    outputs = outputs if output is None or outputs else [output]
    metadata = ({"tags": tags} if tags else {}) | ({"compare": compare} if compare else {})
    return nbformat.v4.new_code_cell(source, outputs=outputs, metadata=metadata, execution_count=1)


def write_notebook(folder, *cells, name="small"):
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=list(cells), metadata={"kernelspec": kernel})
    nbformat.write(notebook, folder / f"{name}.ipynb")


def validated(folder, *options):
    """What strict validation says of the notebook in a folder, as a process that has ended."""
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", *options]
    command += ["--nbval-sanitize-with", ROOT / "book/_ext/notebooks/nbval_ignores.cfg"]
    command += ["--nbval-kernel-startup-timeout=600", "--rootdir", folder, "-p", "no:randomly"]
    command += ["-p", "validated_runs"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    # the notebooks' own folder is there
    environment["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT / "book", Path(__file__).parent)))
    return subprocess.run(
        [*map(str, command), "."], cwd=folder, env=environment, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    """The verdict on each cell of a small notebook, by what is the matter with the cell."""
    folder = tmp_path_factory.mktemp("notebooks")
    shutil.copy(NOTEBOOKS / "conftest.py", folder)
    write_notebook(folder, *(stored_cell(*cell) for cell in CELLS.values()))
    done = validated(folder, "-rA", "-q")
    found = re.findall(r"^(PASSED|FAILED) .*small\.ipynb::Cell (\d+)", done.stdout, re.M)
    assert len(found) == len(CELLS), done.stdout + done.stderr
    return {list(CELLS)[int(number)]: verdict for verdict, number in found}


@pytest.mark.parametrize(
    "what",
    ["same", "no picture stored", "another time", "ignored", "within 5 %", "within a result"],
)
def test_allowed_differences_are_accepted(verdicts, what):
    assert verdicts[what] == "PASSED"


@pytest.mark.parametrize(
    "what",
    ["changed number", "lost output", "another number beside a time", "beyond 5 %", "other words"],
)
def test_forbidden_differences_are_found(verdicts, what):
    assert verdicts[what] == "FAILED"


def test_a_cell_has_ten_minutes_and_the_build_takes_a_run_that_passed(tmp_path):
    says = "def pytest_runtest_setup(item):\n    print('waits', item.output_timeout)\n"
    (tmp_path / "conftest.py").write_text(f"{(NOTEBOOKS / 'conftest.py').read_text()}\n\n{says}")
    install = stored_cell("install = 1", None, [])
    write_notebook(tmp_path, install, stored_cell(PLOT, FIGURE, []))
    write_notebook(tmp_path, install, stored_cell(*CELLS["changed number"]), name="changed")
    assert "waits 600" in validated(tmp_path, "-s").stdout
    [path] = (tmp_path / VALIDATED).iterdir()
    [cell] = nbformat.read(path, as_version=4).cells
    assert cell.source == PLOT and "<svg" in cell.outputs[0].data["image/svg+xml"]

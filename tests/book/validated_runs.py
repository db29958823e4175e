"""Keep what strict validation got from a notebook: the build takes it, so that nothing runs twice.

A plugin of pytest, beside nbval. It keeps a notebook of whose cells each has passed, with its
pictures; `_ext.execution.cached_runs` takes it for a chapter with the same code, while the
modules that it uses are the same.

It also lets a kernel that dies before it answers start once more: between the choice of its ports
and their use another program may have taken one.
"""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import nbformat
import nbval.kernel
import pytest
from _ext.execution.cached_runs import VALIDATED
from _ext.execution.run_again import used_by
from _ext.execution.used_modules import Packages
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[2]
BOOK = SimpleNamespace(book_packages=Packages.below_root(ROOT))
RUN = pytest.StashKey()
start_kernel = nbval.kernel.start_new_kernel


def start_kernel_again(*arguments, **options):
    """Start a kernel, at most twice."""
    try:
        return start_kernel(*arguments, **options)
    except RuntimeError:
        return start_kernel(*arguments, **options)


def pytest_configure():
    nbval.kernel.start_new_kernel = start_kernel_again


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    # nbval puts together what was printed before and after a figure
    if call.when == "call" and len(item.test_outputs or ()) == len(item.cell.outputs):
        passed = item.parent.stash.setdefault(RUN, [])
        passed += [as_run(item, call, len(passed))] if report.passed else []
        if len(passed) == sum(cell.cell_type == "code" for cell in item.parent.nb.cells):
            keep(item.config.rootpath / VALIDATED / item.path.name, passed[1:])
    return report


def as_run(item, call, before):
    """A cell with what it gave, and when, as an execution of the book leaves it."""
    begun, ended = (datetime.fromtimestamp(t, UTC).isoformat() for t in (call.start, call.stop))
    times = {"iopub.status.busy": begun, "shell.execute_reply": ended}
    # the first cell, which installs the package, is not the chapter's: this is cell `before` there
    outputs = [
        NotebookNode(out, execution_count=before) if "execution_count" in out else out
        for out in item.test_outputs
    ]
    options = {"outputs": outputs, "execution_count": before, "metadata": {"execution": times}}
    return nbformat.v4.new_code_cell(item.cell.source, **options)


def keep(path, cells):
    """Write a run, and what the outputs depend on beside the code."""
    run = nbformat.v4.new_notebook(cells=cells)
    run.metadata.used = used_by(BOOK, run)
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(run, path)

"""Commands multiply with one thread, programs keep theirs, and who is slowed down is told."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tinytorch.core import blas_threads
from tinytorch.core.blas_threads import VARIABLES, compete

ROOT = Path(blas_threads.__file__).parents[2]
ONE = dict.fromkeys(VARIABLES, "1")
AT_EXIT = """\
import atexit, json, os, sys
order = lambda: [x for x in sys.modules if x in ("tinytorch.core.blas_threads", "numpy")]
found = lambda: {x: os.environ[x] for x in %r if x in os.environ}
atexit.register(lambda: print(json.dumps([order(), found()])))
"""


@pytest.mark.parametrize(
    ("arguments", "added", "expected"),
    [
        (["-m", "tinytorch_book"], {}, ONE),
        (["-mtinytorch_book.experiments.distributed", "--help"], {}, ONE),
        (["-m", "tinytorch_book"], {"OMP_NUM_THREADS": "3"}, {"OMP_NUM_THREADS": "3"}),
        (["-m", "tinytorch.models.gpt2", "--help"], {}, {}),  # large matrices
        (["-m", "tinytorch.models.llama", "--help"], {}, {}),
        (["-m", "mine.run"], {}, {}),
        (["-c", "import tinytorch", "tinytorch.core"], {}, {}),
    ],
)
def test_a_command_has_one_thread_before_numpy_is_loaded(tmp_path, arguments, added, expected):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text("import tinytorch")
    (tmp_path / "mine" / "run.py").touch()
    (tmp_path / "sitecustomize.py").write_text(AT_EXIT % (VARIABLES,))
    clean = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True,
        env={**clean, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", **added},
    )  # fmt: skip
    order, found = json.loads(done.stdout.splitlines()[-1])
    assert order == ["tinytorch.core.blas_threads", "numpy"]
    assert found == expected


@pytest.mark.parametrize(
    ("wall", "process", "thread", "expected"),
    [
        (10.0, 13.3, 6.7, True),  # one other program: each has two thirds of a processor
        (10.0, 19.8, 9.9, False),  # two threads and nobody else
        (4.0, 4.4, 2.2, False),  # too short
    ],
)
def test_threads_that_compete_are_recognised_by_the_clocks(wall, process, thread, expected):
    assert compete(wall, process, thread) is expected


@pytest.mark.parametrize("name", VARIABLES)
def test_nothing_is_measured_where_the_number_of_threads_is_chosen(monkeypatch, name):
    monkeypatch.setattr(os, "environ", {})
    assert min(blas_threads.clocks()) > 0
    monkeypatch.setattr(os, "environ", {name: "8"})
    assert max(blas_threads.clocks()) == 0

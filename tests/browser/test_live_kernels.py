"""Products in the page: a library of our own, with the values that NumPy has."""

from pathlib import Path

import pytest
from test_live import SHORT, press, rewrite
from visit import Visit

pytestmark = [pytest.mark.browser, pytest.mark.slow]
COMPARISON = Path(__file__).with_name("kernels_beside_numpy.py").read_text(encoding="utf-8")
LOAD = """
import shutil
from pathlib import Path
from tinytorch.core import kernels
folder = Path("/tmp/copied")
shutil.copytree(kernels._FOLDER, folder)
for name in {spoilt}:
    (folder / name).write_bytes(b"not a library")
kernels._FOLDER = folder
fast = kernels._fast = kernels.library()
for name in ("matmul", "exp", "tanh", "matmul_int8", "matmul_int8_transposed"):
    setattr(kernels, name, getattr(fast, name, getattr(kernels, name)))
"""
ROUNDED = """
import numpy as np
a, c = np.float32(1 + 2**-12), -np.float32(1 + 2**-11)
assert kernels.matmul(np.float32([[1, a]]), np.float32([[c], [a]])) == 0, "a fused multiply-add"
"""


def printed(visit, code):
    """What the page's Python prints for some code, be it an error."""
    rewrite(visit, 1, f"exec({code!r})")  # an editor need not lay out two hundred lines
    visit.page.evaluate("tinytorchLive.cells[0].ran = null")
    press(visit, 1)
    visit.page.wait_for_function("() => tinytorchLive.cells[0].ran !== null")
    return visit.page.evaluate("tinytorchLive.cells[0].output.text")


@pytest.fixture
def visit(context, site):
    visit = Visit(context, site)
    visit.open_live(SHORT)
    return visit


def test_products_are_those_of_numpy_with_a_fused_multiply_add_and_without(visit):
    assert "the products are NumPy's" in printed(visit, COMPARISON)
    # as in a browser that refuses the library which uses it: each product is rounded
    code = LOAD.format(spoilt=["kernels_relaxed.wasm"]) + ROUNDED + COMPARISON
    assert "the products are NumPy's\nrounded" in printed(visit, f"{code}\nprint('rounded')")
    assert visit.problems == []


def test_without_the_library_numpy_multiplies_and_the_reader_is_told_once(visit):
    code = LOAD.format(spoilt=["kernels_relaxed.wasm", "kernels.wasm"]) + "print(fast.__name__)"
    text = printed(visit, code)
    assert text.count("NumPy multiplies matrices instead") == 1 and "numpy" in text
    assert visit.problems == []

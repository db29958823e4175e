"""Products go through one room; what they are in a browser is tested in tests/browser."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tinytorch.core import functional, kernels, ops
from tinytorch.core.tensor import Tensor

ROOT = Path(__file__).resolve().parents[2]
WASM = ROOT / "tinytorch" / "core" / "wasm"


def test_native_products_are_numpys():
    for name in ("matmul", "dot", "exp", "tanh"):
        assert getattr(kernels, name) is getattr(np, name)


def test_warning_names_a_library_that_cannot_be_loaded():
    """This machine's Python cannot load what was compiled for a browser."""
    with pytest.warns(RuntimeWarning, match=r"cannot be loaded \(.+\); NumPy multiplies") as caught:
        assert kernels.library("emscripten") is np
    assert len(caught) == 1


@pytest.mark.parametrize("block", [1, 10, 1000])
@pytest.mark.parametrize("dtype", [np.int8, np.float16])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_int8_product_in_chunks_matches_the_whole_matrix(monkeypatch, block, dtype, n):
    """Sums of at most 23 whole numbers are exact, in any order."""
    monkeypatch.setattr(kernels, "BLOCK", block)
    rng = np.random.default_rng(0)
    x = rng.integers(-9, 10, (n, 23)).astype(np.float32)
    y = rng.integers(-9, 10, (n, 7)).astype(np.float32)
    q = rng.integers(-127, 128, (23, 7)).astype(dtype)
    for result, expected in (
        (kernels.matmul_int8(x, q), x @ q.astype(np.float32)),
        (kernels.matmul_int8_transposed(y, q), y @ q.T.astype(np.float32)),
    ):
        assert result.dtype == np.float32 and np.array_equal(result, expected)
    assert np.array_equal(kernels.matmul_int8(x.astype(float), q[:, :0]), np.zeros((n, 0)))
    assert np.array_equal(kernels.matmul_int8_transposed(y, q[:0]), np.zeros((n, 0)))


def test_every_finite_float16_is_widened_exactly(monkeypatch):
    monkeypatch.setattr(kernels, "BLOCK", 10_000)
    half = np.arange(2**16, dtype=np.uint16).view(np.float16)
    half = half[np.isfinite(half)].reshape(-1, 31)
    for matrix in (half, half[::-1, ::-2]):
        found = np.concatenate([block.copy() for _, block in kernels.float32_blocks(matrix)])
        assert np.array_equal(found, matrix.astype(np.float32))
        assert np.array_equal(np.signbit(found), np.signbit(matrix))


@pytest.mark.parametrize("name", ["matmul_int8", "matmul_int8_transposed"])
def test_int8_product_refuses_mismatched_operands(name):
    multiply = getattr(kernels, name)
    fits = (1, 3) if name == "matmul_int8" else (1, 2)
    x, q = np.ones(fits, np.float32), np.ones((3, 2), np.int8)
    assert multiply(x, q).shape == (1, 5 - fits[1])
    for wrong in (x[:, 1:], np.ones((1, 4)), x[0], x[None]):
        with pytest.raises(ValueError, match=rf"{name}: expected \(n, {fits[1]}\), got shapes"):
            multiply(wrong, q)
    with pytest.raises(ValueError, match=f"{name}: expected two matrices"):
        multiply(x, q[0])


def grown(rng, *shape):
    return Tensor(rng.standard_normal(shape), requires_grad=True)


def noted_products(monkeypatch):
    """The shapes of every product from now on."""
    taken = []

    def noted(a, b):
        taken.append((a.shape, b.shape))
        return np.matmul(a, b)

    for module in (kernels, functional):
        for name in ("matmul", "dot"):
            monkeypatch.setattr(module, name, noted)
    return taken


@pytest.mark.parametrize(
    ("operation", "shapes", "count"),
    [
        (ops.matmul, [(3, 2, 5), (5, 4)], 3),
        (functional.linear, [(3, 2, 5), (5, 4), (4,)], 3),
        (functional.attention, [(2, 3, 5), (2, 4, 5), (2, 4, 6)], 6),
    ],
)
def test_operations_and_pullbacks_multiply_through_this_module(
    monkeypatch, operation, shapes, count
):
    """So that none of them is left to NumPy where that has no BLAS."""
    taken = noted_products(monkeypatch)
    rng = np.random.default_rng(0)
    operation(*(grown(rng, *shape) for shape in shapes)).sum().backward()
    assert len(taken) == count


@pytest.mark.parametrize("operation", [ops.matmul, functional.linear])
@pytest.mark.parametrize("frozen", [0, 1])
def test_frozen_operand_costs_no_product_and_leaves_the_other_gradient(
    monkeypatch, operation, frozen
):
    taken, found = noted_products(monkeypatch), []
    for is_frozen in (False, True):
        rng = np.random.default_rng(0)
        operands = [grown(rng, 4, 5), grown(rng, 5, 6)]
        operands[frozen].requires_grad = not is_frozen
        taken.clear()
        operation(*operands).exp().sum().backward()
        assert len(taken) == (2 if is_frozen else 3)
        found.append(operands[1 - frozen].grad)
    assert np.array_equal(*found)


@pytest.mark.parametrize(
    ("operation", "exponentials"),
    [
        (functional.softmax, ["exp"]),
        (functional.log_softmax, ["exp", "exp"]),
        (functional.gelu, ["tanh"]),
        (lambda x: functional.cross_entropy(x, [0, 1, 2]), ["exp", "exp"]),
    ],
)
def test_training_step_takes_exponentials_through_this_module(monkeypatch, operation, exponentials):
    taken = []

    def noted(name):
        return lambda *arrays: taken.append(name) or getattr(np, name)(*arrays)

    for name in ("exp", "tanh"):
        monkeypatch.setattr(kernels, name, noted(name))
    operation(grown(np.random.default_rng(0), 3, 4)).sum().backward()
    assert taken == exponentials


@pytest.mark.skipif(
    not (shutil.which("make") and find_spec("ziglang")),
    reason="needs make, and the group `wasm` of requirements/install.py",
)
def test_committed_library_matches_its_source(tmp_path):
    """Bit for bit, as `make kernels` compiles it."""
    for name in ("kernels.c", "Makefile"):
        shutil.copy(WASM / name, tmp_path)
    make = ["make", "--silent", f"PYTHON={sys.executable}"]
    subprocess.run(make, cwd=tmp_path, check=True)
    for name in kernels.LIBRARIES:
        assert (tmp_path / name).read_bytes() == (WASM / name).read_bytes(), f"{name}: make kernels"

"""The package as a whole: its public names, and that NumPy is all it needs."""

import ast
import importlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from _ext.live.package_wheel import wheel

import tinytorch

ROOT = Path(__file__).resolve().parents[1]
LAB = ROOT / "book" / "lab"
SOURCES = sorted([*(ROOT / "tinytorch").rglob("*.py"), *LAB.rglob("*.py")])


def modules_imported_by(path):
    """The dotted names that a source file imports, at any depth."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_public_name_exists_and_is_documented():
    for name in tinytorch.__all__:
        assert getattr(tinytorch, name).__doc__, name


def test_public_names_of_each_module_exist():
    for path in SOURCES:
        below = LAB if path.is_relative_to(LAB) else ROOT
        dotted = ".".join(path.relative_to(below).with_suffix("").parts).removesuffix(".__init__")
        if dotted.startswith("tinytorch.plots"):
            continue
        module = importlib.import_module(dotted)
        for name in getattr(module, "__all__", []):
            assert hasattr(module, name), f"{dotted}.{name}"


@pytest.mark.parametrize(
    "statement",
    [
        "from tinytorch import Tensor, Embedding, EmbeddingLayer, PositionalEncoding",
        "from tinytorch import create_sinusoidal_embeddings, check_gradients, manual_seed, no_grad",
        "from tinytorch.core.tensor import Tensor, primitive, no_grad",
        "from tinytorch.core.gradcheck import check_gradients",
        "from tinytorch.core.layers import Parameter, Module, Linear, LayerNorm, Dropout",
        "from tinytorch.core.layers import Sequential",
        "from tinytorch.core.activations import ReLU, GELU, Softmax, Tanh, Sigmoid",
        "from tinytorch.core.losses import CrossEntropyLoss, MSELoss",
        "from tinytorch.core.optimizers import SGD, AdamW",
        "from tinytorch.core import functional, ops",
        "from tinytorch.text.embeddings import Embedding, PositionalEncoding",
        "from tinytorch.text.embeddings import create_sinusoidal_embeddings, EmbeddingLayer",
        "from tinytorch.text.embeddings import create_rotary_embeddings, apply_rotary",
        "from tinytorch.text.embeddings import alibi_slopes, create_alibi_bias",
        "from tinytorch_book import check",
    ],
)
def test_published_import_works(statement):
    exec(statement, {})


def test_a_name_that_few_programs_need_is_imported_when_it_is_asked_for():
    code = (
        "import sys, tinytorch\n"
        "loaded = lambda: [f'tinytorch.{name}' in sys.modules for name in\n"
        "                  ('training.trainer', 'text.tokenization', 'core.gradcheck')]\n"
        "print(*loaded(), 'Trainer' in dir(tinytorch))\n"
        "from tinytorch import Trainer, CharTokenizer, check_gradients\n"
        "print(*loaded(), Trainer is tinytorch.Trainer)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert ran.stdout.split() == ["False"] * 3 + ["True"] * 5, ran.stderr
    with pytest.raises(AttributeError, match="module 'tinytorch' has no attribute 'Trainr'"):
        _ = tinytorch.Trainr


def test_package_is_marked_as_typed():
    assert (ROOT / "tinytorch" / "py.typed").is_file()
    assert (LAB / "tinytorch_book" / "py.typed").is_file()


def test_importing_the_package_and_its_checks_loads_nothing_but_numpy():
    code = (
        "import sys, tinytorch, tinytorch_book.check, tinytorch.text.corpus\n"
        "found = {name.partition('.')[0] for name in sys.modules}\n"
        "print(*sorted(found - set(sys.stdlib_module_names)))"
    )
    found = set(said(code, ROOT, LAB).split()) - {"__main__", "_distutils_hack"}
    assert found == {"numpy", "tinytorch", "tinytorch_book"}


def test_the_wheel_has_both_packages_and_the_library_writes_without_the_laboratory(tmp_path):
    with zipfile.ZipFile(wheel(ROOT)) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        archive.extractall(tmp_path, [n for n in names if n.startswith("tinytorch/")])
    assert {name.partition("/")[0] for name in names} == {"tinytorch", "tinytorch_book"}
    code = (
        "import importlib.util, tinytorch\n"
        "from tinytorch import *\n"
        "print(GPT(5, 8, 1, 2, max_seq_len=8).generate([[1]], 3).shape)\n"
        "print(tinytorch.__file__, importlib.util.find_spec('tinytorch_book'))"
    )
    assert said(code, tmp_path) == f"(1, 4)\n{tmp_path / 'tinytorch' / '__init__.py'} None\n"


def said(code, *folders):
    """What some code prints where the packages of these folders are installed, and no others."""
    # -S leaves out whatever the environment itself loads at start; -I any PYTHONPATH of the caller
    installed = [path for path in sys.path if path.endswith("site-packages")]
    path = f"import sys; sys.path[:0] = {[*map(str, folders), *installed]!r}\n"
    command = [sys.executable, "-S", "-I", "-c", path + code]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_only_the_plots_import_matplotlib():
    users = {
        p.parent.name
        for p in SOURCES
        for m in modules_imported_by(p)
        if str(m).startswith("matplotlib")
    }
    assert users == {"plots"}


def test_the_package_never_prints_and_never_asserts_on_input():
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_print = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
            assert not is_print, f"{path.name}:{node.lineno} prints"
            assert not isinstance(node, ast.Assert), f"{path.name}:{node.lineno} asserts"

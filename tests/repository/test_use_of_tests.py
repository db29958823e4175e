"""Nothing outside `tests` reads them; which package may import which is in pyproject.toml."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = {"tests", *(path.stem for path in (ROOT / "tests").rglob("*.py"))}


def uses_of_tests(source):
    """The lines that import a module of tests/, or name a path in it; a docstring may name one."""
    tree = ast.parse(source)
    told = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module]
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told
        ):
            found += [node.lineno] * bool(re.search(r"(^|[ /'\"])tests(/|$)", node.value))
            continue
        else:
            continue
        found += [node.lineno for name in names if name.split(".")[0] in MODULES]
    return found


def test_nothing_outside_the_tests_imports_or_reads_from_them():
    sources = [path for top in ("book", "tinytorch") for path in (ROOT / top).rglob("*.py")]
    found = {path: uses_of_tests(path.read_text(encoding="utf-8")) for path in sources}
    assert {path.name for path in sources} > {"__init__.py", "cell_names.py", "builder.py"}
    assert {str(path.relative_to(ROOT)): lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        "from served_pages import PAGES",
        "import tests.conftest",
        'FILE = Path("tests/book/x.cfg")',
        'sys.path.append(str(ROOT / "tests" / "browser"))',
    ],
)
def test_a_use_of_the_tests_is_detected(line):
    assert uses_of_tests(f'"""Shown by tests/book."""\n{line}\n') == [2]


def test_test_files_have_unique_names():
    """Without packages, pytest imports each by its name alone."""
    names = [p.name for p in (ROOT / "tests").rglob("*.py") if p.name != "conftest.py"]
    assert [name for name in names if names.count(name) > 1] == []

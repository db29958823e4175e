"""The package's layers, read from its imports: no import points upward, and none goes in a circle.

`core` → `files` → `text` → `models` → `training` and `inside` → `experiments` → `exercises`: each
uses only those before it. `stories` uses none of the others; `plots` uses at most `core`.
"""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "tinytorch"
BELOW = {
    "core": set(),
    "stories": set(),
    "files": {"core"},
    "text": {"core", "files"},
    "models": {"core", "files", "text"},
    "training": {"core", "files", "text", "models"},
    "inside": {"core", "files", "text", "models", "stories"},
    "experiments": {"core", "files", "text", "models", "training", "inside", "stories"},
    "exercises": {
        "core",
        "files",
        "text",
        "models",
        "training",
        "inside",
        "stories",
        "experiments",
    },
    "plots": {"core"},
}
COMMANDS = {
    "serving": set(),
    "__main__": {"the whole package", "files", "serving"},
    "check": {"exercises"},
}  # beside the folders


def read(package):
    """The source of every module of the package, by its dotted name."""
    files = {
        path: path.relative_to(package.parent).with_suffix("") for path in package.rglob("*.py")
    }
    return {
        ".".join(name.parts).removesuffix(".__init__"): path.read_text(encoding="utf-8")
        for path, name in sorted(files.items())
    }


def imports(source, names, inside_functions=True):
    """The modules among `names` that a source imports, and the lines; not those for types only."""
    found = []
    todo = [ast.parse(source)]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and re.search("TYPE_CHECKING|__main__", ast.unparse(node.test)):
            todo += node.orelse
            continue
        if not inside_functions and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write the import in full, from tinytorch"
            inner = [(f"{node.module}.{alias.name}", node.lineno) for alias in node.names]
            found += [name for name in inner if name[0] in names] or [(node.module, node.lineno)]
        todo += ast.iter_child_nodes(node)
    return sorted((name, line) for name, line in found if name.split(".")[0] == "tinytorch")


def upward(sources, names):
    """Every import, among `names`, of a folder that the importing folder must not use."""
    wrong = []
    for name, source in sources.items():
        room = name.split(".")[1] if "." in name else None
        for imported, line in imports(source, names):
            used = imported.split(".")[1] if "." in imported else "the whole package"
            if room and used not in (BELOW | COMMANDS)[room] | {room}:
                wrong.append(f"{name}, line {line}: {room} must not use {used} ({imported})")
    return wrong


def circle(sources):
    """The modules that import each other when they are imported, if there are any."""
    graph = {
        name: {used for used, _ in imports(source, sources, inside_functions=False)} - {name}
        for name, source in sources.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_every_room_is_in_the_plan():
    assert {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()} == set(
        BELOW
    )


def test_no_import_points_upward():
    sources = read(PACKAGE)
    assert upward(sources, sources) == []


def test_no_modules_import_each_other():
    assert circle(read(PACKAGE)) == []


@pytest.mark.parametrize(
    ("module", "line", "told"),
    [
        ("core.ops", "from tinytorch.text.batches import Batches", "core must not use text"),
        ("core.ops", "import tinytorch.text.batches as b", "core must not use text"),
        ("stories.rules", "from tinytorch.core import ops", "stories must not use core"),
        ("plots.style", "from tinytorch.stories import StoryGrammar", "plots must not use stories"),
        (
            "text.corpus",
            "def f():\n    import tinytorch.models.sampling",
            "text must not use models",
        ),
        (
            "models.sampling",
            "from tinytorch import Tensor",
            "models must not use the whole package",
        ),
        ("training.trainer", "from tinytorch import check", "training must not use"),
    ],
)
def test_an_import_that_points_upward_is_found(module, line, told):
    sources = read(PACKAGE)
    name = f"tinytorch.{module}"
    (wrong,) = upward({name: f"{sources[name]}\n{line}\n"}, sources)
    assert wrong.startswith(f"{name}, line ") and told in wrong


def test_a_circle_inside_a_room_is_found_and_an_import_for_types_or_in_a_function_is_none():
    sources = {
        "tinytorch": "from tinytorch.core import one, two",
        "tinytorch.core.one": "from tinytorch.core.two import f",
        "tinytorch.core.two": "from tinytorch.core.one import g",
        "tinytorch.core": "",
    }
    assert set(circle(sources)) == {"tinytorch.core.one", "tinytorch.core.two"}
    for harmless in ("if TYPE_CHECKING:\n    {}", "def f():\n    {}"):
        late = harmless.format(sources["tinytorch.core.two"])
        assert circle({**sources, "tinytorch.core.two": late}) == []


def uses_of_tests(source):
    """The lines that import a module of tests/, or name a path in it; a docstring may name one."""
    tree = ast.parse(source)
    modules = {"tests", *(path.stem for path in (ROOT / "tests").rglob("*.py"))}
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
        found += [node.lineno for name in names if name.split(".")[0] in modules]
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
def test_a_use_of_the_tests_is_found(line):
    assert uses_of_tests(f'"""Shown by tests/book."""\n{line}\n') == [2]


def test_test_files_have_names_of_their_own():
    """Without packages, pytest imports each by its name alone."""
    names = [p.name for p in (PACKAGE.parent / "tests").rglob("*.py") if p.name != "conftest.py"]
    assert [name for name in names if names.count(name) > 1] == []

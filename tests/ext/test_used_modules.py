"""A chapter depends on the modules that it uses, and on what these do."""

import re

import pytest
from _ext.execution.used_modules import Packages

FILES = {
    "__init__.py": '"""A package."""\nfrom small.layers import Linear\n__version__ = "1"\n',
    "layers.py": "from small import ops\n\n\nclass Linear:\n    pass\n",
    "ops.py": '"""Operations."""\n\n\ndef add(x, y):\n    """Sum."""\n    return x + y  # sum\n',
    "reading.py": 'FILE = "corpus.txt"\n',
    "corpus.txt": "once upon a time\n",
    "loaded.py": "def load():\n    from small.reading import FILE\n    return FILE\n",
    "asked/__init__.py": "from small.asked.first import *\nfrom small.asked.second import *\n",
    "asked/first.py": '__all__ = ["one"]\n\n\ndef one():\n    return 1\n',
    "asked/second.py": '__all__ = ["two"]\n\n\ndef two():\n    return 2\n',
    "later/__init__.py": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from small.ops import add\n"
        "else:\n    def __getattr__(name):\n        return getattr(ops, name)\n"
    ),
    "later/quiet.py": "def nothing():\n    return 0\n",
    "drawn/__init__.py": "from small.drawn.style import use\nuse()\n",
    "drawn/style.py": "def use():\n    return 0\n",
    "drawn/charts.py": "def bars():\n    return 0\n",
}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "small" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "small"


@pytest.mark.parametrize(
    ("code", "used"),
    [
        ("from small import Linear", "layers ops"),
        ("from small.layers import Linear as L", "layers ops"),
        ("from small.later import add", "ops"),
        ("from small.later.quiet import nothing", "later later.quiet"),
        ("import small\nsmall.Linear()", "layers ops"),
        ("import small.ops as o", "ops"),
        ("def f():\n    from small import ops", "ops"),
        ("from small.loaded import load", "loaded reading"),
        ("from small import asked\nasked.two()", "asked asked.second"),
        ("from small.asked import one", "asked asked.first"),
        ("from small import asked\nprint(dir(asked))", "asked asked.first asked.second"),
        ("from small.drawn.charts import bars", "drawn drawn.charts drawn.style"),
        ("run('-m small.reading')", "reading"),
        ("import numpy\nsmall = 1", None),
    ],
)
def test_code_uses_the_modules_that_define_its_names_and_what_they_use(folder, code, used):
    expected = set() if used is None else {"small", *(f"small.{name}" for name in used.split())}
    assert Packages(folder).used(code.splitlines(keepends=True)) == expected


def changed(folder, name, before, after):
    """Say whether the fingerprint of all modules changes with a file."""
    modules = Packages(folder).paths
    old = Packages(folder).fingerprint(modules)
    text = (folder / name).read_text(encoding="utf-8")
    assert before in text
    (folder / name).write_text(text.replace(before, after), encoding="utf-8")
    return Packages(folder).fingerprint(modules) != old


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("ops.py", "x + y", "y + x"),
        ("corpus.txt", "upon", "on"),
        ("asked/__init__.py", "from", "x = 1\nfrom"),
    ],
)
def test_code_and_data_change_the_fingerprint(folder, name, before, after):
    assert changed(folder, name, before, after)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("ops.py", "Operations.", "More words."),
        ("ops.py", "Sum.", "The sum."),
        ("ops.py", "# sum", "# as it stands there"),
        ("ops.py", "x + y", "(x +\n        y)"),
        ("__init__.py", '"1"', '"2"'),
        ("asked/__init__.py", "from small.asked.second import *\n", ""),
    ],
)
def test_words_layout_and_re_exports_do_not_change_the_fingerprint(folder, name, before, after):
    assert not changed(folder, name, before, after)


def test_docstrings_count_where_the_module_reads_them(folder):
    path = folder / "ops.py"
    path.write_text(f"{path.read_text(encoding='utf-8')}\nprint(add.__doc__)\n", encoding="utf-8")
    assert changed(folder, "ops.py", "Sum.", "The sum.")


def test_a_module_that_is_gone_changes_the_fingerprint(folder):
    modules = list(Packages(folder).paths)
    old = Packages(folder).fingerprint(modules)
    (folder / "ops.py").unlink()
    assert Packages(folder).fingerprint(modules) != old


def test_a_line_of_sampling_concerns_the_chapters_that_sample(request):
    """Attention and derivatives need no sampling; a GPT that generates does."""
    root = request.config.rootpath
    package = Packages.below_root(root)

    def samples(chapter):
        text = (root / "book" / f"{chapter}.md").read_text(encoding="utf-8")
        cells = re.findall(r"^```\{code-cell\}.*?\n(.*?)^```", text, re.S | re.M)
        code = [re.sub(r"\A---\n.*?^---\n|^:.*\n", "", cell, flags=re.S | re.M) for cell in cells]
        return "tinytorch.models.sampling" in package.used(code)

    assert samples("generation/sampling") and samples("transformer/gpt")
    assert not samples("foundations/autograd") and not samples("attention/scaled-dot-product")

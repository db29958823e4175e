"""What is kept of an accepted answer: its source and what that needs; a hand's changes stay."""

import linecache
import subprocess
import sys
import textwrap
import types
from itertools import count

import pytest

from tinytorch_book import check
from tinytorch_book.exercises.capstone import parts

CELLS = count(1)
LOOKUP = """
    import numpy as np

    LEAST = 0

    def refuse(ids):
        if (ids < LEAST).any():
            raise IndexError("ids begin at 0")

    def lookup(table, ids):
        refuse(ids)
        return np.take(table, ids, axis=0)
"""


@pytest.fixture
def notebook(monkeypatch, tmp_path):
    """Runs cells in one namespace, as a notebook does, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TINYTORCH_PARTS", "my_parts.py")
    names = types.ModuleType("readers_cells").__dict__

    def cell(source):
        name, source = f"<cell {next(CELLS)}>", textwrap.dedent(source).strip() + "\n"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        exec(compile(source, name, "exec"), names)
        return names

    return cell


def kept(name="lookup"):
    return parts.kept_parts()[name]


def test_an_accepted_part_is_kept_with_what_it_uses_and_says_so(notebook):
    report = check.token_lookup(notebook(LOOKUP)["lookup"])
    assert report
    told = "\n  kept as your part “lookup” in my_parts.py (1 of 22 for your GPT)"
    assert repr(report).endswith(told)
    lines = kept().source.splitlines()
    assert lines[0] == "import numpy as np"
    assert [line for line in lines if line.startswith(("LEAST", "def"))] == [
        "LEAST = 0",
        "def refuse(ids):",
        "def lookup(table, ids):",
    ]
    assert (kept().answer, kept().changed) == ("lookup", False)
    namespace = {}
    exec(kept().source, namespace)  # it stands by itself
    assert check.token_lookup(namespace["lookup"])


def test_a_part_can_be_made_of_a_function_and_kept_nowhere(notebook, tmp_path):
    part = parts.Part.of("lookup", notebook(LOOKUP)["lookup"])
    check.token_lookup(notebook(LOOKUP)["lookup"])
    assert part == kept()
    (tmp_path / "my_parts.py").unlink()
    parts.Part.of("lookup", notebook(LOOKUP)["lookup"])
    assert parts.kept_parts() == {}
    with pytest.raises(parts.CannotKeep, match="not a function or a class"):
        parts.Part.of("lookup", 3)


def test_a_better_answer_takes_the_place_of_what_the_check_has_written(notebook):
    check.token_lookup(notebook(LOOKUP)["lookup"])
    again = notebook(LOOKUP.replace("np.take(table, ids, axis=0)", "table[ids]"))
    check.token_lookup(again["lookup"])
    assert "table[ids]" in kept().source
    with open("my_parts.py", encoding="utf-8") as file:
        assert file.read().count("def lookup") == 1


def test_what_was_changed_by_hand_stays_and_the_report_says_what_to_do(notebook):
    check.token_lookup(notebook(LOOKUP)["lookup"])
    change("return np.take", "return  np.take")
    report = check.token_lookup(notebook(LOOKUP.replace("begin at 0", "start at 0"))["lookup"])
    assert report
    assert report.kept.startswith("my_parts.py has a part “lookup” that was changed by hand")
    assert "delete it there" in report.kept
    assert "return  np.take" in kept().source
    assert kept().changed


def test_what_stands_around_the_parts_stays(notebook):
    check.token_lookup(notebook(LOOKUP)["lookup"])
    change("# === part lookup", "# a note\nnote = 1\n# === part lookup")
    add("# the end\n")
    cell = "import numpy as np\ndef mask(n, m): return np.triu(np.full((n, m), -np.inf), m - n + 1)"
    check.attend_causal_mask(notebook(cell)["mask"])
    again = LOOKUP.replace("begin at 0", "start at 0")
    check.token_lookup(notebook(again)["lookup"])
    with open("my_parts.py", encoding="utf-8") as file:
        text = file.read()
    assert "# a note\nnote = 1\n" in text
    assert "# the end\n" in text
    assert list(parts.kept_parts()) == ["lookup", "mask"]


def test_two_parts_whose_functions_share_a_name_are_both_kept(notebook):
    lookup = LOOKUP.replace("def lookup", "def f")
    check.token_lookup(notebook(lookup)["f"])
    cell = "import numpy as np\ndef f(n, m): return np.triu(np.full((n, m), -np.inf), m - n + 1)"
    check.attend_causal_mask(notebook(cell)["f"])
    assert "np.take" in kept("lookup").source
    assert "np.triu" in kept("mask").source


def test_names_inside_a_function_are_not_taken_for_those_of_the_notebook(notebook):
    names = notebook("import io\ntable = ids = io.StringIO()\n" + textwrap.dedent(LOOKUP))
    assert "kept as" in check.token_lookup(names["lookup"]).kept


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("import numpy as np\nrng = np.random.default_rng(0)\n"
         "def lookup(table, ids):\n    rng\n    np.zeros(9)[ids.min(initial=0) * -1 - 1 :]\n"
         "    if (ids < 0).any(): raise IndexError\n    return table[ids]",
         "it uses `rng`, a Generator made elsewhere"),
        ("import pytest\n"
         "def lookup(table, ids):\n    pytest\n"
         "    if (ids < 0).any(): raise IndexError\n    return table[ids]",
         "it uses `pytest` of the package pytest"),
        ("def make():\n    def lookup(table, ids):\n"
         "        if (ids < 0).any(): raise IndexError\n        return table[ids]\n"
         "    return lookup\nlookup = make()",
         "it is made inside a function"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept_says_why(notebook, cell, reason):
    report = check.token_lookup(notebook(cell)["lookup"])
    assert report
    assert report.kept.startswith(f"not kept for your GPT: {reason}")
    assert parts.kept_parts() == {}


def test_a_folder_that_cannot_be_written_is_said(notebook, tmp_path, monkeypatch):
    monkeypatch.setenv("TINYTORCH_PARTS", str(tmp_path))  # a folder, not a file
    report = check.token_lookup(notebook(LOOKUP)["lookup"])
    assert report
    assert report.kept.startswith("not kept for your GPT: IsADirectoryError")


def test_a_part_can_be_forgotten(notebook):
    check.token_lookup(notebook(LOOKUP)["lookup"])
    parts.forget_part("lookup")
    assert parts.kept_parts() == {}
    with pytest.raises(
        ValueError, match=r"no part 'lookup' is kept in my_parts\.py; there are: none"
    ):
        parts.forget_part("lookup")


def test_a_report_counts_two_parts_in_one_place_once(notebook):
    for name in ("heads", "heads with a cache", "norm"):
        with open("my_parts.py", "a", encoding="utf-8") as file:
            file.write("\n\n" + parts.section(parts.Part(name, "mine", "def mine(x): ...\n")))
    report = check.token_lookup(notebook(LOOKUP)["lookup"])
    assert report.kept.endswith(" (3 of 22 for your GPT)")


def test_every_part_has_a_check():
    assert all(hasattr(check, name) for name, _ in parts.PARTS.values())


NORM = '''
from tinytorch import Module, Parameter
import numpy as np
class MyLayerNorm(Module):
    """A norm."""
    def __init__(self, embed_dim, eps=1e-5):
        self.gamma = Parameter(np.ones(embed_dim))
        self.beta = Parameter(np.zeros(embed_dim))
        self.eps = eps

    def forward(self, x):
        centred = x - x.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        return centred / (variance + self.eps).sqrt() * self.gamma + self.beta
'''
SHELL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell()
for cell in sys.stdin.read().split("# %%"):
    shell.run_cell(cell).raise_error()
"""


@pytest.mark.parametrize("way", ["IPython", "a script"])
def test_a_class_is_kept_from(way, tmp_path, monkeypatch):
    monkeypatch.setenv("TINYTORCH_PARTS", "my_parts.py")
    run = "from tinytorch_book import check\nprint(check.norm_layer(MyLayerNorm))\n"
    if way == "IPython":
        command, given = [sys.executable, "-c", SHELL], f"{NORM}# %%\n{run}"
    else:
        (tmp_path / "mine.py").write_text(NORM + run, encoding="utf-8")
        command, given = [sys.executable, "mine.py"], None
    environment = {"PYTHONPATH": str(parts.__file__).rsplit("/", 3)[0], "HOME": str(tmp_path),
                   "TINYTORCH_PARTS": "my_parts.py"}  # fmt: skip
    done = subprocess.run(
        command, cwd=tmp_path, input=given, capture_output=True, text=True, env=environment
    )
    assert "kept as your part “norm” in my_parts.py" in done.stdout, done.stdout + done.stderr
    found = parts.kept_parts(str(tmp_path / "my_parts.py"))["norm"]
    assert found.answer == "MyLayerNorm"
    imports = [
        "import numpy as np",
        "from tinytorch import Module",
        "from tinytorch import Parameter",
    ]
    assert found.source.splitlines()[:3] == imports


def change(old, new):
    with open("my_parts.py", encoding="utf-8") as file:
        text = file.read()
    assert old in text
    with open("my_parts.py", "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))


def add(text):
    with open("my_parts.py", "a", encoding="utf-8") as file:
        file.write(text)

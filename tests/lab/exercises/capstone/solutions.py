"""The solutions of the book as a reader's parts: accepted by their checks, and kept."""

import ast
import contextlib
import io
import json
import linecache
import types
from pathlib import Path

from tinytorch_book import check
from tinytorch_book.exercises.capstone.parts import PARTS, kept_parts

NOTEBOOKS = Path(__file__).resolve().parents[4] / "book" / "notebooks"
MLP = """
from tinytorch import Linear, Module, functional

class MyMLP(Module):
    def __init__(self, embed_dim, hidden_dim, dropout_prob=0.0):
        self.linear1 = Linear(embed_dim, hidden_dim)
        self.linear2 = Linear(hidden_dim, embed_dim)

    def forward(self, x):
        return self.linear2(functional.gelu(self.linear1(x)))
"""


def solve(path, parts=PARTS):
    """Solve every exercise that builds a part: the reports by part, and what `path` keeps."""
    reports, checks = {}, {name: part for part, (name, _) in parts.items()}
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        cells = [cell for cell in cells if cell["cell_type"] == "code"]
        if not any(called(cell) in checks for cell in cells):
            continue
        names = types.ModuleType("readers_cells").__dict__
        for i, cell in enumerate(cells):
            name = f"<{notebook.stem}, cell {i}>"
            if called(cell) in checks and "exercise-solution" in cell["metadata"]["tags"]:
                line = "".join(cell["source"]).strip().splitlines()[-1]
                run("".join(cell["source"]).replace(line, ""), names, name)
                answer = names[line.split("(")[1].rstrip(")")]
                reports[checks[called(cell)]] = getattr(check, called(cell))(answer)
            elif "exercise-solution" not in cell["metadata"].get("tags", []):
                run(definitions("".join(cell["source"])), names, name)
    return reports, kept_parts(str(path), parts)


def called(cell):
    """The check that a cell ends with."""
    line = ("".join(cell["source"]).strip().splitlines() or [""])[-1]
    return line.partition("(")[0].removeprefix("check.") if line.startswith("check.") else ""


def definitions(source):
    """What a cell imports and defines, without what it computes."""
    kinds = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef
    return "\n".join(ast.unparse(x) for x in ast.parse(source).body if isinstance(x, kinds)) + "\n"


def run(source, names, name):
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    with contextlib.suppress(NameError), contextlib.redirect_stdout(io.StringIO()):
        exec(compile(source, name, "exec"), names)

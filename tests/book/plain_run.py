"""Run a notebook's code as a plain Python program and report what each cell did, as JSON.

    python plain_run.py chapter.ipynb report.json

Only the standard library is used: this runs in an environment that holds nothing but the book's
package and what it needs. For each code cell the report says whether it printed, whether its last
line has a value, whether that value is a check's report and passed, and which error it raised.
"""

import ast
import contextlib
import io
import json
import sys
from pathlib import Path


def run(source: str, name: str, namespace: dict) -> dict:
    """Execute one cell as a notebook would: statement by statement, the last line's value shown."""
    tree = ast.parse(source, filename=name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value, error = io.StringIO(), None, None
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, name, "exec"), namespace)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    quiet = source.rstrip().endswith(";")
    return {
        "printed": bool(printed.getvalue()),
        "shown": value is not None and not quiet,
        "report": type(value).__name__ == "Report",
        "passed": bool(value) if type(value).__name__ == "Report" else None,
        "text": repr(value)[:2000] if type(value).__name__ == "Report" else "",
        "error": error,
    }


def main(notebook: str, report: str) -> None:
    """Run every code cell of the notebook in one namespace."""
    cells = json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]
    namespace = {"__name__": "__main__"}
    results = []
    for cell in cells:
        if cell["cell_type"] == "code":
            result = run("".join(cell["source"]), cell["id"], namespace)
            results.append({"id": cell["id"], **result})
    Path(report).write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Write the notebooks that Colab and Binder open, one for each chapter.

    python book/_ext/notebooks.py             write the notebooks; outputs of unchanged cells stay
    python book/_ext/notebooks.py --execute   run them too, and store what they print
    python book/_ext/notebooks.py --check     write nothing; name what is out of step, and fail

The chapter `book/<part>/<chapter>.md` is the one source; `book/notebooks/<chapter>.ipynb` follows
from it, byte for byte the same on every machine: fixed cell ids and metadata, only text. The
prose of the chapters, without code, tables and formulas, goes to
`tinytorch/text/data/book_prose.txt`: it is the book's second training text. Links name the
repository of `_config.yml`, so that a fork's workflow does not rewrite committed files.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import book_index
import nbformat
from book_index import BookIndex, Fenced, MystError
from launch import NOTEBOOKS
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from notebook_markdown import Converter, inline_pieces, raw_myst

ROOT = Path(__file__).resolve().parents[2]
PROSE = Path("tinytorch/text/data/book_prose.txt")
TAGS = {
    "exercise-solution",
    "exercise-stub",
    "hide-cell",
    "hide-input",
    "hide-output",
    "live-skip",
    "nbval-ignore-output",
    "raises-exception",
}
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
COLAB = """\
import sys

if "google.colab" in sys.modules:  # Colab lacks the package; everywhere else it is installed
    get_ipython().run_line_magic("pip", "install -q 'tinytorch-book @ git+{repository}'")
"""
ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,}", re.IGNORECASE)
LATEX = {  # commands that have a sign; of the others the name is left
    "\\times": "×", "\\cdot": "·", "\\dots": "…", "\\ldots": "…", "\\to": "→", "\\le": "≤",
    "\\ge": "≥", "\\ne": "≠", "\\approx": "≈", "\\infty": "∞", "\\partial": "∂",
}  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("chapters", nargs="*", help="only these chapters, by their short names")
    parser.add_argument("--check", action="store_true", help="write nothing, name differences")
    parser.add_argument("--execute", action="store_true", help="run the notebooks, store outputs")
    parser.add_argument("--root", type=Path, default=ROOT, help="the folder of _config.yml")
    options = parser.parse_args(arguments)
    try:
        index = BookIndex.read(options.root)
        if options.check:
            return _report(check(index))
        write(index, set(options.chapters), options.execute)
    except MystError as error:
        return _report([str(error)])
    return 0


def check(index: BookIndex) -> list[str]:
    """Compare the committed notebooks and the prose with what the chapters give now.

    Returns:
        One line for each difference; nothing when all is in step.
    """
    problems = []
    remedy = "run `make notebooks`"
    folder = index.root / NOTEBOOKS
    for name, docname in chapter_files(index).items():
        try:
            problems += _compare(index, docname, folder / f"{name}.ipynb", remedy)
        except MystError as error:
            problems.append(str(error))
    for path in sorted(folder.glob("*.ipynb")):
        if path.stem not in chapter_files(index):
            problems.append(f"{NOTEBOOKS}/{path.name} is orphaned: no chapter has this name")
    path = index.root / PROSE
    if not path.exists() or path.read_text(encoding="utf-8") != prose(index):
        problems.append(f"{PROSE} is out of step with the chapters: {remedy}")
    return problems


def write(index: BookIndex, only: set[str], execute: bool) -> None:
    """Write the prose and the notebooks, running them first if `execute`.

    Raises:
        MystError: A chapter cannot be converted, a cell fails, or `only` names no chapter.
    """
    files = chapter_files(index)
    unknown = only - set(files)
    if unknown:
        raise MystError(f"no chapter is called {sorted(unknown)}; there are {sorted(files)}")
    (index.root / PROSE).parent.mkdir(parents=True, exist_ok=True)
    (index.root / PROSE).write_text(prose(index), encoding="utf-8")
    folder = index.root / NOTEBOOKS
    folder.mkdir(parents=True, exist_ok=True)

    def one(name: str) -> str:
        try:
            _write_one(index, files[name], folder / f"{name}.ipynb", execute)
        except MystError as error:
            return str(error)
        print(f"{NOTEBOOKS}/{name}.ipynb", flush=True)
        return ""

    with ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        problems = list(filter(None, pool.map(one, sorted(only or files))))
    if problems:
        raise MystError("\n".join(problems))
    if not only:
        for path in folder.glob("*.ipynb"):
            if path.stem not in files:
                path.unlink()


def _write_one(index: BookIndex, docname: str, path: Path, execute: bool) -> None:
    old = nbformat.read(path, as_version=4) if path.exists() else None
    notebook = build(index, docname, old)
    if execute:
        run(notebook, index.root, old)
    path.write_text(dumps(notebook), encoding="utf-8")


def chapter_files(index: BookIndex) -> dict[str, str]:
    """The notebooks' names and the page that each is made from.

    Raises:
        MystError: Two chapters have the same file name, so that their notebooks would collide.
    """
    files: dict[str, str] = {}
    for docname in index.notebook_pages():
        name = docname.rsplit("/", 1)[-1]
        if name in files:
            raise MystError(f"{files[name]}.md and {docname}.md would both become {name}.ipynb")
        files[name] = docname
    return files


def build(index: BookIndex, docname: str, old: NotebookNode | None = None) -> NotebookNode:
    """Make the notebook of one page, keeping the outputs that `old` has for the same code.

    Raises:
        MystError: The page holds something that cannot be converted, or that was not recognised.
    """
    name = docname.rsplit("/", 1)[-1]
    cells = [_code(COLAB.format(repository=index.repository), {"tags": ["remove-cell"]})]
    cells += _cells(index, docname)
    known = {cell["id"]: cell for cell in (old.cells if old else [])}
    count = 0
    left = [what for c in cells if c.cell_type == "markdown" for what in raw_myst(c.source)]
    if left:
        raise MystError(f"{docname}.md: the notebook would show raw MyST, {left[0]}")
    for number, cell in enumerate(cells):
        cell["id"] = f"{name}-{number:03d}"
        before = known.get(cell["id"])
        if cell.cell_type == "code" and before and before.get("source") == cell.source:
            count += 1
            cell.outputs = before.get("outputs", [])
            cell.execution_count = before.get("execution_count") and count
        elif cell.cell_type == "code":
            count += 1
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    nbformat.validate(notebook)
    return notebook


def run(notebook: NotebookNode, root: Path, old: NotebookNode | None = None) -> None:
    """Execute the notebook in an empty folder and keep what it prints, without pictures.

    A cell tagged `nbval-ignore-output` (a timing) keeps the output that it had while its code is
    the same: running again must not change committed files.

    Raises:
        MystError: A cell raises, writes to stderr, or prints a memory address.
    """
    kept = {cell["id"]: cell for cell in (old.cells if old else []) if cell.get("outputs")}
    name = notebook.cells[0]["id"].rpartition("-")[0]
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=300,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
            record_timing=False,
            store_widget_state=False,
            extra_arguments=["--log-level=ERROR"],
        )
        path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH", "")]))
        try:
            client.execute(env={**os.environ, "PYTHONPATH": path})
        except CellExecutionError as error:
            raise MystError(f"{name}: {error}") from error
    notebook.metadata = nbformat.from_dict(METADATA)
    for count, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), start=1):
        before = kept.get(cell["id"])
        cell.execution_count = count
        cell.metadata.pop("execution", None)
        ignored = "nbval-ignore-output" in cell.metadata.get("tags", [])
        if ignored and before and before["source"] == cell.source:
            cell.outputs = before["outputs"]
        cell.outputs = _plain_outputs(cell, count)


def prose(index: BookIndex) -> str:
    """The chapters' paragraphs, one a line, without code, directives, tables and display maths."""
    pages = []
    for docname in index.notebook_pages():
        converter = Converter(index, docname)
        text = index.source(docname).read_text(encoding="utf-8")
        tokens = book_index.block_parser().parse(text)
        paragraphs = []
        for place, token in enumerate(tokens):
            if token.type == "paragraph_open" and token.level == 0:
                line = (token.map or [0])[0] + 1
                paragraphs.append(_plain(converter.inline(tokens[place + 1].content, line)))
        pages.append("\n".join(paragraphs))
    return "\n\n".join(filter(None, pages)) + "\n"


def dumps(notebook: NotebookNode) -> str:
    """The text of the notebook's file."""
    return nbformat.writes(notebook).rstrip("\n") + "\n"


def _cells(index: BookIndex, docname: str) -> list[NotebookNode]:
    """The notebook cells of a page, in order."""
    converter = Converter(index, docname)
    text = index.source(docname).read_text(encoding="utf-8")
    lines = text.splitlines()
    cells: list[NotebookNode] = []
    done = 0

    def markdown_until(end: int) -> None:
        source = converter.blocks("\n".join(lines[done:end]), done + 1)
        if source.strip():
            cells.append(_markdown(source))

    for token in book_index.block_parser().parse(text):
        is_cell = book_index.directive_name(token) == "code-cell"
        if token.level or not token.map or not (is_cell or token.type == "myst_block_break"):
            done = token.map[1] if token.type == "front_matter" and token.map else done
            continue
        markdown_until(token.map[0])
        done = token.map[1]
        if is_cell:
            block = book_index.read_directive(token, token.map[0] + 1)
            cells.append(_code(block.body, _cell_metadata(block, docname)))
            note = converter.figure_note(block.options, block.line)
            cells += [_markdown(note)] if note else []
    markdown_until(len(lines))
    return cells


def _cell_metadata(block: Fenced, docname: str) -> dict[str, Any]:
    """What a notebook keeps of a code cell's options."""
    where = f"{docname}.md:{block.line}"
    unknown = sorted(set(block.options) - {"live", "mystnb", "tags"})
    if unknown:
        raise MystError(f"{where}: unknown cell options {unknown}; allowed: live, mystnb, tags")
    tags = list(block.options.get("tags") or [])
    if set(tags) - TAGS:
        wrong = sorted(set(tags) - TAGS)
        raise MystError(f"{where}: unknown tags {wrong}; allowed: {', '.join(sorted(TAGS))}")
    metadata: dict[str, Any] = {"tags": tags} if tags else {}
    if {"hide-input", "hide-cell"} & set(tags):
        metadata["jupyter"] = {"source_hidden": True}
    return metadata


def _code(source: str, metadata: dict[str, Any]) -> NotebookNode:
    return nbformat.v4.new_code_cell(source=source.strip("\n"), metadata=metadata)


def _markdown(source: str) -> NotebookNode:
    return nbformat.v4.new_markdown_cell(source=source.strip("\n"))


def _plain_outputs(cell: NotebookNode, count: int) -> list[NotebookNode]:
    """A cell's outputs with streams merged and without pictures, times and file names."""
    outputs: list[NotebookNode] = []
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stderr":
            raise MystError(f"{cell['id']} writes to stderr: {output.text[:300]}")
        if output.output_type == "stream":
            if outputs and outputs[-1].output_type == "stream":
                outputs[-1].text += output.text
                continue
        elif output.output_type == "error":
            output.traceback = [f"{output.ename}: {output.evalue}"]
        else:
            output.data = nbformat.from_dict(
                {kind: text for kind, text in output.data.items() if not kind.startswith("image/")}
            )
            output.metadata = nbformat.from_dict({})
            if "execution_count" in output:
                output.execution_count = count
        outputs.append(output)
    found = ADDRESS.search(str(outputs))
    if found:
        raise MystError(f"{cell['id']} prints a memory address ({found[0]}), other on every run")
    return outputs


def _compare(index: BookIndex, docname: str, path: Path, remedy: str) -> list[str]:
    """What differs between a committed notebook and what its chapter gives now."""
    name = f"{NOTEBOOKS}/{path.name}"
    if not path.exists():
        return [f"{name} is missing: {remedy}"]
    old = nbformat.read(path, as_version=4)
    new = build(index, docname, old)
    if path.read_text(encoding="utf-8") != dumps(new):
        pairs = zip(new.cells, old.cells, strict=False)
        first = next((a["id"] for a, b in pairs if a != b), "the number of cells or the metadata")
        return [f"{name} is out of step with {docname}.md (first: {first}): {remedy}"]
    unrun = [c["id"] for c in new.cells if c.cell_type == "code" and c.execution_count is None]
    return [f"{name}: {unrun[0]} was never run: {remedy}"] if unrun else []


def _plain(text: str) -> str:
    """One paragraph of converted Markdown as plain text on one line."""
    out = []
    for piece in inline_pieces(text):
        if piece.startswith("`"):
            out.append(piece.strip("`"))
        elif piece.startswith("$") and len(piece) > 1:
            out.append(_plain_math(piece.strip("$")))
        else:
            out.append(piece[1:] if piece.startswith("\\") else piece)
    text = re.sub(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)\s]*\)", r"\1", "".join(out))
    text = re.sub(r"</?(?:abbr|kbd|a|b|i|em|strong|br)\b[^<>]*>", "", text)
    text = re.sub(r"(?<!\w)(\*{1,3}|_{1,3})(?=\S)(.+?)(?<=\S)\1(?!\w)", r"\2", text)
    return " ".join(text.split())


def _plain_math(formula: str) -> str:
    """A formula as one would type it: the root of d becomes `√d`, a subscript `x_i`."""
    formula = re.sub(r"\\(?:bar|hat|tilde|vec|text|math\w+|operatorname|boldsymbol)\b", "", formula)
    formula = re.sub(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2", formula)
    formula = re.sub(r"\\sqrt\{(\w+)\}|\\sqrt\s*(\w)", r"√\1\2", formula)
    formula = re.sub(r"\\sqrt", "√", formula)
    formula = re.sub(r"\\[A-Za-z]+", lambda name: LATEX.get(name[0], name[0][1:]), formula)
    return " ".join(re.sub(r"\\.|[{}]", "", formula).split())


def _report(problems: list[str]) -> int:
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

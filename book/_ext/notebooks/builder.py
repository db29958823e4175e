"""The notebooks that Colab and Binder open, from the tree that Sphinx has resolved.

    jupyter-book build . --builder custom --custom-builder notebooks         into _build/notebooks
    python -m _ext.notebooks.builder              from there into book/notebooks
    python -m _ext.notebooks.builder --check      write nothing; name what is out of step, and fail
    python -m _ext.notebooks.builder --corpus     write only the prose, as the next version

The builder runs no chapter: the outputs are those of the one run that the pages show. What it
writes is the same byte for byte on every machine, but for measured times: fixed cell ids and
metadata, only text. The prose of the chapters, without code, tables and formulas, is the book's
second training text, `tinytorch/text/data/book_prose.txt`. It is written at a release alone, with a
version and a date: a corrected sentence must not change what chapters print.
"""

from __future__ import annotations

import argparse
import configparser
import json
import re
import shutil
import sys
from collections.abc import Iterator
from datetime import date
from itertools import zip_longest
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.builders import Builder
from sphinx.directives.code import LiteralInclude

from ..addresses import NOTEBOOKS, ROOT, package_requirement, reading_order, site_url
from ..cell_options import OPTIONS, TAGS
from ..execution.cached_runs import executed
from .plain_markdown import CannotShow, PlainMarkdown, place_of, prose
from .tolerance import Tolerance, agree

FRESH = Path("_build/notebooks")
PROSE = Path("tinytorch/text/data/book_prose.txt")
VARYING = Path("book/_ext/notebooks/nbval_ignores.cfg")  # what two runs may print differently
REMEDY = "run `make notebooks`"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
FIRST = """\
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # more would slow small matrices
try:
    import tinytorch
except ModuleNotFoundError:  # as on Colab: install the book's package
    get_ipython().run_line_magic("pip", "install -q '{requirement}' threadpoolctl")
    import threadpoolctl  # there, NumPy has its threads already

    threadpoolctl.threadpool_limits(int(os.environ["OPENBLAS_NUM_THREADS"]))
"""
ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,}", re.IGNORECASE)


# The builder ----------------------------------------------------------------------------------


class NotebookBuilder(Builder):
    """Writes a notebook for every page with code, and the prose of all of them."""

    name = "notebooks"
    format = "notebook"
    epilog = "The notebooks are in %(outdir)s."

    def get_outdated_docs(self) -> str:
        """All of them: a title or a number may come from any other page."""
        return "all notebooks"

    def get_target_uri(self, docname: str, typ: str | None = None) -> str:
        """Return the address of a page on the site."""
        return f"{site_url(self.config.book_repository)}{docname}.html"

    def get_relative_uri(self, from_: str, to: str, typ: str | None = None) -> str:
        """Return the same: a notebook is opened elsewhere."""
        return self.get_target_uri(to, typ)

    def write(self, *args: Any, **kwargs: Any) -> None:
        """Write all chapters in reading order."""
        folder, texts = Path(self.outdir), []
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for docname in chapters(self.env):
            doctree = self.env.get_and_resolve_doctree(docname, self)
            path = folder / f"{docname.rsplit('/', 1)[-1]}.ipynb"
            if path.exists():
                raise CannotShow(f"two chapters would become {path.name}; one is {docname}.md")
            path.write_text(dumps(self.notebook(docname, doctree)), encoding="utf-8")
            texts.append("\n".join(prose(doctree)))
        (folder / PROSE.name).write_text("\n\n".join(texts) + "\n", encoding="utf-8")

    def notebook(self, docname: str, doctree: Any) -> NotebookNode:
        """Make the notebook of one page."""
        cells = list(self.cells(docname, doctree))
        requirement = package_requirement(self.config.book_repository, Path(self.app.srcdir))
        needed = code_cell(FIRST.format(requirement=requirement), ["remove-cell"])
        cells.insert(cells[0].cell_type == "markdown", needed)  # below the title
        name = docname.rsplit("/", 1)[-1]
        for number, cell in enumerate(cells):
            cell["id"] = f"{name}-{number:03d}"
        for count, cell in enumerate((c for c in cells if c.cell_type == "code"), start=1):
            cell.execution_count = count
            cell.outputs = plain_outputs(cell)
        notebook = nbformat.v4.new_notebook(cells=cells, metadata=METADATA)
        notebook.nbformat, notebook.nbformat_minor = 4, 5
        nbformat.validate(notebook)
        return notebook

    def cells(self, docname: str, doctree: Any) -> Iterator[NotebookNode]:
        """Yield the cells of a page in order; the outputs are those of its run."""
        run, writer = executed(self.app, docname).cells, PlainMarkdown(self, docname)
        gathered: list[str] = []
        for piece in writer.pieces(doctree):
            if isinstance(piece, str):
                gathered += [piece] if piece else []
                continue
            yield from markdown_cells("\n\n".join(gathered))
            cell = run[int(piece["cell_index"])]
            made = code_cell(cell.source, allowed_tags(cell, piece), cell.outputs)
            made.metadata |= compare_option(cell, piece)
            yield made
            yield from markdown_cells(writer.figure_note(piece))
            gathered = []
        yield from markdown_cells("\n\n".join(gathered))


def chapters(env: Any) -> list[str]:
    """Name the pages with code in reading order."""
    return [d for d in reading_order(env) if "kernelspec" in env.metadata[d]]


def markdown_cells(source: str) -> list[NotebookNode]:
    """Make a Markdown cell, unless there is nothing in it."""
    return [nbformat.v4.new_markdown_cell(source=source)] if source else []


def code_cell(source: str, tags: list[str], outputs: Any = ()) -> NotebookNode:
    """Make a code cell; one whose code the page folds is folded."""
    metadata: dict[str, Any] = {"tags": tags} if tags else {}
    if {"hide-input", "hide-cell"} & set(tags):
        metadata["jupyter"] = {"source_hidden": True}
    options = {"metadata": metadata, "outputs": list(outputs)}
    return nbformat.v4.new_code_cell(source=source.strip("\n"), **options)


def allowed_tags(cell: NotebookNode, node: Any) -> list[str]:
    """Return a cell's tags.

    Raises:
        CannotShow: The cell has an option or a tag that does not exist.
    """
    tags = list(cell.metadata.get("tags", []))
    for what, came, allowed in (("options", cell.metadata, OPTIONS), ("tags", tags, TAGS)):
        if set(came) - allowed:
            wrong, names = sorted(set(came) - allowed), ", ".join(sorted(allowed))
            raise CannotShow(f"{place_of(node)}: unknown cell {what} {wrong}; allowed: {names}")
    return tags


def compare_option(cell: NotebookNode, node: Any) -> dict[str, Any]:
    """Return how far a cell's numbers may differ, as metadata; empty if they must be equal.

    Raises:
        CannotShow: The option says neither a share nor a number of decimals.
    """
    option = cell.metadata.get("compare")
    if option is None:
        return {}
    try:
        Tolerance(option)
    except ValueError as error:
        raise CannotShow(f"{place_of(node)}: {error}") from None
    return {"compare": option}


def plain_outputs(cell: NotebookNode) -> list[NotebookNode]:
    """Return a cell's outputs with streams merged and without pictures, times and file names.

    Raises:
        CannotShow: The cell writes to stderr, or prints a memory address.
    """
    outputs: list[NotebookNode] = []
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stderr":
            raise CannotShow(f"{cell['id']} writes to stderr: {output.text[:300]}")
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
                output.execution_count = cell.execution_count
        outputs.append(output)
    found = ADDRESS.search(str(outputs))
    if found:
        raise CannotShow(
            f"{cell['id']} prints a memory address ({found[0]}), which differs on every run"
        )
    return outputs


def dumps(notebook: NotebookNode) -> str:
    """Return the text of the notebook's file."""
    return nbformat.writes(notebook).rstrip("\n") + "\n"


# The committed notebooks ----------------------------------------------------------------------


def expected(root: Path) -> dict[Path, str]:
    """Return the files that should be committed, and their text.

    They are those that the builder wrote. But where two runs of a notebook differ only in what may
    differ, in times, the committed one stays: running again must not change committed files.
    """
    files = {}
    rules = varying(root)
    for path in sorted((root / FRESH).glob("*.ipynb")):
        name = Path(NOTEBOOKS, path.name)
        new = nbformat.read(path, as_version=4)
        old = nbformat.read(root / name, as_version=4) if (root / name).exists() else None
        files[name] = dumps(with_kept_times(new, old, rules))
    return files


def with_kept_times(new: NotebookNode, old: NotebookNode | None, rules: Any) -> NotebookNode:
    """Keep all outputs of `old` where it has the same code and differs only in times, else none.

    So all outputs of a notebook come from the same run, also those that are not compared.
    """
    if old is None or not agrees(new, old, rules):
        return new
    for cell, before in zip(code_of(new), code_of(old), strict=True):
        cell.outputs = before.outputs
    return new


def agrees(new: NotebookNode, old: NotebookNode, rules: Any) -> bool:
    """Return whether two runs of a notebook differ at most in what may differ."""
    pairs = zip_longest(code_of(new), code_of(old), fillvalue=NotebookNode(source=None))
    return all(
        a.source == b.source
        and agree(without_times(a, rules), without_times(b, rules), a.metadata.get("compare"))
        for a, b in pairs
    )


def code_of(notebook: NotebookNode) -> list[NotebookNode]:
    """Return the code cells."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def without_times(cell: NotebookNode, rules: list[tuple[str, str]]) -> str:
    """Return a cell's outputs as nbval compares them, as one text."""
    if "nbval-ignore-output" in cell.metadata.get("tags", []):
        return ""
    text = json.dumps(cell.outputs, sort_keys=True).replace("\\n", "\n")  # a line begins a word
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text)
    return text


def varying(root: Path) -> list[tuple[str, str]]:
    """Read which parts of an output nbval replaces before it compares."""
    config = configparser.ConfigParser(interpolation=None)
    config.read(root / VARYING, encoding="utf-8")
    return [(config[name]["regex"], config[name]["replace"]) for name in config.sections()]


def check(root: Path) -> list[str]:
    """Compare what is committed with what the builder has written; one line a difference."""
    files = expected(root)
    problems = []
    for name, text in files.items():
        path = root / name
        if not path.exists():
            problems.append(f"{name} is missing: {REMEDY}")
        elif path.read_text(encoding="utf-8") != text:
            problems.append(f"{name} is out of step with the book{first_difference(path, text)}")
    for path in sorted((root / NOTEBOOKS).glob("*.ipynb")):
        if Path(NOTEBOOKS, path.name) not in files:
            problems.append(f"{NOTEBOOKS}/{path.name} is orphaned: no chapter has this name")
    return problems


def first_difference(path: Path, text: str) -> str:
    """Describe which cell differs first, and what to do."""
    old, new = nbformat.read(path, as_version=4), nbformat.reads(text, as_version=4)
    pairs = zip(new.cells, old.cells, strict=False)
    first = next((a["id"] for a, b in pairs if a != b), "the number of cells or the metadata")
    return f" (first: {first}): {REMEDY}"


def write(root: Path) -> None:
    """Write what should be committed, and remove notebooks that no chapter has."""
    files = expected(root)
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    for path in (root / NOTEBOOKS).glob("*.ipynb"):
        if Path(NOTEBOOKS, path.name) not in files:
            path.unlink()


def write_corpus(root: Path, today: date) -> None:
    """Write the prose of the last build as the corpus' next version, if it is another."""
    first, _, old = (root / PROSE).read_text(encoding="utf-8").partition("\n")
    new = (root / FRESH / PROSE.name).read_text(encoding="utf-8")
    if new != old:
        number = int(re.findall(r"\d+", first)[0]) + 1
        text = f"Version {number}, {today.isoformat()}\n{new}"
        (root / PROSE).write_text(text, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, name differences")
    parser.add_argument("--corpus", action="store_true", help="write the prose alone")
    parser.add_argument("--root", type=Path, default=ROOT, help="the folder of _config.yml")
    options = parser.parse_args(arguments)
    if not (options.root / FRESH / PROSE.name).exists():
        print(f"{FRESH} holds no notebooks: {REMEDY}", file=sys.stderr)
        return 1
    if options.corpus:
        write_corpus(options.root, date.today())
        return 0
    if not options.check:
        write(options.root)
        return 0
    problems = check(options.root)
    print("\n".join(problems), end="\n" * bool(problems), file=sys.stderr)
    return 1 if problems else 0


# Sphinx ---------------------------------------------------------------------------------------


class NamedInclude(LiteralInclude):
    """A `literalinclude` that remembers which part of a file it shows."""

    def run(self) -> list[Any]:
        """Include the code."""
        found = super().run()
        for node in found:
            node["pyobject"] = self.options.get("pyobject", "")
        return found


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_builder(NotebookBuilder)
    app.add_directive("literalinclude", NamedInclude, override=True)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    sys.exit(main())

"""The committed notebooks follow from the chapters and are plain Markdown and plain Python."""

import ast
import json

import notebooks
import pytest
from built import NOTEBOOKS, ROOT
from notebook_markdown import raw_myst

COMMITTED = sorted(NOTEBOOKS.glob("*.ipynb"))


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def text_of(cell):
    return "".join(cell["source"])


def code_cells(path):
    return [cell for cell in read(path)["cells"] if cell["cell_type"] == "code"]


def test_there_is_a_notebook_for_every_chapter(index):
    assert {p.stem for p in COMMITTED} == set(notebooks.chapter_files(index))
    assert COMMITTED


def test_notebooks_and_prose_are_in_step_with_the_chapters():
    assert notebooks.check(notebooks.BookIndex.read(ROOT)) == []


@pytest.mark.parametrize("path", COMMITTED, ids=lambda p: p.stem)
class TestEveryNotebook:
    def test_shows_no_raw_myst(self, path):
        cells = [cell for cell in read(path)["cells"] if cell["cell_type"] == "markdown"]
        assert [what for cell in cells for what in raw_myst(text_of(cell))] == []

    def test_is_plain_python_but_for_the_colab_cell(self, path):
        first, *rest = code_cells(path)
        assert "google.colab" in text_of(first)
        assert first["metadata"]["tags"] == ["remove-cell"]
        for cell in code_cells(path):
            ast.parse(text_of(cell), filename=cell["id"])
        assert not [cell["id"] for cell in rest if "get_ipython" in text_of(cell)]

    def test_every_cell_was_run_and_stores_no_picture(self, path):
        cells = code_cells(path)
        assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
        kinds = {kind for cell in cells for out in cell["outputs"] for kind in out.get("data", {})}
        assert not [kind for kind in kinds if kind.startswith("image/")]

    def test_links_lead_to_built_pages_and_files(self, path, index):
        from links import problem_with

        cells = [text_of(cell) for cell in read(path)["cells"] if cell["cell_type"] == "markdown"]
        assert [p for text in cells for p in problem_with(text, index)] == []


def test_pictures_are_left_out_but_numbers_are_not():
    """The generator's own view of outputs: merged streams, no pictures, no traceback with paths."""
    cell = notebooks._code("1", {})
    cell.id = "x-000"
    cell.outputs = notebooks.nbformat.from_dict(
        [
            {"output_type": "stream", "name": "stdout", "text": "a\n"},
            {"output_type": "stream", "name": "stdout", "text": "b\n"},
            {
                "output_type": "display_data",
                "data": {"image/svg+xml": "<svg/>", "text/plain": "<Figure>"},
                "metadata": {"needs_background": "light"},
            },
            {"output_type": "error", "ename": "E", "evalue": "no", "traceback": ["/home/me/x.py"]},
        ]
    )
    stream, figure, error = notebooks._plain_outputs(cell, 3)
    assert stream.text == "a\nb\n"
    assert figure.data == {"text/plain": "<Figure>"} and figure.metadata == {}
    assert error.traceback == ["E: no"]


def test_a_memory_address_or_a_warning_is_refused():
    cell = notebooks._code("1", {})
    cell.id = "x-000"
    for name, text in (
        ("stdout", "<object at 0x7f00aabbccdd>"),
        ("stdout", "Generator(PCG64) at 0x7F99AB"),
        ("stderr", "Warning: old"),
    ):
        cell.outputs = notebooks.nbformat.from_dict(
            [{"output_type": "stream", "name": name, "text": text}]
        )
        with pytest.raises(notebooks.MystError, match="x-000"):
            notebooks._plain_outputs(cell, 1)

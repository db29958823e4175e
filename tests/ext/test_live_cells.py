"""What a page is told about its cells, and what the site holds for them."""

import json
import re
from types import SimpleNamespace

import live
import nbformat
import pytest
from docutils import nodes


def code_cell(source, tags=(), **metadata):
    """The node that myst-nb makes of a cell."""
    cell = nodes.container(
        nb_element="cell_code",
        cell_metadata=metadata,
        classes=["cell", *(f"tag_{tag}" for tag in tags)],
    )
    code = nodes.container(nb_element="cell_code_source", classes=["cell_input"])
    code += nodes.literal_block(source, source)
    cell += code
    return cell


def test_a_page_knows_its_cells_tags_figures_and_alternative_texts():
    image = {"image": {"alt": "A  bar\nchart."}}
    about = live.describe(code_cell("plots.bars([1])", ["hide-input"], mystnb=image))
    assert about["tags"] == ["hide-input"]
    assert about["draws"] and about["alt"] == "A bar chart."
    assert not live.describe(code_cell("x = 1"))["draws"]


def test_a_cell_without_its_code_on_the_page_is_left_out():
    cell = nodes.container(nb_element="cell_code", cell_metadata={}, classes=["cell"])
    assert live.describe(cell) is None


@pytest.mark.parametrize("source", ["steps = 1_500\nrun(steps)", "run(steps=1500)"])
def test_a_smaller_run_names_one_number_of_the_cell(source):
    about = live.describe(code_cell(source, live={"smaller": "steps = 60"}))
    assert about["smaller"] == {"name": "steps", "value": 60}


@pytest.mark.parametrize("wish", ["size = 60", "60", "steps: 60"])
def test_a_smaller_run_of_a_number_that_is_not_there_once_is_a_warning(wish, monkeypatch):
    said = []
    monkeypatch.setattr(live.logger, "warning", lambda *args, **options: said.append(args))
    about = live.describe(code_cell("steps = 1500", live={"smaller": wish}))
    assert "smaller" not in about and said


def test_times_are_kept_beside_the_cache_and_out_of_its_key(tmp_path):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x = 1\n")])
    notebook.cells[0].metadata["execution"] = {
        "iopub.status.busy": "2026-01-01T00:00:00.500000Z",
        "shell.execute_reply": "2026-01-01T00:00:02.750000Z",
    }
    live.note_times(notebook, tmp_path / "cache" / "times.json")
    assert "execution" not in notebook.cells[0].metadata
    times = live.read_times(tmp_path / "cache" / "times.json")
    assert times == {live.key_of("x = 1"): 2.25}


def test_measured_times_are_of_two_seconds_and_more(request):
    root = request.config.rootpath
    times = json.loads((root / live.MEASURED).read_text(encoding="utf-8"))
    assert times and all(re.fullmatch("[0-9a-f]{16}", key) for key in times)
    assert min(times.values()) >= 2


def test_the_wheel_has_the_name_that_the_build_gives_it(request):
    assert re.fullmatch(
        r"tinytorch_book-[\d.]+-py3-none-any\.whl", live.wheel_name(request.config.rootpath)
    )


def test_without_the_runtime_the_pages_take_it_from_the_pinned_official_address(request, tmp_path):
    root = request.config.rootpath
    for name in ("pyproject.toml", live.RECIPE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((root / name).read_bytes())
    config = SimpleNamespace()
    live.choose_runtime(SimpleNamespace(srcdir=tmp_path), config)
    assert re.fullmatch(r"https://cdn\.jsdelivr\.net/pyodide/v[\d.]+/full/", config.live_runtime)
    (tmp_path / live.RUNTIME).mkdir(parents=True)
    (tmp_path / live.RUNTIME / "pyodide-lock.json").write_text("{}")
    live.choose_runtime(SimpleNamespace(srcdir=tmp_path), config)
    assert config.live_runtime == "_static/live/pyodide/"

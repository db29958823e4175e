"""What a page is told about its cells, and what the site holds for them."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from _ext.execution import cell_times
from _ext.live import live_cells, live_site, package_wheel, pinned_downloads
from docutils import nodes
from docutils.utils import new_document


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


def test_a_page_knows_its_cells_tags_and_alternative_texts():
    image = {"image": {"alt": "A  bar\nchart."}}
    about = live_cells.describe(code_cell("plots.bars([1])", ["hide-input"], mystnb=image))
    assert about["tags"] == ["hide-input"]
    assert about["alt"] == "A bar chart."
    assert "alt" not in live_cells.describe(code_cell("x = 1"))


def test_a_page_knows_what_each_cell_needs_from_above():
    sources = ["import numpy as np", "a = np.ones(3)", "print(undefined)", "print(a, display)"]
    sources.append("a = 7")  # below: nobody needs it
    cells = [live_cells.describe(code_cell(source)) for source in sources]
    live_cells.add_needs(cells)
    assert [cell.get("missing") for cell in cells] == [
        None,
        {"names": ["np"], "needed": [0]},
        None,  # nothing above defines it: Python will say so
        {"names": ["a"], "needed": [0, 1]},
        None,
    ]
    assert not any("source" in cell for cell in cells)


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (
            "double: not yet\n  nothing yet: write it, then run the cell",
            "Write it, then press Check.",
        ),
        ("double: not yet\n  [ ] doubles\n      expected  6", "Change it, then press Check."),
    ],
)
def test_below_a_stub_a_page_says_what_to_do_instead_of_that_it_fails(report, said):
    def page(tag):
        cell = code_cell("check.double(f)", [tag])
        cell += [nodes.literal_block("", "3 nats\n"), nodes.literal_block(report, report)]
        tree = nodes.section("", cell)
        app = SimpleNamespace(builder=SimpleNamespace(format="html"))
        live_cells.begin_without_failure(app, tree, "page")
        return [child.astext() for child in cell.children[1:]]

    assert page("exercise-stub") == ["3 nats\n", said]
    assert page("exercise-solution") == ["3 nats\n", report]


@pytest.mark.parametrize(
    ("title", "points"),
    [("Exercise 5 (The rule itself, 2 points)", 2), ("(Ten, 1 point, a puzzle)", 1), ("None", 0)],
)
def test_the_points_of_an_exercise_stand_in_its_title(title, points):
    assert live_cells.points(nodes.admonition("", nodes.title(title, title))) == points


def test_a_cell_whose_code_is_not_shown_is_left_out():
    cell = nodes.container(nb_element="cell_code", cell_metadata={}, classes=["cell"])
    assert live_cells.describe(cell) is None


@pytest.mark.parametrize("source", ["steps = 1_500\nrun(steps)", "run(steps=1500)"])
def test_a_smaller_run_names_one_number_of_the_cell(source):
    about = live_cells.describe(code_cell(source, live={"smaller": "steps = 60"}))
    assert about["smaller"] == {"name": "steps", "value": 60}


@pytest.mark.parametrize("wish", ["size = 60", "60", "steps: 60"])
def test_a_smaller_run_of_a_number_that_is_not_there_once_is_a_warning(wish, monkeypatch):
    said = []
    monkeypatch.setattr(live_cells.logger, "warning", lambda *args, **options: said.append(args))
    about = live_cells.describe(code_cell("steps = 1500", live={"smaller": wish}))
    assert "smaller" not in about and said


@pytest.fixture
def timed(tmp_path):
    """A book whose cells took some seconds where it was built, and one of them 5 in a browser."""
    native = {"measured": 3.0, "short": 1.26, "longer": 2.5, "skipped": 9.0}
    (tmp_path / cell_times.MEASURED).parent.mkdir(parents=True)
    (tmp_path / cell_times.MEASURED).write_text(json.dumps({"measured": 5.0}), encoding="utf-8")
    (tmp_path / cell_times.TIMES).write_text(json.dumps(native), encoding="utf-8")
    cells = [{"key": key, "tags": []} for key in ("measured", "short", "longer", "new")]
    cells.append({"key": "skipped", "tags": ["live-skip"]})
    return SimpleNamespace(
        srcdir=tmp_path,
        config=SimpleNamespace(nb_execution_cache_path=str(tmp_path)),
        env=SimpleNamespace(live_cells={"page": cells, "new": cells[3:4]}),
    )


def test_a_cell_takes_as_long_as_measured_or_by_a_rule_of_thumb(timed):
    cells = timed.env.live_cells["page"]
    assert live_cells.expected_seconds(timed, cells) == [5.0, 1.26, 5.0, None, 18.0]


def test_a_page_takes_as_long_as_its_cells_that_run_there(timed):
    assert live_cells.run_time(timed, "page") == "about 11 s in the browser"
    assert live_cells.run_time(timed, "new") == live_cells.run_time(timed, "no cells") == ""


def test_measured_times_are_of_two_seconds_and_more(request):
    root = request.config.rootpath
    times = json.loads((root / cell_times.MEASURED).read_text(encoding="utf-8"))
    assert times and all(re.fullmatch("[0-9a-f]{16}", key) for key in times)
    assert min(times.values()) >= 2


def test_the_wheel_has_the_name_that_the_build_gives_it(request):
    assert re.fullmatch(
        r"tinytorch_book-[\d.]+-py3-none-any\.whl",
        package_wheel.wheel_name(request.config.rootpath),
    )


def test_without_the_runtime_the_pages_take_it_from_the_pinned_official_address(
    request, monkeypatch
):
    app, config = SimpleNamespace(srcdir=request.config.rootpath), SimpleNamespace()
    monkeypatch.setattr(pinned_downloads, "missing", lambda group, root: ["pyodide.mjs"])
    live_site.choose_runtime(app, config)
    assert re.fullmatch(r"https://cdn\.jsdelivr\.net/pyodide/v[\d.]+/full/", config.live_runtime)
    assert config.live_snapshot == ""


def test_with_the_runtime_the_pages_take_it_from_the_site(request, tmp_path, monkeypatch):
    app, config = SimpleNamespace(srcdir=request.config.rootpath), SimpleNamespace()
    (tmp_path / "python.wasm").write_bytes(bytes(2_600_000))
    monkeypatch.setattr(pinned_downloads, "missing", lambda group, root: [])
    monkeypatch.setattr(pinned_downloads, "files", lambda group, root: [tmp_path / "python.wasm"])
    live_site.choose_runtime(app, config)
    assert (config.live_runtime, config.live_megabytes) == ("_static/live/pyodide/", 3)


def test_a_page_says_how_many_bytes_its_snapshot_has(tmp_path):
    made = SimpleNamespace(result=lambda: tmp_path / "python.bin")
    (tmp_path / "python.bin").write_bytes(bytes(1_600_000))
    config = SimpleNamespace(live_snapshot="abc", live_megabytes=27)
    told = live_site.start_of(SimpleNamespace(config=config, live_snapshot=made))
    assert told == {"snapshot": "python.bin?v=abc", "bytes": 1_600_000, "megabytes": 2}
    without = live_site.start_of(SimpleNamespace(config=config, live_snapshot=None))
    assert without == {"megabytes": 27}


def test_a_file_of_the_site_is_copied_when_it_has_changed(tmp_path):
    source, target = tmp_path / "a.js", tmp_path / "b.js"
    for text in ("one", "two"):
        source.write_text(text)
        live_site.copy_changed(source, target)
        assert target.read_text() == text
    copied = target.stat().st_ino, target.stat().st_mtime_ns
    live_site.copy_changed(source, target)
    assert (target.stat().st_ino, target.stat().st_mtime_ns) == copied


def test_the_first_page_has_a_place_above_the_playground_for_the_way_on():
    document = new_document("book/intro")
    play = nodes.container(classes=["tt-play"])
    section = nodes.section("", nodes.section(), play)
    document += section
    app = SimpleNamespace(
        builder=SimpleNamespace(format="html"),
        config=SimpleNamespace(root_doc="book/intro"),
        env=SimpleNamespace(),
    )
    live_cells.add_places(app, document, "book/intro")
    above = section[section.index(play) - 1].astext()
    assert above.startswith('<p class="tt-continue" hidden><a href="first-words/')
    names = (Path(live_cells.__file__).parents[2] / "_static/live/exercises.js").read_text("utf-8")
    assert 'memory("solved"' in names and '"tinytorch-book:solved "' in above

"""Chapters are executed once for each state of the package, and their outputs are kept."""

import json
import shutil
from types import SimpleNamespace

import nbformat
import pytest
from _ext.execution import cached_runs, cell_times
from _ext.execution.run_again import changed_below, used_by
from _ext.live.package_wheel import fingerprint

LABORATORY = "book/lab/tinytorch_book"


def package(root):
    (root / "tinytorch" / "data").mkdir(parents=True)
    (root / "tinytorch" / "__init__.py").write_text("")
    (root / "tinytorch" / "ops.py").write_text("x = 1\n")
    (root / "tinytorch" / "data" / "corpus.txt").write_text("once upon a time\n")
    (root / LABORATORY).mkdir(parents=True)
    (root / LABORATORY / "__init__.py").write_text("")
    (root / LABORATORY / "ops.py").write_text("x = 1\n")
    return root


def test_a_change_in_code_or_data_or_a_new_name_gives_another_fingerprint(tmp_path):
    root = package(tmp_path)
    seen = {fingerprint(root)}
    (root / "tinytorch" / "ops.py").write_text("x = 2\n")
    seen.add(fingerprint(root))
    (root / "tinytorch" / "data" / "corpus.txt").write_text("once\n")
    seen.add(fingerprint(root))
    (root / "tinytorch" / "ops.py").rename(root / "tinytorch" / "operations.py")
    seen.add(fingerprint(root))
    (root / LABORATORY / "ops.py").write_text("x = 2\n")
    seen.add(fingerprint(root))
    assert len(seen) == 5


def test_compiled_files_and_times_do_not_matter(tmp_path):
    root = package(tmp_path)
    before = fingerprint(root)
    (root / "tinytorch" / "ops.pyc").write_bytes(b"\0")
    (root / "tinytorch" / "ops.py").touch()
    assert fingerprint(root) == before


def notebook(*sources):
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


@pytest.fixture
def book(tmp_path, monkeypatch):
    """An application with two chapters; `ran` has those that were executed, in their order."""
    slow = "from tinytorch import ops\nfrom tinytorch_book import ops as others\n"
    chapters = {"quick": notebook("x = 1\n"), "slow": notebook(slow)}
    key = cell_times.key_of(slow)
    path = tmp_path / cell_times.MEASURED
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({key: 50.0}), "utf-8")
    app = SimpleNamespace(srcdir=tmp_path, outdir=tmp_path, chapters=chapters, ran=[], fails=set())
    app.config = SimpleNamespace(nb_execution_timeout=9)
    app.env = SimpleNamespace(
        doc2path=lambda docname: str(tmp_path / f"{docname}.md"), found_docs=set(chapters)
    )
    package(tmp_path)
    app.read_package = lambda: cached_runs.choose_cache(app, app.config)
    app.read_package()

    def run(chapter, timeout):
        (name,) = (n for n, c in chapters.items() if c is chapter or c == chapter)
        app.ran.append(name)
        chapter.cells[0].outputs = [nbformat.v4.new_output("stream", text=f"{name}\n")]
        err = ValueError(f"{name} fails") if name in app.fails else None
        return SimpleNamespace(err=err, time=1.0)

    monkeypatch.setattr(
        cached_runs, "notebook_of", lambda app, name: nbformat.from_dict(chapters[name])
    )
    monkeypatch.setattr(cached_runs, "execute", run)
    monkeypatch.setattr(cached_runs.os, "cpu_count", lambda: 1)
    return app


def test_the_timeout_also_applies_to_kernel_start_and_outputs(monkeypatch):
    given = {}
    monkeypatch.setattr(
        cached_runs, "single_nb_execution", lambda *a, **options: given.update(options)
    )
    cached_runs.execute(notebook("x = 1\n"), 1800)
    assert [given[f"{what}timeout"] for what in ("", "startup_", "iopub_")] == [1800] * 3


def test_the_slowest_chapter_runs_first_and_none_runs_twice(book):
    cached_runs.execute_missing(book, book.env, ["quick", "slow"])
    cached_runs.execute_missing(book, book.env, ["quick", "slow"])
    assert book.ran == ["slow", "quick"]


def test_pages_and_notebooks_get_the_outputs_of_the_run(book):
    cached_runs.execute_missing(book, book.env, ["quick", "slow"])
    assert cached_runs.executed(book, "slow").cells[0].outputs[0].text == "slow\n"


def test_changed_code_runs_again_and_changed_prose_does_not(book):
    cached_runs.execute_missing(book, book.env, ["quick"])
    book.chapters["quick"].cells.append(nbformat.v4.new_markdown_cell("More words."))
    cached_runs.execute_missing(book, book.env, ["quick"])
    assert book.ran == ["quick"]
    book.chapters["quick"].cells[0].source = "x = 3\n"
    cached_runs.execute_missing(book, book.env, ["quick"])
    assert book.ran == ["quick", "quick"]


@pytest.mark.parametrize("folder", ["tinytorch", LABORATORY])
def test_a_chapter_runs_again_when_a_module_that_it_uses_does_something_else(book, folder):
    cached_runs.execute_missing(book, book.env, ["quick", "slow"])
    module = book.srcdir / folder / "ops.py"
    module.write_text('"""Words."""\nx = 1  # and a comment\n')
    book.read_package()
    assert changed_below(book, book.env) == []
    module.write_text("x = 2\n")
    book.read_package()
    assert changed_below(book, book.env) == ["slow"]
    cached_runs.execute_missing(book, book.env, ["quick", "slow"])
    assert book.ran == ["slow", "quick", "slow"]
    assert changed_below(book, book.env) == []


def test_a_validated_run_of_the_same_code_and_modules_is_taken(book):
    run = nbformat.from_dict(book.chapters["slow"])
    run.cells[0].outputs = [nbformat.v4.new_output("stream", text="validated\n")]
    run.cells[0].metadata.execution = {}
    run.metadata.used = used_by(book, run)
    path = book.srcdir / cached_runs.VALIDATED / "slow.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(run, path)
    cached_runs.execute_missing(book, book.env, ["slow"])
    assert book.ran == []
    assert cached_runs.executed(book, "slow").cells[0].outputs[0].text == "validated\n"
    book.chapters["slow"].cells[0].source += "x = 1\n"
    cached_runs.execute_missing(book, book.env, ["slow"])
    assert book.ran == ["slow"], "other code"
    book.chapters["slow"].cells[0].source = run.cells[0].source
    (book.srcdir / "tinytorch" / "ops.py").write_text("x = 2\n")
    book.read_package()
    cached_runs.execute_missing(book, book.env, ["slow"])
    assert book.ran == ["slow", "slow"], "another module"


def test_without_its_cache_every_chapter_is_read_again(book):
    cached_runs.execute_missing(book, book.env, ["quick", "slow"])
    shutil.rmtree(book.config.nb_execution_cache_path)
    assert changed_below(book, book.env) == ["quick", "slow"]


def test_a_chapter_that_failed_is_read_again_next_time(book):
    cached_runs.execute_missing(book, book.env, ["quick", "slow"])
    (book.srcdir / "tinytorch" / "ops.py").write_text("x = 2\n")
    book.read_package()
    book.fails = {"slow"}
    with pytest.raises(cached_runs.CannotExecute):
        cached_runs.execute_missing(book, book.env, ["slow"])
    assert changed_below(book, book.env) == ["slow"]


def test_a_chapter_that_fails_is_named_and_the_others_are_kept(book):
    book.fails = {"slow"}
    with pytest.raises(cached_runs.CannotExecute, match=r"slow\.md: slow fails"):
        cached_runs.execute_missing(book, book.env, ["quick", "slow"])
    book.fails = set()
    cached_runs.execute_missing(book, book.env, ["quick", "slow"])
    assert book.ran == ["slow", "quick", "slow"]


def test_times_are_kept_beside_the_cache_and_out_of_its_key(tmp_path):
    timed = notebook("x = 1\n")
    timed.cells[0].metadata["execution"] = {
        "iopub.status.busy": "2026-01-01T00:00:00.500000Z",
        "shell.execute_reply": "2026-01-01T00:00:02.750000Z",
    }
    cell_times.note_times(timed, tmp_path / "cache" / "times.json")
    assert "execution" not in timed.cells[0].metadata
    times = cell_times.read_json(tmp_path / "cache" / "times.json")
    assert times == {cell_times.key_of("x = 1"): 2.25}


def test_what_a_cell_prints_is_one_text_wherever_the_kernel_has_cut_it():
    def printed(name, text):
        return nbformat.v4.new_output("stream", name=name, text=text)

    pieces = [printed("stdout", "weights"), printed("stdout", " of it\n"), printed("stderr", "!")]
    cell = nbformat.v4.new_code_cell("", outputs=[*pieces, printed("stdout", "end")])
    cached_runs.join_streams(nbformat.v4.new_notebook(cells=[cell]))
    assert [output.text for output in cell.outputs] == ["weights of it\n", "!", "end"]


# Without a network ---------------------------------------------------------------------------


@pytest.fixture
def needs_model(book, monkeypatch):
    """Its quick chapter needs a published model, which is not there, and OFFLINE=1 is set."""
    monkeypatch.setenv("OFFLINE", "1")
    monkeypatch.setenv("TINYTORCH_CACHE", "")
    (book.srcdir / LABORATORY / "experiments").mkdir()
    (book.srcdir / LABORATORY / "experiments" / "__init__.py").write_text("")
    (book.srcdir / LABORATORY / "experiments" / "published_model.py").write_text("x = 1\n")
    source = "from tinytorch_book.experiments import published_model\n"
    book.chapters["quick"].cells[0].source = source
    book.read_package()
    committed = notebook("%pip install", source)
    committed.cells[1].outputs = [nbformat.v4.new_output("stream", text="committed\n")]
    path = book.srcdir / cached_runs.COMMITTED / "quick.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(committed, path)
    return book


def printed(book):
    return cached_runs.executed(book, "quick").cells[0].outputs[0].text


def test_offline_a_chapter_whose_model_is_missing_keeps_its_stored_outputs(needs_model):
    cached_runs.execute_missing(needs_model, needs_model.env, ["quick", "slow"])
    assert needs_model.ran == ["slow"] and printed(needs_model) == "committed\n"


def test_once_the_model_is_there_the_chapter_runs(needs_model):
    cached_runs.execute_missing(needs_model, needs_model.env, ["quick"])
    model = needs_model.srcdir / cached_runs.MODELS / "some" / "some.gguf"
    model.parent.mkdir(parents=True)
    model.touch()
    cached_runs.execute_missing(needs_model, needs_model.env, ["quick"])
    assert needs_model.ran == ["quick"] and printed(needs_model) == "quick\n"


def test_without_offline_the_chapter_runs_and_looks_in_the_cache_of_the_build(
    needs_model, monkeypatch
):
    monkeypatch.delenv("OFFLINE")
    cached_runs.execute_missing(needs_model, needs_model.env, ["quick"])
    assert needs_model.ran == ["quick"]
    where = needs_model.srcdir / cached_runs.MODELS
    assert cached_runs.os.environ["TINYTORCH_CACHE"] == str(where)


def test_offline_a_chapter_whose_cells_have_changed_stops_the_build(needs_model):
    needs_model.chapters["quick"].cells[0].source += "y = 2\n"
    with pytest.raises(cached_runs.CannotExecute, match=r"quick.md: OFFLINE=1 keeps what quick"):
        cached_runs.execute_missing(needs_model, needs_model.env, ["quick"])

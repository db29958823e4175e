"""Every task is written once, in tasks.py: what it needs and runs, and which texts name it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import style_checks

ROOT = Path(__file__).resolve().parents[2]
with_make = pytest.mark.skipif(
    os.name == "nt" or not shutil.which("make"), reason="there is no make, or one of another kind"
)


@pytest.fixture
def tasks(monkeypatch, tmp_path):
    """The module, in a folder of its own."""
    monkeypatch.syspath_prepend(ROOT)
    import tasks

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tasks, "ROOT", tmp_path)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    return tasks


def test_what_a_task_needs_is_installed_before_it_runs(tasks, monkeypatch):
    ran = []
    monkeypatch.setattr(tasks, "run", lambda *command, **_: ran.append(command))
    tasks.main(["mutants"])
    assert ran[0] == (sys.executable, "requirements/install.py", "test")
    assert ran[1][1] == "tests/lab/exercises/mutants.py"


def test_an_unknown_task_is_named_beside_the_known_ones(tasks):
    assert tasks.main(["quick", "bok"]).startswith("there is no task 'bok'; there are help, book,")


@pytest.mark.parametrize("way", ["-h", "--help"])
def test_usual_names_of_help_work(tasks, capsys, way):
    tasks.main([])
    usual = capsys.readouterr().out
    assert tasks.main([way]) is None
    assert capsys.readouterr().out == usual and "where TASK is one of" in usual


def test_python_variables_of_the_shell_do_not_reach_the_book(tasks, monkeypatch):
    seen = {}

    def look():
        """Look at the variables."""
        seen.update(tasks.os.environ)

    monkeypatch.setitem(tasks.TASKS, "look", (look, "reading", ""))
    tasks.os.environ.update(PYTHONPATH="elsewhere", MPLBACKEND="elsewhere", SEED="")
    tasks.main(["look", "PORT=9000"])
    assert not {"PYTHONPATH", "MPLBACKEND"} & set(seen)
    assert seen["PORT"] == "9000" and seen["SEED"] == "1" and seen["PYTHONNOUSERSITE"] == "1"


def test_a_program_that_fails_ends_the_task_with_its_status(tasks):
    with pytest.raises(SystemExit) as stop:
        tasks.run(sys.executable, "-c", "import sys; sys.exit(7)")
    assert stop.value.code == 7


@pytest.mark.parametrize(("offline", "asked"), [("", ["smollm2"]), ("1", [])])
def test_the_book_fetches_its_published_model_first_unless_offline(
    tasks, monkeypatch, offline, asked
):
    ran = []
    monkeypatch.setattr(tasks, "extension", lambda _, *groups: ran.extend(groups))
    monkeypatch.setattr(tasks, "run", lambda *command, **_: None)
    monkeypatch.setattr(tasks, "build", lambda: ran.append("built"))
    tasks.main(["book", f"OFFLINE={offline}"])
    assert ran == [*asked, "built"]


def test_a_book_without_its_model_says_how_to_go_on(tasks, monkeypatch, capsys):
    monkeypatch.setattr(tasks, "extension", lambda *_: sys.exit(1))
    monkeypatch.setattr(tasks, "run", lambda *command, **_: None)
    with pytest.raises(SystemExit):
        tasks.main(["book"])
    assert "OFFLINE=1 builds the book without it" in capsys.readouterr().out


def test_every_style_check_runs_and_those_that_fail_are_named(monkeypatch):
    ran = []
    monkeypatch.setattr(
        style_checks, "passes", lambda command: ran.append(command) or "." in command
    )
    assert style_checks.main("--quick").startswith("\nThese failed:\nmypy\ncodespell\n")
    style_checks.main()
    assert len(ran) > 15 and ran[-1].startswith("check-jsonschema ")


def test_a_build_with_a_warning_warns_again_next_time(tasks, monkeypatch):
    """What was read is forgotten, and what was executed is kept."""
    for folder in ("_build/.doctrees", "_build/.jupyter_cache-1"):
        Path(folder).mkdir(parents=True)
    monkeypatch.setattr(tasks, "tool", lambda *_: sys.exit(1))
    with pytest.raises(SystemExit):
        tasks.build()
    assert [path.name for path in Path("_build").iterdir()] == [".jupyter_cache-1"]


def test_every_task_is_listed_in_ascii(tasks, capsys):
    tasks.main([])
    said = capsys.readouterr().out
    assert said.isascii() and all(f"\n  {name:15} " in said for name in tasks.TASKS)
    assert re.findall(r"^(\w+):$", said, re.M) == [
        "reading", "print", "testing", "checking", "rebuilding"
    ]  # fmt: skip


@with_make
def test_make_knows_every_task(tasks):
    python = f"PYTHON={sys.executable}"
    command = ["make", "--dry-run", python, *tasks.TASKS]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"tasks\.py (\S+)$", told, re.M) == list(tasks.TASKS)


@with_make
def test_make_without_a_python_names_the_requirement():
    command = ["make", "PYTHON=no-such-python", "book"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert told.returncode == 2 and "found: no-such-python, which is none" in told.stderr


def test_the_example_of_the_readme_writes_what_it_says(capsys):
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)[1]
    exec(code, {})
    assert capsys.readouterr().out.strip() == code.rpartition("# ")[2].strip()


def test_every_file_that_a_readme_names_exists():
    folders = ("book", "book/_ext", "book/_static", "tests")
    for readme in ("README.md", "CONTRIBUTING.md", *(f"{f}/README.md" for f in folders)):
        text = (ROOT / readme).read_text("utf-8")
        named = re.findall(r"`([a-z0-9_./-]+\.(?:py|js|md|txt|toml|yml|cff|bib|css))`", text)
        missing = [name for name in named if not list(ROOT.glob(f"[!_.]*/**/{name}"))]
        assert not [name for name in missing if not (ROOT / name).exists()], readme


def test_every_task_that_a_text_names_exists(tasks):
    texts = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "tests/README.md", ".ci/run")]
    for folder, kind in (("book", "*.md"), (".github/workflows", "*.yml"), ("tests", "*.py")):
        texts += [p for p in (ROOT / folder).rglob(kind) if "node_modules" not in p.parts]
    said = re.compile(
        r"(?:(?:`|run: )make |tasks\.py )([a-z][a-z-]+)|^make ([a-z-]+)(?= *(?:#|$))", re.M
    )
    named = {
        (one or other, text.name)
        for text in texts
        for one, other in said.findall(text.read_text("utf-8"))
    }
    assert len(named) > 20
    assert {(name, text) for name, text in named if name not in tasks.TASKS} == set()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="an archive does not list its files")
def test_every_extension_module_that_a_text_names_exists():
    """As `book/_ext/look/theme.py`, `python -m _ext.print.pdf` or a call of `extension`."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    kinds = {".py", ".md", ".yml", ".toml", ".js", ".css"}
    texts = [ROOT / name for name in listed.stdout.splitlines() if Path(name).suffix in kinds]
    said = re.compile(r"\bbook/_ext/([\w/]+)\.py|-m _ext\.([\w.]+\w)|\bextension\(\"([\w.]+)\"")
    named = {
        "".join(found).replace(".", "/")
        for text in texts
        if text.exists()
        for found in said.findall(text.read_text("utf-8"))
    }
    assert len(named) > 10
    assert {name for name in named if not (ROOT / "book/_ext" / f"{name}.py").exists()} == set()

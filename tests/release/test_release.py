"""What a release says of itself, and that its versions agree."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from notes import CannotRelease, main, notes

import tinytorch

ADDRESS = re.compile(
    r"github\.com/tinytorch-book|tinytorch-book\.github\.io|pypi\.org/project/tiny"
)
ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture
def released(tmp_path):
    """A copy of what names the version, with a changelog that has been closed."""
    (tmp_path / "tinytorch").mkdir()
    shutil.copy(ROOT / "tinytorch" / "__init__.py", tmp_path / "tinytorch")
    version = tinytorch.__version__
    text = f"# Changes\n\n## {version} (2026-12-01)\n\nNew.\n\n## 0.1.0 (2026-11-21)\n\nOld.\n"
    (tmp_path / "CHANGELOG.md").write_text(text, encoding="utf-8")
    return tmp_path


def change(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


TAG = f"v{tinytorch.__version__}"


def test_release_notes_are_the_section_of_the_changelog(released):
    assert notes(TAG, released) == "New.\n"


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("tinytorch/__init__.py", f'"{TAG[1:]}"', '"9.9.9"', "tinytorch.__version__ says 9.9.9, "),
        ("CHANGELOG.md", "2026-12-01", "not released yet", "has not released yet where the date"),
        ("CHANGELOG.md", f"## {TAG[1:]}", "## 9.9.9", "has nothing where the date of "),
    ],
)
def test_a_tag_that_differs_from_the_version_is_refused(released, file, old, new, told):
    change(released / file, old, new)
    with pytest.raises(CannotRelease, match=re.escape(told)):
        notes(TAG, released)


def test_command_refuses_another_version_and_writes_nothing(capsys, tmp_path):
    assert main("v9.9.9", str(tmp_path / "notes.md")) == 1
    assert capsys.readouterr().err.startswith("cannot release v9.9.9: tinytorch.__version__ says ")
    assert not (tmp_path / "notes.md").exists()


def test_version_is_written_once():
    """The package's metadata takes it from `tinytorch.__version__` when it is built."""
    version = re.escape(tinytorch.__version__)
    for name in ("CITATION.cff", "README.md", "pyproject.toml", "tasks.py", "_config.yml"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(rf"(?<![\d.>=]){version}(?![\d.])", text), name


def test_the_changelog_begins_with_the_version():
    heading = rf"\A# Changes\n(?:(?!^## ).*\n)*## {re.escape(tinytorch.__version__)} \("
    assert re.search(heading, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_hash_and_leave_no_credentials(workflow):
    jobs = yaml.safe_load(workflow.read_text(encoding="utf-8"))["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"] if "uses" in step]
    for step in steps:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"])
        if step["uses"].startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_what_goes_out_is_made_where_every_package_has_a_hash():
    """The reference frameworks are installed by version alone, so in another job."""
    texts = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in WORKFLOWS]
    for job in (job for text in texts for job in text["jobs"].values()):
        ran = [step.get("uses", step.get("run", "")) for step in job["steps"]]
        goes_out = any(step.startswith("actions/upload") for step in ran)
        assert not (goes_out and re.search(r"parity|\.ci/run$", "\n".join(ran), re.M))


def test_index_receives_the_tested_archives_without_a_password():
    path = ROOT / ".github" / "workflows" / "release.yml"
    text = path.read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    assert jobs["index"]["permissions"] == {"id-token": "write"} and "secrets." not in text
    assert jobs["index"]["environment"]["name"] == "pypi"
    assert [step["uses"].split("@")[0] for step in jobs["index"]["steps"]] == [
        "actions/download-artifact",
        "pypa/gh-action-pypi-publish",
    ]
    (made,) = (s["run"] for s in jobs["build"]["steps"] if ".ci/run" in s.get("run", ""))
    tried = ["check", "dist", "test", "proofs", "pdf", "epub", "offline"]
    assert made.split() == [".ci/run", *tried]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="an archive does not list its files")
def test_page_on_forks_lists_every_file_with_a_fixed_address():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    apart = ("book/notebooks/", "tests/")  # generated; what a fork need not change
    files = [name for name in listed.stdout.split() if not name.startswith(apart)]
    texts = {name: (ROOT / name).read_bytes().decode(errors="replace") for name in files}
    found = {name for name, text in texts.items() if ADDRESS.search(text)}
    page = (ROOT / ".github" / "SETUP.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert found == {name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])}


def test_page_on_forks_lists_every_module_with_the_name_of_the_package():
    modules = [*(ROOT / "tinytorch").rglob("*.py"), *(ROOT / "book").rglob("*.py")]
    named = re.compile(r"tinytorch-book(?![:/.])|tinytorch_book-")
    found = {p.relative_to(ROOT).as_posix() for p in modules if named.search(p.read_text("utf-8"))}
    third = (ROOT / ".github" / "SETUP.md").read_text("utf-8").partition("\n3. ")[2]
    assert found == set(re.findall(r"`(\S+/\S+\.py)`", third.partition("\n4. ")[0]))


def test_the_links_of_the_readme_also_lead_somewhere_from_the_package_index():
    links = re.findall(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert all(link.startswith("https://") for link in links)
    files = re.findall(r"tinytorch-book/(?:blob/)?main/(\S+)", "\n".join(links))
    assert len(files) > 8 and [name for name in files if not (ROOT / name).exists()] == []


def test_every_third_party_part_is_listed_with_its_licence_text():
    listed = (ROOT / "THIRD-PARTY.md").read_text(encoding="utf-8")
    pinned = tomllib.loads((ROOT / "book/_runtime/pinned.toml").read_text(encoding="utf-8"))
    wheels = [*pinned["pyodide"]["files"], *pinned["kernel"]["files"]]
    names = {name.partition("-")[0].replace("_", "-") for name in wheels if name.endswith(".whl")}
    assert [name for name in sorted(names) if f"| {name} |" not in listed] == []
    for folder in ("book/_runtime/temml", "book/_static/fonts", "book/_static/slides/reveal",
                   "book/_static/live/editor.js", "_static/live/pyodide"):  # fmt: skip
        assert f"`{folder}`" in listed
    named = set(re.findall(r"\| ([A-Z][A-Z-]*-\d[\d.]*|MIT) \|", listed))
    assert named and [name for name in named if f"\n## {name}\n" not in listed] == []


def test_the_package_and_the_archive_carry_their_licences():
    """`make dist` opens the wheel, `make proofs` the archive."""
    from _ext.print.offline import LICENCES

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert tuple(project["project"]["license-files"]) == LICENCES
    held = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {f"/{name}" for name in LICENCES} < {*held}
    assert all(name.startswith("/") for name in held), "a bare name is found in every folder"

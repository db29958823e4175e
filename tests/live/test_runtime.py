"""Fetching what runs in the page: only what has the right hash, from whichever place has it."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def sha(content):
    return hashlib.sha256(content).hexdigest()


WHEELS = {"a-1.whl": b"wheel a", "b-1.whl": b"wheel b", "c-1.whl": b"wheel c"}
LOCK = json.dumps(
    {
        "info": {"python": "3.14.0"},
        "packages": {
            n: {"file_name": f"{n}-1.whl", "sha256": sha(WHEELS[f"{n}-1.whl"]), "depends": d}
            for n, d in (("a", ["b"]), ("b", []), ("c", []))
        },
    }
).encode()
CORE = {"pyodide-lock.json": LOCK, "pyodide.mjs": b"core"}


@pytest.fixture
def recipe(tmp_path):
    """A small distribution, served from files."""
    official = tmp_path / "official"
    official.mkdir()
    for name, content in {**CORE, **WHEELS}.items():
        (official / name).write_bytes(content)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in CORE.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    (tmp_path / "core.tgz").write_bytes(packed.getvalue())
    return {
        "version": "1",
        "packages": ["a"],
        "official": f"{official.as_uri()}/",
        "core_package": {
            "url": (tmp_path / "core.tgz").as_uri(),
            "sha256": sha(packed.getvalue()),
            "folder": "package/",
        },
        "wheels_package": {"requirement": "none==0", "folder": "x/"},
        "core": {name: sha(content) for name, content in CORE.items()},
    }


def test_the_core_and_what_the_packages_need_is_fetched_with_a_trimmed_lock(
    runtime, recipe, tmp_path
):
    folder = tmp_path / "here"
    runtime.fetch(recipe, folder)
    names = {path.name for path in folder.iterdir()}
    assert names == {"pyodide.mjs", "pyodide-lock.json", "a-1.whl", "b-1.whl"}
    kept = json.loads((folder / "pyodide-lock.json").read_text())
    assert set(kept["packages"]) == {"a", "b"} and kept["info"]["python"] == "3.14.0"
    assert runtime.missing_files(recipe, folder) == []


def test_a_changed_file_is_noticed_and_only_that_is_fetched_again(runtime, recipe, tmp_path):
    folder = tmp_path / "here"
    runtime.fetch(recipe, folder)
    (folder / "a-1.whl").write_bytes(b"tampered")
    assert runtime.missing_files(recipe, folder) == ["a-1.whl"]
    before = (folder / "pyodide.mjs").stat().st_mtime_ns
    runtime.fetch(recipe, folder)
    assert runtime.missing_files(recipe, folder) == []
    assert (folder / "pyodide.mjs").stat().st_mtime_ns == before


def test_the_core_comes_from_the_other_place_when_the_first_has_something_else(
    runtime, recipe, tmp_path
):
    (tmp_path / "official" / "pyodide.mjs").write_bytes(b"not the core")
    folder = tmp_path / "here"
    runtime.fetch(recipe, folder)
    assert (folder / "pyodide.mjs").read_bytes() == b"core"


def test_a_wrong_wheel_is_refused_and_nothing_says_that_all_is_there(
    runtime, recipe, tmp_path, monkeypatch
):
    (tmp_path / "official" / "b-1.whl").write_bytes(b"something else")
    monkeypatch.setattr(runtime, "wheel_of_wheels", lambda recipe: runtime.Archive("none", dict))
    folder = tmp_path / "here"
    with pytest.raises(runtime.CannotFetch, match=r"b-1\.whl came with sha256"):
        runtime.fetch(recipe, folder)
    assert not (folder / "pyodide-lock.json").exists()
    assert not list(folder.glob(".*")), "no half-written file is left"
    assert "pyodide-lock.json" in runtime.missing_files(recipe, folder)


def test_an_archive_that_is_not_the_pinned_one_is_not_opened(runtime, recipe, tmp_path):
    (tmp_path / "official" / "pyodide.mjs").unlink()
    (tmp_path / "core.tgz").write_bytes(b"another archive")
    with pytest.raises(runtime.CannotFetch, match=r"cannot fetch pyodide\.mjs"):
        runtime.fetch(recipe, tmp_path / "here")


def test_another_choice_of_packages_is_fetched(runtime, recipe, tmp_path):
    folder = tmp_path / "here"
    runtime.fetch(recipe, folder)
    recipe["packages"] = ["a", "c"]
    assert runtime.missing_files(recipe, folder) == ["pyodide-lock.json"]


def test_the_recipe_pins_one_version_everywhere():
    recipe = json.loads((ROOT / "book/_live/runtime.json").read_text())
    version = recipe["version"]
    assert f"/v{version}/" in recipe["official"]
    assert recipe["core_package"]["url"].endswith(f"pyodide-{version}.tgz")
    assert all(len(digest) == 64 for digest in recipe["core"].values())
    assert recipe["official"].startswith("https://")

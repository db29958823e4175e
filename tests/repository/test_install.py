"""What requirements/install.py installs, when, and from where; the lock holds it all."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def installer(monkeypatch, tmp_path):
    """The module, in a folder of its own, where installing only notes that it was asked for."""
    monkeypatch.syspath_prepend(ROOT / "requirements")
    import install

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(install, "ROOT", tmp_path)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    install.asked = []

    def make_environment():
        install.PROFILE.parent.mkdir(parents=True)
        install.PROFILE.touch()
        install.asked.append("environment")

    monkeypatch.setattr(install, "make_environment", make_environment)
    monkeypatch.setattr(install, "install_uv", lambda: install.asked.append("uv"))
    monkeypatch.setattr(install, "install_by_uv", install.asked.append)
    return install


def test_what_lies_below_a_group_is_installed_first_and_once(installer):
    installer.install("parity")
    installer.install("test")
    installer.install("dev")
    assert installer.asked == ["environment", "uv", "book", "test", "parity", "dev"]


@pytest.mark.parametrize(
    ("file", "old", "new", "asked"),
    [
        ("requirements/lock.txt", "\nnumpy==", "\nnumpy==0.", ["uv", "book", "test"]),
        ("pyproject.toml", '"numpy>=2.0"', '"numpy>=2.1"', ["uv", "book", "test"]),
        ("pyproject.toml", '"pytest>=8"', '"pytest>=9"', ["uv", "book", "test"]),
        ("pyproject.toml", '"hatchling>=1.27"]', '"hatchling"]', ["uv", "book", "test"]),
        ("pyproject.toml", "[tool.hatch.build]", "[tool.hatch.other]", ["uv", "book", "test"]),
        ("pyproject.toml", "line-length = ", "line-length = 1", []),
        ("pyproject.toml", "\n", "\r\n", []),
        ("requirements/lock.txt", "\n", "\r\n", []),
    ],
)
def test_groups_are_installed_again_when_what_pins_them_changes(installer, file, old, new, asked):
    installer.install("test")
    installer.asked.clear()
    before = Path(file).read_bytes()
    Path(file).write_bytes(before.replace(old.encode(), new.encode()))
    assert Path(file).read_bytes() != before
    installer.install("test")
    assert installer.asked == asked


def test_a_failed_installation_is_repeated(installer, monkeypatch):
    monkeypatch.setattr(installer, "install_by_uv", lambda group: sys.exit(1))
    with pytest.raises(SystemExit):
        installer.install("dev")
    monkeypatch.setattr(installer, "install_by_uv", installer.asked.append)
    installer.install("dev")
    assert installer.asked == ["environment", "uv", "book", "dev"]


def test_an_old_python_is_refused_with_a_remedy(installer, monkeypatch):
    monkeypatch.setattr(installer, "NEEDED", (4, 0))
    with pytest.raises(SystemExit) as stop:
        installer.main("test")
    assert f"found: Python {sys.version.split()[0]} ({sys.executable}).\nInstall" in str(stop.value)
    assert installer.asked == []


def test_a_python_without_venv_is_refused_with_a_remedy(installer, monkeypatch):
    monkeypatch.setitem(sys.modules, "ensurepip", None)
    with pytest.raises(SystemExit, match="sudo apt-get install python3-venv"):
        installer.main("test")


LISTED = r"""
:env:.cert='/certificates.pem'
global.extra-index-url='\nfile:///a\nfile:///b'
global.index-url='https://mirror.example/simple'
global.timeout='60'
install.index-url='https://nearer.example/simple'
"""


def test_uv_takes_packages_from_where_pip_is_configured_to(installer, monkeypatch):
    done = subprocess.CompletedProcess([], 0, LISTED)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    told = installer.pip_configuration()
    assert told["UV_DEFAULT_INDEX"] == "https://nearer.example/simple"
    assert told["UV_INDEX"] == "file:///a file:///b"
    assert told["SSL_CERT_FILE"] == "/certificates.pem"
    assert set(told) - {*installer.AS_UV.values()} == {
        "UV_INDEX_STRATEGY", "UV_LINK_MODE", "UV_SYSTEM_CERTS"
    }  # fmt: skip


def test_pins_for_everyone_ignore_what_lies_nearby(installer, monkeypatch):
    ran = []
    monkeypatch.setattr(
        subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, LISTED)
    )
    monkeypatch.setattr(installer, "run", lambda *command, env, **_: ran.append((command, env)))
    installer.compile_pins()
    installer.uv("install", "numpy")
    (_, lock), (_, binder), (_, install) = ran
    assert "UV_INDEX" in install and not {"UV_INDEX", "UV_FIND_LINKS"} & {*lock, *binder}
    assert lock["UV_DEFAULT_INDEX"] == "https://nearer.example/simple"
    assert "--group parity" not in " ".join(map(str, ran[0][0]))


def pinned():
    """The packages of the lock, and those that pyproject.toml names for each group."""
    lock = (ROOT / "requirements/lock.txt").read_text("utf-8")
    blocks = re.findall(r"^([\w.-]+)==((?:.*\\\n)*.*)", lock, re.M)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return blocks, project


def test_every_package_of_the_lock_has_hashes_and_no_address():
    blocks, _ = pinned()
    assert len(blocks) > 200
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}\b", rest) for _, rest in blocks)
    assert "://" not in (ROOT / "requirements/lock.txt").read_text("utf-8")


def test_the_lock_holds_every_package_that_a_group_names():
    blocks, project = pinned()
    groups = {**project["dependency-groups"], **project["project"]["optional-dependencies"]}
    del groups["parity"]  # in no lock: PyTorch has one build for each kind of processor
    named = [name for group in groups.values() for name in group if isinstance(name, str)]
    names = {re.match(r"[\w-]+", name)[0] for name in [*named, *project["project"]["dependencies"]]}
    assert names - {name for name, _ in blocks} == set()


def test_parity_is_pinned_exactly():
    _, project = pinned()
    _, *named = project["dependency-groups"]["parity"]
    assert named and all(re.fullmatch(r"[\w-]+==[\d.]+", name) for name in named)


def test_every_group_that_is_installed_is_one_of_the_project(installer):
    _, project = pinned()
    assert set(installer.GROUPS) == set(project["dependency-groups"]) - {"print"}

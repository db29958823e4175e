"""Fetching pinned files: only what has the right hash, from whichever address has it."""

import hashlib
import http.server
import io
import json
import subprocess
import tarfile
import threading
import zipfile
from functools import partial
from types import SimpleNamespace

import pytest
from _ext.live import live_site, pinned_downloads

CORE = {"core.mjs": b"core", "core.wasm": b"\0asm"}


def sha(content):
    return hashlib.sha256(content).hexdigest()


def packed(members):
    """A .tgz with these members in the folder `package`."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


@pytest.fixture
def served(tmp_path):
    """A folder, its address, and what was asked of it."""
    folder, asked = tmp_path / "served", []
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, form, *args):
            asked.append(self.path)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield SimpleNamespace(
        folder=folder, address=f"http://127.0.0.1:{server.server_port}", asked=asked
    )
    server.shutdown()
    server.server_close()


@pytest.fixture
def registry(tmp_path, served):
    """A function that writes the registry of a small distribution and returns its root."""
    archive = packed(CORE)
    (served.folder / "core-1.tgz").write_bytes(archive)
    for name, content in CORE.items():
        (served.folder / name).write_bytes(content)

    def write(*addresses, **files):
        files = files or {name: sha(content) for name, content in CORE.items()}
        addresses = addresses or (
            f"{served.address}/{{name}}",
            f"{served.address}/core-1.tgz!package/{{name}}",
        )
        lines = ["[core]", 'folder = "_build/core"', f"addresses = {json.dumps(addresses)}"]
        lines += ["[core.files]", *(f'"{name}" = "{digest}"' for name, digest in files.items())]
        lines += ["[archives]", f'"core-1.tgz" = "{sha(archive)}"']
        path = tmp_path / "book" / pinned_downloads.PINS.relative_to("book")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines), "utf-8")
        return tmp_path

    return write


def contents(root):
    return {
        path.name: path.read_bytes() for path in pinned_downloads.folder("core", root).iterdir()
    }


def test_everything_is_fetched_from_the_first_address(registry, served):
    root = registry()
    assert pinned_downloads.missing("core", root) == sorted(CORE)
    pinned_downloads.fetch("core", root)
    assert contents(root) == CORE and pinned_downloads.missing("core", root) == []
    assert len(served.asked) == 2


def test_a_changed_file_is_noticed_and_only_that_is_fetched_again(registry, served):
    root = registry()
    pinned_downloads.fetch("core", root)
    (pinned_downloads.folder("core", root) / "core.mjs").write_bytes(b"tampered")
    assert pinned_downloads.missing("core", root) == ["core.mjs"]
    served.asked.clear()
    pinned_downloads.fetch("core", root)
    assert contents(root) == CORE and len(served.asked) == 1


def test_the_archive_is_used_if_the_first_address_has_other_content(registry, served):
    (served.folder / "core.mjs").write_bytes(b"not the core")
    (served.folder / "core.wasm").unlink()
    root = registry()
    pinned_downloads.fetch("core", root)
    assert contents(root) == CORE


def test_an_archive_that_is_not_the_pinned_one_is_not_opened(registry, served):
    (served.folder / "core-1.tgz").write_bytes(packed({**CORE, "more.js": b""}))
    (served.folder / "core.mjs").unlink()
    root = registry()
    with pytest.raises(
        pinned_downloads.CannotFetch, match=r"cannot fetch core\.mjs(.|\n)*core-1\.tgz"
    ):
        pinned_downloads.fetch("core", root)


def test_a_file_with_a_wrong_hash_everywhere_is_refused_and_not_kept(registry, served):
    root = registry(**{"core.mjs": sha(b"another")})
    with pytest.raises(pinned_downloads.CannotFetch) as error:
        pinned_downloads.fetch("core", root)
    assert str(error.value).count("core.mjs") >= 3 and "save it as" in str(error.value)
    assert contents(root) == {}


def test_a_server_that_cannot_be_reached_is_asked_once(registry, monkeypatch):
    asked = []

    class Unreachable:
        def __init__(self, timeout):
            assert timeout == pinned_downloads.SILENCE, "a server that falls silent is left"

        def __call__(self, url, *rest):
            asked.append(url)
            raise OSError("no route to host")

    monkeypatch.setattr(pinned_downloads.pooch, "HTTPDownloader", Unreachable)
    download = pinned_downloads.Download({}, None)
    for name in CORE:
        with pytest.raises((OSError, pinned_downloads.CannotFetch), match="no route to host"):
            download(f"https://far.example/{name}", "file")
    assert asked == ["https://far.example/core.mjs"]


def test_pip_fetches_a_wheel_and_a_file_from_a_wheel(registry, monkeypatch):
    def pip(command, **options):
        *_, destination, requirement = command
        place = pinned_downloads.Path(destination)
        place.mkdir(parents=True)
        name, version = requirement.split("==")
        with zipfile.ZipFile(place / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(zipfile.ZipInfo("inside/core.mjs"), b"core")
        return SimpleNamespace(returncode=0, stderr="")

    monkeypatch.setattr(subprocess, "run", pip)
    root = registry("pip:holder==2!inside/{name}", **{"core.mjs": sha(b"core")})
    pinned_downloads.fetch("core", root)
    assert contents(root) == {"core.mjs": b"core"}
    assert pinned_downloads.package_of("a_b-1.2-py3-none-any.whl") == "a_b==1.2"


def test_an_error_from_pip_is_reported(registry, monkeypatch, capsys):
    done = SimpleNamespace(returncode=1, stderr="trying\nERROR: no such index")
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: done)
    root = registry("pip:{package}!{name}", **{"a-1-py3-none-any.whl": sha(b"")})
    assert pinned_downloads.main(["core", "--root", str(root)]) == 1
    assert "pip download a==1: ERROR: no such index" in capsys.readouterr().err


def test_check_fetches_nothing_and_names_what_is_missing(registry, served, capsys):
    root = registry()
    assert pinned_downloads.main(["--check", "core", "--root", str(root)]) == 1
    assert "lacks core.mjs, core.wasm: run `make live`" in capsys.readouterr().err
    assert served.asked == []
    pinned_downloads.fetch("core", root)
    assert pinned_downloads.main(["--check", "core", "--root", str(root)]) == 0


def test_every_pin_is_a_sha256_and_no_address_is_open_to_change():
    registry = pinned_downloads.pins()
    assert set(registry) == {"pyodide", "kernel", "fonts", "axe", "gpt2", "slides", "archives"}
    digests = [*registry.pop("archives").values()]
    for group in registry.values():
        digests += group["files"].values()
        assert all(address.startswith(("https://", "pip:")) for address in group["addresses"])
    assert all(len(digest) == 64 for digest in digests)


def test_one_version_of_pyodide_is_named_everywhere():
    official, package, _ = pinned_downloads.pins()["pyodide"]["addresses"]
    version = official.split("/v")[1].split("/")[0]
    assert f"pyodide-{version}.tgz" in package


def test_the_lock_of_the_site_names_the_pinned_wheels_and_nothing_else(tmp_path, monkeypatch):
    lock = {
        "info": {"python": "3.14.0"},
        "packages": {
            name: {"file_name": f"https://far.example/{name}-1.whl", "depends": needs}
            for name, needs in (("a", ["b"]), ("b", []), ("c", []))
        },
    }
    (tmp_path / "pyodide-lock.json").write_text(json.dumps(lock), "utf-8")
    wheels = [tmp_path / "a-1.whl", tmp_path / "b-1.whl"]
    monkeypatch.setattr(pinned_downloads, "files", lambda group, root: wheels)
    monkeypatch.setattr(pinned_downloads, "folder", lambda group, root: tmp_path)
    trimmed = live_site.trimmed_lock(tmp_path)
    assert trimmed["info"] == lock["info"]
    assert {n: p["file_name"] for n, p in trimmed["packages"].items()} == {
        "a": "a-1.whl",
        "b": "b-1.whl",
    }
    del wheels[1]
    with pytest.raises(KeyError, match="lacks the wheels of b"):
        live_site.trimmed_lock(tmp_path)

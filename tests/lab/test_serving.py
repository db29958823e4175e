"""`python -m tinytorch_book`: what it says, and the book that it serves to this machine alone."""

import http.client
import signal
import subprocess
import sys
import threading
import zipfile
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from unittest.mock import Mock

import pytest

import tinytorch
from tinytorch_book import __main__ as command
from tinytorch_book import serving
from tinytorch_book.serving import address_of, archive_address, book_server, content_type, find_book

FILES = {
    "index.html": "the first page",
    "book/intro.html": "the book",
    "book/a page.html": "with a space",
    "_static/live/python_worker.js": "postMessage(1)",
    "_static/tinytorch.css": "body {}",
    "_static/live/pyodide/pyodide.asm.wasm": "\0asm",
    "lite/index.html": "JupyterLite",
}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """The book in a folder, beside a file that is no part of it."""
    folder = tmp_path_factory.mktemp("unpacked") / "tinytorch-offline"
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    (folder.parent / "secret.txt").write_text("nobody's business", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def archive(unpacked, tmp_path_factory):
    """The book in an archive, with a folder of its own in it, in a folder where it is alone."""
    path = tmp_path_factory.mktemp("archive") / "tinytorch-offline.zip"
    with zipfile.ZipFile(path, "w") as written:
        for file in sorted(unpacked.rglob("*")):
            written.write(file, Path("tinytorch-offline", file.relative_to(unpacked)))
    return path


@pytest.fixture(scope="module", params=["unpacked", "archive"])
def ask(request):
    """Asks a running server for a path; gives status, headers and content."""
    server = book_server(find_book(str(request.getfixturevalue(request.param))), port=0)
    threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()

    def asked(path, method="GET"):
        connection = http.client.HTTPConnection(*server.server_address, timeout=60)
        connection.request(method, path)
        answer = connection.getresponse()
        content = answer.read().decode()
        connection.close()
        return answer.status, answer.headers, content

    yield asked
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("path", "content", "kind"),
    [
        ("/", "the first page", "text/html; charset=utf-8"),
        ("/index.html?v=1", "the first page", "text/html; charset=utf-8"),
        ("/book/a%20page.html", "with a space", "text/html; charset=utf-8"),
        ("/lite/", "JupyterLite", "text/html; charset=utf-8"),
        ("/_static/live/python_worker.js", "postMessage(1)", "text/javascript"),
        ("/_static/live/pyodide/pyodide.asm.wasm", "\0asm", "application/wasm"),
    ],
)
def test_every_file_is_served_whole_with_its_type(ask, path, content, kind):
    status, headers, got = ask(path)
    assert (status, got, headers["Content-Type"]) == (200, content, kind)
    status, headers, got = ask(path, "HEAD")
    assert (status, got, headers["Content-Length"]) == (200, "", str(len(content)))


def test_pages_are_cross_origin_isolated(ask):
    for path in ("/book/intro.html", "/_static/live/python_worker.js"):
        headers = ask(path)[1]
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert headers["Cross-Origin-Embedder-Policy"] == "require-corp"
    assert "Cross-Origin-Opener-Policy" not in ask("/lite/")[1]


@pytest.mark.parametrize(
    "path",
    ["/none.html", "/../secret.txt", "/book/../../secret.txt", "/%2e%2e/secret.txt",
     "/..%2fsecret.txt", "/..%5csecret.txt", "/C:/secret.txt", "//secret.txt", "/index.html/x"],
)  # fmt: skip
def test_nothing_outside_the_book_is_served(ask, path):
    assert ask(path)[0] == 404
    assert ask(path)[2] == "There is no such page.\n"


def test_a_folder_without_a_slash_is_redirected(ask):
    status, headers, _ = ask("/lite")
    assert (status, headers["Location"]) == (301, "/lite/")


def test_a_type_does_not_depend_on_the_machine():
    assert content_type("module.MJS") == "text/javascript"
    assert content_type("tinytorch-1.whl") == content_type("LICENSE") == "application/octet-stream"


class TestFinding:
    def test_an_archive_in_the_folder_is_found(self, archive, monkeypatch):
        monkeypatch.chdir(archive.parent)
        assert (find_book() / "index.html").read_text(encoding="utf-8") == "the first page"

    def test_an_unpacked_archive_in_the_folder_is_found(self, unpacked, monkeypatch):
        monkeypatch.chdir(unpacked.parent)
        assert (find_book() / "index.html").read_text(encoding="utf-8") == "the first page"

    def test_a_missing_archive_is_reported_with_its_source(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(FileNotFoundError) as error:
            find_book()
        assert str(error.value) == (
            f"there is no book in {str(tmp_path)!r}; download {archive_address()} and run: "
            "python -m tinytorch_book book tinytorch-offline.zip"
        )

    def test_a_damaged_archive_and_a_wrong_folder_are_refused(self, archive, tmp_path):
        with pytest.raises(ValueError, match="does not hold the book's pages; download"):
            find_book(str(Path(__file__).parent))
        half = tmp_path / "half.zip"
        half.write_bytes(archive.read_bytes()[:-30])
        with pytest.raises(ValueError, match="is not a complete zip archive; download"):
            find_book(str(half))


class TestCommand:
    def test_it_lists_the_packages(self, capsys):
        assert command.main([]) == 0
        said = capsys.readouterr().out
        for folder in command.FOLDERS:
            packages = [path.parent.name for path in folder.glob("*/__init__.py")]
            assert sorted(command.PACKAGES[folder.name]) == sorted(packages)
            assert all(f"  {folder.name}.{name} " in said for name in packages)
        assert said.isascii(), "a console of Windows may know no other letters"
        assert (
            said.startswith(f"TinyTorch {tinytorch.__version__}: ") and address_of("Book") in said
        )

    def test_the_suggested_commands_run(self, capsys):
        exec(command.NEXT.partition("\n\n")[2], {})
        assert capsys.readouterr().out.endswith(".\n")

    def test_it_prints_the_addresses_of_the_repository(self):
        from _ext.addresses import site_url
        from yaml import safe_load

        root = Path(__file__).resolve().parents[2]
        url = safe_load((root / "_config.yml").read_text(encoding="utf-8"))["repository"]["url"]
        assert address_of("Book") == site_url(url)
        assert archive_address().startswith(f"{url}/releases/")

    def test_without_metadata_it_names_the_project_instead_of_an_address(self, monkeypatch):
        monkeypatch.setattr(serving, "metadata", Mock(side_effect=PackageNotFoundError))
        assert address_of("Book") == "the address of the project (Book)"

    def test_a_taken_port_is_named_with_a_remedy(self, unpacked, capsys):
        with book_server(find_book(str(unpacked)), port=0) as server:
            host, port = server.server_address
            assert host == "127.0.0.1"
            assert command.main(["book", str(unpacked), "--port", str(port)]) == 1
        said = capsys.readouterr().err
        assert said.startswith(f"cannot listen on port {port}: ")
        assert said.endswith("; choose another: python -m tinytorch_book book --port 8001\n")

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows sends Ctrl-C to the whole console")
    def test_ctrl_c_ends_the_server_with_a_message(self, archive):
        served = subprocess.Popen(
            [sys.executable, "-m", "tinytorch_book", "book", str(archive), "--port", "0"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            # what a shell starts in the background ignores Ctrl-C, and so does all that it starts
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        try:
            assert "at http://127.0.0.1:" in served.stdout.readline()
            served.send_signal(signal.SIGINT)
            out, err = served.communicate(timeout=60)
        finally:
            served.kill()
        assert (served.returncode, out, err) == (130, "", "stopped\n")

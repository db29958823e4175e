"""Texts to read: the prose of the book, your own files, downloads; and the documentation of all."""

import hashlib

import pytest
from unruly_server import unruly_server

from tinytorch.files import downloads
from tinytorch.text import corpus
from tinytorch.text.corpus import book_prose, book_prose_version, load_text


def test_the_prose_of_the_book_comes_with_the_package():
    first, _, second = book_prose().partition("\n")
    assert len(first) > 100 and len(second) > 100_000
    assert not first.startswith("Version") and book_prose_version().startswith("Version")


def test_missing_prose_names_the_command_that_writes_it(monkeypatch, tmp_path):
    monkeypatch.setattr(corpus.resources, "files", lambda package: tmp_path)
    with pytest.raises(FileNotFoundError, match=r"`make corpus` writes it"):
        book_prose()


def test_the_checksum_of_a_local_file_is_compared_when_given(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"abc")
    assert load_text(path, sha256=hashlib.sha256(b"abc").hexdigest().upper()) == "abc"
    with pytest.raises(ValueError, match="its SHA-256 is ba7816bf"):
        load_text(path, sha256="0" * 64)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"ab\ncaf\xe9 x", r"byte 0xe9 at position 6 \(line 2\)"),
        (b" \n", "is empty"),
        (b"x" * 101, "more than 100 bytes"),
    ],
)
def test_a_binary_file_is_refused(tmp_path, content, match):
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=match):
        load_text(path, max_bytes=100)


def test_invalid_arguments_of_load_text_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file 'nowhere.txt'"):
        load_text("nowhere.txt")
    with pytest.raises(ValueError, match="is a folder"):
        load_text(tmp_path)
    for address in ("ftp://example.org/a.txt", (tmp_path / "a.txt").as_uri(), "file:/a.txt"):
        with pytest.raises(ValueError, match="reads paths, and http and https URLs, got"):
            load_text(address)
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        load_text("a.txt", sha256="abc")
    for something in (b"a.txt", None, 5, ["a.txt"]):
        with pytest.raises(TypeError, match="a path or a URL"):
            load_text(something)
    with pytest.raises(FileNotFoundError, match="there is no file 'Once upon a time"):
        load_text("Once upon a time there was a fox.\n" * 1000)  # the text itself
    with pytest.raises(TypeError, match="max_bytes must be an integer"):
        load_text("a.txt", max_bytes="5")
    with pytest.raises(ValueError, match="max_bytes must be at least 1"):
        load_text("a.txt", max_bytes=0)


STORY = "Mia lost her hat.\n" * 20_000
DIGEST = hashlib.sha256(STORY.encode()).hexdigest()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(downloads, "_sleep", lambda seconds: None)
    with unruly_server() as server:
        server.files = {"/a.txt": STORY.encode(), "/moved": "/a.txt", "/packed": STORY.encode()}
        server.headers["/packed"] = {"Content-Encoding": "gzip"}
        yield server


def test_a_download_is_kept_and_not_fetched_again(server, tmp_path):
    for _ in range(2):
        assert load_text(server.url + "/a.txt", DIGEST, tmp_path / "new" / "cache") == STORY
    assert len(server.requests) == 1
    assert [path.name for path in (tmp_path / "new" / "cache").iterdir()] == [f"{DIGEST}.txt"]


def test_a_failed_download_names_the_remedy_and_leaves_nothing_behind(server, tmp_path):
    with pytest.raises(ConnectionError, match=r"404.*download it elsewhere.*path of your copy"):
        load_text(server.url + "/missing", DIGEST, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_unexpected_text_is_not_kept(server, tmp_path):
    with pytest.raises(ValueError, match=f"a.txt: its SHA-256 is {DIGEST}, not 0{{64}}"):
        load_text(server.url + "/a.txt", "0" * 64, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_download_without_a_checksum_is_refused_with_a_remedy(server):
    with pytest.raises(ValueError, match=r"needs sha256=.*hashlib.sha256"):
        load_text(server.url + "/a.txt")
    assert server.requests == []


def test_a_missing_network_is_reported_with_a_remedy(tmp_path):
    with pytest.raises(ConnectionError, match=rf"save it as .*{DIGEST}\.txt, or pass the path"):
        load_text("http://127.0.0.1:1/a.txt", DIGEST, tmp_path)


def test_an_unwritable_cache_folder_is_named(server, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="pass another cache_dir="):
        load_text(server.url + "/a.txt", DIGEST, tmp_path / "file" / "cache")

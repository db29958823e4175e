"""Downloads from a server on this machine that breaks off, stalls, refuses and changes its mind."""

import errno
import gzip
import hashlib
import os
import ssl
import subprocess
import sys
import urllib.error
import zlib
from types import SimpleNamespace

import pytest
from unruly_server import unruly_server

from tinytorch.files import downloads
from tinytorch.files.downloads import cache_folder, download, show_progress

CONTENT = bytes(range(256)) * 4096  # 1 MiB
DIGEST = hashlib.sha256(CONTENT).hexdigest()
SIZE = len(CONTENT)


@pytest.fixture
def server():
    with unruly_server() as server:
        server.files["/model"] = CONTENT
        yield server


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """How long was waited between two tries."""
    pauses = []
    monkeypatch.setattr(downloads, "_sleep", pauses.append)
    return pauses


@pytest.fixture
def fetch(server, tmp_path):
    def fetch(name="/model", **options):
        options = {"sha256": DIGEST, "timeout": 20, **options}
        return download(server.url + name, tmp_path / "kept" / "model", **options)

    return fetch


def names(path):
    return sorted(file.name for file in (path / "kept").iterdir())


def ranges(server):
    return [asked for _, asked in server.requests]


def leave_a_part(fetch, server, size=1000, **options):
    server.faults = [("break", size), *[("break", 0)] * 5]
    with pytest.raises(ConnectionError, match=rf"{size:,} of 1,048,576 bytes, 5 times in a row"):
        fetch(**options)
    server.requests.clear()


# What arrives ------------------------------------------------------------------------------------


def test_a_cached_file_is_not_requested_again(fetch, server, tmp_path):
    path = fetch(size=SIZE)
    assert fetch(size=SIZE) == path == tmp_path / "kept" / "model"
    assert path.read_bytes() == CONTENT
    assert names(tmp_path) == ["model"] and len(server.requests) == 1


def test_a_damaged_or_resized_copy_is_fetched_again(fetch, server):
    path = fetch()
    for options in ({}, {"sha256": None, "size": SIZE}):
        path.write_bytes(CONTENT[:-1])
        fetch(**options)
        assert path.read_bytes() == CONTENT
    assert len(server.requests) == 3


def test_progress_is_reported_from_zero_to_the_full_size(fetch):
    told = []
    fetch(progress=lambda *state: told.append(state))
    assert told[0] == ("model", 0, SIZE) and told[-1] == ("model", SIZE, SIZE)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


def test_progress_is_written_in_megabytes(capsys):
    show_progress("a.txt", 0, 2_500_000)
    show_progress("a.txt", 1_000_000, 2_500_000)  # this is no terminal
    show_progress("a.txt", 2_500_000, 2_500_000)
    assert capsys.readouterr().err == "a.txt: 0.0 of 2.5 MB\na.txt: 2.5 of 2.5 MB\n"


@pytest.mark.parametrize("headers", [{"Content-Length": None}, {"Content-Encoding": "gzip"}])
def test_responses_without_length_or_compressed_are_read(fetch, server, headers):
    server.headers["/model"] = headers
    assert fetch().read_bytes() == CONTENT


def test_redirects_are_followed_with_the_range(fetch, server):
    server.files["/resolve"] = "/model"
    server.faults = [None, ("break", 1000)]
    assert fetch("/resolve").read_bytes() == CONTENT
    assert server.requests[-1] == ("/model", "bytes=1000-")


# Breaks ------------------------------------------------------------------------------------------


def test_a_broken_connection_is_resumed(fetch, server, pauses):
    server.faults = [("break", 1000), ("break", 50), ("break", 0)]
    assert fetch().read_bytes() == CONTENT
    assert ranges(server) == [None, "bytes=1000-", "bytes=1050-", "bytes=1050-"]
    assert pauses == [0.5, 0.5, 1.0]


def test_a_stalled_connection_is_closed_and_resumed(fetch, server):
    server.faults = [("stall", 1000)]
    assert fetch(timeout=0.2).read_bytes() == CONTENT
    assert ranges(server) == [None, "bytes=1000-"]


def test_an_unfinished_download_is_resumed_by_the_next_call(fetch, server, tmp_path):
    leave_a_part(fetch, server)
    assert names(tmp_path) == ["model.part", "model.part.json"]
    assert (tmp_path / "kept" / "model.part").read_bytes() == CONTENT[:1000]
    assert fetch().read_bytes() == CONTENT
    assert ranges(server) == ["bytes=1000-"] and names(tmp_path) == ["model"]


def test_a_complete_part_needs_no_network(fetch, server, tmp_path):
    for size in (99, SIZE):
        leave_a_part(fetch, server, SIZE - 1)
        (tmp_path / "kept" / "model.part").write_bytes(CONTENT)
        if size == 99:
            with pytest.raises(ConnectionError, match=r"has 1,048,576 bytes, not 99"):
                fetch(sha256=None, size=size)
            assert names(tmp_path) == []
    assert fetch().read_bytes() == CONTENT and server.requests == []


@pytest.mark.parametrize("changed", [CONTENT[::-1], b"short"])
def test_a_replaced_file_is_not_mixed_with_the_partial_one(fetch, server, changed):
    leave_a_part(fetch, server, sha256=None)
    server.files["/model"] = changed
    assert fetch(sha256=None).read_bytes() == changed


def test_a_server_without_ranges_sends_the_whole_file_again(fetch, server):
    server.ranges = False
    server.faults = [("break", 1000)]
    assert fetch().read_bytes() == CONTENT


def test_without_an_etag_nothing_is_resumed(fetch, server):
    server.headers["/model"] = {"ETag": None}
    server.faults = [("break", 1000)]
    assert fetch().read_bytes() == CONTENT
    assert ranges(server) == [None, None]


def test_a_damaged_part_is_fetched_from_the_start(fetch, server, tmp_path):
    leave_a_part(fetch, server)
    (tmp_path / "kept" / "model.part").write_bytes(b"x" * 1000)
    assert fetch().read_bytes() == CONTENT


@pytest.mark.parametrize("note", [None, b"", b"[]", b"{}", b'{"etag": "another", "size": 1}'])
def test_a_part_of_unknown_origin_is_not_used(fetch, tmp_path, note):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "model.part").write_bytes(b"x" * 1000)
    if note is not None:
        (tmp_path / "kept" / "model.part.json").write_bytes(note)
    assert fetch(sha256=None).read_bytes() == CONTENT


def test_an_interrupted_download_can_be_resumed_later(fetch, server, tmp_path):
    def stop(name, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(progress=stop)
    assert "model" not in names(tmp_path)
    assert fetch().read_bytes() == CONTENT


# Refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_busy_server_is_retried(fetch, server, pauses, status):
    server.faults = [status, (status, "3")]
    assert fetch().read_bytes() == CONTENT
    assert pauses == [1.0, 3.0]


@pytest.mark.parametrize(
    ("faults", "match"),
    [
        ([401], "answers 401 .*wants a password"),
        ([403], "answers 403 .*try from another network"),
        ([404], "answers 404 .*look at the name and the revision"),
        ([410], "answers 410 .*is no more"),
        ([418], "answers 418 .*check the address"),
        ([429] * 5, "answers 429 .*5 times in a row; .*wait some minutes"),
        ([503] * 5, "answers 503 .*5 times in a row; try again later"),
        ([("break", 0)] * 5, "broke after 0 of 1,048,576 bytes, 5 times in a row"),
        ([("length", SIZE + 1)] * 9, r"5 times in a row; try again later"),
    ],
)
def test_a_refused_request_gives_reason_and_remedy(fetch, server, tmp_path, faults, match):
    server.faults = faults
    with pytest.raises(ConnectionError, match=match) as error:
        fetch()
    assert "download it elsewhere and save it as" in str(error.value)
    assert "model" not in names(tmp_path)
    if "length" not in str(faults):
        assert names(tmp_path) == []


def test_a_stall_reports_the_timeout(fetch, server, tmp_path):
    server.faults = [("stall", 0)] * 5
    with pytest.raises(ConnectionError, match=r"no data arrived for 0\.2 seconds, 5 times in a"):
        fetch(timeout=0.2)
    assert names(tmp_path) == []


def test_a_redirect_loop_is_refused(fetch, server):
    server.files["/circle"] = "/circle"
    with pytest.raises(ConnectionError, match=r"answers 302 .*infinite loop"):
        fetch("/circle")


def test_a_missing_network_is_reported_at_once(tmp_path, pauses):
    with pytest.raises(ConnectionError, match=r"no connection to it .*look at the network"):
        download("http://127.0.0.1:1/model", tmp_path / "model")
    assert pauses == [] and list(tmp_path.iterdir()) == []


def test_a_download_inside_a_page_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(downloads.sys, "platform", "emscripten")
    with pytest.raises(ConnectionError, match="in a web page opens no connections; run this on a"):
        download("https://example.org/model", tmp_path / "model")


def test_a_python_without_ssl_can_import_it():
    code = "import sys; sys.modules['ssl'] = None; import tinytorch.models.gpt2"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_certificate_error_names_a_remedy(tmp_path, monkeypatch):
    def refused(*args, **options):
        raise urllib.error.URLError(ssl.SSLCertVerificationError("no issuer"))

    opener = SimpleNamespace(open=refused)
    monkeypatch.setattr(downloads.urllib.request, "build_opener", lambda *handlers: opener)
    with pytest.raises(ConnectionError, match=r"Install Certificates\.command"):
        download("https://example.org/model", tmp_path / "model")


# What is not what it should be -------------------------------------------------------------------


def test_the_checksum_that_the_server_states_is_compared(fetch, server, tmp_path):
    server.files["/resolve"] = "/model"
    server.headers["/resolve"] = {"X-Linked-ETag": f'"{DIGEST}"'}
    assert fetch("/resolve", sha256=None).read_bytes() == CONTENT
    (tmp_path / "kept" / "model").unlink()
    server.headers["/resolve"] = {"X-Linked-ETag": f'"{"0" * 64}"'}
    with pytest.raises(ValueError, match=f"SHA-256 is {DIGEST}, not {'0' * 64}.*nothing was kept"):
        fetch("/resolve", sha256=None)
    assert names(tmp_path) == []
    with pytest.raises(ValueError, match=f"SHA-256 is {'0' * 64}, not {DIGEST}"):
        fetch("/resolve")  # before any of it has come
    assert names(tmp_path) == []


ADDRESSES = """ftp://h/a model https:// http://a..b/ http://h:99999/ http://h:0/ http://[::1/
http://user:word@h/a http://:80/ http://h/\x7f http://h/\0 http://h/\ud800""".split()


@pytest.mark.parametrize("url", [*ADDRESSES, "http://a/b c", "http://h/\r\nX: y", None])
def test_what_is_no_http_address_is_refused_at_once(tmp_path, pauses, url):
    with pytest.raises(ValueError, match="needs an http or https address, got"):
        download(url, tmp_path / "model")
    assert pauses == [] and list(tmp_path.iterdir()) == []


def test_an_address_may_have_characters_beyond_ascii(fetch, server):
    server.files["/caf%C3%A9%20%2F?q=%E6%97%A5"] = CONTENT
    assert fetch("/café%20%2F?q=日#part").read_bytes() == CONTENT


@pytest.mark.parametrize("wrong", [{"sha256": "abc"}, {"timeout": 0}, {"timeout": float("nan")}])
def test_a_checksum_has_64_digits_and_a_timeout_seconds(fetch, wrong):
    with pytest.raises(ValueError, match=r"must be (64 hexadecimal digits|above 0 and below 1e9)"):
        fetch(**wrong)


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKS = OK + b"Transfer-Encoding: chunked\r\n"
PACKED = OK + b"Content-Encoding: gzip\r\n"


def chunked(*parts):
    return CHUNKS + b"\r\n" + b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in [*parts, b""])


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        (chunked(b"x" * 60, CONTENT), "has more than 100 bytes, not 100; that is a different"),
        (OK + b"\r\n" + CONTENT, "has more than 100 bytes, not 100"),
        (PACKED + b"\r\n" + gzip.compress(CONTENT, mtime=0), "has more than 100 bytes, not 100"),
        (chunked(b"x" * 60), "has 60 bytes, not 100; that is a different file"),
        (PACKED + b"\r\n" + gzip.compress(b"x" * 60, mtime=0), "has 60 bytes, not 100"),
        (OK + b"Content-Length: 60\r\n\r\n" + b"x" * 60, "has 60 bytes, not 100"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", r"answers 204 \(No Content\), which brings no file"),
        (b"HTTP/1.1 202 Accepted\r\n\r\nlater", "answers 202 .*, which brings no file"),
        (OK + b"Content-Encoding: br\r\n\r\nabc", "answers 200 .* in the encoding 'br'"),
        *(
            (b"HTTP/1.1 302 Found\r\nLocation: %b\r\n\r\n" % to, "check the address")
            for to in (b"http://a..b/", b"http://h:abc/", b"ftp://h/a", b"file:///a", b"http://[/")
        ),
    ],
)
def test_another_answer_is_refused_at_once(fetch, server, tmp_path, monkeypatch, answer, match):
    written, write = [], downloads._Download._write
    spied = (lambda *given: (written.append(given[1]), write(*given)),)
    monkeypatch.setattr(downloads._Download, "_write", *spied)
    server.faults = [answer]
    with pytest.raises(ConnectionError, match=match):
        fetch(sha256=None, size=100)
    assert len(b"".join(written)) <= 100
    assert names(tmp_path) == [] and len(server.requests) == 1


CUT_OFF = [  # in a chunk, in gzip, and in several places of a header
    chunked(b"x" * 60)[:-5], PACKED + b"\r\n" + gzip.compress(CONTENT[:100], mtime=0)[:-1], PACKED,
    OK, OK[:-2], OK + b"Content-Le", CHUNKS[:-3], OK + b"Content-Length: 10", b"HTTP/1.1 20",
    OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
]  # fmt: skip


@pytest.mark.parametrize(("answer", "size"), [  # without a size, nothing says that 60 are few
    *((answer, None) for answer in CUT_OFF), (CUT_OFF[0], 100), (OK + b"\r\n" + b"x" * 60, 100),
])  # fmt: skip
def test_what_was_cut_off_is_requested_again(fetch, server, answer, size):
    server.files["/model"] = CONTENT[:100]
    server.faults = [answer]
    assert fetch(sha256=None, size=size).read_bytes() == CONTENT[:100]


CONTRADICTED = CHUNKS + b"Content-Length: 7\r\n\r\n0\r\n\r\n"  # chunks count (RFC 9112, 6.3)


@pytest.mark.parametrize("answer", [chunked(), OK + b"Content-Length: 0\r\n\r\n", CONTRADICTED])
def test_an_empty_file_is_a_file(fetch, server, answer):
    server.faults = [answer]
    assert fetch(sha256=None).read_bytes() == b""


def test_a_part_longer_than_its_range_is_not_used(fetch, server):
    head = f"HTTP/1.1 206 Partial\r\nContent-Range: bytes 1000-{SIZE - 1}/{SIZE}\r\n"
    head += f'ETag: "{zlib.crc32(CONTENT):08x}"\r\n\r\n'
    server.faults = [("break", 1000), head.encode() + CONTENT[1000:] + b"more"]
    assert fetch(sha256=None, size=SIZE).read_bytes() == CONTENT
    assert ranges(server) == [None, "bytes=1000-", None]


# The disk ----------------------------------------------------------------------------------------


def test_too_little_disk_space_is_reported_before_downloading(fetch, tmp_path, monkeypatch):
    usage = SimpleNamespace(free=100_000)
    monkeypatch.setattr(downloads.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(OSError, match=r"1\.0 MB more are needed, and 0\.1 MB are free.*free some"):
        fetch()
    assert "model" not in names(tmp_path)


def test_a_full_disk_keeps_the_partial_file(fetch, server, tmp_path):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, before[1]))
    try:
        with pytest.raises(OSError, match=r"cannot write .*free some space") as error:
            fetch()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert error.value.errno == errno.EFBIG
    assert fetch().read_bytes() == CONTENT
    assert ranges(server) == [None, "bytes=500000-"]


def test_a_folder_that_cannot_be_created_is_named(server, tmp_path):
    (tmp_path / "kept").write_text("in the way")
    with pytest.raises(OSError, match=r"cannot write .*choose another"):
        download(server.url + "/model", tmp_path / "kept" / "model")


def test_two_processes_do_not_share_a_partial_file(fetch, tmp_path):
    fcntl = pytest.importorskip("fcntl")
    (tmp_path / "kept").mkdir()
    with (tmp_path / "kept" / "model.part").open("wb") as part:
        fcntl.flock(part, fcntl.LOCK_EX)
        with pytest.raises(ConnectionError, match="another process is downloading it"):
            fetch()
    assert fetch().read_bytes() == CONTENT


PLANTS = {
    "link to nothing": lambda planted, precious: planted.symlink_to(precious.with_name("new")),
    "hard link": lambda planted, precious: planted.hardlink_to(precious),
    "folder": lambda planted, precious: planted.mkdir(),
    "pipe": lambda planted, precious: os.mkfifo(planted),
}


@pytest.mark.parametrize("place", ["model", "model.part", "model.part.json"])
@pytest.mark.parametrize("plant", PLANTS)
def test_what_was_planted_is_neither_followed_nor_waited_for(fetch, server, tmp_path, plant, place):
    (tmp_path / "kept").mkdir()
    (tmp_path / "precious").write_text("old")
    PLANTS[plant](tmp_path / "kept" / place, tmp_path / "precious")
    if place == "model.part" or plant == "folder":
        with pytest.raises(OSError, match=r"cannot write .*; (delete that|make|add|choose)"):
            fetch()
        assert server.requests == [] or place == "model.part.json"
    else:
        assert fetch().read_bytes() == CONTENT and names(tmp_path) == ["model"]
    assert (tmp_path / "precious").read_text() == "old" and not (tmp_path / "new").exists()


def test_a_variable_names_another_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TINYTORCH_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"


def test_the_cache_folder_follows_the_platform(monkeypatch, tmp_path):
    monkeypatch.setattr(downloads.sys, "platform", "linux")
    monkeypatch.delenv("TINYTORCH_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "tinytorch"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(downloads.Path, "home", lambda: tmp_path)
    assert cache_folder() == tmp_path / ".cache" / "tinytorch"
    monkeypatch.setattr(downloads.sys, "platform", "darwin")
    assert cache_folder() == tmp_path / "Library" / "Caches" / "tinytorch"
    monkeypatch.setattr(downloads.sys, "platform", "win32")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    assert cache_folder() == tmp_path / "AppData" / "Local" / "tinytorch"

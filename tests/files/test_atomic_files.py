"""Files are whole or not there, and only a regular file is replaced."""

import errno
import os
import signal
import socket
import stat
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from exact_numbers import message

from tinytorch.files.atomic_files import readable_file, write_atomically

posix = pytest.mark.skipif(os.name != "posix", reason="permissions and pipes are those of POSIX")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "poem.txt"


def names(folder):
    return sorted(file.name for file in folder.iterdir())


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


# Whole or not at all -----------------------------------------------------------------------------


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "folders" / "poem.txt"
    write_atomically(path, b"old")
    write_atomically(str(path), b"new ", memoryview(b"file"))
    assert path.read_bytes() == b"new file"
    with pytest.raises(TypeError):
        write_atomically(path, b"half", "not bytes")
    assert path.read_bytes() == b"new file"
    assert names(path.parent) == ["poem.txt"]


def test_writing_through_a_link_keeps_the_link(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/other link")
    (tmp_path / "there" / "other link").symlink_to("poem.txt")
    for content in (b"the first", b"the second"):
        write_atomically(tmp_path / "link", content)
        assert (tmp_path / "there" / "poem.txt").read_bytes() == content
    assert (tmp_path / "link").is_symlink() and names(tmp_path) == ["link", "there"]
    assert (tmp_path / "there" / "other link").is_symlink()


# Permissions -------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("allowed", [0o600, 0o640, 0o664, 0o777, 0o4755])
def test_a_file_keeps_its_mode_without_setuid(path, allowed):
    path.write_bytes(b"old")
    path.chmod(allowed)
    write_atomically(path, b"new")
    assert mode(path) == allowed & 0o777


@posix
def test_a_new_file_obeys_the_umask(path):
    before = os.umask(0o027)
    try:
        write_atomically(path, b"new")
    finally:
        os.umask(before)
    assert mode(path) == 0o640


@contextmanager
def ordinary_user():
    """A folder in which this process has the rights of an ordinary user, also if it is root."""
    with tempfile.TemporaryDirectory() as name:
        if os.geteuid() != 0:
            yield Path(name)
            return
        os.chown(name, 65534, 65534)
        os.setegid(65534)
        os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            os.seteuid(0)
            os.setegid(0)


@posix
def test_a_write_protected_file_is_not_replaced():
    with ordinary_user() as folder:
        path = folder / "poem.txt"
        path.write_bytes(b"old")
        path.chmod(0o444)
        told = message(PermissionError, lambda: write_atomically(path, b"new"))
        assert f"cannot write {str(path)!r}: Permission denied; make the file and its " in told
        assert path.read_bytes() == b"old" and names(folder) == ["poem.txt"]


@posix
@pytest.mark.parametrize("name", ["poem.txt", "new.txt", "new folder/new.txt"])
def test_a_read_only_folder_is_named_and_unchanged(name):
    with ordinary_user() as folder:
        (folder / "poem.txt").write_bytes(b"old")
        folder.chmod(0o555)
        try:
            told = message(PermissionError, lambda: write_atomically(folder / name, b"new"))
            assert f"cannot write {str(folder / name)!r}: Permission denied; make the " in told
            assert (folder / "poem.txt").read_bytes() == b"old" and names(folder) == ["poem.txt"]
        finally:
            folder.chmod(0o755)


# What is no regular file -------------------------------------------------------------------------


@posix
def test_a_named_pipe_that_nobody_reads_is_refused_at_once(path):
    os.mkfifo(path)
    assert message(ValueError, lambda: write_atomically(path, b"new")) == (
        f"cannot write {str(path)!r}: it is a named pipe; give the path of a regular file"
    )
    assert stat.S_ISFIFO(path.stat().st_mode) and names(path.parent) == ["poem.txt"]
    assert "is a named pipe" in message(ValueError, lambda: readable_file(path))


@posix
@pytest.mark.parametrize("device", ["/dev/full", "/dev/null", "/dev/zero"])
@pytest.mark.parametrize("linked", [False, True])
def test_a_device_is_refused_and_not_replaced(tmp_path, device, linked):
    if not os.path.exists(device):
        pytest.skip(f"this system has no {device}")
    path = Path(device)
    if linked:
        path = tmp_path / "link"
        path.symlink_to(device)
    assert "it is a device; give the path" in message(ValueError, lambda: write_atomically(path))
    assert "is a device" in message(ValueError, lambda: readable_file(path))
    assert stat.S_ISCHR(os.stat(device).st_mode)


@posix
def test_a_socket_is_refused_and_not_replaced(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("here")
        assert "it is a socket" in message(ValueError, lambda: write_atomically("here", b"x"))
        assert stat.S_ISSOCK(os.stat("here").st_mode)


def test_a_folder_is_refused(tmp_path):
    for name in (tmp_path, f"{tmp_path}/", f"{tmp_path}/new/", ""):
        told = message(IsADirectoryError, lambda name=name: write_atomically(name, b"x"))
        assert f"cannot write {str(name)!r}: " in told and "add a file name" in told
    assert names(tmp_path) == []
    assert "is a folder" in message(ValueError, lambda: readable_file(tmp_path))


# Disks and names ---------------------------------------------------------------------------------


def assert_refused(path, error, *parts):
    """The error names the path and its parts, the old file is there and nothing else."""
    before = names(path.parent)
    told = message(error, lambda: write_atomically(path, b"new" * 50_000))
    assert f"cannot write {str(path)!r}: " in told
    for part in parts:
        assert part in told
    assert names(path.parent) == before


@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(path, monkeypatch, where):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    path.write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, where, full)
        assert_refused(path, OSError, "No space left on device; free some space, or choose")
    assert path.read_bytes() == b"old"
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path):
    for letter in "aä文":
        path = tmp_path / (letter * (255 // len(letter.encode())))
        write_atomically(path, b"old")
        write_atomically(path, b"new")
        assert path.read_bytes() == b"new"
        assert_refused(tmp_path / f"{path.name}{letter}", OSError, "choose a shorter name")


def test_a_parent_that_is_a_file_is_named(path):
    path.write_bytes(b"old")
    told = message(OSError, lambda: write_atomically(path / "inside", b"new"))
    assert f"cannot write {str(path / 'inside')!r}: Not a directory; choose another path" in told
    assert path.read_bytes() == b"old"


@posix
def test_an_interrupt_leaves_the_old_file(path, monkeypatch):
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", lambda descriptor: signal.raise_signal(signal.SIGINT))
    # where pytest runs in the background, the shell has had interrupts ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            write_atomically(path, b"new")
    finally:
        signal.signal(signal.SIGINT, before)
    assert path.read_bytes() == b"old" and names(path.parent) == ["poem.txt"]

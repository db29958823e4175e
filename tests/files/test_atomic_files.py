"""Files are whole or not there, and nothing but a regular file is ever replaced."""

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from exact_numbers import message

from tinytorch.files import atomic_files
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


def test_a_file_is_written_through_links_which_stay(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("there/other link")
    (tmp_path / "there" / "other link").symlink_to("poem.txt")
    for content in (b"the first", b"the second"):
        write_atomically(tmp_path / "link", content)
        assert (tmp_path / "there" / "poem.txt").read_bytes() == content
    assert (tmp_path / "link").is_symlink() and names(tmp_path) == ["link", "there"]
    assert (tmp_path / "there" / "other link").is_symlink()


@posix
def test_a_hard_link_keeps_the_old_content(path):
    path.write_bytes(b"old")
    os.link(path, path.with_name("copy"))
    write_atomically(path, b"new")
    assert path.with_name("copy").read_bytes() == b"old"


# Permissions -------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("allowed", [0o600, 0o640, 0o664, 0o777, 0o4755])
def test_a_file_keeps_its_mode_but_for_the_bits_that_lend_its_owners_rights(path, allowed):
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


@posix
def test_nobody_else_can_open_a_private_file_while_it_is_written(path, monkeypatch):
    path.write_bytes(b"old")
    path.chmod(0o600)
    seen, honest = [], os.chmod

    def look(temporary, allowed):
        seen.append(mode(temporary))
        honest(temporary, allowed)
        seen.append(mode(temporary))

    monkeypatch.setattr(os, "chmod", look)
    write_atomically(path, b"new")
    assert seen == [0o600, 0o600]


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
def test_a_read_only_folder_is_told_and_stays_as_it_is(name):
    with ordinary_user() as folder:
        (folder / "poem.txt").write_bytes(b"old")
        folder.chmod(0o555)
        try:
            told = message(PermissionError, lambda: write_atomically(folder / name, b"new"))
            assert f"cannot write {str(folder / name)!r}: Permission denied; make the " in told
            assert (folder / "poem.txt").read_bytes() == b"old" and names(folder) == ["poem.txt"]
        finally:
            folder.chmod(0o755)


@posix
def test_an_ordinary_user_keeps_the_mode_too():
    with ordinary_user() as folder:
        path = folder / "poem.txt"
        path.write_bytes(b"old")
        path.chmod(0o660)
        write_atomically(path, b"new")
        assert mode(path) == 0o660 and path.read_bytes() == b"new"


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


STREAM = (
    "from tinytorch.files.atomic_files import write_atomically as w; print('said'); w({!r}, b'')"
)


@posix
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("to", ["a file", "a pipe"])
def test_the_output_of_a_process_is_refused_wherever_it_goes(tmp_path, name, to):
    if not os.path.exists(name):
        pytest.skip(f"this system has no {name}")
    with open(tmp_path / "output", "wb+") as file:
        output = file if to == "a file" else subprocess.PIPE
        command = [sys.executable, "-c", STREAM.format(name)]
        done = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True)
    assert f"ValueError: cannot write '{name}': it is a " in done.stderr
    said = (tmp_path / "output").read_text() if to == "a file" else done.stdout
    assert said == "said\n" and names(tmp_path) == ["output"]


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


LIMITED = """
import resource, sys
from tinytorch.files.atomic_files import write_atomically
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
write_atomically(sys.argv[1], b"new" * 50_000)
"""


@posix
def test_a_file_over_the_limit_of_the_system_leaves_the_old_one(path):
    path.write_bytes(b"old")
    command = [sys.executable, "-c", LIMITED, str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert f"cannot write {str(path)!r}: File too large; free some space" in done.stderr
    assert path.read_bytes() == b"old" and names(path.parent) == ["poem.txt"]


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path):
    for letter in "aä文":
        path = tmp_path / (letter * (255 // len(letter.encode())))
        write_atomically(path, b"old")
        write_atomically(path, b"new")
        assert path.read_bytes() == b"new"
        assert_refused(tmp_path / f"{path.name}{letter}", OSError, "choose a shorter name")


def test_a_folder_that_is_a_file_is_told(path):
    path.write_bytes(b"old")
    told = message(OSError, lambda: write_atomically(path / "inside", b"new"))
    assert f"cannot write {str(path / 'inside')!r}: Not a directory; choose another path" in told
    assert path.read_bytes() == b"old"


def test_a_link_to_itself_is_told(path):
    path.symlink_to(path.name)
    assert_refused(path, OSError, "symbolic links; choose another path")


def test_a_folder_that_vanishes_while_it_is_written_to_is_told(tmp_path, monkeypatch):
    import shutil

    folder = tmp_path / "folder"
    honest = os.fsync

    def vanish(descriptor):
        honest(descriptor)
        shutil.rmtree(folder)

    monkeypatch.setattr(os, "fsync", vanish)
    told = message(FileNotFoundError, lambda: write_atomically(folder / "poem.txt", b"new"))
    assert f"cannot write {str(folder / 'poem.txt')!r}: No such file or directory; choose" in told
    assert names(tmp_path) == []


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


# What killed processes leave behind --------------------------------------------------------------

WRITER = """
import os, sys
from tinytorch.files.atomic_files import write_atomically

def wait(descriptor):
    print("under way", flush=True)
    sys.stdin.read()  # until the test says so, or kills this process

os.fsync = wait
write_atomically(sys.argv[1], b"from the writer")
"""


@pytest.fixture
def start_writing():
    """Start a process that has written a temporary file, but not renamed it yet."""
    processes = []

    def start(path):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        assert process.stdout.readline() == "under way\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@posix
def test_what_a_killed_writer_left_behind_is_removed_at_the_next_write(path, start_writing):
    path.write_bytes(b"old")
    for _ in range(3):
        process = start_writing(path)
        assert len(names(path.parent)) == 2  # what the one before had left is gone
        process.kill()
        process.wait()
    assert path.read_bytes() == b"old" and len(names(path.parent)) == 2
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new" and names(path.parent) == ["poem.txt"]


@posix
def test_a_writer_that_is_alive_keeps_its_temporary_file(path, start_writing):
    process = start_writing(path)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new" and len(names(path.parent)) == 2
    process.communicate("")  # go on
    assert process.returncode == 0
    assert path.read_bytes() == b"from the writer" and names(path.parent) == ["poem.txt"]


@posix
def test_what_belongs_to_others_is_not_removed(path, start_writing):
    process = start_writing(path.with_name("poem.txt.gz"))  # another file with a similar name
    process.kill()
    process.wait()
    (left,) = names(path.parent)
    own = atomic_files._temporary_start(path)
    others = [
        left, "poem.txt.part", "poem.txt.0123456789ab.part", f"{own}0123456789ab",
        f"{own}0123456789abc.part", f"{own}my own notes.part",
    ]  # fmt: skip
    for name in others:
        path.with_name(name).touch()
    path.with_name(f"{own}aaaaaaaaaaaa.part").mkdir()
    os.mkfifo(path.with_name(f"{own}bbbbbbbbbbbb.part"))
    path.with_name(f"{own}cccccccccccc.part").symlink_to("poem.txt.part")
    before = names(path.parent)
    write_atomically(path, b"new")
    assert names(path.parent) == sorted([*before, "poem.txt"])


@posix
def test_a_file_taken_for_abandoned_before_it_was_locked_is_made_again(path, monkeypatch):
    honest, taken = atomic_files.lock, []

    def too_late(descriptor):
        if not taken:
            taken.extend(path.parent.iterdir())
            taken[0].unlink()
        return honest(descriptor)

    monkeypatch.setattr(atomic_files, "lock", too_late)
    write_atomically(path, b"new")
    assert len(taken) == 1 and path.read_bytes() == b"new" and names(path.parent) == ["poem.txt"]


def test_a_system_without_locks_removes_nothing_and_writes(path, monkeypatch):
    left = path.with_name(f"{atomic_files._temporary_start(path)}aaaaaaaaaaaa.part")
    left.touch()
    monkeypatch.setattr(atomic_files, "lock", lambda descriptor: None)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new" and left.exists()


MANY = """
import sys
from tinytorch.files.atomic_files import write_atomically
for number in range(200):
    write_atomically(sys.argv[1], sys.argv[2].encode() * (100_000 + number))
"""


def test_two_processes_may_write_one_file_again_and_again(path):
    processes = [
        subprocess.Popen([sys.executable, "-c", MANY, str(path), letter], stderr=subprocess.PIPE)
        for letter in "ab"
    ]
    try:
        while any(process.poll() is None for process in processes):
            content = path.read_bytes() if path.exists() else b"a" * 100_000
            assert len(content) >= 100_000 and content in (
                b"a" * len(content),
                b"b" * len(content),
            )
    finally:
        for process in processes:
            process.kill()
        errors = [process.communicate()[1] for process in processes]
    assert errors == [b"", b""] and [p.returncode for p in processes] == [0, 0]
    assert names(path.parent) == ["poem.txt"]

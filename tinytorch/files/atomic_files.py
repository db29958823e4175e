"""Files that are either whole or not there: everything the package saves is written this way."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imported where it is needed, for it takes a twentieth of the package's import
    from pathlib import Path

StrPath = str | os.PathLike[str]
_SPACE = "free some space, or choose another disk"
_RIGHTS = "make the file and its folder writable, or choose another path"
REMEDIES = dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), _SPACE)
REMEDIES |= dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _RIGHTS)
REMEDIES |= {errno.ENAMETOOLONG: "choose a shorter name", errno.EISDIR: "add a file name"}


def write_atomically(path: StrPath, *chunks: bytes | memoryview) -> None:
    r"""Write a file under a temporary name in the same folder, then rename it.

    A reader sees the old file or the new one, never half of it. If writing fails, the old file is
    still there and the temporary one is removed; what a killed process has left behind is removed
    when the same file is written again. A missing folder is made. A symbolic link stays a link: the
    file that it points to is replaced. An old file's mode stays; a hard link to it keeps the old
    content.

    Args:
        path: where the file shall be; devices, named pipes and sockets are refused.
        chunks: the content, one piece after the other.

    Raises:
        OSError: the file cannot be written; the message names the path and a remedy. Its class is
            that of the cause, such as `PermissionError`.
        ValueError: the path cannot be one, or is that of a device, a named pipe or a socket.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "new folder" / "poem.txt"
        >>> write_atomically(path, b"Roses are red,\n", b"violets are blue.\n")
        >>> path.read_bytes()
        b'Roses are red,\nviolets are blue.\n'
        >>> [file.name for file in path.parent.iterdir()]
        ['poem.txt']
    """
    from pathlib import Path

    name = os.fsdecode(path)
    try:
        old = _old_file(name)
        target = Path(os.path.realpath(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(target)
        _write(target, old, chunks)
    except OSError as error:
        remedy = REMEDIES.get(error.errno or 0, "choose another path")
        why = error.strerror or error
        raise OSError(error.errno, f"cannot write {name!r}: {why}; {remedy}") from error


def readable_file(path: StrPath) -> Path:
    """The path, if a regular file is there: reading a named pipe or a device might never end.

    Raises:
        FileNotFoundError: there is nothing.
        ValueError: it is a folder, a device, a named pipe or a socket.

    Example:
        >>> readable_file("no.json")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        FileNotFoundError: there is no file 'no.json' (looked from ...)
    """
    from pathlib import Path

    file = Path(path)
    if not os.path.exists(file):  # never an error, however long the name
        here = str(Path.cwd())
        raise FileNotFoundError(f"there is no file {str(file)[:200]!r} (looked from {here!r})")
    if not file.is_file():
        raise ValueError(f"{str(file)!r} is a {_kind(file.stat())}; pass the path of a file")
    return file


# Helpers -------------------------------------------------------------------------------------


def _old_file(name: str) -> os.stat_result | None:
    """The status of the file to replace, None if there is none; raises if it must stay."""
    if not os.path.basename(name) or os.path.isdir(name):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    try:
        old = os.stat(name)
    except FileNotFoundError:
        return None
    kind = "stream of a process" if _is_stream(name) else _kind(old)
    if kind != "file":
        raise ValueError(f"cannot write {name!r}: it is a {kind}; give the path of a regular file")
    with open(name, "r+b"):  # a rename would replace a write-protected file as well
        return old


def _kind(status: os.stat_result) -> str:
    letters = {"-": "file", "d": "folder", "p": "named pipe", "s": "socket"}
    return letters.get(stat.filemode(status.st_mode)[0], "device")


def _is_stream(name: str) -> bool:
    """Whether this is /dev/stdout or the like, a link which may lead to a regular file."""
    folder = os.path.realpath(os.path.dirname(name))
    return os.path.islink(name) and (folder == "/dev" or folder.startswith("/proc/"))


def _write(target: Path, old: os.stat_result | None, chunks: Iterable[Any]) -> None:
    """Write a temporary file and give it the name of the target."""
    temporary, descriptor = _new_temporary(target, 0o666 if old is None else 0o600)
    try:
        with open(descriptor, "wb") as file:
            if old is not None:
                with suppress(OSError):  # not every file system has modes
                    os.chmod(temporary, old.st_mode & 0o777)
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())  # on the disk before the name points to it
            if sys.platform == "win32":
                file.close()  # Windows renames no open file
            os.replace(temporary, target)  # still locked, so that nobody takes it for abandoned
    except BaseException:
        with suppress(OSError):  # the error under way matters more
            temporary.unlink(missing_ok=True)
        raise


def _new_temporary(target: Path, mode: int) -> tuple[Path, int]:
    """A new file beside the target, locked for as long as it is open."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        path = target.with_name(f"{_temporary_start(target)}{os.urandom(6).hex()}.part")
        descriptor = os.open(path, flags, mode)  # less the umask
        if lock(descriptor) is not False and path.exists():
            return path, descriptor
        os.close(descriptor)  # another writer has just taken it for abandoned


def _temporary_start(target: Path) -> str:
    """How temporary names begin: readable, short enough, and different for each target."""
    return f"{target.name[:32]}.{zlib.crc32(os.fsencode(target.name)):08x}-"


def lock(descriptor: int) -> bool | None:
    """Lock an open file: True; False if somebody else has, None without locks."""
    try:
        import fcntl  # which Windows and browsers lack

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError) as error:
        return False if isinstance(error, BlockingIOError) else None
    return True


def _remove_abandoned(target: Path) -> None:
    """Remove the temporary files of this target whose writers have been killed."""
    name = re.compile(re.escape(_temporary_start(target)) + r"[0-9a-f]{12}\.part")
    with suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if name.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError), open(entry.path, "rb") as file:
                    if lock(file.fileno()):  # the system unlocks what a killed process had locked
                        os.unlink(entry.path)

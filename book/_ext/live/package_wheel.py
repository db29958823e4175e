"""The package as a wheel: what the pages' Python and the bare environment of the tests install."""

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

from sphinx.errors import SphinxError

from ..execution.cached_runs import fingerprint

FOLDER = Path("_build/wheel")


class CannotBuild(SphinxError):
    """The build backend failed."""

    category = "Wheel error"


def wheel_name(root: Path) -> str:
    """Name the package's wheel as the build backend will."""
    project = (root / "pyproject.toml").read_text(encoding="utf-8")
    package = (root / "tinytorch" / "__init__.py").read_text(encoding="utf-8")
    name = re.search(r'^name = "([^"]+)"', project, re.M)[1]
    version = re.search(r'^__version__ = "([^"]+)"', package, re.M)[1]
    return f"{name.replace('-', '_')}-{version}-py3-none-any.whl"


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

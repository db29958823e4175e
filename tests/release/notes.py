"""Write what a release says of itself, if its tag, the version and the changelog agree.

python tests/release/notes.py v1.0.0 notes.md
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECTION = r"^## {version} \(([^)]+)\)\n(.*?)(?=^## |\Z)"


class CannotRelease(Exception):
    """Something does not agree."""


def notes(tag: str, root: Path = ROOT) -> str:
    """Give the changelog's section of a version.

    Raises:
        CannotRelease: The tag is not the package's version; or the changelog has no such section,
            or says that it is not released.
    """
    package = (root / "tinytorch" / "__init__.py").read_text(encoding="utf-8")
    version = tag.removeprefix("v")
    is_ = re.search(r'^__version__ = "(.+)"$', package, re.M)[1]
    if is_ != version:
        raise CannotRelease(f"tinytorch.__version__ says {is_}, and the tag {tag}: make them agree")
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(SECTION.format(version=re.escape(version)), changes, re.M | re.S)
    if not found or not re.fullmatch(r"\d{4}-\d\d-\d\d", found[1]):
        when = found[1] if found else "nothing"
        raise CannotRelease(f"CHANGELOG.md has {when} where the date of {version} should stand")
    return found[2].strip() + "\n"


def main(tag: str, target: str) -> int:
    """Write the notes to a file; returns the exit status."""
    try:
        Path(target).write_text(notes(tag), encoding="utf-8")
    except CannotRelease as error:
        print(f"cannot release {tag}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Fetch axe-core, which tests how accessible a page is, into _build: pinned and verified.

python tests/browser/axe.py
"""

import hashlib
import io
import sys
import tarfile
import urllib.error
import urllib.request
from pathlib import Path

VERSION = "4.14.1"
URL = f"https://registry.npmjs.org/axe-core/-/axe-core-{VERSION}.tgz"
MEMBER = "package/axe.min.js"
SHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
SCRIPT = Path(__file__).resolve().parents[2] / "_build" / "axe" / f"axe-{VERSION}.min.js"


def script() -> str:
    """Give the script, fetched if it is not there.

    Raises:
        OSError: if it cannot be fetched.
        ValueError: if what came is not the pinned file.
    """
    if not SCRIPT.exists() or digest(SCRIPT.read_bytes()) != SHA256:
        with urllib.request.urlopen(URL, timeout=30) as answer:
            archive = tarfile.open(fileobj=io.BytesIO(answer.read()))
        content = archive.extractfile(MEMBER).read()
        if digest(content) != SHA256:
            raise ValueError(f"{URL} holds another {MEMBER}: sha256 {digest(content)}")
        SCRIPT.parent.mkdir(parents=True, exist_ok=True)
        partial = SCRIPT.with_suffix(".part")
        partial.write_bytes(content)
        partial.replace(SCRIPT)
    return SCRIPT.read_text(encoding="utf-8")


def digest(content: bytes) -> str:
    """Give the hash as hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    try:
        script()
    except (OSError, ValueError) as error:
        sys.exit(f"cannot fetch axe-core: {error}")
    print(f"axe-core {VERSION} is in {SCRIPT.parent}")

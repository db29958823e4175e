"""Check what is to be released: the wheel and the source archive, each where nothing else is.

    python tests/release/dist.py            every Python from 3.11 to 3.14 that uv finds here
    python tests/release/dist.py 3.12       only this one

Each archive is installed into an empty environment, with NumPy alone; its commands run, then every
example of every docstring; those of the figures once matplotlib is there.
"""

import argparse
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIST = ROOT / "dist"
WORK = ROOT / "_build" / "dist"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
UV = [str(Path(sys.executable).with_name("uv"))]
EXAMPLES = Path(__file__).with_name("examples.py")


class CannotRelease(Exception):
    """Something in the archives is not as it should be."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("versions", nargs="*", default=VERSIONS, help="3.11 3.12 ...")
    options = parser.parse_args(arguments)
    try:
        wheel, source = build()
        compare(wheel, source)
        run([sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(source)])
        found = {version: path for version in options.versions if (path := find(version))}
        for version, path in found.items():
            try_out(wheel, version, path)
        try_out(source, *next(iter(found.items())))
    except (CannotRelease, StopIteration) as error:
        print(f"not fit to be released: {error or 'no Python was found'}", file=sys.stderr)
        return 1
    lacking = [version for version in options.versions if version not in found]
    print(f"fit to be released: {wheel.name}, {source.name}; tried on {', '.join(found)}", end="")
    print(f"; not here: {', '.join(lacking)}" if lacking else "")
    return 0


def build() -> tuple[Path, Path]:
    """Build both archives by the pinned build backend, without the network."""
    shutil.rmtree(DIST, ignore_errors=True)
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    run([sys.executable, "-m", "hatchling", "build", "-d", str(DIST)], cwd=ROOT)
    (wheel,), (source,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, source


def compare(wheel: Path, source: Path) -> None:
    """Find out whether the source archive gives the same package as the tree does."""
    shutil.unpack_archive(source, WORK)
    tree = WORK / source.name.removesuffix(".tar.gz")
    run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(WORK)], cwd=tree)
    if contents(WORK / wheel.name) != contents(wheel):
        raise CannotRelease("the wheel of the source archive differs from that of the tree")
    folders = ("tinytorch", "book/lab/tinytorch_book")
    listed = run(["git", "ls-files", *folders], cwd=ROOT).split()
    tracked = [name.removeprefix("book/lab/") for name in listed]
    missing = sorted(set(tracked) - set(contents(wheel)))
    ours = [n for n in contents(wheel) if n.startswith(("tinytorch/", "tinytorch_book/"))]
    strange = sorted(set(ours) - set(tracked))
    licences = {n.rpartition("/")[2] for n in contents(wheel) if ".dist-info/licenses/" in n}
    if lacking := {"LICENSE", "LICENSE-prose", "THIRD-PARTY.md"} - licences:
        raise CannotRelease(f"the wheel lacks its licences {sorted(lacking)}")
    if missing or strange:
        raise CannotRelease(f"the wheel lacks {missing}, and has {strange} that git does not know")


def contents(wheel: Path) -> dict[str, bytes]:
    """Read every file of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def find(version: str) -> str:
    """Find a Python that is installed here, by pyenv too; nothing is fetched."""
    command = [*UV, "python", "find", "--no-project", "--no-python-downloads", "--system", version]
    found = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    return found or next(map(str, sorted(pyenv.glob(f"{version}.*/bin/python"))), "")


def try_out(archive: Path, version: str, python: str) -> None:
    """Install an archive into an empty environment and run all that it says."""
    place = WORK / f"{version}-{'wheel' if archive.suffix == '.whl' else 'source'}"
    inside = str(place / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    run([*UV, "venv", "--quiet", "--python", python, str(place)])
    install = [*UV, "pip", "install", "--quiet", "--python", inside]
    run([*install, str(archive)])
    said = run([inside, "-I", "-m", "tinytorch_book"], cwd=WORK)
    examples = run([inside, "-I", str(EXAMPLES)], cwd=WORK)
    run([*install, f"tinytorch-book[plots] @ {archive.as_uri()}"])
    figures = run([inside, "-I", str(EXAMPLES), "plots"], cwd=WORK)
    print(f"{place.name}: {said.splitlines()[0]} {examples.strip()}; {figures.strip()}", flush=True)


def run(command: list[str], cwd: Path | None = None) -> str:
    """Run a command; returns what it prints."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        raise CannotRelease(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())

"""Fetch what JupyterLite's kernel needs beside Python, NumPy and matplotlib: IPython and its kin.

    python book/_live/kernel.py             fetch what is missing into _build/live/kernel
    python book/_live/kernel.py --check     fetch nothing; say whether it is all there

`kernel.txt` names each wheel's version and sha256; pip brings them from the package index and
refuses any other file. All of them are pure Python. Nothing of this is committed.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PINS = Path(__file__).with_name("kernel.txt")
FOLDER = ROOT / "_build" / "live" / "kernel"
PIN = re.compile(r"^([\w.-]+)==([\w.]+) \\\n +--hash=sha256:([0-9a-f]{64})$", re.M)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fetch nothing, name what is missing")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the wheels go")
    options = parser.parse_args(arguments)
    missing = missing_packages(options.folder)
    if missing and not options.check:
        problem = fetch(options.folder)
        if problem:
            print(f"cannot fetch {', '.join(missing)}: {problem}", file=sys.stderr)
            return 1
        missing = missing_packages(options.folder)
    if missing:
        print(f"{options.folder} lacks {', '.join(missing)}: say `make live`", file=sys.stderr)
        return 1
    size = sum(path.stat().st_size for path in options.folder.iterdir())
    print(f"What JupyterLite's kernel needs is in {options.folder} ({size / 1e6:.1f} MB)")
    return 0


def pins() -> dict[str, tuple[str, str]]:
    """Give version and sha256 of each package."""
    found = PIN.findall(PINS.read_text(encoding="utf-8"))
    return {name: (version, digest) for name, version, digest in found}


def wheels(folder: Path) -> dict[str, Path]:
    """Give the wheel of each package that is there as it should be."""
    there = {sha256(path): path for path in sorted(folder.glob("*.whl"))}
    return {name: there[digest] for name, (_, digest) in pins().items() if digest in there}


def missing_packages(folder: Path) -> list[str]:
    """Name the packages whose wheel is not there, or is not what it should be."""
    return sorted(pins().keys() - wheels(folder).keys())


def fetch(folder: Path) -> str:
    """Bring every wheel into the folder, in place of what was there; returns what went wrong."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
    command += ["--disable-pip-version-check", "--only-binary=:all:", "--python-version=3.14"]
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".kernel-") as place:
        command += ["--require-hashes", "--requirement", str(PINS), "--dest", place]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return (done.stderr.strip() or "pip gave no reason").splitlines()[-1]
        folder.mkdir(exist_ok=True)
        for old in folder.glob("*.whl"):
            old.unlink()
        for new in Path(place).glob("*.whl"):
            new.replace(folder / new.name)
    return ""


def sha256(path: Path) -> str:
    """Give the hash of a file as hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())

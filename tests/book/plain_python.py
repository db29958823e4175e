"""Make the Python that tests the notebooks: NumPy, matplotlib, a kernel and the package's wheel.

    python tests/book/plain_python.py

It stands in `_build/plain_python`, has the versions of the environment that runs this, and is made
once: again when one of them changes, and the wheel is put in again when the package changes.
Jupyter finds its kernel, `plain-python`, through JUPYTER_PATH=_build/plain_python/share/jupyter.
"""

import json
import os
import shutil
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "book"))

from _ext.live.package_wheel import wheel  # noqa: E402

FOLDER = ROOT / "_build" / "plain_python"
NEEDED = ["numpy", "matplotlib", "ipykernel"]
KERNEL = "plain-python"
ARGUMENTS = ["-I", "-m", "ipykernel_launcher", "--log-level=ERROR", "-f", "{connection_file}"]


def main() -> int:
    """Make what is missing; returns the exit status."""
    python = FOLDER / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    versions = sorted(f"{d.name}=={d.version}" for d in metadata.distributions())
    needed = [f"{name}=={metadata.version(name)}" for name in NEEDED]
    try:
        if not is_noted("environment", [sys.version, *needed]):
            make_environment(python, versions)
            note("environment", [sys.version, *needed])
        built = wheel(ROOT)
        if not is_noted("package", [str(built)]):
            pip(python, "--force-reinstall", "--no-deps", str(built))
            note("package", [str(built)])
    except subprocess.CalledProcessError as error:
        print(f"cannot make {FOLDER}: {error.stderr.strip()}", file=sys.stderr)
        return 1
    print(f"{KERNEL} is in {FOLDER}: {', '.join(needed)} and {built.name}")
    return 0


def make_environment(python: Path, versions: list[str]) -> None:
    """Make the environment again: what is needed, in the versions of this one, and its kernel."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    venv.create(FOLDER, with_pip=True)
    allowed = FOLDER / "versions.txt"
    allowed.write_text("\n".join(v for v in versions if "tinytorch" not in v), encoding="utf-8")
    pip(python, "--only-binary=:all:", "--constraint", str(allowed), *NEEDED)
    place = FOLDER / "share" / "jupyter" / "kernels" / KERNEL
    place.mkdir(parents=True)
    kernel = {"argv": [str(python), *ARGUMENTS], "display_name": KERNEL, "language": "python"}
    (place / "kernel.json").write_text(json.dumps(kernel, indent=1), encoding="utf-8")


def pip(python: Path, *arguments: str) -> None:
    """Install into the environment."""
    options = ["--disable-pip-version-check", "--no-input", "--quiet"]
    command = [str(python), "-m", "pip", "install", *options, *arguments]
    subprocess.run(command, check=True, capture_output=True, text=True)


def is_noted(what: str, state: list[str]) -> bool:
    """Say whether a part was made from this very state."""
    path = FOLDER / f"{what}.json"
    return path.exists() and json.loads(path.read_text(encoding="utf-8")) == state


def note(what: str, state: list[str]) -> None:
    """Note what a part was made from; it is whole now."""
    (FOLDER / f"{what}.json").write_text(json.dumps(state), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

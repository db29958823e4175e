"""Install a group of packages of pyproject.toml into `.venv`, as requirements/lock.txt pins them.

    python requirements/install.py test      what the tests need, and what lies below
    python requirements/install.py --pins    pin the newest allowed versions of all packages

It needs only a Python that is new enough. uv installs the rest, from where pip would take it:
every file must have a hash of the lock. A group that is installed is left alone.
"""

import ast
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

NEEDED = (3, 11)
ROOT = Path(__file__).resolve().parents[1]
VENV = Path(".venv")
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = str(BIN / "python")
PROFILE = VENV / "ipython/profile_default/ipython_kernel_config.py"
LOCK = Path("requirements/lock.txt")
PROJECT = Path("pyproject.toml")

# The groups: the one below each, which is installed before it, and what it brings.
GROUPS = {
    "uv": ("", "uv, which installs the rest"),
    "book": ("uv", "what the book needs, about 300 MB"),
    "test": ("book", "what the tests need"),
    "dev": ("book", "what the style checks need"),
    "dist": ("book", "what reads the archives of a release"),
    "wasm": ("book", "the compiler of the page's kernels"),
    "classroom": ("test", "nbgrader"),
    "parity": ("test", "the reference frameworks (PyTorch is large: this can take minutes)"),
}
# An option of pip's configuration, and uv's variable for the same.
AS_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_OFFLINE",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
}


def main(asked):
    """Install a group, or compile the pins."""
    os.chdir(ROOT)
    check_python()
    if asked == "--pins":
        install("uv")
        compile_pins()
    else:
        install(asked)


def check_python():
    """Exit with a remedy if this Python is too old or cannot make a virtual environment."""
    how = "make PYTHON=/path/to/python3.11 ..., or /path/to/python3.11 tasks.py ..."
    if sys.version_info < NEEDED:
        is_ = f"Python {sys.version.split()[0]} ({sys.executable})"
        sys.exit(
            f"This book needs Python 3.11 or newer; found: {is_}.\n"
            f"Install one, or name one that is not on your PATH: {how}"
        )
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        sys.exit(
            f"{sys.executable} has no venv module (some systems package it separately).\n"
            "On Debian and Ubuntu: sudo apt-get install python3-venv; elsewhere, install Python "
            f"from python.org,\nor name another: {how}"
        )


def install(group):
    """Install a group and those below it, unless these pins of this project are installed."""
    below, what = GROUPS[group]
    if below:
        install(below)
    elif not PROFILE.exists():
        make_environment()
    stamp = VENV / f".{group}"
    state = hashlib.sha256(pinned().encode()).hexdigest()
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != state:
        print(f"==> Installing {what}", flush=True)
        install_uv() if group == "uv" else install_by_uv(group)
        stamp.write_text(state, encoding="utf-8")


def pinned():
    """Return what decides which packages are installed: a changed lint rule changes none."""
    import tomllib  # not at the top: a Python that is too old must be told so

    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    project["tool"] = project["tool"]["hatch"]  # it maps the packages into the environment
    return f"{project}{LOCK.read_text(encoding='utf-8')}"


def make_environment():
    """Make the virtual environment; its kernels print only errors."""
    version = sys.version.split()[0]
    print(f"==> Making a virtual environment in {VENV} with Python {version}", flush=True)
    run(sys.executable, "-m", "venv", "--clear", str(VENV))
    PROFILE.parent.mkdir(parents=True)
    PROFILE.write_text('c.IPKernelApp.log_level = "ERROR"\n', encoding="utf-8")


def install_uv():
    """Have pip bring uv, at the version and with the hashes of the lock."""
    own = re.search(r"^uv==(.*\\\n)*.*", LOCK.read_text(encoding="utf-8"), re.M)[0]
    pinned = VENV / "uv.txt"
    pinned.write_text(own, encoding="utf-8")
    options = ["--disable-pip-version-check", "--no-input", "--quiet", "--require-hashes"]
    run(PYTHON, "-m", "pip", "install", *options, "--requirement", str(pinned))


def install_by_uv(group):
    """Install a group of packages; with the book, also the package itself, editable."""
    hashed = [] if group == "parity" else ["--require-hashes"]
    extras = ["--all-extras"] if group == "test" else ["--extra", "plots"]
    named = ["--requirements", str(PROJECT), *extras, "--group", group]
    uv("install", *hashed, "--constraints", str(LOCK), *named)
    if group == "book":
        uv("install", "--no-deps", "--no-build-isolation", "--editable", ".")


def compile_pins():
    """Write the lock, of all groups but parity, and what Binder installs of it."""
    common = [
        "--quiet", "--no-config", "--python-version", "3.11", "--no-annotate",
        "--no-emit-index-url", "--no-emit-find-links", "--custom-compile-command", "make pins",
    ]  # fmt: skip
    # It holds for Python 3.11 and newer on every platform; hashes say which files.
    lock = ["--upgrade", "--universal", "--generate-hashes", "--all-extras"]
    groups = [part for name in GROUPS if name != "parity" for part in ("--group", name)]
    uv("compile", *common, *lock, *groups, "--output-file", str(LOCK), str(PROJECT))
    binder = ["--python-platform", "linux", "--constraints", str(LOCK)]
    text = "numpy\nmatplotlib\njupytext\nhatchling\n"
    uv("compile", *common, *binder, "--output-file", "binder/requirements.txt", "-", text=text)


def uv(command, *arguments, text=None):
    """Run `uv pip`, which takes packages from where pip would."""
    told = pip_configuration()
    if command == "compile":  # for everyone: what lies nearby may lack files for other machines
        told.pop("UV_INDEX", None)
        told.pop("UV_FIND_LINKS", None)
    options = ["--python", PYTHON, *arguments]
    run(
        str(BIN / "uv"), "pip", command, *options, input=text, text=True, env={**told, **os.environ}
    )


def run(*command, **options):
    """Run a program; if it fails, exit with its status."""
    status = subprocess.run(command, **options).returncode
    if status:
        sys.exit(status)


def pip_configuration():
    """Return pip's configuration, from its files and variables, as variables of uv's."""
    command = [PYTHON, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True).stdout
    found = {}
    for section in ("global", "install", ":env:"):  # the last one counts
        found.update(re.findall(rf"^{section}\.([\w-]+)=(.*)$", listed, re.M))
    told = {"UV_SYSTEM_CERTS": "1", "UV_LINK_MODE": "copy"}
    told["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # as pip; the lock's hashes make it safe
    for name in AS_UV.keys() & found.keys():
        between = "," if name == "find-links" else " "
        told[AS_UV[name]] = between.join(ast.literal_eval(found[name]).split())
    return told


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)

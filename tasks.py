"""Every task has one name: `python tasks.py` lists them, `python tasks.py book` runs one.

It needs only a Python that is new enough; the rest goes into `.venv`, from pinned
requirements. Where there is make, `make book` does the same. A new task is a function with `@task`.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

NEEDED = (3, 11)
ROOT = Path(__file__).resolve().parent
VENV = Path(".venv")
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = str(BIN / "python")
SITE = Path("_build/html")
BOOK = str(ROOT / "book")  # where Python finds the extensions of Sphinx, the package `_ext`

# What is installed, with a stamp in .venv for each set: the set below it, and its files.
SETS = {
    "python": ("", []),
    "book": ("python", ["requirements/book.txt", "pyproject.toml"]),
    "test": ("book", ["requirements/test.txt"]),
    "dev": ("python", ["requirements/dev.txt"]),
    "parity": ("test", ["requirements/parity.txt"]),
    "classroom": ("test", ["requirements/classroom.txt"]),
    "dist": ("dev", ["requirements/dist.txt", "requirements/book.txt"]),
}
WORKFLOWS = [f".github/workflows/{name}.yml" for name in ("test", "weekly", "links", "release")]
TIME_LIMITS = "custom.github-workflows-require-timeout"
APART = ("classroom", "browser/test_print.py")  # with tests marked `proof`, what `make proofs` runs
# not in `make quick`
SLOW = ("book", "browser", "classroom", "parity", "bench", "exercises/test_mutants.py")
TASKS = {}  # by name: what to do, and the set that must be installed first


def main(arguments):
    """Run the named tasks in order; NAME=value among them sets a variable."""
    os.chdir(ROOT)
    asked = ["help" if name in ("-h", "--help") else name for name in arguments]
    names = [name for name in asked if "=" not in name] or ["help"]
    unknown = [name for name in names if name not in TASKS and name != "--names"]
    if unknown:
        known = ", ".join(TASKS)
        return f"there is no task {', '.join(map(repr, unknown))}; there are {known}."
    if names == ["--names"]:
        print(*TASKS)
        return None
    if names != ["help"]:
        check_python()
    os.environ.update(argument.split("=", 1) for argument in arguments if "=" in argument)
    set_environment()
    try:
        for name in names:
            do(name)
    except KeyboardInterrupt:
        return 130
    return None


def do(name):
    """Run one task, after installing what it needs."""
    function, needs = TASKS[name]
    if needs:
        install(needs)
    function()


def task(needs=""):
    """Register a function as a task, listed by its name and the first line of its docstring."""

    def keep(function):
        TASKS[function.__name__.replace("_", "-")] = (function, needs)
        return function

    return keep


# What runs a task -----------------------------------------------------------------------------


def set_environment():
    """Shield the book from the reader's shell and home: packages, plotting, profiles."""
    for name in ("PYTHONPATH", "MPLBACKEND"):
        os.environ.pop(name, None)
    os.environ.update(PYTHONNOUSERSITE="1", JUPYTER_PLATFORM_DIRS="1")
    os.environ["IPYTHONDIR"] = str(ROOT / VENV / "ipython")
    # The matrices of this book are small: more threads slow each other down, above all where
    # tests run side by side.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if os.name == "nt":  # its consoles and files default to an older encoding
        os.environ["PYTHONUTF8"] = "1"


def say(*lines):
    """Print lines at once, before the output of the next program."""
    print(*lines, sep="\n", flush=True)


def run(*command, cwd=None, text=None, **variables):
    """Run a program with variables added to its environment; if it fails, exit with its status."""
    status = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        input=text,
        text=text is not None or None,
        env={**os.environ, **variables},
    ).returncode
    if status:
        sys.exit(status)


def tool(name, *arguments, **options):
    """Run a program of the virtual environment."""
    run(BIN / name, *arguments, **options)


def python(*arguments, **options):
    """Run the virtual environment's Python."""
    run(PYTHON, *arguments, **options)


def extension(name, *arguments):
    """Run a module of book/_ext that is also a command."""
    python("-m", f"_ext.{name}", *arguments, PYTHONPATH=BOOK)


def build(*options):
    """Run jupyter-book; a page with warnings must warn again next time."""
    try:
        tool("jupyter-book", "build", ".", "-W", "-n", "--keep-going", *options)
    except SystemExit:  # forget what was read, keep what was executed
        shutil.rmtree("_build/.doctrees", ignore_errors=True)
        raise


def write_notebooks():
    """Run the builder of the notebooks, into `_build`."""
    build("--quiet", "--builder", "custom", "--custom-builder", "notebooks")


def jobs():
    """Return how many tests run in parallel."""
    return os.environ.get("JOBS") or str(os.cpu_count() or 2)


def port():
    """Return the port of the site."""
    return os.environ.get("PORT") or "8000"


# The virtual environment ----------------------------------------------------------------------


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


def install(name):
    """Install a set and the sets below it, unless these versions of the files are installed."""
    below, files = SETS[name]
    state = install(below) if below else ""
    state = hashlib.sha256(b"".join([state.encode(), *map(read, files)])).hexdigest()
    stamp = VENV / f".{name}"
    if not stamp.exists() or (files and stamp.read_text(encoding="utf-8") != state):
        INSTALL[name]()
        stamp.write_text(state, encoding="utf-8")
    return state


def read(file):
    """Read a requirements file, whatever its line endings."""
    return Path(file).read_bytes().replace(b"\r\n", b"\n")


def pip_install(*arguments):
    """Run pip install in the virtual environment."""
    python("-m", "pip", "install", "--disable-pip-version-check", "--no-input", *arguments)


def make_environment():
    """Make the virtual environment; its kernels print only errors."""
    say(f"==> Making a virtual environment in {VENV} with Python {sys.version.split()[0]}")
    run(sys.executable, "-m", "venv", "--clear", VENV)
    profile = VENV / "ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    quiet = 'c.IPKernelApp.log_level = "ERROR"\n'
    (profile / "ipython_kernel_config.py").write_text(quiet, encoding="utf-8")


def install_book():
    """Install what the book needs, and the package itself."""
    say("==> Installing what the book needs, about 300 MB")
    pip_install("--require-hashes", "-r", "requirements/book.txt")
    pip_install("--quiet", "--no-deps", "--no-build-isolation", "--editable", ".")


def install_test():
    """Install what the tests need."""
    say("==> Installing what the tests need (half a minute, silent)")
    pip_install("--quiet", "--require-hashes", "-r", "requirements/test.txt")


def install_dev():
    """Install what the style checks need."""
    say("==> Installing what the style checks need (some seconds, silent)")
    pip_install("--quiet", "--require-hashes", "-r", "requirements/dev.txt")


def install_parity():
    """Install the reference frameworks."""
    say("==> Installing the reference frameworks (PyTorch is large: this can take minutes)")
    pip_install("-r", "requirements/parity.txt")


def install_classroom():
    """Install nbgrader."""
    say("==> Installing nbgrader (some seconds, silent)")
    pip_install("--quiet", "--require-hashes", "-r", "requirements/classroom.txt")


def install_dist():
    """Install the build backend and what checks the archives."""
    install("book")
    pip_install("--quiet", "--require-hashes", "-r", "requirements/dist.txt")


INSTALL = {
    "python": make_environment,
    "book": install_book,
    "test": install_test,
    "dev": install_dev,
    "parity": install_parity,
    "classroom": install_classroom,
    "dist": install_dist,
}


# Reading --------------------------------------------------------------------------------------


@task()
def help():
    """List the tasks."""
    say("make TASK, or python tasks.py TASK, where TASK is one of")
    for name, (function, _) in TASKS.items():
        say(f"  {name:15} {function.__doc__.splitlines()[0]}")
    say(
        "Needs Python 3.11 or newer; make PYTHON=/path/to/python chooses one, and PORT=8000 the "
        "port of serve."
    )


@task("book")
def book():
    """Install, run every chapter, build the site."""
    say("==> Running the chapters and building the site (minutes the first time, then seconds)")
    build()
    say(
        f"\nThe site is at {ROOT / SITE / 'index.html'}",
        f"Open that file, or run 'make serve' (python tasks.py serve) and open "
        f"http://localhost:{port()}",
    )


@task()
def slides():
    """Build the site and a deck of slides for each part."""
    do("book")
    say(f"The slides are in {ROOT / SITE / 'slides'}, one file a part")


@task()
def serve():
    """Build the site and serve it on localhost (PORT=8000)."""
    do("book")
    python("-m", "tinytorch_book", "book", SITE, "--port", port())


@task("book")
def live():
    """Fetch the Python that runs cells in the page (31 MB, once), before the next make book."""
    say("==> Fetching what runs in the reader's browser")
    extension("live.pinned_downloads", "pyodide", "kernel")


@task("book")
def notebooks():
    """Write book/notebooks again, with the outputs that the pages show."""
    say("==> Writing book/notebooks")
    write_notebooks()
    extension("notebooks.builder")


@task("book")
def corpus():
    """At a release, take the book's prose as the next version of its second training text."""
    say("==> Writing the corpus")
    write_notebooks()
    extension("notebooks.builder", "--corpus")
    do("notebooks")  # chapters print parts of the new text


@task("book")
def classroom():
    """Write the exercises as a course for nbgrader into _build/classroom (SEED=1)."""
    extension("teaching.nbgrader_course", "--seed", os.environ.get("SEED") or "1")


# In print -------------------------------------------------------------------------------------


@task("test")
def pdf():
    """Make the PDF of the book, with Chromium (some minutes): _build/print/tinytorch.pdf."""
    do("book")
    say("==> Printing the book, more than once: until its page numbers are right")
    extension("print.pdf")


@task("test")
def epub():
    """Make the EPUB of the book, for e-readers: _build/print/tinytorch.epub."""
    do("book")
    extension("print.epub")


@task("test")
def offline():
    """Pack the site with the Python of its cells: _build/print/tinytorch-offline.zip."""
    do("live")
    do("book")
    extension("print.offline")


# Testing --------------------------------------------------------------------------------------


@task("test")
def quick():
    """Test the package and the book's tools, after every change; no network or browser needed."""
    do("test-scripts")
    apart = [f"--ignore=tests/{part}" for part in SLOW]
    python("-m", "pytest", "-n", jobs(), "--dist", "worksteal", "-m", "not proof", *apart)


@task()
def test():
    """Fetch what runs in the page, build, test the package, the notebooks and the pages."""
    do("live")
    do("book")
    write_notebooks()
    do("test-unit")
    do("test-notebooks")
    say(
        "\nAll tests passed. 'make parity' compares with PyTorch, 'make proofs' runs every chapter "
        "in the page, prints the book and grades a course, 'make check' checks the style."
    )


@task("test")
def test_unit():
    """Test only the package and the built pages."""
    do("test-scripts")
    extension("live.pinned_downloads", "axe")
    say("==> Testing the package and the built pages")
    apart = [f"--ignore=tests/{part}" for part in ("parity", "bench", *APART)]
    python("-m", "pytest", "-n", jobs(), "--dist", "worksteal", "-m", "not proof", *apart)


@task("test")
def test_scripts():
    """Test only the scripts of the pages, under Node and without a browser."""
    say("==> Testing the scripts of the pages")
    python("tests/scripts/run_node.py", PYTHONPATH=BOOK)


@task("test")
def mutants():
    """Try every small change of every exercise's solution on its check (some minutes)."""
    python("tests/exercises/mutants.py", "--jobs", jobs())


@task("classroom")
def proofs():
    """Test all chapters live, all pages in light and dark, mutants, print and a graded course."""
    extension("live.pinned_downloads", "axe")
    say("==> Running all chapters in the page, looking at all pages, trying all mutants")
    options = ["-m", "pytest", "-n", jobs(), "--dist"]
    apart = [f"--ignore=tests/{part}" for part in ("parity", "bench", *APART)]
    python(*options, "worksteal", "-m", "proof", "tests", *apart)
    say("==> Making the printed book and the archive, and grading a course")
    python(*options, "loadfile", *[f"tests/{part}" for part in APART])


@task("test")
def test_notebooks():
    """Test only the notebooks: run each with few packages installed, compare every output."""
    say(
        "==> Running every notebook with NumPy, matplotlib and the wheel alone, and comparing "
        "what it prints"
    )
    python("tests/book/plain_python.py")
    options = [
        "--nbval", "--nbval-kernel-name=plain-python", "--nbval-cell-timeout=1800",
        "--nbval-kernel-startup-timeout=600",
        "--nbval-sanitize-with=book/_ext/notebooks/nbval_ignores.cfg",
        "-o", "addopts=", "-o", "doctest_optionflags=", "-p", "no:randomly",
        "-n", jobs(), "--dist", "loadfile",
    ]  # fmt: skip
    kernels = "_build/plain_python/share/jupyter"
    python("-m", "pytest", *options, "book/notebooks", JUPYTER_PATH=kernels)


@task("parity")
def parity():
    """Compare every layer, forward and backward, with PyTorch."""
    extension("live.pinned_downloads", "gpt2")
    say("==> Comparing with the reference frameworks")
    python("-m", "pytest", "tests/parity")


@task("classroom")
def classroom_proof():
    """Grade every assignment with nbgrader: solutions, stubs and wrong answers (an hour)."""
    python("tests/classroom/proof.py")


@task("parity")
def bench():
    """Measure speed beside PyTorch (installs the parity extra; BENCH=--store keeps the table)."""
    say("==> Measuring beside PyTorch, some ten minutes (keep the machine quiet)")
    python("tests/bench/run.py", *shlex.split(os.environ.get("BENCH", "")))


@task("book")
def links():
    """Check the links that leave the book (needs the network)."""
    say("==> Following every external link")
    options = ["--builder", "linkcheck", "--path-output", "_build/links", "--keep-going"]
    tool("jupyter-book", "build", ".", *options)


@task("dev")
def check():
    """Check formatting, lint, types, layers, spelling, the names of directives and options."""
    install("book")
    failed = []
    for name, *arguments in (
        ("python", "-m", "_ext.directives.names"),
        ("ruff", "format", "--check", "."),
        ("ruff", "check", "."),
        ("mypy",),
        ("mypy", "tests/models/typed.py"),
        ("lint-imports", "--no-cache", "--no-logo"),
        ("codespell",),
        ("oxlint", "--quiet"),
        ("zizmor", "--offline", "--quiet", "--no-progress", "."),
        ("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS),
        ("check-jsonschema", "--builtin-schema", TIME_LIMITS, *WORKFLOWS),
        ("check-jsonschema", "--builtin-schema", "vendor.dependabot", ".github/dependabot.yml"),
        ("check-jsonschema", "--builtin-schema", "vendor.citation-file-format", "CITATION.cff"),
    ):
        say(f"==> {' '.join([name, *arguments[:2]])}")
        try:
            tool(name, *arguments, PYTHONPATH=BOOK)  # lint-imports reads `_ext` there
        except SystemExit:
            failed.append(" ".join([name, *arguments]))
    if failed:
        sys.exit("\n".join(["", "These failed:", *failed]))


@task("dist")
def dist():
    """Build the wheel and the source archive; try both in an empty environment (VERSIONS=3.12)."""
    say(
        "==> Building what is released, and trying it on each Python from 3.11 to 3.14 that is here"
    )
    python("tests/release/dist.py", *shlex.split(os.environ.get("VERSIONS", "")))


@task("test")
def launch():
    """Run every notebook as Colab and Binder would (minutes; needs the network)."""
    install("dev")
    say("==> Running every notebook as Colab would, then every chapter as Binder would")
    python("tests/release/launched.py", *shlex.split(os.environ.get("PLACES", "")))


@task("test")
def pages():
    """Show how long the built chapters are, and which page rules each one breaks."""
    python("tests/book/page_rules.py")


@task("dev")
def format():
    """Format the code and fix what lint can fix."""
    subprocess.run([BIN / "ruff", "check", "--fix", "--quiet", "."])
    tool("ruff", "format", ".")


# Rebuilding what is committed -----------------------------------------------------------------


@task("book")
def story_gpt():
    """Train the model that comes with the package again (minutes; replaces the stored one)."""
    say("==> Training the story GPT")
    python("-m", "tinytorch_book.experiments.story_gpt", "--in-package")
    say("The notebooks print what it writes: run 'make notebooks' next.")


@task("book")
def scaling():
    """Train the models missing from the scaling law's table (an hour; can be stopped)."""
    say("==> Training the models of the scaling law")
    python("-m", "tinytorch_book.experiments.scaling_runs", "--in-package")


@task("book")
def playground():
    """Train the playground's models again, and write its tokenizer and grammar (minutes)."""
    python("book/_runtime/playground_files.py")


@task()
def editor():
    """Bundle the editor of the live cells (needs Node and npm)."""
    npm = shutil.which("npm") or "npm"
    folder = "book/_runtime/editor"
    run(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=folder)
    run(npm, "run", "--silent", "build", cwd=folder)


# The same compiler gives the same bytes: tests/core/test_products.py compares them.
WASM = [
    "clang-16", "--target=wasm32-unknown-emscripten", "-std=c11", "-O3", "-Wall", "-Wextra",
    "-Werror", "-Wno-unused-parameter", "-ffreestanding", "-fPIC", "-msimd128", "-nostdlib",
    "-Wl,-shared,--experimental-pic,--strip-all", "products.c",
]  # fmt: skip


@task()
def products():
    """Compile the matrix products of the page (needs Debian's clang-16 and lld-16)."""
    relaxed = ["-mrelaxed-simd", "-DRELAXED", "-o", "products_relaxed.wasm"]
    run(*WASM, "-o", "products.wasm", cwd="tinytorch/core/wasm")
    run(*WASM, *relaxed, cwd="tinytorch/core/wasm")


@task("dev")
def fonts():
    """Make the fonts of the pages."""
    install("book")
    extension("live.pinned_downloads", "fonts")
    python("book/_runtime/subset_fonts.py", PYTHONPATH=BOOK, PYTHONHASHSEED="0")


@task("test")
def cards():
    """Make the preview pictures of shared links, from the built site."""
    python("book/_runtime/share_cards.py", PYTHONPATH=BOOK)


@task("dev")
def pins():
    """Pin the newest allowed versions of all requirements."""
    say("==> Compiling requirements")
    common = [
        "pip", "compile", "--quiet", "--no-config", "--python-version", "3.11",
        "--no-emit-index-url", "--no-emit-find-links", "--custom-compile-command", "make pins",
    ]  # fmt: skip
    # Universal pins hold for Python 3.11 and newer on every platform; hashes say which files.
    lock = [*common, "pyproject.toml", "--upgrade", "--universal", "--generate-hashes"]
    below = []
    for extra in ("book", "test", "dev", "dist"):
        file = f"requirements/{extra}.txt"
        tool("uv", *lock, "--extra", extra, *below, "--output-file", file)
        below += ["--constraint", file]
    below = ["--constraint", "requirements/test.txt"]
    file = "requirements/classroom.txt"
    tool("uv", *lock, "--extra", "classroom", *below, "--output-file", file)
    binder = [
        "--python-platform",
        "linux",
        "--no-annotate",
        "--constraint",
        "requirements/book.txt",
    ]
    text = "numpy\nmatplotlib\njupytext\nhatchling\n"
    tool("uv", *common, *binder, "--output-file", "binder/requirements.txt", "-", text=text)


@task()
def clean():
    """Remove what was built (the site, caches); .venv stays."""
    caches = [".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"]
    for folder in ["_build", *caches, "dist", "build"]:
        shutil.rmtree(folder, ignore_errors=True)
    for folder in list(Path().rglob("__pycache__")):
        if VENV not in folder.parents:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

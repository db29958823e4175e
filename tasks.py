"""Every task has one name: `python tasks.py` lists them, `python tasks.py book` runs one.

It needs only a Python that is new enough; requirements/install.py puts the rest into `.venv`.
Where there is make, `make book` does the same. A new task is a function with `@task`.
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
BIN = Path(".venv") / ("Scripts" if os.name == "nt" else "bin")
SITE = Path("_build/html")
MODELS = "_build/models"  # published ones, where the chapters' cells look for them
BOOK = str(ROOT / "book")  # where Python finds the extensions of Sphinx, the package `_ext`
MEASURED = ("parity", "bench")  # beside other frameworks: with tasks of their own
APART = ("classroom", "browser/test_print.py")  # with tests marked `proof`, what `make proofs` runs
# not in `make quick`
SLOW = ("book", "browser", "classroom", "lab/exercises/test_mutants.py", *MEASURED)
# What NAME=value may set, on the command line or in the environment.
USUAL = {"PORT": "8000", "SEED": "1", "BENCH": "", "VERSIONS": "", "PLACES": "", "OFFLINE": ""}
USUAL["JOBS"] = str(os.cpu_count() or 2)  # tests that run in parallel
TASKS = {}  # by name: what to do, the part of the list, the group that must be installed first


def main(arguments):
    """Run the named tasks in order; NAME=value among them sets a variable."""
    os.chdir(ROOT)
    names = [name for name in arguments if "=" not in name] or ["help"]
    if names == ["--names"]:
        return print(*TASKS)
    if not {"help", "-h", "--help"}.isdisjoint(names):
        return help()
    unknown = ", ".join(repr(name) for name in names if name not in TASKS)
    if unknown:
        return f"there is no task {unknown}; there are {', '.join(TASKS)}."
    set_environment(dict(argument.split("=", 1) for argument in arguments if "=" in argument))
    try:
        for name in names:
            do(name)
    except KeyboardInterrupt:
        return 130
    return None


def do(name):
    """Run one task, after installing what it needs."""
    function, _, needs = TASKS[name]
    if needs:
        run(sys.executable, "requirements/install.py", needs)
    say(f"==> {summary(function)}")
    function()


def task(part, needs=""):
    """Register a function as a task, listed by its name and the first line of its docstring."""

    def keep(function):
        TASKS[function.__name__.replace("_", "-")] = (function, part, needs)
        return function

    return keep


def summary(function):
    """Return the first line of a task's docstring."""
    return function.__doc__.splitlines()[0]


def set_environment(variables):
    """Shield the book from the reader's shell and home: packages, plotting, profiles."""
    for name in ("PYTHONPATH", "MPLBACKEND"):
        os.environ.pop(name, None)
    os.environ.update(variables, PYTHONNOUSERSITE="1", JUPYTER_PLATFORM_DIRS="1")
    os.environ.update({name: os.environ.get(name) or usual for name, usual in USUAL.items()})
    os.environ["IPYTHONDIR"] = str(ROOT / ".venv/ipython")
    # The matrices of this book are small: more threads slow each other down, above all where
    # tests run side by side.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if os.name == "nt":  # its consoles and files default to an older encoding
        os.environ["PYTHONUTF8"] = "1"


def say(*lines):
    """Print lines at once, before the output of the next program."""
    print(*lines, sep="\n", flush=True)


def run(*command, cwd=None, **variables):
    """Run a program with variables added to its environment; if it fails, exit with its status."""
    command = [str(part) for part in command]
    status = subprocess.run(command, cwd=cwd, env={**os.environ, **variables}).returncode
    if status:
        sys.exit(status)


def tool(name, *arguments, **options):
    """Run a program of the virtual environment."""
    run(BIN / name, *arguments, **options)


def python(*arguments, **options):
    """Run the virtual environment's Python."""
    tool("python", *arguments, **options)


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


def pytest(*arguments, apart=(), **variables):
    """Run tests side by side, without the folders and files of tests/ that are named apart."""
    ignored = [f"--ignore=tests/{name}" for name in apart]
    python("-m", "pytest", "-n", os.environ["JOBS"], *arguments, *ignored, **variables)


@task("reading")
def help():
    """List the tasks."""
    say("make TASK, or python tasks.py TASK, where TASK is one of")
    for part in dict.fromkeys(part for _, part, _ in TASKS.values()):
        tasks = {name: summary(f) for name, (f, of, _) in TASKS.items() if of == part}
        say("", f"{part}:", *[f"  {name:15} {told}" for name, told in tasks.items()])
    say("\nmake PYTHON=/path/to/python chooses a Python, PORT=8000 the port of serve.")


def published_model():
    """Fetch the model that some cells run into `_build/models`, unless OFFLINE=1."""
    if os.environ["OFFLINE"] == "1":
        return
    try:
        extension("live.pinned_downloads", "smollm2")
    except SystemExit:
        say("OFFLINE=1 builds the book without it, with the stored outputs of such cells.")
        raise


@task("reading", "book")
def book():
    """Install, run every chapter (minutes the first time, then seconds), build the site."""
    published_model()
    build()
    address = f"http://localhost:{os.environ['PORT']}"
    say(f"\nThe site is at {ROOT / SITE / 'index.html'}")
    say(f"Open that file, or run 'make serve' (python tasks.py serve) and open {address}")


@task("reading")
def slides():
    """Build the site and a deck of slides for each part."""
    do("book")
    say(f"The slides are in {ROOT / SITE / 'slides'}, one file a part")


@task("reading")
def serve():
    """Build the site and serve it on localhost (PORT=8000)."""
    do("book")
    python("-m", "tinytorch_book", "book", SITE, "--port", os.environ["PORT"])


@task("reading", "book")
def live():
    """For what runs in the page: fetch its Python and model (129 MB, once); then make book."""
    extension("live.pinned_downloads", "pyodide", "kernel", "smollm2")


@task("reading", "book")
def classroom():
    """Write the exercises as a course for nbgrader into _build/classroom (SEED=1)."""
    extension("teaching.nbgrader_course", "--seed", os.environ["SEED"])


@task("print", "test")
def pdf():
    """Make the PDF of the book, with Chromium (some minutes): _build/print/tinytorch.pdf."""
    do("book")
    extension("print.pdf")


@task("print", "test")
def epub():
    """Make the EPUB of the book, for e-readers: _build/print/tinytorch.epub."""
    do("book")
    extension("print.epub")


@task("print", "test")
def offline():
    """Pack the site with the Python of its cells: _build/print/tinytorch-offline.zip."""
    do("live")
    do("book")
    extension("print.offline")


@task("testing", "test")
def quick():
    """Test the package and the book's tools, after every change; no network or browser needed."""
    do("test-scripts")
    # on other systems, continuous integration runs nothing else
    some = "not proof" if os.environ.get("CI") == "true" else "not proof and not slow"
    pytest("--dist", "worksteal", "-m", some, apart=SLOW)


@task("testing")
def test():
    """Fetch what runs in the page, build, test the package, the notebooks and the pages."""
    do("live")
    do("test-notebooks")  # each runs once: the build takes these runs
    do("book")
    write_notebooks()
    do("test-unit")
    say("\nAll tests passed. 'make check' checks the style; 'make' lists what else can be tested.")


@task("testing", "test")
def test_unit():
    """Test only the package and the built pages."""
    do("test-scripts")
    extension("live.pinned_downloads", "axe")
    pytest("--dist", "worksteal", "-m", "not proof", apart=(*MEASURED, *APART))


@task("testing", "test")
def test_scripts():
    """Test only the scripts of the pages, under Node and without a browser."""
    python("tests/scripts/run_node.py", PYTHONPATH=BOOK)


@task("testing", "test")
def test_notebooks():
    """Test only the notebooks: run each with few packages installed, compare every output."""
    published_model()
    python("tests/book/plain_python.py")
    kernels, modules = "_build/plain_python/share/jupyter", f"{BOOK}{os.pathsep}tests/book"
    options = ["-c", "tests/book/nbval.ini", "--rootdir", "."]
    found = {"JUPYTER_PATH": kernels, "PYTHONPATH": modules, "TINYTORCH_CACHE": str(ROOT / MODELS)}
    pytest(*options, "book/notebooks", **found)


@task("testing", "test")
def mutants():
    """Try every small change of every exercise's solution on its check (some minutes)."""
    python("tests/lab/exercises/mutants.py", "--jobs", os.environ["JOBS"])


@task("testing", "classroom")
def proofs():
    """Test all chapters live, all pages in light and dark, mutants, print and a graded course."""
    extension("live.pinned_downloads", "axe")
    pytest("--dist", "worksteal", "-m", "proof", "tests", apart=(*MEASURED, *APART))
    pytest("--dist", "loadfile", *[f"tests/{name}" for name in APART])


@task("testing", "classroom")
def classroom_proof():
    """Grade every assignment with nbgrader: solutions, stubs and wrong answers (an hour)."""
    python("tests/classroom/proof.py")


@task("testing", "parity")
def parity():
    """Compare every layer, forward and backward, with PyTorch."""
    extension("live.pinned_downloads", "gpt2", "smollm2")
    python("-m", "pytest", "tests/parity")


@task("testing", "parity")
def bench():
    """Measure speed beside PyTorch, ten minutes on a quiet machine (BENCH=--store keeps it)."""
    python("tests/bench/run.py", *shlex.split(os.environ["BENCH"]))


@task("checking", "dev")
def style():
    """Check formatting, lint, types and spelling, as pre-commit does."""
    python("tests/repository/style_checks.py", "--quick")


@task("checking", "dev")
def check():
    """Check formatting, lint, types, layers, spelling, the names of directives and options."""
    python("tests/repository/style_checks.py")


@task("checking", "dev")
def format():
    """Format the code and fix what lint can fix."""
    subprocess.run([BIN / "ruff", "check", "--fix", "--quiet", "."])
    tool("ruff", "format", ".")


@task("checking", "book")
def links():
    """Check the links that leave the book (needs the network)."""
    options = ["--builder", "linkcheck", "--path-output", "_build/links", "--keep-going"]
    tool("jupyter-book", "build", ".", *options)


@task("checking", "test")
def pages():
    """Show how long the built chapters are, and which page rules each one breaks."""
    python("tests/book/page_rules.py")


@task("checking", "dist")
def dist():
    """Build the wheel and the source archive; try both in an empty environment (VERSIONS=3.12)."""
    python("tests/release/dist.py", *shlex.split(os.environ["VERSIONS"]))


@task("checking", "test")
def launch():
    """Run every notebook as Colab and Binder would (minutes; needs the network)."""
    python("tests/release/launched.py", *shlex.split(os.environ["PLACES"]))


@task("rebuilding", "book")
def notebooks():
    """Write book/notebooks again, with the outputs that the pages show."""
    write_notebooks()
    extension("notebooks.builder")


@task("rebuilding", "book")
def corpus():
    """For a release: make a new version of the training text that is the book's own prose."""
    write_notebooks()
    extension("notebooks.builder", "--corpus")
    do("notebooks")  # chapters print parts of the new text


@task("rebuilding", "book")
def story_gpt():
    """Train the model that comes with the package again (minutes), before make notebooks."""
    python("-m", "tinytorch_book.experiments.story_gpt", "--in-package")


@task("rebuilding", "book")
def scaling():
    """Train the models missing from the scaling law's table (an hour; can be stopped)."""
    python("-m", "tinytorch_book.experiments.scaling_runs", "--in-package")


@task("rebuilding", "book")
def playground():
    """Train the playground's models again, and write its tokenizer and grammar (minutes)."""
    python("book/_runtime/playground_files.py")


@task("rebuilding")
def editor():
    """Bundle the editor of the live cells (needs Node and npm)."""
    run(shutil.which("npm") or "npm", "run", "--silent", "build", cwd="book/_runtime/editor")


@task("rebuilding", "wasm")
def kernels():
    """Compile the kernels of the page, where NumPy has no fast products (after a change in C)."""
    compiled = ["make", "--always-make", "--silent", "-C", "tinytorch/core/wasm"]
    run(*compiled, f"PYTHON={ROOT / BIN / 'python'}")


@task("rebuilding", "dev")
def fonts():
    """Make the fonts of the pages."""
    extension("live.pinned_downloads", "fonts")
    python("book/_runtime/subset_fonts.py", PYTHONPATH=BOOK, PYTHONHASHSEED="0")


@task("rebuilding", "test")
def cards():
    """Make the preview pictures of shared links, from the built site."""
    python("book/_runtime/share_cards.py", PYTHONPATH=BOOK)


@task("rebuilding")
def pins():
    """Pin the newest allowed versions of all packages."""
    run(sys.executable, "requirements/install.py", "--pins")


@task("rebuilding")
def clean():
    """Remove what was built (the site, caches); .venv stays."""
    caches = [".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"]
    compiled = [path for path in Path().rglob("__pycache__") if path.parts[0] != ".venv"]
    for folder in ["_build", "dist", "build", *caches, *compiled]:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

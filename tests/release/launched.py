"""Run every notebook where the launch links lead to, as far as that can be done on one machine.

    python tests/release/launched.py                    every notebook, in both
    python tests/release/launched.py colab tensors      one notebook as Colab
    python tests/release/launched.py binder tensors     one chapter as Binder

Colab: an environment with its Python and the packages that it brings (`colab.txt`); the first cell
installs the package with pip from git, as it stands, only that git fetches the last commit of this
repository instead of the published one. Binder: the steps of repo2docker, without Docker; a chapter
is opened by the Jupyter server's own contents manager, through jupytext.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import yaml
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "_build" / "launched"
UV = str(Path(sys.executable).with_name("uv"))
COLAB = Path(__file__).with_name("colab.txt")
OPEN = """
import json, sys
from jupytext import TextFileContentsManager
manager = TextFileContentsManager(root_dir=".")
sys.stdout.write(json.dumps(manager.get(sys.argv[1], type="notebook")["content"]))
"""


class CannotLaunch(Exception):
    """An environment could not be made."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("place", nargs="?", choices=("colab", "binder"), help="only there")
    parser.add_argument("names", nargs="*", help="only these chapters: tensors ...")
    options = parser.parse_args(arguments)
    os.environ["TINYTORCH_PARTS"] = ""  # what a run solves is no reader's
    failed = 0
    try:
        for place in [options.place] if options.place else ["colab", "binder"]:
            failed += (in_colab if place == "colab" else in_binder)(options.names)
    except CannotLaunch as error:
        print(f"cannot launch: {error}", file=sys.stderr)
        return 1
    print(f"{failed} failed" if failed else "all ran")
    return 1 if failed else 0


def in_colab(names: list[str]) -> int:
    """Run the generated notebooks as Colab would; returns how many failed."""
    place = WORK / "colab"
    version = re.search(r"Python (\d+\.\d+)", COLAB.read_text(encoding="utf-8"))[1]
    python = make_environment(place / "env", version)
    run([python, "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(COLAB)])
    address = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))["repository"]["url"]
    variables = {
        "IPYTHONDIR": str(place / "ipython"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{clone(place)}.insteadOf",
        "GIT_CONFIG_VALUE_0": address,
    }
    kernel(place, "colab", python, variables)
    books = sorted((ROOT / "book" / "notebooks").glob("*.ipynb"))
    return sum(
        not execute(f"colab {path.stem}", nbformat.read(path, as_version=4), "colab", place)
        for path in books
        if not names or path.stem in names
    )


def in_binder(names: list[str]) -> int:
    """Take the steps of repo2docker, then run each chapter as it opens; returns how many failed."""
    place = WORK / "binder"
    from repo2docker.buildpacks import PythonBuildPack

    os.chdir(ROOT)
    pack = PythonBuildPack(base_image="docker.io/library/buildpack-deps:jammy")
    python = make_environment(place / "env", pack.python_version)
    run([python, "-m", "pip", "install", "--quiet", *its_jupyter(pack.python_version)])
    tree = clone(place)
    path = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
    variables = {"PATH": path, "HOME": str(place), "KERNEL_PYTHON_PREFIX": str(place / "env")}
    steps = [step for _, step in pack.get_preassemble_scripts() + pack.get_assemble_scripts()]
    for step in [step for step in steps if "pip install" in step] + pack.get_post_build_scripts():
        run(["bash", "-euc", step], cwd=tree, **variables)
    kernel(place, "binder", python, variables)
    failed = 0
    for path in sorted((tree / "book" / "notebooks").glob("*.ipynb")):
        (chapter,) = (tree / "book").rglob(f"{path.stem}.md")
        if names and path.stem not in names:
            continue
        inner = chapter.relative_to(tree).as_posix()
        opened = json.loads(run([python, "-c", OPEN, inner], cwd=tree, **variables))
        failed += not execute(
            f"binder {inner}", nbformat.from_dict(opened), "binder", chapter.parent
        )
    return failed


def its_jupyter(version: str) -> list[str]:
    """Read from repo2docker which Jupyter it brings: the packages that open and run a notebook."""
    from repo2docker import buildpacks

    folder = Path(buildpacks.__file__).parent / "conda"
    text = (folder / f"environment.py-{version}-linux-64.lock").read_text(encoding="utf-8")
    wanted = "ipykernel|ipython|jupyterlab|jupyter_server|jupyter_client|traitlets|tornado|pyzmq"
    found = re.findall(rf"/({wanted})-(\d[\w.]*)-\w+\.(?:conda|tar)", text)
    return [f"{name}=={number}" for name, number in found]


def make_environment(folder: Path, version: str) -> str:
    """Make an empty environment with a Python that is installed here; returns its Python."""
    from dist import find

    shutil.rmtree(folder.parent, ignore_errors=True)
    found = find(version)
    if not found:
        raise CannotLaunch(f"there is no Python {version} on this machine")
    run([found, "-m", "venv", str(folder)])
    return str(folder / "bin" / "python")


def clone(place: Path) -> Path:
    """Clone the last commit: what is not committed is not launched."""
    run(["git", "clone", "--quiet", f"file://{ROOT}", str(place / "tree")])
    return place / "tree"


def kernel(place: Path, name: str, python: str, variables: dict[str, str]) -> None:
    """Tell Jupyter of an environment's kernel."""
    spec = {"argv": [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]}
    variables = {**variables, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}  # or the debugger warns
    spec |= {"display_name": name, "language": "python", "env": variables}
    folder = place / "kernels" / name
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")


def execute(what: str, notebook: nbformat.NotebookNode, name: str, folder: Path) -> bool:
    """Run a notebook from top to bottom; say how it went."""
    began = time.perf_counter()
    specs = KernelSpecManager(kernel_dirs=[str(WORK / name / "kernels")])
    client = NotebookClient(notebook, timeout=1800, kernel_name=name, startup_timeout=600)
    client.create_kernel_manager().kernel_spec_manager = specs
    try:
        client.execute(cwd=str(folder))
        told = ""
    except CellExecutionError as error:
        told = str(error)
    cells = sum(cell.cell_type == "code" for cell in notebook.cells)
    seconds = time.perf_counter() - began
    print(f"{what}: {'FAILED' if told else 'ran'}, {cells} cells, {seconds:.0f} s {told}".rstrip())
    sys.stdout.flush()
    return not told


def run(command: list[str], cwd: Path | None = None, **variables: str) -> str:
    """Run a command; returns what it prints."""
    env = {**os.environ, **variables}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
    if done.returncode:
        raise CannotLaunch(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())

"""Run the examples of the installed package's docstrings; needs nothing but the package.

python examples.py          all but those of the figures, which need matplotlib
python examples.py plots    those
"""

import doctest
import importlib
import os
import pkgutil
import sys
import tempfile

os.environ["TINYTORCH_PARTS"] = ""  # what an example solves is no reader's

import tinytorch
import tinytorch_book


def main(room: str = "") -> int:
    """Run the examples of one room, or of all but the figures; returns the exit status."""
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    modules = [
        found
        for package in (tinytorch, tinytorch_book)
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    for found in modules:
        in_plots = found.name.startswith("tinytorch.plots")
        if in_plots != (room == "plots"):
            continue
        for test in doctest.DocTestFinder().find(importlib.import_module(found.name)):
            tinytorch.manual_seed(0)
            runner.run(test)
    result = runner.summarize()
    place = os.path.dirname(tinytorch.__file__)
    assert "site-packages" in place, f"this is not the installed package: {place}"
    sys.stdout.write(f"{result.attempted} examples{' of figures' if room else ''}\n")
    return 1 if result.failed or not result.attempted else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        status = main(*sys.argv[1:])
        os.chdir("/")
    sys.exit(status)

"""The pages of the package say "every public name", so every public name stands on one of them."""

import importlib
import inspect
import pkgutil
import re

import pytest
from built import SITE
from sphinx.util.inventory import InventoryFile

import tinytorch
import tinytorch_book

MODULES = [
    "tinytorch",
    *(
        found.name
        for package in (tinytorch, tinytorch_book)
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        # the checks of a chapter stand in its exercises; `__main__` is a program
        if not re.match(r"tinytorch_book\.exercises\.(?!capstone)|.*__main__", found.name)
    ),
]


@pytest.fixture(scope="module")
def documented():
    """The names of the package that stand on a page, as one would import them."""
    with (SITE / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda root, page: page)
    return {name for kind, names in inventory.items() if kind.startswith("py:") for name in names}


def where_it_may_stand(module, name):
    """Where a public name may be documented: where it is made, its module, or a package above."""
    thing = getattr(module, name)
    if inspect.ismodule(thing):
        return {thing.__name__}
    parts = module.__name__.split(".")
    homes = (".".join(parts[:n]) for n in range(2, len(parts) + 1))
    return {f"{home}.{name}" for home in homes} | {
        f"{getattr(thing, '__module__', module.__name__)}.{getattr(thing, '__qualname__', name)}"
    }


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_documented_on_a_page(module, documented):
    module = importlib.import_module(module)
    missing = [
        public
        for public in getattr(module, "__all__", [])
        if not where_it_may_stand(module, public) & documented
    ]
    assert not missing, f"{module.__name__}: {missing} on no page of book/appendix/api"

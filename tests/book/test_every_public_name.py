"""The API pages document what users import: every such name, and each thing once."""

import ast
from collections import Counter, defaultdict
from pkgutil import resolve_name

import pytest
from built import NAMES, SITE, cells
from sphinx.util.inventory import InventoryFile

import tinytorch

FEW = 4  # chapters: what no more of them import from the laboratory, they explain themselves
# Inner names that a single chapter imports, to show what is behind others.
EXPLAINED = {
    "tinytorch.core.kernels",
    "tinytorch.text.tokenizer_files.bytes_to_letters",
}
KINDS = {"py:module", "py:class", "py:exception", "py:function", "py:data"}
# known by value: no two names for one thing
CONSTANT = bool | int | float | str | tuple | frozenset


@pytest.fixture(scope="module")
def documented():
    """The names on the pages, without the aliases that classes have where they are made."""
    with (SITE / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda root, page: page)
    kinds = [names for kind, names in inventory.items() if kind in KINDS]
    return {
        name
        for names in kinds
        for name, (_, _, address, _) in names.items()
        if name.startswith("tinytorch") and address.endswith((f"#{name}", f"#module-{name}"))
    }


def imported():
    """What the pages import from both packages, and how many pages do so."""
    pages = defaultdict(set)
    for page in NAMES:
        for cell in cells(page):
            for node in ast.walk(ast.parse(cell["source"])):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tinytorch"):
                    for alias in node.names:
                        pages[f"{node.module}.{alias.name}"].add(page)
    return Counter({name: len(found) for name, found in pages.items()})


def thing_of(name):
    """What a name stands for; a constant for itself alone."""
    thing = resolve_name(name)
    return name if isinstance(thing, CONSTANT) else id(thing)


def missing(names, documented):
    known = {thing_of(name) for name in documented if "." in name}
    return sorted(name for name in names if thing_of(name) not in known)


def test_every_name_of_the_package_is_documented(documented):
    assert missing([f"tinytorch.{name}" for name in tinytorch.__all__], documented) == []


def test_every_name_that_a_page_imports_from_the_library_is_documented(documented):
    names = {name for name in imported() if name.startswith("tinytorch.")}
    assert len(names) > 80 and names >= EXPLAINED
    assert missing(names - EXPLAINED, documented) == []


def test_what_many_pages_import_from_the_laboratory_is_documented(documented):
    names = {n for n, pages in imported().items() if n.startswith("tinytorch_book") and pages > FEW}
    assert "tinytorch_book.experiments.story_gpt.load_story_gpt" in names
    assert missing(names, documented) == []


def test_everything_is_documented_once(documented):
    names = defaultdict(list)
    for name in documented:
        names[thing_of(name)].append(name)
    twice = [sorted(same) for same in names.values() if len(same) > 1]
    assert twice == []

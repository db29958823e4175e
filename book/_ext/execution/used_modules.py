"""What a chapter's outputs depend on: its code, and the modules of our packages that it uses.

A module counts by what it does: comments, docstrings and layout leave its fingerprint as it is.
`from tinytorch import GPT` uses the module that defines `GPT`, not all that `tinytorch` offers, and
`check.causal_mask` uses one module of exercises. Data belong to the modules that name their file.
"""

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGES = ("tinytorch", "book/lab/tinytorch_book")  # those that the pages use
DOCUMENTED = re.compile(r"\b(?:getdoc|__doc__)\b")  # what a module reads that its docstrings decide
ANYWHERE = re.compile(r"\w+(?:\.\w+)+")  # as in the text `python -m tinytorch.models.gpt2`
LOOKS = {"__all__", "__version__"}


class Packages:
    """The modules of some packages: which of them use which, and what each of them is.

    Args:
        folders: those of the packages, as `tinytorch`.
    """

    def __init__(self, *folders: Path) -> None:
        files = [(folder, path) for folder in folders for path in sorted(folder.rglob("*"))]
        self.paths = {
            dotted(path.relative_to(folder.parent)): path
            for folder, path in files
            if path.suffix == ".py"
        }
        self.data = [p for _, p in files if p.is_file() and p.suffix not in (".py", ".pyc")]
        # asked again and again
        for question in ("tree", "used_by", "print_of", "offered", "is_index"):
            setattr(self, question, cache(getattr(self, question)))

    @classmethod
    def below_root(cls, root: Path) -> "Packages":
        """Read the packages that the pages use, below the root of the repository."""
        return cls(*(root / name for name in PACKAGES))

    def fingerprint(self, modules: Iterable[str]) -> str:
        """Hash what these modules do.

        Returns:
            Sixteen hexadecimal digits; others when the code or the data of one of them changes, or
            when one of them is no longer there.
        """
        digest = hashlib.sha256()
        for module in sorted(modules):
            content = self.print_of(module) if module in self.paths else b""
            digest.update(module.encode() + b"\0" + content)
        return digest.hexdigest()[:16]

    def used(self, cells: Iterable[str]) -> set[str]:
        """Name the modules that these cells use, directly or not, and the packages these are in."""
        tree = ast.parse("\n".join(cells))
        waiting = [*self.imported(tree), *self.mentioned(tree)]
        found: set[str] = set()
        while waiting:
            module = waiting.pop()
            if module not in found:
                found.add(module)
                waiting += [*self.used_by(module), *filter(None, [module.rpartition(".")[0]])]
        return found

    def used_by(self, module: str) -> set[str]:
        """Name what a module uses directly."""
        return set(self.imported(self.tree(module)))

    def tree(self, module: str) -> ast.Module:
        """Read what a module does; of a package, what it does apart from re-exports."""
        text = self.paths[module].read_text(encoding="utf-8")
        tree = ast.parse(text)
        if not DOCUMENTED.search(text):
            without_docstrings(tree)
        if self.is_package(module):
            tree.body = [part for part in tree.body if not self.only_offers(part, tree)]
        return tree

    def print_of(self, module: str) -> bytes:
        """Hash what a module does, and the data whose names it holds."""
        tree = self.tree(module)
        digest = hashlib.sha256(ast.dump(tree).encode())
        texts = set(strings(tree))
        for path in sorted(path for path in self.data if path.name in texts):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        return digest.digest()

    # Names ------------------------------------------------------------------------------------

    def imported(self, tree: ast.AST) -> Iterator[str]:
        """Name the modules whose names some code takes."""
        packages: dict[str, str] = {}  # by the name that the code gives them
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in self.paths:
                for alias in node.names:
                    home = self.home(node.module, alias.name)
                    packages[alias.asname or alias.name] = home
                    yield from self.below(home) if alias.name == "*" else [home]
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name in self.paths:
                        root = alias.name if alias.asname else alias.name.partition(".")[0]
                        packages[alias.asname or root] = root
                        yield alias.name
        packages = {name: home for name, home in packages.items() if self.is_package(home)}
        yield from self.taken(tree, packages)

    def taken(self, tree: ast.AST, packages: dict[str, str]) -> Iterator[str]:
        """Name the modules whose names are taken as attributes of a package, or all below it."""
        inner = set()
        for node in ast.walk(tree):
            names = attributes(node)
            if not names or names[0] not in packages:
                continue
            home = packages[names[0]]
            if isinstance(node, ast.Attribute):
                inner.add(id(node.value))
                for name in names[1:]:
                    home = self.home(home, name)
                yield home
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                if id(node) not in inner:  # handed on: nobody knows what is taken of it
                    yield from self.below(home)

    def home(self, module: str, name: str) -> str:
        """Name the module that defines a name which another offers."""
        if f"{module}.{name}" in self.paths:
            return f"{module}.{name}"
        offered = self.offered(module) if self.is_package(module) else {}
        return self.home(offered[name], name) if name in offered else module

    def offered(self, package: str) -> dict[str, str]:
        """Name the modules from which a package takes the names that it offers."""
        found = {}
        for node in ast.walk(ast.parse(self.paths[package].read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in self.paths:
                for alias in node.names:
                    names = self.public(node.module) if alias.name == "*" else [alias.name]
                    found.update(dict.fromkeys(names, node.module))
        return found

    def public(self, module: str) -> list[str]:
        """Read the list of names that a module gives to `import *`."""
        for node in ast.parse(self.paths[module].read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                return list(ast.literal_eval(node.value))
        return []

    def mentioned(self, tree: ast.AST) -> Iterator[str]:
        """Name the modules that a text in some code names."""
        for text in strings(tree):
            yield from (name for name in ANYWHERE.findall(text) if name in self.paths)

    def below(self, package: str) -> Iterator[str]:
        """Name all modules of a package, and those whose names it passes on."""
        yield from (m for m in self.paths if m == package or m.startswith(f"{package}."))
        yield from self.offered(package).values() if self.is_package(package) else ()

    def is_package(self, module: str) -> bool:
        """Return whether this is a folder of modules, or a file that only re-exports."""
        return self.paths[module].name == "__init__.py" or self.is_index(module)

    def is_index(self, module: str) -> bool:
        """Return whether a file is only imports and a list of names, as `tinytorch_book.check`."""
        body = ast.parse(self.paths[module].read_text(encoding="utf-8")).body[1:]
        kinds = [type(part) for part in body]
        return ast.ImportFrom in kinds and {*kinds} <= {ast.ImportFrom, ast.Assign}

    def only_offers(self, part: ast.stmt, tree: ast.Module) -> bool:
        """Return whether a statement of a package only re-exports names."""
        if isinstance(part, ast.Assign):
            return ast.unparse(part.targets[0]) in LOOKS
        if isinstance(part, ast.If) and ast.unparse(part.test) == "TYPE_CHECKING":
            return all(self.only_offers(each, tree) for each in part.body)  # else when asked for
        if not isinstance(part, ast.ImportFrom) or part.module not in self.paths:
            return False
        loaded = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        return not loaded & {alias.asname or alias.name for alias in part.names}


def dotted(path: Path) -> str:
    """Name the module of a file."""
    return ".".join(path.parent.parts if path.name == "__init__.py" else path.with_suffix("").parts)


def attributes(node: ast.AST) -> list[str]:
    """Split `a.b.c` into its names; empty for anything else."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return [node.id, *names] if isinstance(node, ast.Name) else []


def strings(tree: ast.AST) -> Iterator[str]:
    """Yield the string literals of some code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def without_docstrings(tree: ast.Module) -> None:
    """Remove the docstrings of a module and of all that it defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node, clean=False) is not None:
                del node.body[0]

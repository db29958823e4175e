"""The source of every accepted part of a GPT that a reader has built.

A check that accepts a part writes it to `my_parts.py` in the current folder, with the imports,
constants and functions of the reader that it uses, between two lines::

    # === part norm, accepted by norm_layer, kept as 3fa9c1d2 ===
    ...
    # === end of part norm: MyLayerNorm ===

The checksum is that of the written source: a part with another one was edited by hand, and stays.
The environment variable `TINYTORCH_PARTS` names another file; if it is empty, nothing is kept.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import linecache
import os
import re
import symtable
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

from tinytorch_book.exercises.rules import LIBRARIES

__all__ = ["PARTS", "PUBLISHED_PARTS", "Part", "forget_part", "keep", "kept_parts", "place_of",
           "section"]  # fmt: skip

#: What a GPT is made of: for each part the check that accepts it, and what it does.
PARTS = {
    "merges": ("bpe_train", "learns the merges of the tokenizer"),
    "encode": ("bpe_encode", "merges the bytes of a word into tokens"),
    "lookup": ("token_lookup", "looks up the vector of each token"),
    "lookup gradient": ("token_scatter_add", "carries the gradient back to the token table"),
    "positions": ("positions_add", "adds the position vectors"),
    "positions gradient": ("layer_position_gradient", "carries the gradient back to the positions"),
    "mask": ("attend_causal_mask", "hides the future"),
    "attention": ("attend_numpy", "mixes values by queries and keys"),
    "attention gradient": ("attend_score_gradient", "carries the gradient back to the scores"),
    "heads": ("heads_attention", "attends in several heads"),
    "heads with a cache": ("cache_attention", "attends in several heads, piece by piece"),
    "norm": ("norm_layer", "normalises each token"),
    "mlp": ("mlp_layer", "lets each token think by itself"),
    "block": ("block_forward", "adds both branches to the stream"),
    "model": ("gpt_assembled", "puts tables, blocks and the last norm together"),
    "loss": ("loss_and_gradient", "measures the surprise, and its gradient"),
    "clip": ("optim_clip", "limits the length of a step"),
    "schedule": ("optim_schedule", "sets the learning rate of each step"),
    "optimiser": ("optim_adamw", "takes the step"),
    "temperature": ("sampling_temperature", "sharpens or flattens the probabilities"),
    "top-p": ("sampling_top_p", "leaves the likeliest tokens up to a share"),
    "draw": ("sampling_draw", "draws a token"),
    "write": ("sampling_write", "writes token after token"),
}

#: The same of a published model, which runs in some of these and in some of its own.
PUBLISHED_PARTS = {
    "encode": PARTS["encode"],
    "RMS norm": ("norm_rms", "divides each token by its root mean square"),
    "rotation": ("positions_rotate", "rotates queries and keys by their positions"),
    "attention": PARTS["attention"],
    "cached step": ("cache_step", "lets a new token look at what is cached"),
    "gate": ("autograd_swish", "opens and closes the numbers inside the MLP"),
    "block": PARTS["block"],
    "draw": PARTS["draw"],
}

_ALL = PARTS | PUBLISHED_PARTS
_PLACE_OF = {"heads with a cache": "heads"}  # one of the two is in the GPT

FILE = "my_parts.py"
_AT_THE_DOOR = ("functional", "ops")  # modules that `tinytorch` itself offers
_PART_OF = {check: part for part, (check, _) in _ALL.items()}
_FIRST_LINES = '''"""My parts: what the checks of the TinyTorch book have accepted, and kept here.

Each part stands between two lines. What is changed between them by hand stays as it is.
"""
'''
_SECTION = re.compile(
    r"^# === part (?P<name>[\w -]+), accepted by (?P<check>\w+), kept as (?P<sum>[0-9a-f]{8}) ===\n"
    r"(?P<source>.*?)"
    r"^# === end of part (?P=name): (?P<answer>\w+) ===\n",
    re.MULTILINE | re.DOTALL,
)


def place_of(name: str) -> str:
    """The place that a part takes in the GPT: of two parts one may stand in the same.

    Example:
        >>> place_of("norm"), place_of("heads with a cache")
        ('norm', 'heads')
    """
    return _PLACE_OF.get(name, name)


class CannotKeep(Exception):
    """Why the source of an answer is not kept, as a sentence, with what to do."""


@dataclass(frozen=True)
class Part:
    """A part that the reader has written, or an example that stands in for one.

    Attributes:
        name: one of `PARTS` or `PUBLISHED_PARTS`.
        answer: the name of the function or class in its source.
        source: its source, after all that it needs.
        changed: whether it was edited after the check wrote it.
        example: whether it is not the reader's.
    """

    name: str
    answer: str
    source: str
    changed: bool = False
    example: bool = False

    @classmethod
    def of(cls, name: str, answer: Any, example: bool = False) -> Part:
        """A part made of a function or class, without storing it.

        Args:
            name: one of `PARTS` or `PUBLISHED_PARTS`.
            answer: what the part does, defined in a cell or a file.
            example: whether it only stands in for a part of the reader's.

        Raises:
            CannotKeep: its source does not work by itself.

        Example:
            >>> def my_mask(queries, keys):
            ...     return queries < keys
            >>> print(Part.of("mask", my_mask).source.splitlines()[0])
            def my_mask(queries, keys):
        """
        return cls(name, *_source_of(answer), example=example)


def keep(check: str, answer: Any) -> tuple[Part | None, str]:
    """Keep the source of an accepted answer if it is a part; never raises.

    Returns:
        The part, or None, and what the report says about it: "" if nothing is to be kept.

    Example:
        >>> keep("tensors_error", print)  # nothing that a GPT is made of
        (None, '')
    """
    path = _path()
    if check not in _PART_OF or not path or _is_library(answer):
        return None, ""
    try:
        part = Part.of(_PART_OF[check], answer)
        return part, _written(path, part)
    except CannotKeep as reason:
        return None, f"not kept for your GPT: {reason}"
    except (OSError, UnicodeError, SyntaxError, ValueError) as error:
        return None, f"not kept for your GPT: {type(error).__name__}: {error}"


def kept_parts(path: str | None = None, names: Collection[str] = PARTS) -> dict[str, Part]:
    """The parts that are kept, by name, in the order of these names.

    Args:
        path: the file; None for `my_parts.py` in the current folder.
        names: those to look for, by default of the GPT in one file.

    Example:
        >>> kept_parts("no such file.py")
        {}
    """
    text = _text(path or _path())
    found = {each.name: each for each in map(_part_at, _SECTION.finditer(text))}
    return {name: found[name] for name in names if name in found}


def forget_part(name: str, path: str | None = None) -> None:
    """Take one part out of the file; the package's own is used again."""
    path = path or _path()
    if name not in (kept := kept_parts(path, _ALL)):
        there = ", ".join(kept) or "none"
        raise ValueError(f"no part {name!r} is kept in {path or FILE}; there are: {there}")
    text = _text(path)
    _save(path, "".join(_without(text, name)))


def section(part: Part) -> str:
    r"""A part as written in the file, between its two lines."""
    return (
        f"# === part {part.name}, accepted by {_ALL[part.name][0]}, "
        f"kept as {_checksum(part.source)} ===\n"
        f"{part.source}# === end of part {part.name}: {part.answer} ===\n"
    )


# The file ------------------------------------------------------------------------------------


def _path() -> str:
    return os.environ.get("TINYTORCH_PARTS", FILE)


def _text(path: str) -> str:
    if not path or not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8", newline="") as file:
        return file.read().replace("\r\n", "\n")


def _save(path: str, text: str) -> None:
    from tinytorch.files.atomic_files import write_atomically

    write_atomically(path, text.encode())


def _part_at(found: re.Match[str]) -> Part:
    changed = _checksum(found["source"]) != found["sum"]
    return Part(found["name"], found["answer"], found["source"].strip("\n") + "\n", changed)


def _checksum(source: str) -> str:
    return hashlib.sha256(source.strip("\n").encode()).hexdigest()[:8]


def _without(text: str, name: str) -> Iterator[str]:
    """The text around the section of a part."""
    found = next(each for each in _SECTION.finditer(text) if each["name"] == name)
    yield text[: found.start()].rstrip("\n") + "\n"
    yield text[found.end() :]


def _written(path: str, part: Part) -> str:
    """Write a part to the file unless it was edited there; returns what to say about it."""
    text, there = _text(path) or _FIRST_LINES, kept_parts(path, _ALL).get(part.name)
    first, last = f"# === part {part.name},", f"# === end of part {part.name}:"
    shown = os.path.basename(path)
    if there and there.changed and there.source != part.source:
        return (
            f"{shown} has a part “{part.name}” that was changed by hand: it stays, and this one "
            f"was not kept. To replace it, delete it there, from “{first}” to “{last}”, "
            "and run this check again."
        )
    if there is None and (f"\n{first}" in text or f"\n{last}" in text):
        return (
            f"{shown} has a damaged part “{part.name}”: this one was not kept. Delete what is "
            f"left of it there, its lines “{first}” and “{last}” too, and run this check again."
        )
    before, after = _without(text, part.name) if there else (text, "")
    new = f"{before.rstrip(chr(10))}\n\n\n{section(part)}{after}"
    if there != part:
        _save(path, new)
    told = []
    for model, names in (("your GPT", PARTS), ("the published model", PUBLISHED_PARTS)):
        if part.name in names:
            mine, total = (len({*map(place_of, x)}) for x in (kept_parts(path, names), names))
            told.append(f"{mine} of {total} for {model}")
    return f"kept as your part “{part.name}” in {shown} ({', '.join(told)})"


# The source ----------------------------------------------------------------------------------


def _is_library(answer: Any) -> bool:
    module = str(getattr(answer, "__module__", None) or type(answer).__module__)
    return module.split(".")[0] in LIBRARIES and module != "__main__"


def _source_of(answer: Any) -> tuple[str, str]:
    """The name of a function or class, and its source after all that it needs."""
    pieces: dict[str, str] = {}
    name = _add(answer, getattr(answer, "__name__", ""), pieces, ())
    imports = [p for p in pieces.values() if p.startswith(("import ", "from "))]
    others = [piece for piece in pieces.values() if piece not in imports]
    head = "\n".join(sorted(set(imports), key=lambda line: (line[0] == "f", line)))
    head += "\n" if head else ""
    return name, "\n\n".join(filter(None, [head, *others])).rstrip() + "\n"


def _add(answer: Any, name: str, pieces: dict[str, str], above: tuple[str, ...]) -> str:
    """Add the source of a function or class to `pieces`, after what it needs; returns its name."""
    code, names = _code_of(answer)
    own, source = _definition(code)
    for needed in sorted(_names_needed(source) - {own, *above}):
        if needed in names and needed not in pieces:
            _add_value(needed, names[needed], pieces, (*above, own))
    pieces[own] = source
    if name and name != own and name.isidentifier() and above:
        pieces[name] = f"{name} = {own}"
    return own


def _add_value(name: str, value: Any, pieces: dict[str, str], above: tuple[str, ...]) -> None:
    """Add the line that gives a name its value, or the source of one of the reader's functions."""
    if isinstance(value, ModuleType):
        _check_library(name, value.__name__)
        home, _, called = value.__name__.rpartition(".")
        home = "tinytorch" if home == "tinytorch.core" and called in _AT_THE_DOOR else home
        line = f"from {home} import {called}" if home else f"import {called}"
        pieces[name] = line + ("" if name == called else f" as {name}")
    elif _is_constant(value):
        pieces[name] = f"{name} = {value!r}"
    elif _is_library(value) and hasattr(value, "__name__"):
        pieces[name] = _import_of(name, value)
    elif isinstance(value, (type, FunctionType)) or hasattr(value, "__wrapped__"):
        _check_own(name, value)
        own = _add(value, name, pieces, above)
        if own != name:
            pieces[name] = f"{name} = {own}"
    else:
        raise CannotKeep(
            f"it uses `{name}`, a {type(value).__name__} made elsewhere, which has no source; "
            "make it inside the function or the class, and run this check again"
        )


def _check_library(name: str, module: str) -> None:
    if module.split(".")[0] not in LIBRARIES:
        raise CannotKeep(
            f"it uses `{name}` of the package {module.split('.')[0]}; a part is made of NumPy, the "
            "standard library and tinytorch"
        )


def _check_own(name: str, value: Any) -> None:
    """Refuse what comes from an installed package."""
    module = sys.modules.get(str(getattr(value, "__module__", None)))
    if "-packages" in str(getattr(module, "__file__", None) or ""):
        _check_library(name, str(value.__module__))


def _is_constant(value: Any) -> bool:
    try:
        text = repr(value)
        return len(text) < 2000 and bool(ast.literal_eval(text) == value)
    except Exception:  # no literal
        return False


def _import_of(name: str, value: Any) -> str:
    """The line that imports a function or class of a library under this name."""
    home, called = str(value.__module__), value.__name__
    homes = ["tinytorch", home] if home.startswith("tinytorch.") else [home.lstrip("_"), home]
    homes = ["numpy", *homes] if home.startswith("numpy.") or home == "numpy" else homes
    for module in homes:
        if getattr(sys.modules.get(module), called, None) is value:
            return f"from {module} import {called}" + ("" if called == name else f" as {name}")
    raise CannotKeep(
        f"it uses `{name}`, which cannot be imported by its name; import it another way"
    )


def _code_of(answer: Any) -> tuple[CodeType, dict[str, Any]]:
    """Some code of a function or class, which knows its file, and the names around it."""
    bare = inspect.unwrap(answer) if callable(answer) else answer
    if isinstance(bare, functools.partial) or not isinstance(bare, (type, FunctionType)):
        raise CannotKeep("it is not a function or a class; define one with def or class")
    methods = [bare] if isinstance(bare, FunctionType) else map(_function, vars(bare).values())
    for method in methods:
        if isinstance(method, FunctionType) and method.__module__ == bare.__module__:
            if "<locals>" in bare.__qualname__:
                raise CannotKeep("it is made inside a function; write it at the top of a cell")
            return method.__code__, method.__globals__
    raise CannotKeep("it has no method of its own; write what it does in its class")


def _function(value: Any) -> Any:
    """The function in a class that a static method, a property or a decorator is made of."""
    inner = getattr(value, "fget", None) or getattr(value, "__func__", value)
    return inspect.unwrap(inner) if callable(inner) else inner


def _definition(code: CodeType) -> tuple[str, str]:
    """The name that a statement of a cell or file defines, and its source."""
    lines = linecache.getlines(code.co_filename)
    if not lines:
        raise CannotKeep(
            "Python does not keep what is typed at its prompt; write it in a notebook or a file"
        )
    for node in ast.parse("".join(lines)).body:
        decorators = getattr(node, "decorator_list", [])
        first = min([node.lineno, *(each.lineno for each in decorators)])
        if first <= code.co_firstlineno <= (node.end_lineno or first):
            source = "".join(lines[first - 1 : node.end_lineno]).rstrip() + "\n"
            return _named(node, source)
    raise CannotKeep("its source cannot be found; run its cell again, then this check")


def _named(node: ast.stmt, source: str) -> tuple[str, str]:
    """The name that a statement defines, and the source; a lambda needs a name."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name, source
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id, source
    raise CannotKeep("it has no name; define it with def")


def _names_needed(source: str) -> set[str]:
    """The names that a piece of source reads and does not define, Python's own among them."""

    def reads(table: symtable.SymbolTable) -> Iterator[str]:
        top = table.get_type() == "module"
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (not symbol.is_assigned() if top else symbol.is_global()):
                yield symbol.get_name()
        for child in table.get_children():
            yield from reads(child)

    return set(reads(symtable.symtable(source, "part", "exec")))

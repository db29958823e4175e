"""Your GPT: one file that needs only NumPy, made of your parts, or ours where you have none.

`data/one_file.txt` is the file without any of the reader's parts. Each part is between two
comments; a reader's part replaces it unchanged, and is tried: with it, a small model must compute,
learn and write as before. A part that fails is left out, and the reason is reported.

    your_gpt().save()  # writes your_gpt.py, made of the parts in my_parts.py

`python -m tinytorch_book.exercises.capstone.your_gpt` does the same, in the folder with the parts.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tinytorch.files.command_line import add_output, run_command
from tinytorch_book.exercises.capstone.parts import PARTS, Part, kept_parts, place_of

__all__ = ["MOST_LINES", "YourGPT", "your_gpt"]

#: The file is no longer than this.
MOST_LINES = 400

_TEMPLATE = Path(__file__).with_name("data") / "one_file.txt"
_WORDS = "Mia was a brave girl. She hopped to the barn.\nOne day he ran to the big red barn.\n"
_LACKS = "the file's small autograd lacks what it needs"
_OWN_BASE = "it extends the class of its own name, which is not kept; define it once, whole"


@dataclass(frozen=True)
class YourGPT:
    """A GPT as one file. Its `repr` says who wrote each part.

    Attributes:
        source: the file's text.
        yours: the names of the reader's parts.
        reasons: why one of the reader's parts was left out, by its name.
        examples: the names of the parts that stand in for some of the reader's.
    """

    source: str
    yours: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    examples: tuple[str, ...] = ()

    @property
    def others(self) -> tuple[str, ...]:
        """The names of the parts that are the package's."""
        slots = set(map(place_of, (*self.yours, *self.examples)))
        return tuple(name for name in _sections() if name not in slots)

    @property
    def file(self) -> tuple[str, str]:
        """The name of the file and its text, which a page of the book offers to download."""
        return "your_gpt.py", self.source

    def save(self, path: str = "your_gpt.py") -> YourGPT:
        """Write the file, and return this.

        Raises:
            OSError: it cannot be written.
        """
        from tinytorch.files.atomic_files import write_atomically

        write_atomically(path, self.source.encode())
        return self

    def module(self) -> ModuleType:
        """The file, run as a module: its `GPT`, `Tokenizer`, `train`, `story` and the rest."""
        module = ModuleType("your_gpt")
        exec(compile(self.source, "your_gpt.py", "exec"), module.__dict__)
        return module

    def __repr__(self) -> str:
        number = len(self.yours) + len(self.examples) + len(self.others)
        stand_in = f", {n} example{'s' * (n != 1)}" if (n := len(self.examples)) else ""
        lines = [
            f"your_gpt.py: {len(self.source.splitlines())} lines, {len(self.yours)} of "
            f"{number} parts yours{stand_in}",
            *(f"  [x] {name}: {PARTS[name][1]}" for name in self.yours),
            *(f"  [ ] {name}: an example; solve {PARTS[name][0]}" for name in self.examples),
            *(
                f"  [ ] {name}: the book's; solve {PARTS[name][0]}"
                for name in self.others
                if name not in self.reasons
            ),
            *(f"  [ ] yours is left out, {name}: {why}" for name, why in self.reasons.items()),
        ]
        return "\n".join(lines)


def your_gpt(parts: Mapping[str, Part] | None = None) -> YourGPT:
    """Assemble a GPT from a reader's parts and ours; each part is tried first.

    Args:
        parts: the reader's, by name; None for those stored in `my_parts.py`.

    Example:
        >>> ours = your_gpt({})
        >>> ours.yours, len(ours.source.splitlines()) <= MOST_LINES
        ((), True)
    """
    parts = kept_parts() if parts is None else parts
    taken: dict[str, Part] = {}
    reasons: dict[str, str] = {}
    for name, part in parts.items():
        others = {k: v for k, v in taken.items() if place_of(k) != place_of(name)}
        try:
            wrong = _difference(_tried(_assembled({**others, name: part})), _expected())
        except Exception as error:  # whatever a reader's code does in the file
            lacks = isinstance(error, (AttributeError, NameError, KeyError, NotImplementedError))
            head = _LACKS if lacks else "with it the file fails"
            own = re.search(r"^class (\w+)\(\1\b", part.source, flags=re.M)
            wrong = _OWN_BASE if own else f"{head} ({type(error).__name__}: {error})"
        if wrong:
            reasons[name] = wrong
        else:
            taken = {**others, name: part}
    while len((source := _assembled(taken)).splitlines()) > MOST_LINES:
        longest = max(taken, key=lambda name: len(taken[name].source.splitlines()))
        reasons[longest] = f"with it the file is longer than {MOST_LINES} lines; shorten it"
        del taken[longest]
    yours = tuple(name for name, part in taken.items() if not part.example)
    return YourGPT(source, yours, reasons, tuple(name for name in taken if name not in yours))


# The file ------------------------------------------------------------------------------------


@cache
def _pieces() -> list[tuple[str, str]]:
    """The template in order: the name of a part and its source, or "" and the text between."""
    text = _TEMPLATE.read_text(encoding="utf-8")
    found = re.split(r"^# (?:part: (.+)|end of parts)\n", text, flags=re.M)
    return [
        ("", found[0]),
        *((name or "", body) for name, body in zip(found[1::2], found[2::2], strict=True)),
    ]


def _sections() -> dict[str, str]:
    return {name: body for name, body in _pieces() if name}


def _assembled(parts: Mapping[str, Part]) -> str:
    """The file's text with these parts of the reader's; close together if it is long."""
    text = _joined(parts)
    return text if len(text.splitlines()) <= MOST_LINES else _joined(parts, close=True)


def _joined(parts: Mapping[str, Part], close: bool = False) -> str:
    chosen = {place_of(name): part for name, part in parts.items()}
    imports: list[str] = []
    whole: list[str] = []
    aliases: dict[str, list[tuple[str, str]]] = {}  # by whose they are
    taken = _defined("".join(body for _, body in _pieces()))
    for name, body in _pieces():
        if name in chosen:
            ours = ast.parse(body).body[-1].name  # type: ignore[attr-defined]
            lines, needed, called = _readers(chosen[name], ours, taken)
            imports += needed
            whole.append(lines if close else f"{lines}\n")
            if ours != called:
                whose = "an example" if chosen[name].example else "yours"
                aliases.setdefault(whose, []).append((ours, called))
        elif name:
            whole.append(body.strip("\n") + ("\n" if close else "\n\n"))
        else:
            if aliases:
                named = "".join(_alias_lines(*each) for each in aliases.items())
                whole[-1] = whole[-1].rstrip("\n") + "\n" + named
            whole += [] if close else ["\n"]
            whole.append(re.sub(r"\n\n+", "\n", body) if close else body)
            aliases = {}
    text = "".join(whole)
    if not re.search(r"\bDropout\(", text.replace("class Dropout(", "")):
        text = re.sub(r"class Dropout.*?(?=\n\w|\n\n)\n*", "", text, flags=re.S)
    return _headed(text, sorted(set(imports)), parts)


def _readers(part: Part, ours: str, taken: set[str]) -> tuple[str, list[str], str]:
    """A part without its imports, the imports that the file lacks, and the name of its answer."""
    tree, lines = ast.parse(part.source), part.source.splitlines()
    imports: list[str] = []
    renamed: list[str] = []
    for node in tree.body:
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or 0) - node.lineno + 1)
        module = node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name
        if module.split(".")[0] in ("tinytorch", "tinytorch_book"):
            renamed += _from_the_file(node, taken)
        else:
            imports.append(ast.unparse(node))
    _check_functional(tree)
    source = "\n".join([*renamed, *lines]).strip("\n") + "\n"
    names = _defined(source)
    if (names - {ours}) & taken or (part.answer in taken and part.answer != ours):
        source = f"def _{ours}():\n{textwrap.indent(source, '    ')}    return {part.answer}\n"
        return source, imports, f"_{ours}()"
    taken |= names
    return source, imports, part.answer


def _from_the_file(node: ast.Import | ast.ImportFrom, taken: set[str]) -> Iterator[str]:
    """Lines that give a name of the package the meaning that it has in the file."""
    for alias in node.names:
        if isinstance(node, ast.Import) or alias.name not in taken:
            raise NameError(f"{alias.name} of the package")
        if alias.asname and alias.asname != alias.name:
            yield f"{alias.asname} = {alias.name}"


def _check_functional(tree: ast.Module) -> None:
    """Refuse functions of `functional` that the file does not have."""
    there = _expected_names()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "functional" and node.attr not in there:
                raise NameError(f"functional.{node.attr}")


@cache
def _expected_names() -> set[str]:
    return set(vars(YourGPT(_TEMPLATE.read_text(encoding="utf-8")).module().functional))


def _alias_lines(whose: str, aliases: list[tuple[str, str]]) -> str:
    """The lines that give the reader's parts the names that the file uses."""
    lines, left, right = [], "", ""
    for ours, called in aliases:
        both = f"{left}, {ours}".strip(", "), f"{right}, {called}".strip(", ")
        if len(" = ".join(both)) > 90:
            lines.append(f"{left} = {right}  # {whose}")
            both = ours, called
        left, right = both
    return "\n".join([*lines, f"{left} = {right}  # {whose}", ""])


def _defined(source: str) -> set[str]:
    """The names that a source defines at its top level."""
    names: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {leaf.id for leaf in ast.walk(node) if isinstance(leaf, ast.Name)
                      and isinstance(leaf.ctx, ast.Store)}  # fmt: skip
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def _headed(source: str, imports: list[str], parts: Mapping[str, Part]) -> str:
    """The file with its first lines, which say who wrote the parts."""
    slots = [place_of(name) for name in parts]
    others = [name for name in _sections() if name not in slots]
    yours = [name for name, part in parts.items() if not part.example]
    examples = [name for name in parts if name not in yours]
    told = [
        f"Yours: {', '.join(yours) or 'nothing yet'}.",
        *([f"Examples: {', '.join(examples)}."] if examples else []),
        f"The book's: {', '.join(others) or 'no part'}.",
    ]
    text = "\n".join(textwrap.fill(line, 96, subsequent_indent="  ") for line in told)
    source = source.replace('book TinyTorch.\n"""', f'book TinyTorch.\n{text}\n"""', 1)
    there = set(source.splitlines())
    new = [line for line in imports if line not in there and not _is_imported(line, source)]
    return re.sub(
        r"\n{3,}",
        "\n\n",
        source.replace(
            "\nimport numpy as np\n", "\n".join(["", *new, "import numpy as np", ""]), 1
        ),
    )


def _is_imported(line: str, source: str) -> bool:
    """Whether a source begins by importing all that a line imports."""
    here = {ast.unparse(ast.Import([alias])) for node in ast.parse(source).body
            if isinstance(node, ast.Import) for alias in node.names}  # fmt: skip
    here |= {ast.unparse(ast.ImportFrom(node.module, [alias], 0)) for node in ast.parse(source).body
             if isinstance(node, ast.ImportFrom) for alias in node.names}  # fmt: skip
    node: Any = ast.parse(line).body[0]
    if isinstance(node, ast.Import):
        return all(ast.unparse(ast.Import([alias])) in here for alias in node.names)
    return all(ast.unparse(ast.ImportFrom(node.module, [a], 0)) in here for a in node.names)


# The trial -----------------------------------------------------------------------------------


@cache
def _expected() -> dict[str, Any]:
    return _tried(_assembled({}))


def _tried(source: str) -> dict[str, Any]:
    """What a file computes, learns and writes with a small model."""
    with np.errstate(all="ignore"):
        file = YourGPT(source).module()
        tokenizer = file.Tokenizer(_WORDS, 20)
        ids = np.array(tokenizer.encode(4 * _WORDS))
        model = file.GPT(len(tokenizer.tokens), 8, 2, 2, 12)
        file.initialise(model, np.random.default_rng(0))
        rows = ids[:22].reshape(2, 11)
        logits = model(rows[:, :-1])
        file.cross_entropy(logits, rows[:, 1:]).backward()
        found = {"tokens": tokenizer.tokens, "ids": ids, "logits": logits.data}
        found |= {f"gradient of {name}": p.grad for name, p in sorted(model.named_parameters())}
        if any(p.grad is None for p in model.parameters()):
            return found
        for p in model.parameters():
            p.grad = None
        found["losses"] = list(file.train(model, ids, 4, 12, batch=2))
        found["text"] = file.story(model, tokenizer, "Mia", 12)
        return found | _values(file)


def _values(file: ModuleType) -> dict[str, Any]:
    """Results of parts that a short training run or text does not exercise."""
    return {
        "rates": [file.rate_of(step, 1.0, 3, 12, 4) for step in range(12)],
        "small step": file.clip([np.array([0.3, 0.4])], 1.0)[0],
        "decayed weight": file.adamw(*np.ones((4, 1)), 1, 0.1, 0.5)[0],
        "likeliest": file.top_p(np.array([[0.5, 0.3, 0.15, 0.05]]), 0.9),
    }


def _difference(found: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """The first thing that is wrong, as a sentence; "" if nothing is."""
    gradients = {name for name in expected if name.startswith("gradient of ")}
    if gradients != {name for name in found if name.startswith("gradient of ")}:
        return "with it the model has other parameters"
    for name, value in expected.items():
        if (other := found.get(name)) is None:
            return f"with it the file has no {name}"
        if isinstance(value, (str, list)) and not isinstance(value[0], float):
            same = other == value
        else:
            same = np.shape(other) == np.shape(value) and np.allclose(other, value, 1e-3, 1e-4)
        if not same:
            return f"it changes the file's {name}"
    return ""


# The command ---------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tinytorch_book.exercises.capstone.your_gpt",
        description="Write a GPT in one file, made of the parts that you have kept and of ours.",
    )
    add_output(parser, "your_gpt.py")
    options = parser.parse_args(arguments)
    return run_command(lambda: _write(options.output), options.output)


def _write(path: Path) -> None:
    sys.stdout.write(f"{your_gpt().save(str(path))}\n")


if __name__ == "__main__":
    sys.exit(main())

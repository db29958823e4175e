"""What each line of a cell did: the names that it changed, written down as text while it runs."""

import ast
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from reprlib import Repr
from types import FrameType
from typing import Any

MOST = 300  # steps of one record
NUMBERS, LETTERS = 6, 60  # shown of an array, and of another value
HASHED = 1_000_000  # bytes: of a larger array, only a change of what is shown is noticed
FUNCTION = 1  # the flag of its code, which that of a class does not have
SHORT = Repr()
SHORT.maxstring, SHORT.maxother = LETTERS, 10 * LETTERS
SHORT.maxlist = SHORT.maxtuple = SHORT.maxdict = SHORT.maxset = LETTERS // 3


@contextmanager
def recorded(source: str, name: str, emit: Callable[[dict[str, Any]], None]) -> Iterator[None]:
    r"""Watch the body, which runs `source` as the file `name`; emit the steps when it has ended.

    A step is a statement that has run, of a compound one its head: its first and last line, the
    function it is in, and the name, kind and value of what it changed.

    >>> with recorded("a = 2\nb = [a]", "mine", lambda message: print(*message["steps"])):
    ...     exec(compile("a = 2\nb = [a]", "mine", "exec"), {})
    (1, 1, '', [('a', 'int', '2')]) (2, 2, '', [('b', 'list of 1', '[2]')])
    """
    record, before = Record(source, name), sys.gettrace()
    sys.settrace(record.trace)
    try:
        yield
    finally:
        sys.settrace(before)
        emit({"kind": "steps", "steps": record.steps, "more": record.more})


class Record:
    """The steps of a cell; `trace` is what `sys.settrace` takes."""

    def __init__(self, source: str, name: str):
        self.name, self.steps, self.more = name, [], False
        self.open = []  # of each frame the statement that runs, and what its names were before
        self.at = {}  # of a line its statement: first and last line, what it assigns to
        nodes = list(ast.walk(ast.parse(source, name)))  # what is inside another comes after it
        for node in (node for node in nodes if isinstance(node, ast.stmt)):
            inside = getattr(node, "body", None)
            last = max(node.lineno, inside[0].lineno - 1) if inside else node.end_lineno
            place = node.lineno, last, assigned(node)
            self.at.update(dict.fromkeys(range(node.lineno, last + 1), place))
        self.names = {node.id for node in nodes if isinstance(node, ast.Name)}
        self.names.update(*(names for _, _, names in self.at.values()))

    def trace(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        """Note what happens in the frames of the cell's lines and of its functions."""
        code, line = frame.f_code, frame.f_lineno
        if code.co_filename != self.name:
            return None
        module = code.co_name == "<module>"
        function = code.co_flags & FUNCTION and re.fullmatch(r"\w+|<lambda>", code.co_name)
        if not module and not function:  # a comprehension, or the body of a class
            return None
        statement = self.at.get(line, (line, line, []) if line else None)
        if event == "call":
            self.open.append([None, self.marks(frame)] if module else [statement, {}])
        elif event == "line" and statement != self.open[-1][0]:
            self.finish(frame)
            self.open[-1][0] = statement
        elif event == "exception" and arg[0] is not StopIteration:
            self.finish(frame, ("raises", arg[0].__name__, str(arg[1])[: 2 * LETTERS]))
            self.open[-1][0] = None
        elif event == "return":
            returns = [] if module or arg is None else [("returns", *in_words(arg)[:2])]
            self.finish(frame, *returns)
            self.open.pop()
        return self.trace

    def finish(self, frame: FrameType, *more: tuple[str, str, str]) -> None:
        """Add the statement that has run in a frame, with what it changed."""
        statement, before = self.open[-1]
        if len(self.steps) == MOST:
            self.more = True
            sys.settrace(None)
        elif statement is not None:
            first, last, names = statement
            now = self.open[-1][1] = self.marks(frame)
            changed = [n for n in now if now[n] != before.get(n) or (n in names and not more)]
            changes = [(n, *now[n][:2]) for n in changed]
            changes += [(n, "deleted", "") for n in before if n not in now]
            inside = frame.f_code.co_name.removeprefix("<module>")
            self.steps.append((first, last, inside, [*changes, *more]))

    def marks(self, frame: FrameType) -> dict[str, tuple[str, str, int]]:
        """Describe what the names of a frame stand for, of a module's only those of the cell."""
        scope, code = frame.f_locals, frame.f_code
        own = self.names if code.co_name == "<module>" else {*scope} - {*code.co_freevars}
        values = {name: value for name, value in scope.items() if name in own}
        tensors = {n for n, value in values.items() if type(value).__name__ == "Tensor"}
        for path in sorted(self.names | {f"{name}.grad" for name in tensors}):
            base, _, part = path.partition(".")
            if part not in ("", "data") and getattr(values.get(base), part, None) is not None:
                values[path] = getattr(values[base], part)
        return {name: in_words(value) for name, value in values.items()}


def in_words(value: Any) -> tuple[str, str, int]:
    """Describe a value: its kind, as much of it as is shown, and of an array's numbers a hash.

    >>> in_words(range(3))
    ('range', 'range(0, 3)', 0)
    """
    kind = type(value).__name__
    if kind in ("ndarray", "Tensor"):
        array = value.data if kind == "Tensor" else value
        sizes = " × ".join(map(str, array.shape)) if array.ndim > 1 else f"of {array.size}"
        kind = f"{kind.removeprefix('nd')} {sizes if array.ndim else '()'}, {array.dtype}"
        first = [f"{x:.4g}" if array.dtype.kind == "f" else str(x) for x in array.flat[:NUMBERS]]
        text = " ".join(first) + " …" * (array.size > NUMBERS)
        return kind, text, hash(array.tobytes()) if array.nbytes <= HASHED else 0
    if isinstance(value, (str, bytes, list, tuple, dict, set)):
        kind += f" of {len(value)}"
    written = value.__name__ if kind == "module" else SHORT.repr(value)
    text = re.sub(r" at 0x[0-9a-f]+|\n *", "", written)
    return kind, text if len(text) <= LETTERS else text[: LETTERS - 1] + "…", 0


def assigned(statement: ast.stmt) -> list[str]:
    """Name what a line assigns to, whether or not that changes: `a`, `b[0]` as `b`, `c.d`."""
    if hasattr(statement, "body"):
        return [statement.name] if hasattr(statement, "name") else []
    nodes = list(ast.walk(statement))
    names = [node.asname or node.name for node in nodes if isinstance(node, ast.alias)]
    for node in (node for node in nodes if isinstance(getattr(node, "ctx", None), ast.Store)):
        while isinstance(node, ast.Subscript):
            node = node.value
        names.append(ast.unparse(node))
    targets = [node.target for node in nodes if isinstance(node, ast.comprehension)]
    passing = {ast.unparse(node) for target in targets for node in ast.walk(target)}
    return [name for name in names if name not in passing]

"""Runs the cells of a page in the reader's browser, in the manner of a notebook.

The page's worker (`python_worker.js`) loads this file into Pyodide; it needs the standard library,
`cell_names.py`, `plain_errors.py`, `step_through.py` and what these import, so that the tests run
it in any Python.
Everything a cell shows leaves through `emit`, one dictionary at a time, while the cell runs:

    {"kind": "stream", "name": "stdout", "text": "..."}     whole lines, or what was flushed
    {"kind": "display", "text": "...", "slot": "3"}         a value; the same slot replaces it
    {"kind": "figure", "svg": "..."}                        made for the page by inline_svg.py
    {"kind": "report", "passed": true, "checks": [...]}     what an exercise's check says, as
                                                            `Report.told` has it, of which cells;
                                                            it may say more
    {"kind": "error", "name": "NameError", "text": "...", "missing": "np", "plain": "..."}
                                                            `plain`: a sentence on it, or "";
                                                            `marked`: the reader's last line in it;
                                                            `whole`: with packages' frames, or ""
    {"kind": "steps", "steps": [...], "more": false}        as step_through.py has recorded them
    {"kind": "limit", "text": "...", "where": ["Colab"]}    what a page cannot do, and what can

A cell's names live in a module `__main__` of their own, shared by the cells of a page.
"""

from __future__ import annotations

import ast
import io
import itertools
import json
import linecache
import os
import pprint
import re
import sys
import traceback
import types
from collections.abc import Callable
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from typing import Any

from cell_names import bound_names, missing_names, split_magic, used_names
from cell_names import needed_cells as needed_cells  # the worker asks for it here
from own_lines import PACKAGES, RUNNER, without
from plain_errors import plain_words
from step_through import recorded

WIDTH = 79  # of a container shown as the last value; IPython breaks its lines there too
Emit = Callable[[dict[str, Any]], None]
page: Runner | None = None  # whoever has been installed


class Stream(io.TextIOBase):
    """Standard output or error: a line leaves when it ends, or when it is flushed."""

    encoding = "utf-8"

    def __init__(self, name: str, emit: Emit):
        self.name, self._emit, self._kept = name, emit, ""

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, text: str) -> int:
        """Keep an unfinished line; send finished ones."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._kept += text
        end = max(self._kept.rfind("\n"), self._kept.rfind("\r")) + 1
        if end:
            self._send(end)
        return len(text)

    def flush(self) -> None:
        """Send what is there."""
        self._send(len(self._kept))

    def _send(self, end: int) -> None:
        text, self._kept = self._kept[:end], self._kept[end:]
        if text:
            self._emit({"kind": "stream", "name": self.name, "text": text})


class Runner:
    """The kernel of one page.

    Args:
        emit: called with each message.
        draw: makes an SVG file part of a page: `(source, alt, prefix) -> str`.
    """

    def __init__(self, emit: Emit, draw: Callable[[str, str, str], str] | None = None):
        self.emit, self._draw = emit, draw or (lambda source, alt, prefix: source)
        self.module = types.ModuleType("__main__")
        self.names = self.module.__dict__
        self.names.update(display=self.display, input=nobody_answers)
        self._count, self._ids = itertools.count(1), itertools.count(1)
        self._alt = self._prefix = ""
        self._figures = itertools.count(1)
        self._streams: tuple[Stream, ...] = ()
        self._small: set[str] = set()  # names that come from a smaller run
        self._ran: list[str] = []  # the code of all cells, in the order in which they ran

    def install(self) -> None:
        """Become the interpreter's `__main__`, its `display` and matplotlib's backend."""
        global page
        page = self
        sys.modules["__main__"] = self.module
        sys.modules.update(ipython_stand_in(self))
        os.environ["MPLBACKEND"] = "module://page_backend"

    def run(
        self,
        source: str,
        title: str = "cell",
        alt: str = "",
        prefix: str = "live",
        asserts: bool = True,
        steps: bool = False,
    ) -> bool:
        """Run one cell; says whether it ended well.

        Args:
            source: its code; IPython's commands (`%`, `!`) are left out, and this is said.
            title: what a traceback calls it.
            alt: alternative text for its figures.
            prefix: put before the ids of its figures.
            asserts: whether its assertions hold for this run; those of a long run need not for
                a smaller one, nor for what follows from it.
            steps: whether to record what each of its lines does.
        """
        small = not asserts or self.follows_smaller(source)
        assigned = bound_names(source, imports=False)
        if small:
            self._small |= assigned | self._models_in(source)  # which it may have trained
        else:
            self._small -= assigned
        self._alt, self._prefix, self._figures = alt, prefix, itertools.count(1)
        name = f"{title}, run {next(self._count)}"
        source, commands = split_magic(source)
        self._ran.append(source)
        for line, command in commands:
            if not command.startswith("%matplotlib"):  # figures are shown without it
                self.emit(limit_of_command(line, command))
        # a traceback, and inspect.getsource, find the lines of a cell here
        lines = source.splitlines(keepends=True)
        linecache.cache[name] = (len(source), None, lines, name)
        self._streams = Stream("stdout", self.emit), Stream("stderr", self.emit)
        with redirect_stdout(self._streams[0]), redirect_stderr(self._streams[1]):
            try:
                with recorded(source, name, self.emit) if steps else nullcontext():
                    self._execute(source, name, asserts=not small)
                self.show_figures()
                return True
            except BaseException as error:  # a cell's SystemExit must not end the page's Python
                self._flush()
                self.emit(described(error, name))
                if limit := limit_of_error(error):
                    self.emit(limit)
                self._close_figures()
                return False
            finally:
                self._flush()

    def _execute(self, source: str, name: str, asserts: bool) -> None:
        tree = ast.parse(source, name)
        if not asserts:
            tree = ast.fix_missing_locations(WithoutAsserts().visit(tree))
        begin_in_the_books_style(tree)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, name, "exec", dont_inherit=True), self.names)
        if last is None:
            return
        value = eval(compile(last, name, "eval", dont_inherit=True), self.names)
        quiet = source.rstrip().endswith(";")
        if value is not None and not quiet:
            self.names["_"] = value
            self.display(value)

    def display(self, *values: Any, raw: bool = False, display_id: Any = None) -> Any:
        """Show values; with `display_id` the returned handle can show another in its place."""
        shown = str(next(self._ids)) if display_id in (None, True) else str(display_id)
        for value in values:
            self._show(value, raw, shown)
        return Handle(self, shown) if display_id is not None else None

    def _show(self, value: Any, raw: bool, shown: str) -> None:
        self._flush()
        figure = sys.modules.get("matplotlib.figure")
        if figure is not None and isinstance(value, figure.Figure):
            self._show_figure(value)
            return
        # a report knows its exercise; a reader's own class of that name does not count
        if type(value).__module__ == "tinytorch_book.exercises.report" and hasattr(value, "points"):
            for told in value.told():
                self.emit({"kind": "report", "slot": shown, "cells": self.needed(), **told})
            return
        if type(value).__module__.startswith("tinytorch_book.exercises.capstone") and hasattr(
            value, "file"
        ):
            name, text = value.file
            self.emit({"kind": "file", "name": name, "text": text})
        text = value.get("text/plain", "") if raw and isinstance(value, dict) else plain(value)
        self.emit({"kind": "display", "text": text, "slot": shown})

    def show_figures(self) -> None:
        """Show every open figure, and close it."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is None:
            return
        self._flush()
        for number in pyplot.get_fignums():
            self._show_figure(pyplot.figure(number))
        pyplot.close("all")

    def _show_figure(self, figure: Any) -> None:
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
        svg = self._draw(file.getvalue(), self._alt, f"{self._prefix}-{next(self._figures)}")
        self.emit({"kind": "figure", "svg": svg})

    def _close_figures(self) -> None:
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None:
            pyplot.close("all")

    def _flush(self) -> None:
        for stream in self._streams:
            stream.flush()

    def follows_smaller(self, source: str) -> bool:
        """Say whether a cell uses what a smaller run has left: then it gives other numbers too."""
        return bool(used_names(source) & self._small)

    def _models_in(self, source: str) -> set[str]:
        found = {name: self.names.get(name) for name in used_names(source)}
        return {n for n, x in found.items() if hasattr(x, "parameters") and not isinstance(x, type)}

    def needed(self) -> list[str]:
        """The code of the cell that runs, after that of those that it needs."""
        *before, source = self._ran
        return [before[i] for i in needed_cells(before, missing_names(source))] + [source]

    def missing_names(self, source: str) -> list[str]:
        """Name what a cell uses and nothing has defined yet: it needs cells above it."""
        return missing_names(source, self.names)


class WithoutAsserts(ast.NodeTransformer):
    """Replaces assertions by nothing."""

    def visit_Assert(self, node: ast.Assert) -> ast.Pass:
        """Whatever it says."""
        return ast.copy_location(ast.Pass(), node)


class Handle:
    """What `display(..., display_id=True)` returns."""

    def __init__(self, runner: Runner, shown: str):
        self._runner, self.display_id = runner, shown

    def display(self, value: Any, **options: Any) -> None:
        """Show a value."""
        self.update(value, **options)

    def update(self, value: Any, raw: bool = False, **options: Any) -> None:
        """Show another value in the place of the first."""
        self._runner.display(value, raw=raw, display_id=self.display_id)


def ipython_stand_in(runner: Runner) -> dict[str, types.ModuleType]:
    """As much of IPython as a cell, or a progress line, asks for."""
    ipython, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    events = types.SimpleNamespace(register=lambda *args: None, unregister=lambda *args: None)
    # a kernel is how tinytorch.training.progress tells a notebook from a terminal
    shell = types.SimpleNamespace(events=events, user_ns=runner.names, kernel=runner)
    ipython.get_ipython = lambda: shell
    ipython.version_info = (9, 0, 0)
    ipython.display = display
    ipython.__path__ = []
    display.display = runner.display
    return {"IPython": ipython, "IPython.display": display}


def plain(value: Any) -> str:
    """A value as a notebook prints it: containers that are too long one item a line."""
    text = repr(value)
    if type(value) in (dict, list, set, tuple, frozenset) and len(text) > WIDTH:
        return pprint.pformat(value, width=WIDTH + 1, sort_dicts=False)
    return text


# What a notebook can do and a page cannot -------------------------------------------------------

INSTALLING = re.compile(r"[%!](pip|conda|mamba|uv|apt|apt-get)\b")
IN_THE_PAGE = ("numpy", "matplotlib", "tinytorch", "tinytorch_book")
NOTHING_ELSE = "cannot be installed in this page, which has NumPy, Matplotlib and TinyTorch."


def nobody_answers(prompt: object = "", /) -> str:
    """Stand in for `input`, which would wait for ever."""
    raise NotImplementedError("input() has nobody to ask: assign the answer to a name instead")


def limit_of_command(line: int, command: str) -> dict[str, Any]:
    """Say that one of IPython's commands was left out."""
    left_out = f"Line {line} was left out ({command}): "
    if INSTALLING.match(command):
        return limit(left_out + "packages " + NOTHING_ELSE)
    if command.startswith("!"):
        return limit(left_out + "a page has no shell.")
    return limit(left_out + "a page has no IPython.", "Colab", "Binder", "JupyterLite")


def limit_of_error(error: BaseException) -> dict[str, Any] | None:
    """Say what the page lacks, if that is what went wrong."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        return limit(f"{package} {NOTHING_ELSE}") if package not in IN_THE_PAGE else None
    if isinstance(error, NotImplementedError) and str(error).startswith("input()"):
        return limit("A page cannot wait for an answer.")
    if "start new thread" in str(error) or "support processes" in str(error):
        return limit("A page has one thread and no other process.")
    return None


def limit(text: str, *where: str) -> dict[str, Any]:
    """Make the message that something is possible elsewhere, by default in Colab and Binder."""
    return {"kind": "limit", "text": text, "where": where or ("Colab", "Binder")}


# A file of the reader's -------------------------------------------------------------------------

SUGGESTED = re.compile(r": (?:if so, )?pass encoding='([\w-]+)'.*", re.DOTALL)


def take_file(path: str, name: str, given: str, encoding: str = "", least: int = 0) -> str:
    """Look at a file that was dropped, and give it the name that cells read, if they can.

    Args:
        path: where it lies; it is gone afterwards.
        name: the name for the cells: a text, or the weights of a model.
        given: what the reader calls it.
        encoding: that of a text, if the reader has chosen one; it is then stored as UTF-8.
        least: how many characters a text must have.

    Returns:
        As JSON, `ok` and `text`, a sentence; and `encoding`, if another one may be meant.
    """
    told: dict[str, Any] = {"ok": True}
    try:
        if name.endswith(".safetensors"):
            from tinytorch.training.weight_files import load_safetensors

            count = len(load_safetensors(path)[0])
            told["text"] = f"{given}: {count} tensor{'s' * (count != 1)}."
        else:
            told["text"] = taken_text(path, given, encoding, least)
        os.replace(path, name)
    except (ValueError, MemoryError) as error:
        os.remove(path)
        said = str(error).replace(path, given) or f"{given} does not fit into memory"
        meant = SUGGESTED.search(said)
        text = f"{SUGGESTED.sub('', said)}."
        told = {"ok": False, "text": text, "encoding": meant[1] if meant else ""}
    return json.dumps(told)


def taken_text(path: str, given: str, encoding: str, least: int) -> str:
    """Read a text, store it as UTF-8 if its encoding had to be chosen, and say what it is."""
    from tinytorch.text.file_encodings import decode_text

    with open(path, "rb") as file:
        text = decode_text(file.read(), given, encoding or None)
    if len(text) < least:
        counted = f"{len(text):,} character{'s' * (len(text) != 1)}"
        raise ValueError(f"{given} is too short: it has {counted}, and needs {least:,}")
    if encoding:
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    lines = text.count("\n") + 1
    return f"{given}: {len(text):,} characters in {lines:,} line{'s' * (lines != 1)}."


def begin_in_the_books_style(tree: ast.Module) -> None:
    """Before a cell imports matplotlib, give it the style of the book's figures; once is enough."""
    modules = [
        node.module or "" if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    ]
    if any(name.partition(".")[0] == "matplotlib" for name in modules):
        import tinytorch.plots  # noqa: F401


# Errors -----------------------------------------------------------------------------------------


def described(error: BaseException, name: str) -> dict[str, Any]:
    """An error as a reader wants to see it: from the cell on, without the frames of this file."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename != name:
        frames = frames.tb_next
    kind, text, whole, marked = type(error).__name__, "", "", ""
    if isinstance(error, KeyboardInterrupt):
        text = "Stopped."
    elif isinstance(error, (SyntaxError, SystemExit)) and frames is None:
        text = "".join(traceback.format_exception_only(type(error), error))
    else:
        few = -3 if isinstance(error, RecursionError) else None
        for left_out, limit in ((RUNNER, None), (PACKAGES, few)):
            shorten_causes(error, left_out)
            frames = without(left_out, frames)
            lines = traceback.format_exception(type(error), error, frames, limit)
            whole, text = text, "".join(lines)
        marked = "".join(traceback.format_list(traceback.extract_tb(frames)[-1:]))
    missing = getattr(error, "name", None) if isinstance(error, NameError) else None
    about = {"missing": missing or "", "plain": plain_words(error), "marked": marked}
    about["whole"] = whole.rstrip("\n") if whole != text else ""
    return {"kind": "error", "name": kind, "text": text.rstrip("\n"), **about}


def shorten_causes(error: BaseException, packages: set[str]) -> None:
    """Leave out frames of packages where the errors came from that led to this one."""
    seen = {id(error)}
    cause = error.__cause__ or error.__context__
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        cause.__traceback__ = without(packages, cause.__traceback__)
        cause = cause.__cause__ or cause.__context__


def start(post: Callable[[str], None], draw: Callable[[str, str, str], str]) -> Runner:
    """Make the runner of a page whose messages leave as JSON."""
    runner = Runner(lambda message: post(json.dumps(message)), draw)
    runner.install()
    return runner

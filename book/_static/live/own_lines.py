"""The reader's own lines in a traceback, and what the last of them computes."""

import ast
import linecache
import sys
from traceback import extract_tb
from types import FrameType, TracebackType

ENDS = ("lineno", "end_lineno", "col_offset", "end_col_offset")
RUNNER = {"live_runner"}
PACKAGES = {"numpy", "matplotlib", "tinytorch", "tinytorch_book", *sys.stdlib_module_names} | RUNNER
READ = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Slice, ast.Tuple, ast.UnaryOp,
        ast.unaryop, ast.expr_context)  # fmt: skip


def own_places(frames: TracebackType | None, packages: set[str] = PACKAGES) -> list[TracebackType]:
    """List the frames that are not of these packages, the outermost first."""
    found = []
    while frames is not None:
        module = frames.tb_frame.f_globals.get("__name__") or ""
        if module.partition(".")[0] not in packages:
            found.append(frames)
        frames = frames.tb_next
    return found


def without(packages: set[str], frames: TracebackType | None) -> TracebackType | None:
    """Copy a traceback without the frames of these packages."""
    copy = None
    for place in reversed(own_places(frames, packages)):
        copy = TracebackType(copy, place.tb_frame, place.tb_lasti, place.tb_lineno)
    return copy


def last_operation(place: TracebackType) -> tuple[ast.AST | None, list[ast.expr]]:
    """Find the operation at which a line stopped, and its operands."""
    at = extract_tb(place, limit=1)[0]
    there = [at.lineno, at.end_lineno, at.colno, at.end_colno]
    for node in ast.walk(ast.parse("".join(linecache.getlines(at.filename)))):
        if [getattr(node, name, 0) for name in ENDS] != there:
            continue
        match node:
            case ast.BinOp(left=first, right=second) | ast.AugAssign(target=first, value=second):
                return node, [first, second]
            case ast.Call(func=ast.Attribute(attr="reshape", value=first)):
                return node, [first, *node.args]
            case ast.Call(args=[ast.List(elts=items) | ast.Tuple(elts=items), *_] | items):
                return node, items
    return None, []


def shape_of(node: ast.expr, frame: FrameType) -> tuple[int, ...] | None:
    """Read the shape of an operand of names, attributes and items alone: no call runs twice."""
    if not all(isinstance(part, READ) for part in ast.walk(node)):
        return None
    value = eval(ast.unparse(node), frame.f_globals, frame.f_locals)
    shape = () if isinstance(value, (int, float)) else getattr(value, "shape", None)
    return shape if isinstance(shape, tuple) else None

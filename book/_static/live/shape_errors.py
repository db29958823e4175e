"""Why shapes do not fit, and which would: the errors of NumPy and of `tinytorch` in a sentence."""

import ast
import re
from contextlib import suppress
from math import prod

from own_lines import last_operation, own_places, shape_of

Shape = tuple[int, ...]
SHAPE = re.compile(r"\((?:\d+(?:, ?\d+)*,?)?\)")
SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.MatMult: "@"}


class Misfit:
    """An error, the shapes that it names or else its operands have, and what these are called."""

    def __init__(self, error: BaseException):
        self.text = str(error)
        place = own_places(error.__traceback__)[-1]
        node, operands = last_operation(place)
        self.sign = SIGNS.get(type(getattr(node, "op", None)), "")
        self.names = [f"({s})" if " " in s else s for s in map(ast.unparse, operands)]
        self.given = [shape_of(operand, place.tb_frame) for operand in operands]
        read = [tuple(map(int, re.findall(r"\d+", s))) for s in SHAPE.findall(self.text)]
        self.shapes = read or self.given

    def fitting(self, sign: str) -> str:
        """Offer the operands otherwise: one of them turned, made a column, or both exchanged."""
        inside = not self.sign and self.given != self.shapes  # inside what the reader calls
        if inside or len(self.names) != 2 or max(map(len, self.shapes)) > 2:
            return ""
        (a, b), (s, t, *_) = self.names, self.shapes
        tried = [(f"{a}.T", b, s[::-1], t), (a, f"{b}.T", s, t[::-1]), (b, a, t, s)]
        tried += [(a, f"{b}[:, None]", s, (*t, 1)), (f"{a}[:, None]", b, (*s, 1), t)]
        for x, y, m, n in tried[:3] if sign == "@" else tried:
            if m[-1] == n[-2:][0] if sign == "@" else len(m) == len(n) == 2 and not clash(m, n):
                return f"; “{x} {sign} {y}” would fit".replace(".T.T", "")
        return ""


def shapes_in_words(error: BaseException) -> str:
    """Say which shapes do not fit each other; "" if the error is about something else."""
    for pattern, say in SAID.items():
        if found := re.search(pattern, str(error)):
            with suppress(Exception):  # a message of the reader's own may begin like one of these
                return say.format(*found.groups()) if isinstance(say, str) else say(Misfit(error))
    return ""


def product(its: Misfit) -> str:
    """Of `@`, whose inner sizes differ."""
    if len(its.shapes) != 2 or None in its.shapes:
        rows, columns = re.findall(r"size (\d+) is different from (\d+)", its.text)[0]
        return f"The columns of the first, {columns}, must equal the rows of the second, {rows}."
    first, second = its.shapes
    if () in its.shapes:
        return f"{first} @ {second}: one of the two is a single number, and * multiplies by it."
    columns = f"{first[-1]} {'columns' if len(first) > 1 else 'numbers'}"
    rows = f"{second[-2:][0]} {'rows' if len(second) > 1 else 'numbers'}"
    must = f"the {columns} of the first must equal the {rows} of the second"
    must = re.sub(r"\b(1 \w+)s", r"\1", must)
    return f"{first} @ {second}: {must}{its.fitting('@')}."


def stretched(its: Misfit) -> str:
    """Of operations number by number, in which a length of 1 is stretched."""
    pairs = [(s, t) for i, s in enumerate(its.shapes) for t in its.shapes[i + 1 :] if clash(s, t)]
    first, second = pairs[0]
    at = clash(first, second)
    m, n = first[at], second[at]
    lengths = f"the lengths {m} and {n} of axis {at} must be equal or one of them 1"
    same = (*second[:at], m, *second[len(second) + at + 1 :])
    fits = (its.sign and its.fitting(its.sign)) or f"; {same} would fit in place of {second}"
    return f"{first} {its.sign or 'and'} {second}: {lengths}{fits}."


def reshaped(its: Misfit) -> str:
    """Of `reshape`, which keeps the count of numbers."""
    size, wanted = re.findall(r"size (\d+) into shape (\(.*\))", its.text)[0]
    size, asked = int(size), ast.literal_eval(wanted.replace("newaxis", "-1"))
    shape = next((s for s in [*its.shapes, *its.given] if s and prod(s) == size), "The array")
    need = f"{prod(asked)}" if -1 not in asked else f"a multiple of {-prod(asked)}"
    said = f"{shape} has {size} numbers, and {asked} needs {need}"
    for i in reversed(range(len(asked))):
        others = prod((*asked[:i], *asked[i + 1 :]))
        if others > 0 and size % others == 0:
            return f"{said}; {(*asked[:i], size // others, *asked[i + 1 :])} would fit."
    return f"{said}."


def joined(its: Misfit) -> str:
    """Of `concatenate`, `stack` and their like."""
    first = its.shapes[0]
    second = next(s for s in its.shapes if s != first)
    if len(first) != len(second):
        return f"{first} and {second} cannot be joined: their numbers of axes differ."
    at = next(i for i, n in enumerate(first) if n != second[i])
    stacked = "same shape" in its.text
    rule = "stack needs equal shapes" if stacked else "only the joined axis may differ"
    others = {(*s[:at], ..., *s[at + 1 :]) for s in its.shapes}
    fits = f"; {'concatenate' if stacked else 'joining'} with axis={at} would fit."
    said = f"{first} and {second} differ on axis {at}, and {rule}"
    return said + (fits if len(others) == 1 else ".")


def clash(first: Shape, second: Shape) -> int:
    """Return the last axis, -1 or below, on which two shapes do not fit; 0 if they do."""
    pairs = enumerate(zip(reversed(first), reversed(second), strict=False), 1)
    return next((-i for i, (m, n) in pairs if m != n and 1 not in (m, n)), 0)


SAID = {
    r"^matmul: (?:\(.*\) @|Input operand)|^shapes \(.*\) and \(.*\) not aligned": product,
    r"could not be broadcast together with shapes|^(?!matmul)\w+: .* do not broad": stretched,
    r"cannot reshape array of size": reshaped,
    r"all the input array.* must|all input arrays must have the same shape": joined,
    r"^non-broadcastable output operand with shape (\(.*\)) doesn't match .* (\(.*\))": (
        "What is written into keeps its shape {0}, and the result has shape {1}: "
        "“a = a + b” in place of “a += b” would fit."
    ),
    r"^linear: input (\(.*\)) does not fit weight \((\d+),": (
        "The input has shape {0}, and the layer takes one whose last axis has length {1}."
    ),
}

"""How the values of an exercise are compared, copied and shown."""

import copy
import inspect
import re
import unicodedata
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import groupby
from typing import Any

import numpy as np

from tinytorch.core.sparse import RowSparse
from tinytorch.core.tensor import Tensor

WIDTH = 60  # of a value or a hint: 76 columns, less the 16 of its label
_NUMBERS = 24  # an array of more is not shown in full
_ROWS = 4  # nor one of more lines
#: A text of which nothing can be tidied up unnoticed: white space, accents, marks, a zero.
STRANGE = " \ufeff\r\n Ab\tAB e\u0301é \xb2 a\xa0b c\xadd\u200b 12 a\0b, \n\n X.\x0b\r \n"
_ARRAYS = (np.ndarray, Tensor, RowSparse)


def same(got: Any, expected: Any, rtol: float = 1e-5, atol: float | None = None) -> bool:
    """Whether two results are equal.

    Numbers and arrays are compared by shape and by value: whole numbers and booleans exactly,
    others within `atol` (the same number as `rtol` unless given) plus `rtol` times the expected
    value, infinities and NaN only with their like. A whole number may be given as a float.
    Tuples, lists and dictionaries are compared item by item, anything else by type and `==`.

    Example:
        >>> same(1.000001, 1.0), same(8.0, 8), same(12_600_100, 12_600_000), same(1, True)
        (True, True, False, False)
    """
    if isinstance(expected, dict):
        alike = isinstance(got, dict) and got.keys() == expected.keys()
        return alike and all(same(got[key], expected[key], rtol, atol) for key in expected)
    if isinstance(expected, (tuple, list)) and not is_numeric(expected):
        alike = isinstance(got, (tuple, list)) and len(got) == len(expected)
        return alike and all(same(*pair, rtol, atol) for pair in zip(got, expected, strict=True))
    if not is_numeric(expected):
        return isinstance(got, type(expected)) and bool(got == expected)
    if not is_numeric(got):
        return False
    c, e = as_array(got), as_array(expected)
    return c.shape == e.shape and bool(_equal(c, e, rtol, atol).all())


def _equal(c: np.ndarray, e: np.ndarray, rtol: float, atol: float | None) -> np.ndarray:
    """Which elements of `c` are those of `e`, an array of the same shape."""
    if c.dtype.kind == "b" or e.dtype.kind != "f":
        return np.asarray((c == e) & ((c.dtype.kind == "b") == (e.dtype.kind == "b")))
    with np.errstate(all="ignore"):
        return np.asarray(np.isclose(c, e, rtol, rtol if atol is None else atol, equal_nan=True))


def copied(value: Any, in_float64: bool = False) -> Any:
    """A copy of what an answer could change: an array, a list, a dictionary, a leaf tensor.

    Args:
        value: what to copy; anything else is returned as it is.
        in_float64: whether floats become double precision, in arrays, tensors and lists of them.

    Example:
        >>> row = np.zeros(2, dtype=np.float32)
        >>> copied([row])[0] is row, copied((row,), in_float64=True)[0].dtype.name
        (False, 'float64')
    """
    if type(value) in (tuple, list):
        return type(value)(copied(item, in_float64) for item in value)
    if isinstance(value, np.ndarray):
        return value.astype(float if in_float64 and value.dtype.kind == "f" else value.dtype)
    if isinstance(value, Tensor) and value.is_leaf:
        data = copied(value.data, in_float64)
        return Tensor(data, requires_grad=value.requires_grad, dtype=data.dtype)
    return copy.deepcopy(value) if isinstance(value, (list, dict)) else value


def unchanged(before: Any, after: Any) -> bool:
    """Whether an argument is the same after the call as before.

    Example:
        >>> unchanged([1, np.zeros(2)], [1, np.zeros(2)]), unchanged(np.zeros(2), np.ones(2))
        (True, False)
    """
    return before is after or same(after, before, 0.0, 0.0)


def as_array(value: Any) -> np.ndarray:
    """The numbers of an array, a tensor, a row-sparse gradient or a list; fractions as floats.

    Example:
        >>> from fractions import Fraction
        >>> as_array(Tensor([1.0, 2.0])), as_array(Fraction(1, 2))
        (array([1., 2.], dtype=float32), array(0.5))
    """
    if isinstance(value, RowSparse):
        return value.to_dense()
    array = np.asarray(value.data if isinstance(value, Tensor) else value)
    exact = array.dtype == object and all(isinstance(x, (Fraction, Decimal)) for x in array.flat)
    return array.astype(float) if exact and array.size else array


def is_numeric(value: Any) -> bool:
    """Whether a value is a number, or made of numbers that form one array.

    Example:
        >>> is_numeric([[1, 2], [3, 4]]), is_numeric([[1, 2], [3]]), is_numeric("1")
        (True, False, False)
    """
    try:
        return as_array(value).dtype.kind in "fiub"
    except (TypeError, ValueError):
        return False


def compared(expected: Any, got: Any, rtol: float, atol: float | None) -> tuple[str, str]:
    """Two different results as text, both in the same form; long ones where they differ.

    Example:
        >>> compared(np.zeros(40), np.arange(40) // 39, 0.0, 0.0)
        ('0 at [39], shape (40,)', '1 at [39], the only one to differ')
        >>> compared((1, np.zeros(40)), (1, np.arange(40) // 39), 0.0, 0.0)[0]
        'item 1: 0 at [39], shape (40,)'
    """
    table = _is_table(expected) or _is_table(got)
    if not (table and is_numeric(expected) and is_numeric(got)):
        texts = show(expected), show(got)
        alike = texts[0] == texts[1] and isinstance(expected, (tuple, list, dict, str))
        return _first_difference(expected, got, rtol, atol) if alike else texts
    e, c = as_array(expected), as_array(got)
    if e.shape != c.shape:
        return _show_array(e, shape=True), _show_array(c, shape=True)
    if not _is_short(e) or not _is_short(c):
        wrong = np.argwhere(~_equal(c, e, rtol, atol))
        first, second = (f"{show(a[tuple(wrong[0])])} at {wrong[0].tolist()}" for a in (e, c))
        count = f"first of {len(wrong)} that differ" if len(wrong) > 1 else "only one to differ"
        return f"{first}, shape {e.shape}", f"{second}, the {count}"
    for precision in (4, 8, 16):
        texts = _show_array(e, precision=precision), _show_array(c, precision=precision)
        if texts[0] != texts[1]:
            break
    return texts


def _first_difference(expected: Any, got: Any, *near: Any) -> tuple[str, str]:
    """For results that look alike when shortened: the first item that differs, and its position."""
    e, c = (x if isinstance(x, dict) else dict(enumerate(x)) for x in (expected, got))
    key = next(k for k in {**e, **c} if k not in e or k not in c or not same(c[k], e[k], *near))
    place = show(key) if e is expected else f"item {key}"
    if key in e and key in c:
        wanted, found = compared(e[key], c[key], *near)
        return f"{place}: {wanted}", f"{place}: {found}"
    return f"{place}: {show(e.get(key, 'nothing'))}", f"{place}: {show(c.get(key, 'nothing'))}"


def show(value: Any) -> str:
    """A value as a reader would type it, shortened.

    Example:
        >>> show({"x": np.float64(0.5)}), show(np.zeros((1, 2))), show(np.zeros(100))
        ("{'x': 0.5}", '[[0., 0.]], shape (1, 2)', 'an array of shape (100,)')
    """
    try:
        return _show_array(as_array(value)) if _is_table(value) else _show_plain(value)
    except Exception:  # a repr may be the reader's own code
        return f"a {type(value).__name__}"


def _is_table(value: Any) -> bool:
    nested = isinstance(value, list) and is_numeric(value) and as_array(value).ndim > 1
    return nested or isinstance(value, _ARRAYS)


def _show_plain(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(show, value))
        comma = "," * (len(value) == 1)
        return shortened(f"[{inner}]" if isinstance(value, list) else f"({inner}{comma})")
    if isinstance(value, dict):
        inner = ", ".join(f"{show(key)}: {show(item)}" for key, item in value.items())
        return shortened(f"{{{inner}}}")
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    if isinstance(value, Iterator):
        return f"a {type(value).__name__}"
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return f"{value:.6g}"
    marks = (ascii(c)[1:-1] if unicodedata.combining(c) else c for c in repr(value))
    return shortened("".join(marks))  # an accent alone is told from a letter that has one


def _show_array(array: np.ndarray, shape: bool = False, precision: int = 4) -> str:
    """An array, with its shape where it is not obvious, on one line if it fits."""
    if not _is_short(array):
        return f"an array of shape {array.shape}"
    text = _array_text(array, precision)
    if not shape and array.ndim < 2:
        return text
    last = text.rsplit("\n", 1)[-1]
    shown = f"shape {array.shape}"
    return f"{text}, {shown}" if len(last) + 2 + len(shown) <= WIDTH else f"{text},\n{shown}"


def _is_short(array: np.ndarray) -> bool:
    return array.size <= _NUMBERS and _array_text(array, 4).count("\n") < _ROWS


def _array_text(array: np.ndarray, precision: int) -> str:
    if not array.ndim:
        return show(array[()])
    array = array.astype(float) + 0.0 if array.dtype.kind == "f" else array  # no -0
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    tiny = bool(finite.size and (abs(finite) < 1e-3).all())  # then zeros would be shown
    text = np.array2string(array, WIDTH, precision, suppress_small=not tiny, separator=", ")
    line = re.sub(r"(?<=\[) | (?=[],])", "", re.sub(r"\s+", " ", text))
    return line if len(line) < WIDTH else text.replace("\n\n", "\n")


def show_all(given: Sequence[Any], function: Any = None) -> str:
    """The arguments of a call: each array on a separate line, short ones together.

    Args:
        given: the arguments.
        function: whose parameters give them their names, if it takes so many.

    Example:
        >>> print(show_all([np.zeros(2), 3, "learned"]))
        [0., 0.]
        3, 'learned'
        >>> print(show_all([np.zeros(2), 3], lambda row, k: row))
        row = [0., 0.]
        k = 3
    """
    names = _parameters(function)
    shown = [show(value) for value in given]
    if len(names) >= len(given):
        shown = [_headed(f"{name} = ", text) for name, text in zip(names, shown, strict=False)]
    groups = groupby(zip(given, shown, strict=True), lambda each: isinstance(each[0], _ARRAYS))
    return "\n".join(
        ("\n" if arrays else ", ").join(text for _, text in group) for arrays, group in groups
    )


def _headed(head: str, text: str) -> str:
    """A name and its value; a value of several lines stands below."""
    fits = "\n" not in text and len(head + text) <= WIDTH
    return head + text if fits else f"{head.rstrip()}\n{text}"


def _parameters(function: Any) -> list[str]:
    """The names of what a function takes by position; none where Python does not know them."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # as of some built-in functions
        return []
    return [each.name for each in parameters if each.kind <= each.POSITIONAL_OR_KEYWORD]


def shortened(text: str) -> str:
    """At most 200 characters of a text.

    Example:
        >>> len(shortened("a" * 1000))
        200
    """
    return text if len(text) <= 200 else text[:197] + "..."

"""What an error of Python means, in one sentence for who meets it for the first time.

    plain_words(error) -> str       "" where Python's own last line says it

It stands before the traceback and replaces nothing of it. Python's words are those of versions 3.11
to 3.14.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Iterable
from difflib import get_close_matches

from own_lines import own_places
from shape_errors import shapes_in_words

OPENS = {")": "(", "]": "[", "}": "{"}
CLOSES = {opened: closed for closed, opened in OPENS.items()}
INDENTED = {
    r"expected an indented block after (.+) on line (\d+)": (
        "The {0} of line {1} has nothing below it that belongs to it: a line that does begins "
        "further to the right, by four spaces."
    ),
    r"unexpected indent": (
        "Line {line} begins further to the right than the line before it, and nothing there asks "
        "for it: let both begin below each other."
    ),
    r"unindent does not match": (
        "Line {line} begins between two levels: let it begin exactly below the line that it "
        "belongs with."
    ),
    r"inconsistent use of tabs": "Line {line} begins with tabs and others with spaces: use spaces.",
}
MISREAD = {
    r"'(.)' was never closed": "The {0} in line {line} is never closed: its {closing} is missing.",
    r"unmatched '(.)'": "The {0} in line {line} closes nothing: no {opening} is open there.",
    r"closing parenthesis '(.)' does not match opening parenthesis '(.)'": (
        "In line {line} a {1} is open, and a {0} cannot close it: one of the two is wrong."
    ),
    r"unterminated (?:triple-quoted )?f?-?string literal": (
        "The text in quotes that begins in line {line} does not end: its last quote is missing, or "
        "a quote inside it ends it too early."
    ),
    r"expected ':'": "Line {line} needs a colon before what belongs to it.",
    r"Perhaps you forgot a comma": (
        "Something is missing between two values in line {line}: a comma, perhaps."
    ),
    r"invalid syntax\. Maybe you meant '=='": (
        "In line {line} a single = gives a value, where a comparison is expected: that is ==."
    ),
    r"cannot assign to": (
        "In line {line} what stands left of = cannot be given a value, as a name can; to compare, "
        "use ==."
    ),
    r"Missing parentheses in call to '(\w+)'": (
        "In line {line} what {0} is to show belongs in parentheses: {0}(...)."
    ),
    r"invalid character '([“”‘’„«»])'": (
        "Line {line} has the quote {0}, as letters and books have it; Python's are straight: \"."
    ),
    r"'(return|break|continue|await|yield)'.* outside (\w+)": (
        "The {0} in line {line} stands outside any {1}: its line may begin too far to the left."
    ),
    r"^invalid syntax$": (
        "Python cannot read line {line}: something is missing there or just before it, is too "
        "much, or stands in the wrong place."
    ),
}
CALLED = {
    r"(.+)\(\) missing 1 required positional argument: 'self'": (
        "“{0}” is called on its class, where an object of the class belongs before the dot."
    ),
    r"(.+)\(\) missing \d+ required .*arguments?: (.+)": "The call of “{0}” lacks {1}.",
    r"(.+)\(\) missing required argument '(\w+)'": "The call of “{0}” lacks {1}.",
    r"(.+\..+)\(\) takes 0 positional arguments but 1 w": (
        "“{0}” is given the object before its dot, and its def has no name for it: self is missing."
    ),
    r"(.+)\(\) takes (?:from \d+ to )?(\d+) positional arguments? but (\d+) w": (
        "“{0}” was given {2} and takes {1} values without a name{self}."
    ),
    r"(.+)\(\) takes exactly one argument \((\d+) given": (
        "“{0}” takes one value and was given {1}."
    ),
    r"(.+?)\(?\)? expected (?:at (least|most) )?(\d+) arguments?, got (\d+)": (
        "“{0}” takes {least}{2} in its parentheses and was given {3}."
    ),
    r"(.+)\(\) takes no arguments": "“{0}” takes nothing in its parentheses.",
    r"(.+)\(\) got an unexpected keyword argument '(\w+)'(?:\. Did you mean '(\w+)'\?)?": (
        "“{0}” takes nothing that is called “{1}”{meant}."
    ),
    r"(.+)\(\) got multiple values for argument '(\w+)'": (
        "“{0}” was given “{1}” twice: by its place and by its name."
    ),
    r"(.*)'coroutine'": (
        "A function that begins with async def gives its value to await, which is missing here."
    ),
    r"'(\w+)' object is not callable": (
        "Parentheses call a function, and what stands before them is none: its type is {0}. An "
        "item of a list is taken with [ ]."
    ),
}
TOO_LARGE = re.compile("array is too big|Maximum allowed dim|cannot fit 'int' into an index")


def plain_words(error: BaseException) -> str:
    """Say what an error means.

    >>> plain_words(TypeError("half() missing 1 required positional argument: 'x'"))
    'The call of “half” lacks x.'
    >>> plain_words(ZeroDivisionError("division by zero"))
    ''
    """
    if isinstance(error, SyntaxError):
        return misread(error)
    if isinstance(error, NameError):
        return unknown_name(error)
    if isinstance(error, ImportError):
        return not_found(error)
    if isinstance(error, RecursionError):
        return endless(error)
    if isinstance(error, (MemoryError, OverflowError, ValueError)):
        return too_large(error) or shapes_in_words(error)
    if isinstance(error, AttributeError) and "'coroutine'" not in str(error):
        return ""
    return called(str(error)) if isinstance(error, (TypeError, AttributeError)) else ""


def misread(error: SyntaxError) -> str:
    """Say why Python cannot read a line."""
    table = INDENTED if isinstance(error, IndentationError) else MISREAD
    for pattern, sentence in table.items():
        if found := re.search(pattern, error.msg):
            groups = found.groups()
            bracket = groups[0] if groups else ""
            near = {"opening": OPENS.get(bracket), "closing": CLOSES.get(bracket)}
            return sentence.format(*groups, line=error.lineno, **near)
    return ""


def unknown_name(error: NameError) -> str:
    """Say what a name lacks, and which one may be meant."""
    if isinstance(error, UnboundLocalError):
        name = re.search(r"variable '(\w+)'", str(error))
        return (
            f"“{name[1]}” is given a value elsewhere in this function, so Python takes it for the "
            "function's own; when this line runs it has none yet."
            if name
            else ""
        )
    if not error.name:
        return ""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    there = [*place.tb_frame.f_locals, *place.tb_frame.f_globals] if place else []
    meant = near(error.name, [*there, *vars(builtins)])
    if meant:
        return f"Nothing is called “{error.name}” here{meant}."
    return (
        f"Nothing is called “{error.name}” yet: it is misspelt, or the line that gives it a value "
        "has not run."
    )


def not_found(error: ImportError) -> str:
    """Say which module, or what of it, is not there."""
    if isinstance(error, ModuleNotFoundError):
        parent, _, last = (error.name or "").rpartition(".")
        modules = [name.rpartition(".") for name in sys.modules]
        meant = near(last, [name for above, _, name in modules if above == parent], parent)
        return f"There is no module “{error.name}” here{meant}."
    if found := re.match(r"cannot import name '(\w+)' from '([\w.]+)'", str(error)):
        name, module = found.groups()
        meant = near(name, dir(sys.modules.get(module)))
        return f"The module “{module}” has no “{name}”{meant}."
    return ""


def endless(error: BaseException) -> str:
    """Say which functions call themselves or each other without end."""
    codes = [place.tb_frame.f_code for place in own_places(error.__traceback__)]
    names = [f"“{code.co_name}”" for code in dict.fromkeys(codes) if codes.count(code) > 50]
    calls = "calls itself" if len(names) == 1 else "call each other"
    said = f"{calls} too often, perhaps without end: is a case missing that makes no such call?"
    return f"{' and '.join(names)} {said}" if names else ""


def too_large(error: BaseException) -> str:
    """Say that there is not as much memory."""
    sizes = r"Unable to allocate ([\d.]+?)\.? (\w+) for an array with shape (\(.*\)) and"
    if found := re.match(sizes, str(error)):
        return f"An array of shape {found[3]} takes {found[1]} {found[2]}: more than memory has."
    large = isinstance(error, MemoryError) or TOO_LARGE.match(str(error))
    return "What this line makes takes more than memory has." if large else ""


def near(name: str, names: Iterable[str], parent: str = "") -> str:
    """Offer the name that is most like one, if any is."""
    known = [other for other in names if not other.startswith("_") and other != name]
    found = get_close_matches(name, known, n=1, cutoff=0.7)
    whole = f"{parent}.{found[0]}" if found and parent else found[0] if found else ""
    return f"; there is “{whole}”" if whole else ""


def called(text: str) -> str:
    """Say what is wrong with how something is called."""
    for pattern, sentence in CALLED.items():
        if not (found := re.match(pattern, text)):
            continue
        name, *others = (group or "" for group in found.groups())
        name = name.removesuffix(".__init__").rpartition("<locals>.")[2]
        extra = {
            "self": ", the object before its dot among them" if "." in name else "",
            "least": f"at {others[0]} " if others and others[0] in ("least", "most") else "",
            "meant": f"; there is “{others[-1]}”" if others and others[-1] else "",
        }
        return sentence.format(name, *(other.replace("'", "") for other in others), **extra)
    return ""

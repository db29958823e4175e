"""Rules that an exercise states about how its answer is written, and checks for breaches.

A loop is found in the compiled code of the answer and of the functions of the reader's own that it
uses; a call of the package while the answer runs, whatever name it goes by. Both need no source, so
they work for lambdas, classes and partial functions, in a notebook and in the page.
"""

import builtins
import dis
import functools
import graphlib
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from types import CellType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tinytorch.core.module import Module, Parameter

_HIDDEN_LOOPS = {id(f) for f in (map, functools.reduce, np.vectorize, np.apply_along_axis)}
_HIDDEN_NAMES = {"vectorize", "apply_along_axis", "frompyfunc", "starmap"}
_JUMPS = {*dis.hasjrel, *dis.hasjabs}
_ENDS = {"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"}
_NOTHING = {"RESUME", "NOP", "RETURN_VALUE", "COPY_FREE_VARS"}
_CONSTANTS = {"LOAD_CONST", "RETURN_CONST"}
_OURS = "tinytorch", "tinytorch_book"
LIBRARIES = {*_OURS, "numpy", *sys.stdlib_module_names}
_ENGINE = ("tensor", "graph", "primitive", "grad_mode", "numpy_calls", "backward", "broadcasting",
           "arguments")  # fmt: skip
_MACHINERY = tuple(f"tinytorch.core.{name}" for name in _ENGINE)


@dataclass(frozen=True)
class Rule:
    """A stated rule: what to say of a breach, and two ways to find one.

    Attributes:
        hint: the rule, as a helpful sentence.
        of_answer: from the answer to the breach that its code shows, "" if there is none.
        of_call: from the module and the name of what the answer calls to the breach, or "".
    """

    hint: str
    of_answer: Callable[[Any], str] = lambda answer: ""
    of_call: Callable[[str, Any], str] = lambda module, called: ""


def breach_of(rules: Sequence[Rule], answer: Any) -> tuple[str, str]:
    """The breach and the hint of the first rule that the code of `answer` breaks.

    Example:
        >>> from tinytorch import functional
        >>> breach_of([in_numpy], functional.softmax)[0]
        "it is the package's softmax"
    """
    found = ((rule.of_answer(answer), rule.hint) for rule in rules)
    return next((breach for breach in found if breach[0]), ("", ""))


@contextmanager
def watched(rules: Sequence[Rule]) -> Iterator[list[tuple[str, str]]]:
    """Collect the breaches among the calls that a reader's code makes, and their hints.

    Example:
        >>> answer = eval("lambda x: repeat(x, 2)", {"repeat": np.repeat})
        >>> with watched([without("Write it yourself.", np.repeat)]) as breaches:
        ...     answer([1])
        array([1, 1])
        >>> breaches
        [('it calls repeat', 'Write it yourself.')]
    """
    found: list[tuple[str, str]] = []

    def look(frame: FrameType, event: str, called: Any) -> None:
        caller: FrameType | None = frame
        module, what = _module(frame), frame.f_code
        if event == "c_call":
            module, what = getattr(called, "__module__", None) or "", called
        elif event == "call" and _is_library(module) and not _is_handed_over(module, frame):
            caller = _caller(frame)
        else:
            return
        if caller is not None and not _is_library(_module(caller)):
            breaches = ((rule.of_call(module, what), rule.hint) for rule in rules)
            found.extend(breach for breach in breaches if breach[0])

    before = sys.getprofile()
    if any(rule.of_call is not Rule.of_call for rule in rules):
        sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(before)


def is_empty(answer: Any) -> bool:
    """Whether an answer is still the stub: `...`, or functions that do nothing.

    Example:
        >>> is_empty(...), is_empty({"a": ..., "b": ...}), is_empty({"a": 1, "b": ...})
        (True, True, False)
        >>> [is_empty(eval(f"lambda x: {body}", {})) for body in ("...", "x", "6")]
        [True, False, False]
    """
    if isinstance(answer, dict):
        return all(value is ... for value in answer.values())
    functions = functions_of(answer) if callable(answer) else []
    steps = [step for function in functions for step in _steps_of(function)]
    idle = all(
        s.opname in _NOTHING or (s.opname in _CONSTANTS and s.argval in (None, ...)) for s in steps
    )
    return answer is ... or (bool(functions) and idle)


# The rules -----------------------------------------------------------------------------------


def _loop_in(answer: Any) -> str:
    if isinstance(answer, np.vectorize):
        return "np.vectorize is a loop"
    for function in functions_of(answer):
        for code in _codes_in(function.__code__):
            if _repeats(code):
                return f"`{function.__name__}` has a loop"
            used = dict(globals_of(function))
            names = _HIDDEN_NAMES | ({"reduce"} if functools in used.values() else set())
            hidden = names & {*code.co_names}
            hidden |= {name for name, value in used.items() if id(value) in _HIDDEN_LOOPS}
            if hidden:
                return f"{min(hidden)} is a loop"
    return ""


def _numpy_in(answer: Any) -> str:
    for function in functions_of(answer):
        imports = {i.argval for i in _steps_of(function) if i.opname == "IMPORT_NAME"}
        if "numpy" in imports or any(_is_of(value, "numpy") for _, value in globals_of(function)):
            return f"`{function.__name__}` uses NumPy"
    return "it is NumPy's" if _is_of(answer, "numpy") else ""


def _packaged(answer: Any) -> str:
    """What of the package an answer is, or inherits from; a reader's layer is a Module anyway."""
    bare = _bare(answer)
    for base in inspect.getmro(bare) if isinstance(bare, type) else (bare,):
        if _is_of(base, *_OURS) and base is not Module:
            return f"it is the package's {getattr(base, '__name__', type(base).__name__)}"
    return ""


def package_only(hint: str, *modules: str) -> Rule:
    """Refuse what the package offers, except parameters and the functions of `modules`.

    Example:
        >>> from tinytorch import functional
        >>> breach_of([package_only("NumPy alone.")], functional.gelu)
        ("it is the package's gelu", 'NumPy alone.')
    """

    def call(module: str, called: Any) -> str:
        ours = _is_in(module, *_OURS) and not _is_in(module, *modules)
        innocent = called is Parameter.__init__.__code__
        name = called.co_qualname.removesuffix(".__init__").rpartition(".")[2] if ours else ""
        return f"it calls the package's {name}" if ours and not innocent else ""

    return Rule(hint, _packaged, call)


def without(hint: str, *functions: Any) -> Rule:
    """Refuse calls of these functions, whatever name the answer gives them.

    Example:
        >>> breach_of([without("Write it yourself.", np.repeat)], np.repeat)
        ('it is repeat itself', 'Write it yourself.')
    """
    bare = [_bare(function) for function in functions]
    codes = {getattr(function, "__code__", function): _name(function) for function in bare}

    def own(answer: Any) -> str:
        return next((f"it is {_name(f)} itself" for f in bare if _bare(answer) is f), "")

    def call(module: str, called: Any) -> str:
        known = isinstance(called, CodeType) or inspect.isbuiltin(called)
        return f"it calls {codes[called]}" if known and called in codes else ""

    return Rule(hint, own, call)


no_loop = Rule("Without a loop: work on whole arrays. A comprehension is a loop too.", _loop_in)
no_numpy = Rule("Without NumPy: plain Python is enough here.", _numpy_in)
in_numpy = package_only("In NumPy alone, without anything from the package.")
_COMPOSED = "Compose it of operations on tensors: +, *, @, sum, exp and their like."
tensor_operations = package_only(_COMPOSED, "tinytorch.core.ops", *_MACHINERY)
THE_SAME = "Write it yourself: the package does the same."


def by_hand(*modules: str) -> Rule:
    """Refuse what the package offers beyond operations on tensors and the functions of `modules`.

    Example:
        >>> from tinytorch import functional
        >>> breach_of([by_hand()], functional.attention)
        ("it is the package's attention", 'Write it yourself: the package does the same.')
    """
    return package_only(THE_SAME, "tinytorch.core.ops", *_MACHINERY, *modules)


# Helpers -------------------------------------------------------------------------------------


def _bare(answer: Any) -> Any:
    """The function inside a partial function, a bound method, a property or a decorator."""
    made_of = {functools.partial: "func", MethodType: "__func__", property: "fget"}
    while inner := getattr(answer, made_of.get(type(answer), "__wrapped__"), None):
        answer = inner
    return answer


def functions_of(answer: Any) -> list[FunctionType]:
    """The reader's own functions that an answer consists of, methods and helpers included."""
    seen: dict[int, Any] = {}
    waiting = [answer]
    for value in map(_bare, waiting):  # which grows meanwhile
        if id(value) in seen or _is_library(getattr(value, "__module__", None) or ""):
            continue
        seen[id(value)] = value
        if isinstance(value, FunctionType):
            full = (cell for cell in value.__closure__ or () if cell != CellType())
            waiting += [cell.cell_contents for cell in full]
            waiting += [used for _, used in globals_of(value)]
        elif isinstance(value, type):
            waiting += [method for base in value.__mro__[:-1] for method in vars(base).values()]
        elif callable(value):
            waiting.append(type(value))
    return [value for value in seen.values() if isinstance(value, FunctionType)]


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    """A code object and all code objects defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes_in(constant)


def _steps_of(function: FunctionType) -> Iterator[dis.Instruction]:
    return (step for code in _codes_in(function.__code__) for step in dis.get_instructions(code))


def globals_of(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The names that a function loads from its module or from Python, with their values."""
    names = {s.argval for s in _steps_of(function) if s.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for name in sorted(names):
        yield name, function.__globals__.get(name, getattr(builtins, name, None))


def _repeats(code: CodeType) -> bool:
    """Whether a step is part of a loop.

    A backward jump alone is not a loop: the compiler puts error handling last, and jumps back.
    """
    steps = list(dis.get_instructions(code))
    following = {s.offset: {s.argval} if s.opcode in _JUMPS else set() for s in steps}
    for step, after in pairwise(steps):
        if step.opname not in _ENDS and ("JUMP" not in step.opname or "IF" in step.opname):
            following[step.offset].add(after.offset)
    try:
        graphlib.TopologicalSorter(following).prepare()
    except graphlib.CycleError:
        return True
    return False


def _name(function: Any) -> str:
    owner = getattr(function, "__self__", None)
    name = function.__name__
    return f"np.{owner.__name__}.{name}" if isinstance(owner, np.ufunc) else name


def _module(frame: FrameType) -> str:
    return frame.f_globals.get("__name__") or ""


def _caller(frame: FrameType) -> FrameType | None:
    """Who called, beyond the frames that lift a NumPy function to tensors."""
    caller = frame.f_back
    while caller is not None and _module(caller) in _MACHINERY:
        if caller.f_code.co_name == "backward":  # what a pullback does was not written here
            break
        caller = caller.f_back
    return caller


def _is_handed_over(module: str, frame: FrameType) -> bool:
    """Whether the check hands over what is called, or a reader's layer has it from `Module`."""
    owner = type(frame.f_locals.get("self"))
    inherited = frame.f_code.co_qualname.startswith("Module.")
    return _is_in(module, "tinytorch_book.exercises") or (
        inherited and not _is_library(owner.__module__)
    )


def _is_library(module: str) -> bool:
    return module.split(".")[0] in LIBRARIES


def _is_in(module: str, *packages: str) -> bool:
    return f"{module}.".startswith(tuple(f"{package}." for package in packages))


def _is_of(value: Any, *packages: str) -> bool:
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return _is_in(name or type(value).__module__, *packages)

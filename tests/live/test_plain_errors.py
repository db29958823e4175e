"""What an error of Python means, in one sentence: for those that everybody makes first."""

import re

import pytest
from plain_errors import plain_words

CALLABLES = """
def half(x, by=2): return x / by
def named(*, size): return size
class Shelf:
    def __init__(self, width): self.width = width
    def put(self): return self.width
    def bare(): return 1
async def late(): return 1
"""
SAID = {
    # names
    "vectors": "Nothing is called “vectors” yet: it is misspelt, or the line that gives it a value",
    "vektors = 1\nvektor": "Nothing is called “vektor” here; there is “vektors”.",
    "prnt(1)": "Nothing is called “prnt” here; there is “print”.",
    "true": "Nothing is called “true” here; there is “True”.",
    "def f():\n    total += 1\nf()": "“total” is given a value elsewhere in this function",
    # indentation
    "for i in []:\nprint(i)": "The 'for' statement of line 1 has nothing below it that belongs",
    "x = 1\n  y = 2": "Line 2 begins further to the right than the line before it",
    "if 1:\n    x = 1\n  y = 2": "Line 3 begins between two levels",
    "if 1:\n\tx = 1\n        y = 2": "Line 3 begins with tabs and others with spaces",
    # brackets and quotes
    "x = 1\ny = [1, 2\nprint(y)": "The [ in line 2 is never closed: its ] is missing.",
    "x = 1)": "The ) in line 1 closes nothing: no ( is open there.",
    "x = (1]": "In line 1 a ( is open, and a ] cannot close it",
    "print('it's')": "The text in quotes that begins in line 1 does not end",
    "x = “a”": "Line 1 has the quote “, as letters and books have it",
    # what else cannot be read
    "for i in []\n    pass": "Line 1 needs a colon",
    "x = [1 2]": "Something is missing between two values in line 1: a comma, perhaps.",
    "if x = 1:\n    pass": "In line 1 a single = gives a value",
    "f() = 3": "In line 1 what stands left of = cannot be given a value",
    "print 'a'": "In line 1 what print is to show belongs in parentheses: print(...).",
    "return 3": "The return in line 1 stands outside any function",
    "x = 1 +": "Python cannot read line 1: something is missing there or just before it",
    # calls
    "half()": "The call of “half” lacks x.",
    "named()": "The call of “named” lacks size.",
    "Shelf()": "The call of “Shelf” lacks width.",
    "half(1, 2, 3)": "“half” was given 3 and takes 2 values without a name.",
    "Shelf(1).put(2)": "“Shelf.put” was given 2 and takes 1 values without a name, the object",
    "half(1, to=2)": "“half” takes nothing that is called “to”",
    "half(1, x=1)": "“half” was given “x” twice",
    "len()": "“len” takes one value and was given 0.",
    "isinstance(1)": "“isinstance” takes 2 in its parentheses and was given 1.",
    "max()": "“max” takes at least 1 in its parentheses and was given 0.",
    "object(1)": "“object” takes nothing in its parentheses.",
    "x = [1]\nx(0)": "Parentheses call a function, and what stands before them is none",
    "Shelf.put()": "“Shelf.put” is called on its class, where an object of the class belongs",
    "Shelf(1).bare()": "“Shelf.bare” is given the object before its dot, and its def has no name",
    "late() + 1": "A function that begins with async def gives its value to await, which is",
    "late().real": "A function that begins with async def gives its value to await, which is",
    "def f(n): return f(n + 1)\nf(0)": "“f” calls itself too often, perhaps without",
    "def f(): g()\ndef g(): f()\nf()": "“f” and “g” call each other too",
    "import numpy\nnumpy.zeros((10**7, 10**7))": "An array of shape (10000000, 10000000) takes 728",
    "import numpy\nnumpy.zeros((10**9, 10**10, 10))": "What this line makes takes more than memory",
    "import numpy\nnumpy.zeros(10**20)": "What this line makes takes more than memory has.",
    "[0] * 10**17": "What this line makes takes more than memory has.",
    "[0] * 10**20": "What this line makes takes more than memory has.",
    # modules
    "import jsn": "There is no module “jsn” here; there is “json”.",
    "import os.paht": "There is no module “os.paht” here; there is “os.path”.",
    "from math import sqroot": "The module “math” has no “sqroot”; there is “sqrt”.",
    "import qqqq": "There is no module “qqqq” here.",
}


def raised(code):
    """The error that some code ends with."""
    try:
        exec(compile(code, "a cell", "exec"), names := {})
    except Exception as error:
        return error
    raise AssertionError(f"nothing is wrong with {names}")


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize(("code", "said"), SAID.items())
def test_an_error_is_explained_in_plain_words(code, said):
    ours = f"{CALLABLES}\n{code}" if re.search("half|named|Shelf|late", code) else code
    assert plain_words(raised(ours)).startswith(said)


@pytest.mark.parametrize("code", ["1 / 0", "1 + 'a'", "[][0]", "x = 5 if y", "raise NameError"])
def test_clear_python_errors_get_no_explanation(code):
    assert plain_words(raised(code)) == ""


def test_only_names_of_the_cells_are_suggested():
    """Those of what runs it, as `names` above, are not, nor those that begin with an underscore."""
    assert "yet" in plain_words(raised("nams"))
    assert "yet" in plain_words(raised("_hidden = 1\nhidden"))


def test_explanation_accompanies_the_traceback():
    import live_runner

    sent = []
    live_runner.Runner(sent.append).run("half = 1\nhalv")
    assert sent[0]["plain"] == "Nothing is called “halv” here; there is “half”."
    assert sent[0]["text"].splitlines()[-1].startswith("NameError: name 'halv' is not defined")

"""What is recorded of the lines of a cell while it runs."""

import doctest
import re
import sys

import live_runner
import pytest
import step_through

CASES = """
n = 0
for i in range(2):
    n += i
> 1: n int 0 / 2: i int 0 / 3: n int 0 / 2: i int 1 / 3: n int 1 / 2:
=
def f(x):
    return [x]
n = list(map(lambda x: f(x), [4]))
> 1: f function <function f> / 1 f: x int 4 / 2 f: returns list of 1 [4]
> 3 <lambda>: x int 4; returns list of 1 [4] / 3: n list of 1 [[4]]
=
a, i = [
    i + j for i in range(3)
    for j in (1,)
], "x" * 50
del a
> 1: a list of 3 [1, 2, 3]; i str of 50 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'
> 5: a deleted
=
class A:
    def __init__(self):
        self.v = 1
        self.v = [][0]
try:
    A()
except IndexError:
    1 / 0
> 1: A type <class '__main__.A'> / 5: / 2 __init__: self A <__main__.A object>
> 3 __init__: self.v int 1 / 4 __init__: raises IndexError list index out of range
> 6: raises IndexError list index out of range / 7: / 8: raises ZeroDivisionError division by zero
=
from tinytorch import Tensor
w = Tensor([[1, 2.5]], requires_grad=True)
w.sum().backward()
big = w.numpy().repeat(9)
big.put(9, 7)
> 1: Tensor type <class 'tinytorch.core.tensor.Tensor'>
> 2: w Tensor 1 × 2, float32 1 2.5 / 3: w.grad array 1 × 2, float32 1 1
> 4: big array of 18, float32 1 1 1 1 1 1 … / 5: big array of 18, float32 1 1 1 1 1 1 …
"""


def record(source, ok=True):
    sent, before = [], sys.gettrace()
    runner = live_runner.Runner(sent.append)
    assert runner.run(source, steps=True) == ok and sys.gettrace() is before
    return runner.names, next(message for message in sent if message["kind"] == "steps")


@pytest.mark.parametrize("case", CASES.split("=\n"))
def test_each_line_is_recorded_with_what_it_changed(case):
    source, *steps = re.split(r"^> ", case.strip(), flags=re.MULTILINE)
    _, told = record(source, ok="raises" not in case)
    came = [
        f"{f'{first} {inside}'.strip()}: {'; '.join(' '.join(c).strip() for c in changes)}".strip()
        for first, _, inside, changes in told["steps"]
    ]
    assert came == " / ".join(line.strip() for line in steps).split(" / ")


@pytest.mark.parametrize(("times", "more"), [(149, False), (1000, True)])
def test_three_hundred_steps_are_recorded_and_the_cell_runs_to_its_end(times, more):
    names, told = record(f"n = 0\nwhile n < {times}:\n    n += 1")
    assert (len(told["steps"]), told["more"], names["n"]) == (300, more, times)


def test_the_examples_hold():
    assert doctest.testmod(step_through) == (0, 2)

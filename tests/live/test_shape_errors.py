"""Why shapes do not fit, and which would: the errors that NumPy and the package raise."""

import re

import pytest

SIZES = "(3, 4) @ (3, 5): the 4 columns of the first must equal the 3 rows of the second"
AXIS = "(3, 4) {} (3, 5): the lengths 4 and 5 of axis -1 must be equal or one of them 1; "
AXIS += "(3, 4) would fit in place of (3, 5)."
BEGIN = """import numpy as np
from tinytorch import Linear, Tensor, ops
a, b, v = np.ones((3, 4)), np.ones((3, 5)), np.ones(3)
x, y = Tensor(a), Tensor(b)
"""
SAID = {  # ... stands for what other cases say
    "x @ y": f"{SIZES}; “x.T @ y” would fit.",
    "a @ b": f"{SIZES}; “a.T @ b” would fit.",
    "np.dot(a, b.T)": "(3, 4) @ (5, 3): the 4 columns ... the 5 rows ...; “b.T @ a” would fit.",
    "ops.matmul(a + 1, b)": f"{SIZES}.",
    "(a + 1) @ b": "The columns of the first, 4, must equal the rows of the second, 3.",
    "b.T @ a.T": "(5, 3) @ (4, 3): the 3 columns of the first ... 4 rows ...; “b.T @ a” would fit.",
    "v[:1] @ a": "(1,) @ (3, 4): the 1 number of the first must equal the 3 rows of the second.",
    "b @ v": "(3, 5) @ (3,): the 5 columns of ... the 3 numbers ...; “b.T @ v” would fit.",
    "a @ 3": "(3, 4) @ (): one of the two is a single number, and * multiplies by it.",
    "x + y": AXIS.format("+"),
    "a - b": AXIS.format("-"),
    "x * y": AXIS.format("*"),
    "a / b": AXIS.format("/"),
    "np.where(a > 0, a, b)": AXIS.format("and"),
    "x + v": "(3, 4) + (3,): the lengths 4 and 3 of axis -1 ...; “x + v[:, None]” would fit.",
    "v[:1] += v": "What is written into keeps its shape (1,), and the result has shape (3,): ...",
    "x.reshape(5, 2)": "(3, 4) has 12 numbers, and (5, 2) needs 10; (6, 2) would fit.",
    "a.reshape(5, -1)": "(3, 4) has 12 numbers, and (5, -1) needs a multiple of 5.",
    "np.concatenate([a, b])": "(3, 4) and (3, 5) differ on axis 1, ...; joining with axis=1 ...",
    "ops.stack(x, y)": "... stack needs equal shapes; concatenate with axis=1 would fit.",
    "np.vstack([a, b.T])": "(3, 4) and (5, 3) differ on axis 0, ... joined axis may differ.",
    "np.concatenate([a, v])": "(3, 4) and (3,) cannot be joined: their numbers of axes differ.",
    "Linear(4, 2)(y)": "The input has shape (3, 5), ... one whose last axis has length 4.",
    "raise ValueError('matmul: (of mine) @ x')": "",
}


@pytest.mark.parametrize(("code", "said"), SAID.items())
def test_shapes_that_do_not_fit_are_named_with_those_that_would(code, said):
    import live_runner

    sent = []
    live_runner.Runner(sent.append).run(BEGIN + code)
    assert re.fullmatch(re.escape(said).replace(r"\.\.\.", ".*"), sent[0]["plain"])

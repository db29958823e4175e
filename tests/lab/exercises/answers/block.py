"""Right and wrong answers to the exercises of "The transformer block"."""

from itertools import accumulate

import numpy as np


def parameters_by_shapes(d, ratio):
    layers = [(d, d)] * 4 + [(d, ratio * d), (ratio * d, d)]
    return sum(m * n + n for m, n in layers) + 4 * d


def stack_by_index(x, branches, norm):
    stream = [x]
    for i in range(len(branches)):
        stream.append(stream[i] + branches[i](norm(stream[i])))
    return norm(stream[-1])


def block_of_pairs(x, norm1, attention, norm2, mlp, pre_norm):
    for norm, branch in ((norm1, attention), (norm2, mlp)):
        x = x + branch(norm(x)) if pre_norm else norm(x + branch(x))
    return x


RIGHT = {
    "block_cosines": [
        lambda x, y: (x * y).sum(-1) / (np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1))
    ],
    "block_stream": [lambda x, bs: [*accumulate(bs, lambda x, branch: x + branch(x), initial=x)]],
    "block_parameters": [parameters_by_shapes],
    "block_stack": [stack_by_index],
    "block_forward": [block_of_pairs],
}

PRE = "x = x + attention(norm1(x))\n        return x + mlp(norm2(x))"
WRONG = {
    "block_cosines": {"… Nothing is added": ("(y * y).sum(-1))", "(y * y).sum(-1) + 1e-16)")},
    "block_stream": {
        "… `+=` writes into": ("x = x + branch(x)", "x += branch(x)"),
        "… Each branch's result is added to": ("x = x + branch", "x = branch"),
    },
    "block_parameters": {
        "… Each of six matrices has a bias, as": (
            "(d * d + d)",
            "d * d",
            "hidden + hidden * d + d",
            "hidden * d",
        ),
        "… The two norms are parameters": (" + 2 * (d + d)", ""),
        "… There are two norms": ("2 * (d + d)", "(d + d)"),
        "… The second bias of the MLP": ("hidden * d + d", "hidden * d + hidden"),
    },
    "block_stack": {
        "… Norm again before each branch": (
            "for branch",
            "normed = norm(x)\n    for branch",
            "branch(norm(x))",
            "branch(normed)",
        ),
        "… The norm at the end": ("return norm(x)", "return x"),
        "… The branch added nothing": ("x = x + branch", "x = norm(x) + branch"),
        "… In post-norm order it would not": ("branch(norm(x))", "branch(x)"),
        "… here the stream itself was lost": ("x = x + branch", "x = branch"),
    },
    "block_forward": {
        "norms exchanged in post-norm": (
            "norm1(x + a",
            "norm2(x + a",
            "norm2(x + m",
            "norm1(x + m",
        ),
        "… That is pre-norm order, norms": ("if pre_norm", "if True"),
        "… That is post-norm order": ("if pre_norm", "if False"),
        "… The MLP reads the stream": (PRE, "return x + attention(norm1(x)) + mlp(norm2(x))"),
        "… The norm belongs to the branch": (
            PRE,
            "x = norm1(x)\n        x = norm2(x + attention(x))\n        return x + mlp(x)",
        ),
        "… Each branch's result": (PRE, "return mlp(norm2(attention(norm1(x))))"),
        "… the stream itself was lost": (
            "x + attention(x)",
            "attention(x)",
            "x + mlp(x)",
            "mlp(x)",
        ),
        "… The norms are missing": ("norm1(x)", "x", "norm2(x)", "x"),
        "… The MLP has a norm too": ("norm2(x)", "x"),
        "… norm1 goes with attention": ("norm1, attention, norm2", "norm2, attention, norm1"),
    },
}

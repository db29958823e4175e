"""Right and wrong answers to the exercises of "The transformer block"."""

from itertools import accumulate

import numpy as np


# The stream
def stream(x, branches):
    result = [x]
    for branch in branches:
        x = x + branch(x)
        result.append(x)
    return result


def accumulated(x, branches):
    return list(accumulate(branches, lambda x, branch: x + branch(x), initial=x))


def in_the_callers_array(x, branches):
    result = [x.copy()]
    for branch in branches:
        x += branch(x)
        result.append(x.copy())
    return result


def replaced(x, branches):
    return list(accumulate(branches, lambda x, branch: branch(x), initial=x))


# Parameters
def parameters(d, ratio):
    hidden = ratio * d
    return 4 * (d * d + d) + d * hidden + hidden + hidden * d + d + 2 * (d + d)


def parameters_by_shapes(d, ratio):
    layers = [(d, d)] * 4 + [(d, ratio * d), (ratio * d, d)]
    return sum(m * n + n for m, n in layers) + 4 * d


# The stack
def stack(x, branches, norm):
    for branch in branches:
        x = x + branch(norm(x))
    return norm(x)


def stack_by_index(x, branches, norm):
    stream = [x]
    for i in range(len(branches)):
        stream.append(stream[i] + branches[i](norm(stream[i])))
    return norm(stream[-1])


def norm_on_the_stream(x, branches, norm):
    for branch in branches:
        x = norm(x)
        x = x + branch(x)
    return norm(x)


def post_norm(x, branches, norm):
    for branch in branches:
        x = norm(x + branch(x))
    return x


# The block
def block(x, norm1, attention, norm2, mlp, pre_norm):
    if pre_norm:
        x = x + attention(norm1(x))
        return x + mlp(norm2(x))
    x = norm1(x + attention(x))
    return norm2(x + mlp(x))


def block_of_pairs(x, norm1, attention, norm2, mlp, pre_norm):
    for norm, branch in ((norm1, attention), (norm2, mlp)):
        x = x + branch(norm(x)) if pre_norm else norm(x + branch(x))
    return x


def normed_once(x, branches, norm):
    normed = norm(x)
    for branch in branches:
        x = x + branch(normed)
    return norm(x)


RIGHT = {
    "block_cosines": [
        lambda x, y: (x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1)),
        lambda x, y: (x * y).sum(-1) / (np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1)),
    ],
    "block_stream": [stream, accumulated],
    "block_parameters": [parameters, parameters_by_shapes],
    "block_stack": [stack, stack_by_index],
    "block_forward": [block, block_of_pairs],
}

WRONG = {
    "block_cosines": {
        "… Nothing is added": lambda x, y: (
            (x * y).sum(-1) / (np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1) + 1e-8)
        )
    },
    "block_stream": {
        "x itself is changed": in_the_callers_array,
        "… Each branch's result is added to": replaced,
    },
    "block_parameters": {
        "… Each of six matrices has a bias, as": lambda d, r: (4 + 2 * r) * d * d + 4 * d
    },
    "block_stack": {
        "every branch reads the same": (normed_once),
        "… The branch added nothing": norm_on_the_stream,
        "… In post-norm order it would not": post_norm,
    },
    "block_forward": {
        "norms exchanged in post-norm": (
            lambda x, n1, a, n2, m, pre: (
                block(x, n1, a, n2, m, pre) if pre else block(x, n2, a, n1, m, pre)
            )
        ),
        "… That is pre-norm order, norms": lambda x, n1, a, n2, m, pre_norm: block(
            x, n1, a, n2, m, True
        ),
        "… norm1 goes with attention": lambda x, n1, a, n2, m, pre: block(x, n2, a, n1, m, pre),
    },
}

"""Right and wrong answers to the exercises of "The transformer block"."""

from itertools import accumulate

import numpy as np

# The stream -----------------------------------------------------------------------------------


def stream(x, branches):
    result = [x]
    for branch in branches:
        x = x + branch(x)
        result.append(x)
    return result


def accumulated(x, branches):
    return list(accumulate(branches, lambda x, branch: x + branch(x), initial=x))


def recursive(x, branches):
    if not branches:
        return [x]
    return [x, *recursive(x + branches[0](x), branches[1:])]


def copied_in_place(x, branches):
    result = [x.astype(float)]
    for branch in branches:
        new = result[-1].copy()
        new += branch(new)
        result.append(new)
    return result


def shared_in_place(x, branches):
    x = x.astype(float)
    result = [x]
    for branch in branches:
        x += branch(x)
        result.append(x)
    return result


def in_the_callers_array(x, branches):
    result = [x.copy()]
    for branch in branches:
        x += branch(x)
        result.append(x.copy())
    return result


def replaced(x, branches):
    return list(accumulate(branches, lambda x, branch: branch(x), initial=x))


def all_read_the_first(x, branches):
    return list(accumulate(branches, lambda y, branch: y + branch(x), initial=x))


def all_add_to_the_first(x, branches):
    return list(accumulate(branches, lambda y, branch: x + branch(y), initial=x))


def branch_outputs(x, branches):
    return [x, *(branch(y) for branch, y in zip(branches, stream(x, branches), strict=False))]


def first_two(x, branches):
    return stream(x, branches[:2])


def from_the_first_branch(x, branches):
    return [x, *stream(x + branches[0](x), branches[1:])]


# Parameters -----------------------------------------------------------------------------------


def parameters(d, ratio):
    hidden = ratio * d
    return 4 * (d * d + d) + d * hidden + hidden + hidden * d + d + 2 * (d + d)


def parameters_by_shapes(d, ratio):
    layers = [(d, d)] * 4 + [(d, ratio * d), (ratio * d, d)]
    return sum(m * n + n for m, n in layers) + 4 * d


def parameters_by_formula(d, ratio):
    return (4 + 2 * ratio) * d**2 + (9 + ratio) * d


# The stack ------------------------------------------------------------------------------------


def stack(x, branches, norm):
    for branch in branches:
        x = x + branch(norm(x))
    return norm(x)


def stack_by_index(x, branches, norm):
    stream = [x]
    for i in range(len(branches)):
        stream.append(stream[i] + branches[i](norm(stream[i])))
    return norm(stream[-1])


def stack_recursive(x, branches, norm):
    if len(branches) == 0:
        return norm(x)
    return stack_recursive(branches[0](norm(x)) + x, branches[1:], norm)


def norm_on_the_stream(x, branches, norm):
    for branch in branches:
        x = norm(x)
        x = x + branch(x)
    return norm(x)


def no_norms_in_branches(x, branches, norm):
    return norm(stream(x, branches)[-1])


def no_last_norm(x, branches, norm):
    for branch in branches:
        x = x + branch(norm(x))
    return x


def no_stream(x, branches, norm):
    for branch in branches:
        x = branch(norm(x))
    return norm(x)


def after_the_branch(x, branches, norm):
    for branch in branches:
        x = x + norm(branch(x))
    return norm(x)


def post_norm(x, branches, norm):
    for branch in branches:
        x = norm(x + branch(x))
    return x


def normed_once(x, branches, norm):
    normed = norm(x)
    for branch in branches:
        x = x + branch(normed)
    return norm(x)


def last_norm_twice(x, branches, norm):
    return norm(stack(x, branches, norm))


def stack_in_place(x, branches, norm):
    for branch in branches:
        x += branch(norm(x))
    return norm(x)


# The block ------------------------------------------------------------------------------------


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


def block_in_one_line(x, norm1, attention, norm2, mlp, pre_norm):
    def sub(x, norm, branch):
        return branch(norm(x)) + x if pre_norm else norm(branch(x) + x)

    return sub(sub(x, norm1, attention), norm2, mlp)


def parallel(x, norm1, attention, norm2, mlp, pre_norm):
    if pre_norm:
        return x + attention(norm1(x)) + mlp(norm2(x))
    return block(x, norm1, attention, norm2, mlp, pre_norm)


def no_residual(x, norm1, attention, norm2, mlp, pre_norm):
    return mlp(norm2(attention(norm1(x)))) if pre_norm else norm2(mlp(norm1(attention(x))))


def on_the_stream(x, norm1, attention, norm2, mlp, pre_norm):
    if not pre_norm:
        return block(x, norm1, attention, norm2, mlp, False)
    x = norm1(x)
    x = norm2(x + attention(x))
    return x + mlp(x)


def sandwich(x, norm1, attention, norm2, mlp, pre_norm):
    if pre_norm:
        return block(x, norm1, attention, norm2, mlp, True)
    x = x + norm1(attention(x))
    return x + norm2(mlp(x))


def from_the_first(x, norm1, attention, norm2, mlp, pre_norm):
    if not pre_norm:
        return block(x, norm1, attention, norm2, mlp, False)
    return x + mlp(norm2(x + attention(norm1(x))))


def one_norm_last(x, norm1, attention, norm2, mlp, pre_norm):
    if pre_norm:
        return block(x, norm1, attention, norm2, mlp, True)
    x = x + attention(x)
    return norm2(x + mlp(x))


def block_in_place(x, norm1, attention, norm2, mlp, pre_norm):
    if not pre_norm:
        return block(x, norm1, attention, norm2, mlp, False)
    x += attention(norm1(x))
    x += mlp(norm2(x))
    return x


RIGHT = {
    "block_cosines": [
        lambda x, y: (x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1)),
        lambda x, y: (x * y).sum(-1) / (np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1)),
        lambda x, y: (
            np.einsum("...d,...d->...", x, y)
            / np.linalg.norm(x, axis=-1)
            / np.linalg.norm(y, axis=-1)
        ),
    ],
    "block_stream": [stream, accumulated, recursive, copied_in_place],
    "block_parameters": [parameters, parameters_by_shapes, parameters_by_formula],
    "block_stack": [stack, stack_by_index, stack_recursive],
    "block_forward": [block, block_of_pairs, block_in_one_line],
}

WRONG = {
    "block_cosines": {
        "the product": lambda x, y: (x * y).sum(-1),
        "one length": lambda x, y: (x * y).sum(-1) / (x * x).sum(-1),
        "no root": lambda x, y: (x * y).sum(-1) / ((x * x).sum(-1) * (y * y).sum(-1)),
        "of everything": lambda x, y: (x * y).sum() / np.sqrt((x * x).sum() * (y * y).sum()),
        "all pairs": lambda x, y: x @ y.swapaxes(-1, -2) if x.ndim > 1 else x @ y,
        "centred": lambda x, y: (
            ((x - x.mean(-1, keepdims=True)) * (y - y.mean(-1, keepdims=True))).mean(-1)
            / (x.std(-1) * y.std(-1) + 1e-9)
        ),
        "absolute": lambda x, y: (
            np.abs((x * y).sum(-1)) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1))
        ),
    },
    "block_stream": {
        "one array, written into again": shared_in_place,
        "x itself is changed": in_the_callers_array,
        "the branch replaces the stream": replaced,
        "every branch reads x": all_read_the_first,
        "every branch adds to x": all_add_to_the_first,
        "what the branches return": branch_outputs,
        "without x": lambda x, branches: stream(x, branches)[1:],
        "the last alone": lambda x, branches: stream(x, branches)[-1],
        "without the last": lambda x, branches: stream(x, branches)[: max(1, len(branches))],
        "two branches at most": first_two,
        "at least one branch": from_the_first_branch,
        "from the last branch to the first": lambda x, branches: stream(x, branches[::-1]),
        "doubles the stream": lambda x, branches: stream(
            x, [lambda y, b=branch: y + b(y) for branch in branches]
        ),
    },
    "block_parameters": {
        "no biases, no norms": lambda d, r: (4 + 2 * r) * d * d,
        "no biases": lambda d, r: (4 + 2 * r) * d * d + 4 * d,
        "no norms": lambda d, r: parameters(d, r) - 4 * d,
        "one norm": lambda d, r: parameters(d, r) - 2 * d,
        "norms with a scale only": lambda d, r: parameters(d, r) - 2 * d,
        "three norms": lambda d, r: parameters(d, r) + 2 * d,
        "a bias of d for each matrix": lambda d, r: (4 + 2 * r) * d * d + 10 * d,
        "both biases of the MLP long": lambda d, r: parameters(d, r) + (r - 1) * d,
        "a ratio of four": lambda d, r: parameters(d, 4),
        "one matrix in the MLP": lambda d, r: parameters(d, r) - r * d * d,
        "three matrices in attention": lambda d, r: parameters(d, r) - d * d - d,
        "the rule of thumb": lambda d, r: 12 * d * d,
        "off by one": lambda d, r: parameters(d, r) + 1,
        "off by one where it hardly shows": lambda d, r: parameters(d, r) + (d > 500),
    },
    "block_stack": {
        "the norm acts on the stream": norm_on_the_stream,
        "no norms in the branches": no_norms_in_branches,
        "no norm at the end": no_last_norm,
        "no residuals": no_stream,
        "the norm after the branch": after_the_branch,
        "post-norm": post_norm,
        "every branch reads the same": normed_once,
        "two norms at the end": last_norm_twice,
        "the first branch alone": lambda x, branches, norm: stack(x, branches[:1], norm),
        "the first two branches": lambda x, branches, norm: stack(x, branches[:2], norm),
        "nothing without branches": lambda x, branches, norm: (
            stack(x, branches, norm) if branches else x
        ),
        "x changed": stack_in_place,
    },
    "block_forward": {
        "always pre-norm": lambda x, n1, a, n2, m, pre_norm: block(x, n1, a, n2, m, True),
        "always post-norm": lambda x, n1, a, n2, m, pre_norm: block(x, n1, a, n2, m, False),
        "the orders exchanged": lambda x, n1, a, n2, m, pre: block(x, n1, a, n2, m, not pre),
        "one norm used twice": lambda x, n1, a, n2, m, pre: block(x, n1, a, n1, m, pre),
        "norms exchanged": lambda x, n1, a, n2, m, pre: block(x, n2, a, n1, m, pre),
        "norms exchanged in post-norm": lambda x, n1, a, n2, m, pre: (
            block(x, n1, a, n2, m, pre) if pre else block(x, n2, a, n1, m, pre)
        ),
        "the MLP first": lambda x, n1, a, n2, m, pre: block(x, n1, m, n2, a, pre),
        "the MLP reads x": parallel,
        "the MLP's sum starts from x": from_the_first,
        "no residuals": no_residual,
        "pre-norm on the stream": on_the_stream,
        "post-norm inside the branch": sandwich,
        "one norm in post-norm": one_norm_last,
        "x changed": block_in_place,
    },
}

HINTS = {
    "block_stack": {
        "post-norm": "In post-norm order it would not",
        "every branch reads the same": "a norm anew",
        "the norm acts on the stream": "The branch added nothing",
    },
    "block_forward": {
        "norms exchanged": "norm1 goes with attention",
        "norms exchanged in post-norm": "norm1 goes with attention",
    },
}

"""The checks of "The transformer block": right answers pass, empty and wrong ones do not."""

import numpy as np
import pytest

from tinytorch import TransformerBlock
from tinytorch.check import block as check


def nothing(*_):
    return None


def stream(x, branches):
    result = [x]
    for branch in branches:
        result.append(result[-1] + branch(result[-1]))
    return result


def stream_in_place(x, branches):
    x = x.copy()
    result = [x]
    for branch in branches:
        x += branch(x)
        result.append(x)
    return result


def stream_of_the_first(x, branches):
    result = [x]
    for branch in branches:
        result.append(result[-1] + branch(x))
    return result


def stream_replaced(x, branches):
    result = [x]
    for branch in branches:
        result.append(branch(result[-1]))
    return result


def parameters(d, ratio):
    hidden = ratio * d
    return 4 * (d * d + d) + d * hidden + hidden + hidden * d + d + 4 * d


def stack(x, branches, norm):
    for branch in branches:
        x = x + branch(norm(x))
    return norm(x)


def stack_with_the_norm_on_the_stream(x, branches, norm):
    for branch in branches:
        x = norm(x)
        x = x + branch(x)
    return norm(x)


def stack_without_norms_in_branches(x, branches, norm):
    for branch in branches:
        x = x + branch(x)
    return norm(x)


def stack_without_the_last_norm(x, branches, norm):
    for branch in branches:
        x = x + branch(norm(x))
    return x


def forward(x, norm1, attention, norm2, mlp, pre_norm):
    if pre_norm:
        x = x + attention(norm1(x))
        return x + mlp(norm2(x))
    x = norm1(x + attention(x))
    return norm2(x + mlp(x))


def forward_of_one_norm(x, norm1, attention, norm2, mlp, pre_norm):
    return forward(x, norm1, attention, norm1, mlp, pre_norm)


def forward_always_before(x, norm1, attention, norm2, mlp, pre_norm):
    return forward(x, norm1, attention, norm2, mlp, True)


def forward_in_parallel(x, norm1, attention, norm2, mlp, pre_norm):
    return x + attention(norm1(x)) + mlp(norm2(x))


def forward_without_residual(x, norm1, attention, norm2, mlp, pre_norm):
    return mlp(norm2(attention(norm1(x))))


def forward_on_the_stream(x, norm1, attention, norm2, mlp, pre_norm):
    x = norm1(x)
    x = norm2(x + attention(x))
    return x + mlp(x)


RIGHT = {
    check.block_stream: stream,
    check.block_parameters: parameters,
    check.block_stack: stack,
    check.block_forward: forward,
}


@pytest.mark.parametrize("checked", RIGHT, ids=lambda c: c.__name__)
def test_the_right_answer_is_solved_and_an_empty_one_is_not(checked):
    assert checked(RIGHT[checked])
    assert not checked(nothing)
    assert not checked(...)


@pytest.mark.parametrize(
    ("checked", "wrong", "claim", "hint"),
    [
        (check.block_stream, stream_in_place, "one branch", "`+=` writes"),
        (check.block_stream, stream_replaced, "one branch", "got lost"),
        (check.block_stream, lambda x, f: stream(x, f)[1:], "one branch", "begins with x"),
        (check.block_stream, lambda x, f: stream(x, f)[-1], "one branch", "whole list"),
        (check.block_stream, stream_of_the_first, "two branches", "second branch reads"),
        (check.block_parameters, lambda d, r: 4 * d * d, "d = 2, ratio 1", "Four matrices"),
        (check.block_parameters, lambda d, r: (4 + 2 * r) * d * d, "d = 2, ratio 1", "six biases"),
        (check.block_parameters, lambda d, r: parameters(d, r) - 4 * d, "d = 2, ratio 1",
            "two norms are parameters"),
        (check.block_parameters, lambda d, r: parameters(d, r) - 2 * d, "d = 2, ratio 1",
            "There are two norms"),
        (check.block_parameters, lambda d, r: parameters(d, r) - (5 + r) * d, "d = 2, ratio 1",
            "has a bias"),
        (check.block_parameters, lambda d, r: (4 + 2 * r) * d * d + 10 * d, "d = 2, ratio 4",
            "first bias"),
        (check.block_parameters, lambda d, r: parameters(d, r if r == 1 else 4), "d = 48, ratio 3",
            "ratio * d"),
        (check.block_stack, stack_with_the_norm_on_the_stream, "a branch that adds nothing",
            "added nothing, and yet"),
        (check.block_stack, stack_without_the_last_norm, "a branch that adds nothing",
            "norm at the end"),
        (check.block_stack, stack_without_norms_in_branches, "a branch that squares",
            "reads the normalised"),
        (check.block_stack, lambda x, f, norm: stack(x, f[:1], norm), "three branches", "Add"),
        (check.block_forward, forward_in_parallel, "pre-norm, numbers to follow by hand",
            "after attention"),
        (check.block_forward, forward_without_residual, "pre-norm, numbers to follow by hand",
            "got lost"),
        (check.block_forward, forward_on_the_stream, "pre-norm, numbers to follow by hand",
            "belongs to the branch"),
        (check.block_forward, lambda *given: forward(*given[:5], False),
            "pre-norm, numbers to follow by hand", "post-norm order"),
        (check.block_forward, forward_always_before, "post-norm, numbers to follow by hand",
            "pre-norm order"),
        (check.block_forward, forward_of_one_norm, "pre-norm, two different norms", "additions"),
    ],
)  # fmt: skip
def test_a_plausible_wrong_answer_fails_where_it_is_wrong_with_a_hint(checked, wrong, claim, hint):
    report = checked(wrong)
    assert not report
    assert report.cases[-1].claim == claim
    assert hint in report.cases[-1].hint


def test_adding_in_place_is_not_the_right_answer():
    def in_place(x, branches, norm):
        for branch in branches:
            x += branch(norm(x))
        return norm(x)

    report = check.block_stack(in_place)
    assert not report
    assert report.cases[-1].came == "the right result, but `x` is no longer what it was"


@pytest.mark.parametrize("pre_norm", [True, False])
def test_what_is_expected_of_a_block_is_what_the_package_computes(pre_norm):
    block = TransformerBlock(8, 2, dropout_prob=0.0, pre_norm=pre_norm)
    x = np.random.default_rng(0).normal(size=(2, 3, 8))
    parts = block.ln1, block.attention, block.ln2, block.mlp
    assert np.array_equal(forward(x, *parts, pre_norm).data, block(x).data)


def test_the_count_is_that_of_the_package():
    for d in (4, 64):
        assert sum(p.size for p in TransformerBlock(d, 2).parameters()) == parameters(d, 4)

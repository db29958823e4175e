"""The checks of "Tensors and shapes": right answers pass, empty and plausible wrong ones do not."""

import pytest

from tinytorch import check

RIGHT_SHAPES = {
    "x @ W": (2, 3, 5),
    "x @ W + b": (2, 3, 5),
    "x @ v": (2, 3),
    "x.sum(axis=1)": (2, 4),
    "x.transpose()": (2, 4, 3),
    "y @ y.transpose()": (2, 2, 3, 3),
}


def nothing(*_):
    return None


def split(x, num_heads):
    return x.reshape(*x.shape[:2], num_heads, -1).swapaxes(1, 2)


def merge(x):
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def failing(report):
    """The claim of the case at which a report stopped."""
    assert not report
    return report.cases[-1].claim


def test_never_refusing_fails():
    def permissive(a, b):
        n = max(len(a), len(b))
        a, b = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
        return tuple(k if m == 1 else m for m, k in zip(a, b, strict=True))

    report = check.tensors_broadcast_shape(permissive)
    assert failing(report) == "refuses (3,) with (2,)"
    assert "raise a ValueError" in report.cases[-1].hint


def test_the_stub_of_a_prediction_does_not_tell_the_answer():
    report = repr(check.tensors_six_shapes(dict.fromkeys(RIGHT_SHAPES, ...)))
    assert "nothing yet" in report and "expected" not in report and "(2, 3, 5)" not in report


@pytest.mark.parametrize("name", RIGHT_SHAPES)
def test_each_wrong_shape_is_named(name):
    assert failing(check.tensors_six_shapes(RIGHT_SHAPES | {name: (9, 9)})) == name


def test_a_reshape_instead_of_a_permutation_fails():
    wrong = check.tensors_heads(lambda x, h: x.reshape(x.shape[0], h, x.shape[1], -1), merge)
    assert failing(wrong) == "keeps each token in its row"
    wrong = check.tensors_heads(split, lambda x: x.reshape(x.shape[0], x.shape[2], -1))
    assert failing(wrong) == "merges what was split"


def test_the_second_axis_is_not_the_last_one():
    report = check.tensors_centre_rows(lambda x: x - x.mean(axis=1, keepdims=True))
    assert failing(report) == "centres each row of a cube"
    assert "axis=-1" in report.cases[-1].hint


def test_centring_in_place_fails():
    def in_place(x):
        x -= x.mean(-1, keepdims=True)
        return x

    report = check.tensors_centre_rows(in_place)
    assert "`x` is no longer what it was" in report.cases[-1].came and not report


def test_heads_that_take_every_other_number_fail_with_their_own_hint():
    def interleaved(x, h):
        return x.reshape(*x.shape[:2], -1, h).transpose(0, 3, 1, 2)

    report = check.tensors_heads(interleaved, merge)
    assert failing(report) == "gives head i the i-th part of each vector"
    assert "i * d/h" in report.cases[-1].hint

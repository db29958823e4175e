"""The checks of "Data and loss": right answers pass, empty and wrong ones do not."""

import math

import numpy as np
import pytest

from tinytorch.check import data_and_loss as check


def nothing(*_):
    return None


def windows(ids, T, newline, skip=0, shift=1, room=0):
    starts = np.flatnonzero(ids == newline) + skip
    starts = starts[starts + T + room < len(ids)]
    inputs = ids[starts[:, None] + np.arange(T)]
    return inputs, ids[starts[:, None] + shift + np.arange(T)]


def split(n, T, share, spare=None):
    cut = n - round(n * share)
    return np.arange(cut - (T if spare is None else spare)), np.arange(cut, n - T, T)


def cross_entropy(logits, targets, mean=True, stable=True, subtract=1.0):
    shifted = logits - logits.max(axis=-1, keepdims=True) if stable else logits
    log_q = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    one_hot = np.eye(logits.shape[-1])[targets]
    n = targets.size if mean else 1
    return -(log_q * one_hot).sum() / n, (np.exp(log_q) - subtract * one_hot) / n


def bits_per_byte(nats, text):
    return nats.sum() / math.log(2) / len(text.encode())


RIGHT = {
    check.data_windows: windows,
    check.data_split: split,
    check.loss_and_gradient: cross_entropy,
    check.loss_bits_per_byte: bits_per_byte,
}


@pytest.mark.parametrize("checked", RIGHT, ids=lambda c: c.__name__)
def test_the_right_answer_is_solved_and_an_empty_one_is_not(checked):
    assert checked(RIGHT[checked])
    assert not checked(nothing)
    assert not checked(...)


@pytest.mark.parametrize(
    ("wrong", "claim", "hint"),
    [
        (lambda *a: windows(*a, shift=0), "targets of two stories, T = 3", "further on"),
        (lambda *a: windows(*a, skip=1), "inputs of two stories, T = 3", "first character"),
        (lambda ids, T, newline: windows(ids, T, 0), "another newline, T = 7", "whatever id"),
        (lambda ids, T, newline: windows(ids, 3, newline), "the last window that fits, T = 4", ""),
        (lambda *a: windows(*a, room=1), "the last window that fits, T = 4", "last target exists"),
    ],
)
def test_wrong_windows_fail_where_they_are_wrong(wrong, claim, hint):
    last = check.data_windows(wrong).cases[-1]
    assert last.claim == claim
    assert hint in last.hint


def test_late_newlines_that_are_not_dropped_fail_at_once_with_the_fitting_hint():
    def all_newlines(ids, T, newline):
        rows = ids[np.flatnonzero(ids == newline)[:, None] + np.arange(T + 1)]
        return rows[:, :-1], rows[:, 1:]

    last = check.data_windows(all_newlines).cases[-1]
    assert last.claim == "inputs of two stories, T = 3"
    assert "IndexError" in last.came
    assert "last target exists" in last.hint


def test_a_window_without_its_last_target_fails():
    report = check.data_windows(lambda *a: windows(*a, room=-1))
    assert report.cases[-1].claim == "no window past the end, T = 5"
    assert "IndexError" in report.cases[-1].came
    assert "last target exists" in report.cases[-1].hint


@pytest.mark.parametrize(
    ("spare", "hint"),
    [
        (lambda T: 0, "Which tokens does the window of start 14 need"),
        (lambda T: T - 1, "last target is held out"),
        (lambda T: T + 1, "One window more"),
    ],
)
def test_a_split_that_leaks_or_wastes_fails(spare, hint):
    report = check.data_split(lambda n, T, share: split(n, T, share, spare(T)))
    assert report.cases[-1].claim == "training windows of 20 tokens, T = 3"
    assert hint in report.cases[-1].hint


def test_validation_windows_that_overlap_or_run_out_fail():
    def overlapping(n, T, share):
        training, _ = split(n, T, share)
        return training, np.arange(n - round(n * share), n - T)

    def too_far(n, T, share):
        training, _ = split(n, T, share)
        return training, np.arange(n - round(n * share), n, T)

    for wrong in (overlapping, too_far):
        assert check.data_split(wrong).cases[-1].claim == "validation windows of 20 tokens, T = 3"


def test_no_held_out_token_is_read_in_training():
    for n, T, share in ((20, 3, 0.25), (500, 16, 0.1)):
        training, validation = split(n, T, share)
        assert training.max() + T == n - round(n * share) - 1
        assert validation.max() + T < n


@pytest.mark.parametrize(
    ("wrong", "claim", "hint"),
    [
        (lambda z, y: cross_entropy(z, y, mean=False), "the mean of two positions: loss", "means"),
        (lambda z, y: (cross_entropy(z, y)[0], cross_entropy(z, y, mean=False)[1]),
            "the mean of two positions: gradient", "means"),
        (lambda z, y: (-cross_entropy(z, y)[0], 0), "one position: loss", "positive"),
        (lambda z, y: cross_entropy(z, y, subtract=0.0), "one position: gradient", "Subtract 1"),
        (lambda z, y: (cross_entropy(z, y)[0], -cross_entropy(z, y)[1]),
            "one position: gradient", "other way round"),
        (lambda z, y: cross_entropy(np.exp(z), y), "one position: loss", "-ln p"),
        (lambda z, y: (-np.take_along_axis(z, y[..., None], -1).mean(), cross_entropy(z, y)[1]),
            "logits that are not ln p: loss", "constant"),
    ],
)  # fmt: skip
def test_a_wrong_loss_fails_where_it_is_wrong(wrong, claim, hint):
    last = check.loss_and_gradient(wrong).cases[-1]
    assert last.claim == claim
    assert hint in last.hint


def test_a_loss_that_overflows_fails():
    def unstable(logits, targets):
        with np.errstate(all="ignore"):
            return cross_entropy(logits, targets, stable=False)

    last = check.loss_and_gradient(unstable).cases[-1]
    assert last.claim == "large logits: loss"
    assert "each row's largest logit" in last.hint


@pytest.mark.parametrize("axis", [None, -1])
def test_the_logarithm_of_a_rounded_probability_fails(axis):
    def by_way_of_q(logits, targets):
        with np.errstate(all="ignore"):
            exp = np.exp(logits - logits.max(axis=axis, keepdims=True))
            q = exp / exp.sum(axis=-1, keepdims=True)
            loss = -np.log(np.take_along_axis(q, targets[..., None], axis=-1)).mean()
        return loss, cross_entropy(logits, targets)[1]

    last = check.loss_and_gradient(by_way_of_q).cases[-1]
    assert last.claim == "large logits: loss"
    assert "take no logarithm of a q" in last.hint


def test_a_loss_for_two_axes_only_fails():
    def flat(logits, targets):
        return cross_entropy(logits, targets[: len(logits)] if targets.ndim == 1 else targets[0])

    assert check.loss_and_gradient(flat).cases[-1].claim.startswith("a batch (B, T, V)")


@pytest.mark.parametrize(
    ("wrong", "claim", "hint"),
    [
        (lambda s, text: s.sum() / len(text.encode()), "one token of one nat", "in nats"),
        (lambda s, text: s.sum() * math.log(2) / len(text.encode()),
            "one token of one nat", "Divide by ln 2"),
        (lambda s, text: s.mean() / math.log(2), "two tokens of three bytes", "per token"),
        (lambda s, text: s.sum() / math.log(2) / len(text),
            "characters of two and four bytes", "several bytes"),
    ],
)  # fmt: skip
def test_wrong_bits_fail_where_they_are_wrong(wrong, claim, hint):
    last = check.loss_bits_per_byte(wrong).cases[-1]
    assert last.claim == claim
    assert hint in last.hint

"""The checks of "The embedding layer": right answers pass, empty and wrong ones do not."""

import numpy as np
import pytest

from tinytorch import check


def nothing(*_):
    return None


def embed(ids, E, P):
    return E[ids] + P[: ids.shape[-1]]


def place_gradient(g, n):
    return np.pad(g.sum(0), ((0, n - g.shape[1]), (0, 0)))


def scaled_embed(ids, E, P):
    return E[ids] * E.shape[1] ** 0.5 + P[: ids.shape[-1]]


def training_bytes(V, d, T, pos_encoding):
    return 16 * d * (V + T * (pos_encoding == "learned"))


def embed_from(ids, E, P, start):
    if start + ids.shape[1] > len(P):
        raise ValueError
    return E[ids] + P[start : start + ids.shape[1]]


RIGHT = {
    check.layer_embed: embed,
    check.layer_position_gradient: place_gradient,
    check.layer_scaled_embed: scaled_embed,
    check.layer_training_bytes: training_bytes,
    check.layer_embed_from: embed_from,
}


@pytest.mark.parametrize("checked", RIGHT, ids=lambda c: c.__name__)
def test_the_right_answer_is_solved_and_an_empty_one_is_not(checked):
    assert checked(RIGHT[checked])
    assert not checked(nothing)


@pytest.mark.parametrize(
    ("checked", "wrong", "claim"),
    [
        (check.layer_embed, lambda ids, E, P: E[ids], "one sequence"),
        (check.layer_embed, lambda ids, E, P: E[ids] + P[: len(ids)][:, None]
            if ids.ndim == 2 else E[ids] + P[: len(ids)], "a batch of one"),
        (check.layer_embed, lambda ids, E, P: E[ids] + P[: len(ids)], "a batch of one"),
        (check.layer_position_gradient, lambda g, n: g.mean(0), "sums over the batch"),
        (check.layer_position_gradient, lambda g, n: g.sum(0), "leaves unread positions at zero"),
        (check.layer_scaled_embed, lambda ids, E, P: embed(ids, E, P) * E.shape[1] ** 0.5,
            "positions stay as they are"),
        (check.layer_scaled_embed, lambda ids, E, P: 2 * E[ids] + P[: ids.shape[-1]],
            "a batch with d = 3"),
        (check.layer_scaled_embed, embed, "tokens are scaled"),
        (check.layer_training_bytes, lambda V, d, T, p: 4 * V * d, "no positions"),
        (check.layer_training_bytes, lambda V, d, T, p: 16 * V * d, "learned positions"),
        (check.layer_training_bytes, lambda V, d, T, p: 16 * d * (V + T * (p is not None)),
            "sinusoidal positions"),
        (check.layer_embed_from, lambda ids, E, P, s: E[ids] + P[: ids.shape[1]],
            "begins further on"),
        (check.layer_embed_from, lambda ids, E, P, s: E[ids] + P[s : s + ids.shape[1]],
            "refuses positions behind the table from 3"),
    ],
)  # fmt: skip
def test_a_plausible_wrong_answer_fails_where_it_is_wrong(checked, wrong, claim):
    report = checked(wrong)
    assert not report
    assert report.cases[-1].claim == claim


def test_scaling_the_table_itself_fails():
    def in_place(ids, E, P):
        E *= E.shape[1] ** 0.5
        return embed(ids, E, P)

    report = check.layer_scaled_embed(in_place)
    assert not report
    assert report.cases[-1].came == "the right result, but `E` is no longer what it was"

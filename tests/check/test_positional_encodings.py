"""The checks of the positions chapter: right answers pass, wrong ones fail where expected."""

import numpy as np
import pytest

from tinytorch.check.positional_encodings import (
    positions_add,
    positions_alibi,
    positions_count,
    positions_sinusoids,
    positions_turn,
)
from tinytorch.text.embeddings import create_alibi_bias, create_sinusoidal_embeddings

CHECKS = [positions_sinusoids, positions_count, positions_alibi, positions_add, positions_turn]


def sinusoids(T, d, frequencies=None):
    if frequencies is None:
        frequencies = 10000.0 ** (-np.arange(0, d, 2) / d)
    angles = np.arange(T)[:, None] * frequencies
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(T, d)


def alibi(num_heads, seq_len):
    slopes = 2.0 ** (-8 * np.arange(1, num_heads + 1) / num_heads)
    back = np.arange(seq_len)[:, None] - np.arange(seq_len)[None, :]
    return np.where(back >= 0, -slopes[:, None, None] * back, -np.inf)


def turn(x, positions, base=10000.0):
    frequencies = base ** (-np.arange(0, x.shape[1], 2) / x.shape[1])
    angles = np.asarray(positions)[:, None] * frequencies
    even, odd = x[:, 0::2], x[:, 1::2]
    turned = np.empty(x.shape)
    turned[:, 0::2] = even * np.cos(angles) - odd * np.sin(angles)
    turned[:, 1::2] = even * np.sin(angles) + odd * np.cos(angles)
    return turned


def fails_at(report, claim):
    assert not report
    assert claim in report.cases[-1].claim, report
    assert not report.cases[-1].passed


@pytest.mark.parametrize("check", CHECKS)
def test_a_stub_has_not_passed(check):
    report = check(lambda *given: ...)
    assert not report
    assert "replace the ..." in repr(report)
    assert "write the body" in repr(check(lambda *given: None))


@pytest.mark.parametrize("check", CHECKS)
def test_an_answer_that_is_no_function_or_raises_is_reported(check):
    assert not check(...)
    assert "ZeroDivisionError" in repr(check(lambda *given: 1 / 0))


@pytest.mark.parametrize(
    ("check", "solution"),
    [
        (positions_sinusoids, sinusoids),
        (positions_sinusoids, create_sinusoidal_embeddings),
        (positions_count, lambda scheme, T, d: T * d if scheme == "learned" else 0),
        (positions_alibi, alibi),
        (positions_add, lambda x, table: x + table[: x.shape[1]]),
        (positions_turn, turn),
    ],
)
def test_the_solution_passes(check, solution):
    assert check(solution)


def test_sines_first_and_cosines_after_fail_at_position_0():
    def halves(T, d):
        table = sinusoids(T, d)
        return np.concatenate([table[:, 0::2], table[:, 1::2]], axis=1)

    fails_at(positions_sinusoids(halves), "position 0")


def test_an_exponent_without_the_pair_fails_at_the_row_of_the_chapter():
    fails_at(positions_sinusoids(lambda T, d: sinusoids(T, d, np.ones(d // 2))), "position 1")


def test_frequencies_of_columns_instead_of_pairs_fail_at_the_row_of_the_chapter():
    def by_column(T, d):
        angles = np.arange(T)[:, None] * 10000.0 ** (-np.arange(d) / d)
        return np.where(np.arange(d) % 2 == 0, np.sin(angles), np.cos(angles))

    fails_at(positions_sinusoids(by_column), "position 1")


def test_the_printed_row_alone_is_not_the_table():
    def hard_coded(T, d):
        table = np.tile([0.0, 1.0], (T, d // 2))
        if d == 8:
            table[1] = [0.84, 0.54, 0.10, 1.00, 0.01, 1.00, 0.00, 1.00]
        return table

    fails_at(positions_sinusoids(hard_coded), "whole table")


def test_positions_that_start_at_one_fail():
    fails_at(positions_sinusoids(lambda T, d: sinusoids(T + 1, d)[1:]), "position 0")


def test_counting_a_fixed_table_fails():
    def fixed_too(scheme, T, d):
        return T * d if scheme in ("learned", "sinusoidal") else 0

    fails_at(positions_count(fixed_too), "sinusoidal positions are fixed")


def test_counting_the_angles_of_the_rotation_fails():
    def angles_too(scheme, T, d):
        return {"learned": T * d, "rotary": T * d // 2}.get(scheme, 0)

    fails_at(positions_count(angles_too), "a rotation")


def test_a_hard_coded_count_fails_at_another_shape():
    report = positions_count(lambda scheme, T, d: 20 if scheme == "learned" else 0)
    fails_at(report, "2,048 positions")


def test_a_bias_that_leaves_the_future_open_fails():
    fails_at(positions_alibi(create_alibi_bias), "the future is minus infinity")


def test_slopes_counted_from_zero_fail():
    def from_zero(num_heads, seq_len):
        slopes = 2.0 ** (-8 * np.arange(num_heads) / num_heads)
        return alibi(1, seq_len)[None, 0] * 256 * slopes[:, None, None]

    fails_at(positions_alibi(from_zero), "two heads")


def test_a_reward_for_distance_fails():
    def rewarded(num_heads, seq_len):
        with np.errstate(invalid="ignore"):
            return np.where(
                np.isinf(alibi(num_heads, seq_len)), -np.inf, -alibi(num_heads, seq_len)
            )

    fails_at(positions_alibi(rewarded), "two heads")


def test_rows_and_columns_swapped_fail():
    fails_at(positions_alibi(lambda n, T: alibi(n, T).swapaxes(1, 2)), "two heads")


def test_one_slope_for_all_heads_fails():
    def one_slope(n, T):
        return np.repeat(alibi(n, T)[:1], n, axis=0)

    fails_at(positions_alibi(one_slope), "two heads")


def test_the_planted_bug_fails_at_the_first_case():
    fails_at(positions_add(lambda x, table: x + table[: len(x)][:, None]), "two tokens")


def test_adding_the_first_row_or_the_last_rows_fails():
    fails_at(positions_add(lambda x, table: x + table[0]), "two tokens")
    fails_at(positions_add(lambda x, table: x + table[-x.shape[1] :]), "two tokens")


def test_counting_on_through_the_batch_fails():
    def running(x, table):
        flat = x.reshape(-1, x.shape[2])
        return (flat + np.resize(table, flat.shape)).reshape(x.shape)

    fails_at(positions_add(running), "3 sequences")


def test_a_turn_the_other_way_fails_at_one_radian():
    fails_at(positions_turn(lambda x, positions: turn(x, -positions)), "position 1")


def test_partners_half_a_vector_apart_fail_at_the_pairs():
    def halves(x, positions):
        order = np.arange(x.shape[1]).reshape(2, -1).T.ravel()
        turned = np.empty(x.shape)
        turned[:, order] = turn(x[:, order], positions)
        return turned

    fails_at(positions_turn(halves), "pairs are neighbours")


def test_one_speed_for_all_pairs_fails_at_the_pairs():
    fails_at(positions_turn(lambda x, positions: turn(x, positions, base=1.0)), "pairs")


def test_positions_that_are_ignored_fail():
    def from_the_start(x, positions):
        return turn(x, positions if len(x) == 1 else np.arange(len(x)))

    fails_at(positions_turn(from_the_start), "its own position")


def test_a_value_overwritten_too_early_fails():
    def too_early(x, positions):
        x = x.copy()
        angles = positions[:, None] * 10000.0 ** (-np.arange(0, x.shape[1], 2) / x.shape[1])
        x[:, 0::2] = x[:, 0::2] * np.cos(angles) - x[:, 1::2] * np.sin(angles)
        x[:, 1::2] = x[:, 0::2] * np.sin(angles) + x[:, 1::2] * np.cos(angles)
        return x

    fails_at(positions_turn(too_early), "position 1")


def test_a_look_up_fails_at_a_negative_position():
    table = np.random.default_rng(0).normal(size=(5, 2))

    def looked_up(x, positions):
        return turn(x, positions) if positions.min() >= 0 else x + table[positions]

    fails_at(positions_turn(looked_up), "a negative position")


def test_turning_in_place_fails():
    def in_place(x, positions):
        x[:] = turn(x, positions)
        return x

    assert "`x` is no longer what it was" in repr(positions_turn(in_place))


def test_predicted_counts_are_not_told():
    assert "expected" not in repr(positions_count(lambda scheme, T, d: 3))
    report = positions_count(lambda scheme, T, d: 20 if scheme == "learned" else 0)
    assert "expected" not in repr(report) and str(2048 * 1024) not in repr(report)


@pytest.mark.parametrize(
    ("check", "wrong", "hint"),
    [
        (positions_sinusoids, lambda T, d: sinusoids(T + 1, d)[1:], "Positions count from 0"),
        (
            positions_sinusoids,
            lambda T, d: np.ones((T, d // 2)) * 10000 ** -np.arange(1, d // 2 + 1),
            "10000.0",
        ),
        (positions_alibi, lambda n, T: -alibi(n, T), "it is negative"),
        (positions_alibi, lambda n, T: alibi(n, T).swapaxes(1, 2), "Row i is the token that looks"),
        (positions_alibi, lambda n, T: alibi(n, T) * 2, "2 to the power"),
        (positions_turn, lambda x, p: turn(x, np.arange(len(x))), "comes from `positions`"),
        (positions_turn, lambda x, p: turn(x, -p), "becomes (a cos - b sin"),
    ],
)
def test_the_hint_fits_the_mistake(check, wrong, hint):
    report = check(wrong)
    assert not report
    assert hint in report.cases[-1].hint


def test_the_report_says_which_part_of_the_table_it_shows():
    found = positions_sinusoids(lambda T, d: sinusoids(T, d, np.ones(d // 2))).cases[-1]
    assert found.expected.startswith("row 1: ") and found.came.startswith("row 1: ")

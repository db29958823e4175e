"""The checks of the chapter on token embeddings take right answers and catch the usual errors."""

import numpy as np
import pytest

from tinytorch.check import token_embeddings as checks


def stub(*_):
    """An empty answer."""
    ...


def right_lookup(table, ids):
    if ids.min() < 0:
        raise IndexError("ids begin at 0")
    return table[ids]


def right_gradient(ids, g, vocab_size):
    table = np.zeros((vocab_size, g.shape[-1]))
    np.add.at(table, ids, g)
    return table


def right_step(table, ids, g, lr):
    table = table.copy()
    np.subtract.at(table, ids, lr * g)
    return table


def right_neighbours(table, i, k):
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    cosine = unit @ unit[i]
    cosine[i] = -2
    return np.argsort(-cosine)[:k].tolist()


def right_cost(vocab_size, embed_dim, rest, tied):
    tables = vocab_size * embed_dim * (1 if tied else 2)
    return tables / (tables + rest), 16 * tables


RIGHT = {
    "token_lookup": right_lookup,
    "token_scatter_add": right_gradient,
    "token_row_step": right_step,
    "token_neighbours": right_neighbours,
    "token_cost": right_cost,
}


def test_every_check_is_tested():
    assert sorted(RIGHT) == sorted(checks.__all__)


@pytest.mark.parametrize("name", RIGHT)
def test_the_right_answer_is_solved(name):
    report = getattr(checks, name)(RIGHT[name])
    assert report, report


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("answer", [stub, ..., None, 3], ids=["stub", "ellipsis", "none", "number"])
def test_an_empty_answer_is_not(name, answer):
    report = getattr(checks, name)(answer)
    assert not report
    assert len(report.cases) == 1


def one_hot_of_one_axis(table, ids):
    return (ids[:, None] == np.arange(len(table))) @ table


def assigned(ids, g, vocab_size):
    table = np.zeros((vocab_size, g.shape[-1]))
    table[ids] = g
    return table


def added_by_index(ids, g, vocab_size):
    table = np.zeros((vocab_size, g.shape[-1]))
    table[ids] += g
    return table


def averaged(ids, g, vocab_size):
    count = np.bincount(ids.reshape(-1), minlength=vocab_size)
    return right_gradient(ids, g, vocab_size) / np.maximum(count, 1)[:, None]


def as_long_as_the_largest_id(ids, g, vocab_size):
    return right_gradient(ids, g, ids.max() + 1)


def of_one_axis(ids, g, vocab_size):
    table = np.zeros((vocab_size, g.shape[-1]))
    for i, row in zip(ids, g, strict=True):
        table[int(i)] += row
    return table


def spoiling(ids, g, vocab_size):
    result = right_gradient(ids, g, vocab_size)
    g *= 0
    return result


def step_by_index(table, ids, g, lr):
    table = table.copy()
    table[ids] -= lr * g
    return table


def step_upwards(table, ids, g, lr):
    return 2 * table - right_step(table, ids, g, lr)


def step_in_place(table, ids, g, lr):
    np.subtract.at(table, ids, lr * g)
    return table


def by_dot_product(table, i, k):
    return [j for j in np.argsort(-(table @ table[i])) if j != i][:k]


def by_distance(table, i, k):
    away = np.linalg.norm(table - table[i], axis=1)
    return [j for j in np.argsort(away) if j != i][:k]


def itself_included(table, i, k):
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    return np.argsort(-(unit @ unit[i]), kind="stable")[:k]


def first_one_skipped(table, i, k):
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    return np.argsort(-(unit @ unit[i]), kind="stable")[1 : k + 1]


def always_tied(vocab_size, embed_dim, rest, tied):
    return right_cost(vocab_size, embed_dim, rest, True)


def in_percent(vocab_size, embed_dim, rest, tied):
    share, size = right_cost(vocab_size, embed_dim, rest, tied)
    return 100 * share, size


def weight_alone(vocab_size, embed_dim, rest, tied):
    share, size = right_cost(vocab_size, embed_dim, rest, tied)
    return share, size // 4


def of_the_rest(vocab_size, embed_dim, rest, tied):
    tables = vocab_size * embed_dim * (1 if tied else 2)
    return tables / rest, 16 * tables


def hard_coded(vocab_size, embed_dim, rest, tied):
    if vocab_size == 50257:
        return right_cost(50257, 768, 85_842_432, tied)
    return (0.4, 640) if tied else (80 / 140, 1280)


@pytest.mark.parametrize(
    ("name", "answer", "where"),
    [
        ("token_lookup", lambda table, ids: table[ids], "refuses an id below zero"),
        ("token_lookup", one_hot_of_one_axis, "gives a table of rows for a table of ids"),
        ("token_lookup", lambda table, ids: table[np.unique(ids)], "gives one row for each id"),
        ("token_lookup", lambda table, ids: table[ids[0]], "gives one row for each id"),
        ("token_scatter_add", assigned, "sums the gradients of a repeated id"),
        ("token_scatter_add", added_by_index, "sums the gradients of a repeated id"),
        ("token_scatter_add", averaged, "sums the gradients of a repeated id"),
        (
            "token_scatter_add",
            as_long_as_the_largest_id,
            "puts each gradient into the row of its id",
        ),
        ("token_scatter_add", of_one_axis, "handles a batch of two sentences"),
        ("token_scatter_add", spoiling, "puts each gradient into the row of its id"),
        (
            "token_row_step",
            step_by_index,
            "moves a row that occurs twice by the sum of both gradients",
        ),
        ("token_row_step", step_upwards, "moves one row"),
        ("token_row_step", step_in_place, "moves one row"),
        ("token_neighbours", by_dot_product, "finds the nearest direction, not the longest vector"),
        ("token_neighbours", by_distance, "finds the nearest direction, not the longest vector"),
        (
            "token_neighbours",
            itself_included,
            "finds the nearest direction, not the longest vector",
        ),
        (
            "token_neighbours",
            first_one_skipped,
            "leaves out row i even when another row has its direction",
        ),
        ("token_cost", always_tied, "the share of the untied model"),
        ("token_cost", in_percent, "the share of a small tied model"),
        ("token_cost", weight_alone, "the bytes of a small tied model"),
        ("token_cost", of_the_rest, "the share of a small tied model"),
        ("token_cost", hard_coded, "a table of 8133 rows"),
    ],
)
def test_a_plausible_wrong_answer_fails_where_it_is_wrong(name, answer, where):
    report = getattr(checks, name)(answer)
    assert report.cases[-1].claim == where
    assert not report


@pytest.mark.parametrize(
    ("name", "answer", "hint"),
    [
        ("token_scatter_add", assigned, "An indexed assignment writes each row once"),
        ("token_scatter_add", averaged, "A sum, not a mean"),
        ("token_scatter_add", spoiling, "Work on a copy"),
        ("token_row_step", step_by_index, "The indexed assignment reads and writes each row once"),
        (
            "token_row_step",
            lambda table, ids, g, lr: table - lr * averaged(ids, g, len(table)),
            "A sum, not a mean",
        ),
        ("token_row_step", step_upwards, "Down, not up"),
        ("token_row_step", step_in_place, "Work on a copy"),
        ("token_neighbours", itself_included, "Row 0 is most like itself"),
        ("token_neighbours", lambda t, i, k: right_neighbours(-t, i, 3)[::-1][:k], "Nearest first"),
        ("token_cost", in_percent, "A fraction"),
        ("token_cost", of_the_rest, "The tables are part of the total"),
        ("token_cost", lambda *sizes: right_cost(*sizes)[::-1], "First the share"),
        ("token_cost", weight_alone, "four bytes each"),
    ],
)
def test_the_hint_fits_the_mistake(name, answer, hint):
    assert hint in getattr(checks, name)(answer).cases[-1].hint


def test_a_single_cost_is_told_to_be_no_pair():
    report = checks.token_cost(lambda *sizes: right_cost(*sizes)[0])
    assert report.cases[-1].came == "0.4, which is no pair (share, bytes)"


def test_plain_numbers_are_shown_for_the_numbers_of_numpy():
    assert checks.token_neighbours(lambda *_: list(np.array([3, 2]))).cases[-1].came == "[3, 2]"

"""What is measured of heads that repeat, and what stands beside them."""

import numpy as np
import pytest

from tinytorch import GPT
from tinytorch.inside.ablation import ablated
from tinytorch.training.evaluation import surprise
from tinytorch_book.experiments.repeating_heads import nats_by_half, other_heads

TWICE = np.array([[4, 7, 9, 1, 4, 7, 9, 1], [3, 3, 5, 2, 3, 3, 5, 2]])


def test_each_half_has_the_mean_of_its_tokens_but_the_first():
    model = GPT(16, 8, 2, 2, init_std=0.5, rng=0)
    nats = surprise(model, TWICE[:, :-1], TWICE[:, 1:])  # of tokens 1 to 7
    expected = np.stack([nats[:, :3].mean(axis=1), nats[:, 4:].mean(axis=1)], axis=1)
    assert nats_by_half(model, TWICE) == pytest.approx(expected)


def test_all_of_the_heads_are_silent_meanwhile_and_none_later():
    model = GPT(16, 8, 2, 2, init_std=0.5, rng=0)
    whole = nats_by_half(model, TWICE)
    with ablated(model, "blocks.0.attention", 1), ablated(model, "blocks.1.attention", 0):
        expected = nats_by_half(model, TWICE)
    assert nats_by_half(model, TWICE, without=[(0, 1), (1, 0)]) == pytest.approx(expected)
    assert np.array_equal(nats_by_half(model, TWICE), whole)
    assert np.abs(whole - expected).min() > 1e-3


def test_other_heads_are_of_the_same_blocks_and_none_of_them():
    heads, seen = [(17, 3), (18, 6), (17, 4)], set()
    for seed in range(40):
        drawn = other_heads(heads, 9, rng=seed)
        assert [block for block, _ in drawn] == [17, 17, 18] and len({*drawn}) == 3
        assert not {*drawn} & {*heads}
        seen |= {*drawn}
    assert len(seen) == 7 + 8, "every other head is drawn now and then"
    assert other_heads([(2, 0), (2, 1)], 4) == [(2, 2), (2, 3)], "half of them leave no choice"
    with pytest.raises(ValueError, match="block 2 has too few others; take fewer heads"):
        other_heads([(2, 0), (2, 1), (2, 3)], 4)
    with pytest.raises(ValueError, match="block 2 has heads 0 to 3, not 9"):
        other_heads([(2, 9)], 4)


@pytest.mark.parametrize("ids", [[[1, 2, 3]], [[1, 2, 1, 3]], [[1, 1]]])
def test_tokens_that_do_not_come_twice_are_refused(ids):
    with pytest.raises(ValueError, match="each row must be the same tokens twice, at least two"):
        nats_by_half(GPT(16, 8, 1, 2, rng=0), ids)

"""The scores of heads whose attention is known."""

import numpy as np
import pytest

from tinytorch.inside.heads import (
    after_same_token,
    head_scores,
    previous_token,
    same_token,
)

IDS = np.array([[0, 5, 6, 0, 5, 6], [0, 7, 8, 9, 7, 8]])


def perfect(targets):
    """A head that shares its attention among its targets, or looks at itself if it has none."""
    weights = np.where(targets.any(-1, keepdims=True), targets, np.eye(6))
    return weights / weights.sum(axis=-1, keepdims=True)


KINDS = {
    "previous": previous_token(IDS),
    "same": same_token(IDS),
    "induction": after_same_token(IDS),
}


@pytest.mark.parametrize("kind", KINDS)
def test_ideal_heads_score_one_and_self_attending_heads_zero(kind):
    itself = np.broadcast_to(np.eye(6), (2, 6, 6))
    weights = np.stack([perfect(KINDS[kind]), itself], axis=1)  # (batch, heads, queries, keys)
    np.testing.assert_allclose(head_scores(weights, KINDS[kind]), [1, 0])


def test_targets_match_a_loop():
    for row, ids in enumerate(IDS):
        for query, token in enumerate(ids):
            for key in range(6):
                earlier = key < query
                wanted = {
                    "previous": key == query - 1,
                    "same": earlier and ids[key] == token,
                    "induction": 0 < key <= query and ids[key - 1] == token and key - 1 < query,
                }
                for kind, targets in KINDS.items():
                    assert targets[row, query, key] == wanted[kind], (kind, row, query, key)


def test_scores_are_over_the_queries_that_have_a_target():
    targets = np.zeros((1, 3, 3), dtype=bool)
    targets[0, 2, :2] = True
    weights = np.array([[1.0, 0, 0], [0, 1, 0], [0.25, 0.5, 0.25]])[None, None]
    np.testing.assert_allclose(head_scores(weights, targets), [0.75])


def test_mismatched_shapes_and_texts_without_targets_are_refused():
    with pytest.raises(ValueError, match=r"expected weights .* got \(6, 6\), \(2, 6, 6\)"):
        head_scores(np.eye(6), KINDS["same"])
    with pytest.raises(ValueError, match="no query has a target"):
        head_scores(np.eye(3)[None, None], same_token([[1, 2, 3]]))
    for targets in (previous_token, same_token, after_same_token):
        with pytest.raises(ValueError, match=r"_token: ids must be \(batch, seq\), got \(2,\)"):
            targets([1, 2])

"""The check of the project: what is no draft, and that a draft is made of what it is given."""

import numpy as np
import pytest
from reports import solution

from tinytorch_book.exercises.smaller_and_faster import _texts, faster_draft
from tinytorch_book.experiments.distillation import own_stories

EVEN = np.full(512, 1 / 512)
SPOILT = [
    (2 * EVEN, "an array of shape (512,) which sums to 2.0, where"),
    (np.r_[-0.1, EVEN[1:]], "an array of shape (512,) with -0.1 in it, where"),
    (np.r_[np.nan, EVEN[1:]], "an array of shape (512,) with nan in it, where"),
    (EVEN[:100], "an array of shape (100,), where"),
]


@pytest.mark.parametrize(("q", "words"), SPOILT, ids=lambda value: str(value)[-20:])
def test_what_is_no_distribution_is_named(q, words):
    got = faster_draft(lambda texts, forecasts: lambda ids: q).cases[-1].got
    assert got == f"{words} 512 probabilities of sum 1 are asked for"


@pytest.mark.slow
def test_tables_of_other_stories_do_not_fit():
    inputs, targets, probs = own_stories(300, seed=21)
    known = targets >= 0
    texts = [ids[counts].tolist() for ids, counts in zip(inputs, known, strict=True)]
    forecasts = [p[counts].astype(float) for p, counts in zip(probs, known, strict=True)]
    outside = solution("faster_draft")(texts, forecasts)
    report = faster_draft(lambda texts, forecasts: outside)
    assert not report and report.cases[-1].got.endswith(" rejected")


@pytest.mark.slow
def test_the_ids_of_all_stories_are_renamed_alike():
    """Each is another token's; the forecasts go along."""
    named = {}
    for number, seed in ((150, 11), (40, 12)):
        inputs, targets, probs = own_stories(number, seed)
        texts, forecasts = _texts(number, seed)
        for at, (ids, rows) in enumerate(zip(texts, forecasts, strict=True)):
            before = inputs[at][targets[at] >= 0]
            assert all(named.setdefault(a, b) == b for a, b in zip(before, ids, strict=True))
            for a in (before[0], before[-1]):
                assert (rows[:, named[a]] == probs[at][targets[at] >= 0][:, a]).all()
            assert rows.sum(axis=1) == pytest.approx(1, abs=2e-3)
    assert sum(a == b for a, b in named.items()) < len(named) / 20
    assert len({*named.values()}) == len(named)

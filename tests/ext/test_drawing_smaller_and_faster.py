"""The drawing of "A smaller model, a faster one" says in words what it shows."""

import pytest
from drawings import DRAWINGS, after_smaller_and_faster

from tinytorch.models.speculative import acceptance_rate


def test_the_words_have_the_numbers_of_the_bars():
    target, draft = after_smaller_and_faster.TARGET, after_smaller_and_faster.DRAFT
    alt = DRAWINGS["smaller-and-faster"].alt
    assert sum(target) == pytest.approx(1) and sum(draft) == pytest.approx(1)
    (fox, fox_), (owl, owl_), (bear, bear_) = (
        (f"{100 * p:.0f}", f"{100 * q:.0f}") for p, q in zip(target, draft, strict=True)
    )
    assert f"Fox: the large model says {fox} %, the draft {fox_} %" in alt
    assert f"Owl: {owl} % and {owl_} %" in alt and f"Bear: {bear} % and {bear_} %" in alt
    kept = float(acceptance_rate(target, draft))
    assert f"{100 * kept:.0f} % of the drafts are kept" in alt
    assert [p > q for p, q in zip(target, draft, strict=True)] == [True, False, False]
